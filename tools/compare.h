// Compares a result with what was expected.
#ifndef CONVTRANSPOSE_TOOLS_COMPARE_H_
#define CONVTRANSPOSE_TOOLS_COMPARE_H_

#include <string>

#include "tools/tensor.h"

namespace convtranspose::tools {

struct Comparison {
    bool passed = false;
    std::string detail; // the largest error and how much of it is allowed there, or what is wrong
};

// Checks |y - expected| <= tolerance for each element. Infinities must agree in sign, and NaNs in place.
//
// Without a tolerance tensor the tolerance is
//     (terms + 4) * u_acc * max|expected| + 4 * u * |expected|
// where u is the unit roundoff of the type, and u_acc that of the type of the sums (f32, or f64 for f64). This is the error bound
// of a sum of `terms` products, with the largest magnitude of the output in place of the sum of magnitudes, which only the inputs
// tell. A test folder whose outputs cancel to far less than that sum needs a tolerance_0.pb.
Comparison compare(const Tensor &y, const Tensor &expected, const Tensor *tolerance, double terms);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_COMPARE_H_
