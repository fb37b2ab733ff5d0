// A layer as one line of text:
//
//     f32 nchw n1 g1 ic16 oc8 i5x5 k3x3 s2x2 p1x1_1x1 op1x1 d1x1 bias
//
// type, layout (nchw: channels first, nhwc: channels last, for any number of axes), batch, group, input and output
// channels, input and kernel extents; then what is given of
//
//     s strides   p pads (begins_ends)   op output_padding   os output_shape   d dilations
//     auto_SAME_UPPER   v11 (version of the operator, if not 22)   bias
//
// and of a quantized layer, whose type is u8 or s8, the types of weights and y: ws8 yu8 (which are what they are if not given).
// A layer of light weights, whose type is f32, has the type of those, wf16, wbf16, ws8 or wu8, and with 8 bits may have
//
//     dynamic (each run quantizes x)
//
// Tuning records name their layers so.
#ifndef CONVTRANSPOSE_TOOLS_PROBLEM_LINE_H_
#define CONVTRANSPOSE_TOOLS_PROBLEM_LINE_H_

#include <functional>
#include <optional>
#include <string>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose {

// A layout's name in a line, "nchw" or "nhwc"; and the layout of a name, if it is one of the two.
const char *layout_name(convt_layout layout);
std::optional<convt_layout> layout_of_name(const std::string &name);

// True if x is of floats and w of another type.
bool is_light(const Problem &problem);

// The line of a problem, without scales and zero points.
std::string to_line(const Problem &problem);

// The problem of a line. `other` is asked first for each token, and returns true if it took it. Throws std::invalid_argument, which
// names the token and the line.
Problem problem_of_line(const std::string &line, const std::function<bool(const std::string &token)> &other = {});

} // namespace convtranspose

#endif // CONVTRANSPOSE_TOOLS_PROBLEM_LINE_H_
