// Is a result what was expected?
#ifndef CONVTRANSPOSE_TOOLS_COMPARE_H_
#define CONVTRANSPOSE_TOOLS_COMPARE_H_

#include <string>

#include "tensor.h"

namespace convtranspose::tools {

struct Comparison {
    bool passed = false;
    std::string detail; // the largest error and how much of it is allowed there, or what is wrong
};

// Elementwise |y - expected| <= tolerance; infinities must agree in sign, and NaNs in place.
//
// Without a tolerance tensor it is
//     (terms + 4) * u_acc * max|expected| + 4 * u * |expected|
// where u is the unit roundoff of the type and u_acc that of the type sums are kept in (f32, for f64 itself): the error
// bound of a sum of `terms` products, with the largest magnitude of the output in place of the sum of magnitudes, which
// takes the inputs to know. Give a tolerance_0.pb where outputs cancel to far below what was summed.
Comparison compare(const Tensor &y, const Tensor &expected, const Tensor *tolerance, double terms);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_COMPARE_H_
