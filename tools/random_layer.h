// Data to measure a layer with.
#ifndef CONVTRANSPOSE_TOOLS_RANDOM_LAYER_H_
#define CONVTRANSPOSE_TOOLS_RANDOM_LAYER_H_

#include <random>

#include "tensor.h"

namespace convtranspose::tools {

inline bool is_integer(convt_dtype dtype) { return dtype == CONVT_U8 || dtype == CONVT_S8; }

// Throws Rejected or Error, as planning would, for a problem that breaks a rule. To be asked before memory is taken for its tensors.
void require_valid(const Problem &problem);

// Uniform values, of weights scaled so that y is of order 1 whatever the number of terms, which f16 needs; 8-bit integers over
// their whole range, with scales that fill the range of y. The same each time.
struct RandomLayer {
    explicit RandomLayer(const Problem &problem);
    Tensor like(const Tensor &tensor); // uniform in [-1, 1)

    Problem problem; // quantized: with scales and zero points
    double terms;    // products in a sum, all taps together
    std::mt19937 generator;
    Tensor w, b, x; // b is empty if there is none
};

// Throws Error for a y that is not finite, all alike or saturated.
void require_plausible(const Tensor &y);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_RANDOM_LAYER_H_
