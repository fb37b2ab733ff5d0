// One line that repeats a problem, printed with every failure:
//
//     f32 nchw n1 g1 ic16 oc8 i5x5 k3x3 s2x2 p1x1_1x1 op1x1 d1x1 bias
//
// type, layout (nchw: channels first, nhwc: channels last, for any number of axes), batch, group, input and output
// channels, input and kernel extents; then what is given of
//
//     s strides   p pads (begins_ends)   op output_padding   os output_shape   d dilations
//     auto_SAME_UPPER   v11 (version of the operator, if not 22)   bias
//
// and of a quantized problem, whose type is u8 or s8, types and zero points: ws8 yu8 zx128 zw0 zy-3, pc (per channel), relu.
#ifndef CONVTRANSPOSE_TESTS_REFERENCE_DESCRIPTOR_H_
#define CONVTRANSPOSE_TESTS_REFERENCE_DESCRIPTOR_H_

#include <string>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose::test {

std::string describe(const Problem &problem);
Problem parse_problem(const std::string &line); // throws std::invalid_argument

// For the line of a run: the problem, the seed of its values and what was asked for.
std::string describe(const Problem &problem, std::uint64_t seed, const Options &options);

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_REFERENCE_DESCRIPTOR_H_
