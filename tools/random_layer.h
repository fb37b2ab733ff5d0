// Random data to measure a layer with.
#ifndef CONVTRANSPOSE_TOOLS_RANDOM_LAYER_H_
#define CONVTRANSPOSE_TOOLS_RANDOM_LAYER_H_

#include <random>

#include "tools/tensor.h"

namespace convtranspose::tools {

inline bool is_integer(convt_dtype dtype) { return dtype == CONVT_U8 || dtype == CONVT_S8; }

// Throws Rejected or Error, as planning would, for a problem that breaks a rule. This is to be asked before memory is taken for its
// tensors.
void require_valid(const Problem &problem);

// Uniform values. Weights are scaled so that y is about 1 whatever the number of terms, which f16 needs; 8-bit integers cover their
// whole range, with scales that fill the range of y. The values are the same each time.
struct RandomLayer {
    explicit RandomLayer(const Problem &problem);
    Tensor like(const Tensor &tensor); // uniform in [-1, 1)

    Problem problem; // with w of 8 bits: with scales and zero points
    double terms;    // products in a sum, all taps together
    std::mt19937 generator;
    Tensor w, b, x; // b is empty if there is none
};

// Throws Error if y is not finite, all alike or saturated. Few elements, and those of a layer without multiply-adds, may be alike.
void require_plausible(const Tensor &y, double macs);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_RANDOM_LAYER_H_
