// A layer as Python's arguments describe it, as a Problem and Options of the library.
#pragma once

#include <convtranspose/convtranspose.hpp>
#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>

namespace convtranspose::python {

/// The integers of a sequence, or none for None. A single integer stands for `count` equal ones.
/// Raises TypeError for anything else.
Ints ints(nanobind::handle object, const char *name, std::size_t count);

/// The same of a shape. Raises TypeError for None too.
Shape shape_argument(nanobind::handle object, const char *name);

/// The text of a Python string, kept as long as the string is. Raises ValueError if it holds a NUL, where C's texts end.
const char *text(nanobind::handle string, const char *name);

/// One real: a number, or an array of one element. Raises TypeError for anything else.
float real(nanobind::handle object, const char *name);

/// Reals: a number, or an array or a sequence of them. Raises TypeError for anything else.
std::vector<float> reals(nanobind::handle object, const char *name);

/// One integer: a number, or an array of one element. Raises TypeError for anything else.
std::int32_t integer(nanobind::handle object, const char *name);

/// One integer of 64 bits, likewise.
std::int64_t large_integer(nanobind::handle object, const char *name);

/// Returns whether the object is a bool, of Python or of numpy.
bool is_flag(nanobind::handle object);

/// True or False, Python's or numpy's. Raises TypeError for anything else.
bool flag(nanobind::handle object, const char *name);

/// Integers: a number, or an array or a sequence of them. Raises TypeError for anything else.
std::vector<std::int32_t> integers(nanobind::handle object, const char *name);

/// The attributes of the node, each None or as ONNX has it; see convt_attributes.
struct AttributeArguments {
    nanobind::object strides, pads, dilations, output_padding, output_shape, auto_pad, kernel_shape;
    std::int64_t group = 1;
};

/// Reads attributes. `axes` is the number of spatial axes.
Attributes attributes(const AttributeArguments &arguments, std::size_t axes);

/// Scales and zero points, each None or as QLinearConvTranspose has it; see convt_quantization.
struct QuantizationArguments {
    nanobind::object x_scale, x_zero_point, w_scale, w_zero_point, y_scale, y_zero_point, y_range;
};

/// Reads scales and zero points: none if all are None. Raises TypeError if some are given and one that the layer needs is missing,
/// and ValueError for others than those of w if x is a float. x, y: the types of the layer.
std::optional<Quantization> quantization(const QuantizationArguments &arguments, convt_dtype x, convt_dtype y);

/// Reads "relu", "sigmoid" or "tanh", or ("leaky_relu", slope) or ("clip", least, greatest), or None.
PostOps post_ops(nanobind::handle activation, bool adds_residual);

/// Reads "nchw" or "nhwc", which stand for any number of axes, or "channels_first" or "channels_last".
/// Raises TypeError for what is no string, and ValueError for another one.
convt_layout layout(nanobind::handle name);

} // namespace convtranspose::python
