// Quantized problems: what the tests give them for scales and zero points, and what y must be then.
#ifndef CONVTRANSPOSE_TESTS_REFERENCE_QUANTIZED_H_
#define CONVTRANSPOSE_TESTS_REFERENCE_QUANTIZED_H_

#include <cstdint>

#include "convtranspose/convtranspose.hpp"
#include "reference/reference.h"
#include "reference/tensor.h"

namespace convtranspose::test {

inline bool is_quantized(convt_dtype x) { return x == CONVT_U8 || x == CONVT_S8; }

// Those facts of a quantized problem that a descriptor tells; its scales follow from them and the shapes.
struct QuantizedAs {
    convt_dtype w = CONVT_S8, y = CONVT_U8;
    std::int32_t x_zero_point = 0, w_zero_point = 0, y_zero_point = 0;
    bool per_channel = false; // a scale, and a zero point around w_zero_point, for each output channel
    bool relu = false;        // y >= 0
};

// Types, zero points, and scales with which most outputs of values over the whole 8 bits fit in 8 bits, but not all.
// problem->dtype is set already, and so are its shapes.
void quantize(Problem *problem, const QuantizedAs &as);
QuantizedAs quantized_as(const Problem &problem);

// Any types, zero points in the middle, at the ends and between, per channel or not.
QuantizedAs random_quantized_as(convt_dtype x, Random *random);

// Puts a NaN or an infinity into the bias of some quantized problems, by their seeds, where it is of floats.
void spoil_bias(const Problem &problem, std::uint64_t seed, Inputs *inputs);

// Makes weights of f32 light ones of a type. Those of 8 bits have scales for each output channel if there are any, and so they have
// zero points around `zero_point`, unless that is the middle of the type.
void make_light(Problem *problem, convt_dtype w_dtype, std::int32_t zero_point = 0);

// The same layer with what light weights, or an x that each run quantizes, are converted to.
struct Converted {
    Problem problem;
    Inputs inputs;
};
Converted convert(const Problem &problem, const Inputs &inputs);

// y by the definition: exact sums, then factors, their product with the sum and what is added to it in f32, each rounded, as
// convtranspose.h says. There is no tolerance.
Expected quantized_reference(const Problem &problem, const Inputs &inputs);

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_REFERENCE_QUANTIZED_H_
