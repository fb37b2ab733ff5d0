#include "problem/geometry.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/division.h"
#include "base/error.h"

namespace convtranspose {

namespace {

// Kernels index with 32 bits.
constexpr std::int64_t kMaxExtent = std::numeric_limits<std::int32_t>::max();

// Strides, dilations, pads and the natural size are less than this. The sum of two of them, a phase and an extent then fits
// in 64 bits wherever geometry is computed.
constexpr std::int64_t kMaxAttribute = std::int64_t{1} << 61;

bool given(const convt_ints &list) { return list.data != nullptr; }

Shape to_shape(const convt_ints &list) { return given(list) ? Shape(list.data, list.data + list.size) : Shape(); }

const char *must_be(std::int64_t least) { return least == 1 ? " must be positive" : " must not be negative"; }

// Checks the elements of a shape from `first` on: they are at least `least`, 0 or 1, and a kernel can index them.
Status check_extents(const char *name, const Shape &shape, std::size_t first, std::int64_t least) {
    for (std::size_t i = first; i < shape.size(); ++i) {
        if (shape[i] < least) return invalid(element(name, i), " = ", shape[i], must_be(least));
        if (shape[i] > kMaxExtent) return overflow(element(name, i), " = ", shape[i], " exceeds ", kMaxExtent);
    }
    return Status();
}

// The rule of an attribute that has values for each spatial axis.
struct ListRule {
    const char *name;
    int of_axis; // one value or two
    std::int64_t missing, least;
};
constexpr ListRule kStrides = {"strides", 1, 1, 1}, kDilations = {"dilations", 1, 1, 1},
                   kOutputPadding = {"output_padding", 1, 0, 0}, kPads = {"pads", 2, 0, 0};

// Reads such an attribute. On success *values holds its values, or as many times `missing`.
Status read_list(const ListRule &rule, const convt_ints &list, std::size_t axes, Shape *values) {
    const char *const name = rule.name;
    const std::size_t size = static_cast<std::size_t>(rule.of_axis) * axes;
    if (given(list) && list.size != size) {
        return invalid(name, " has ", list.size, " elements, needs ", size, " (", rule.of_axis == 1 ? "one" : "two",
                       " per spatial axis)");
    }
    *values = given(list) ? to_shape(list) : Shape(size, rule.missing);
    for (std::size_t i = 0; i < size; ++i) {
        const std::int64_t value = (*values)[i];
        if (value < rule.least) return invalid(element(name, i), " = ", value, must_be(rule.least));
        if (value >= kMaxAttribute) {
            return overflow(element(name, i), " = ", value, " does not fit: must be less than 2^61");
        }
    }
    return Status();
}

// Reads a shape and checks that a kernel can index each of its extents.
Status read_shape(const char *name, const convt_ints &list, Shape *shape) {
    if (!given(list)) return invalid(name, " is missing");
    if (list.size > static_cast<std::size_t>(kMaxExtent)) {
        return overflow(name, " has ", list.size, " elements, may have at most ", kMaxExtent);
    }
    *shape = to_shape(list);
    return check_extents(name, *shape, 0, 0);
}

Status check_bytes(const char *name, const Shape &shape, convt_dtype dtype) {
    if (has_no_elements(shape)) return Status();
    std::int64_t bytes = size_of(dtype);
    for (const std::int64_t extent : shape) {
        if (__builtin_mul_overflow(bytes, extent, &bytes)) {
            return overflow(name, " of shape ", to_string(shape), " and type ", convt_dtype_name(dtype),
                            " does not fit in 2^63 - 1 bytes");
        }
    }
    return Status();
}

enum class AutoPad { notset, same_upper, same_lower, valid };

Status read_auto_pad(const char *text, AutoPad *auto_pad) {
    static constexpr std::pair<const char *, AutoPad> kNames[] = {{"NOTSET", AutoPad::notset},
                                                                  {"SAME_UPPER", AutoPad::same_upper},
                                                                  {"SAME_LOWER", AutoPad::same_lower},
                                                                  {"VALID", AutoPad::valid}};
    for (const auto &[name, value] : kNames) {
        *auto_pad = value;
        if (std::strcmp(text ? text : "NOTSET", name) == 0) return Status();
    }
    return invalid("auto_pad = \"", text, "\" is not one of NOTSET, SAME_UPPER, SAME_LOWER, VALID");
}

// Computes the output extent before padding is subtracted: stride * (in - 1) + output_padding + (kernel - 1) * dilation + 1. It
// is negative where the input is empty and the stride exceeds the other terms.
Status natural_extent(const AxisGeometry &axis, std::size_t i, std::int64_t *natural) {
    std::int64_t last_input = 0, last_tap = 0;
    const bool fits = !__builtin_mul_overflow(axis.stride, axis.in - 1, &last_input) && last_input < kMaxAttribute &&
                      !__builtin_mul_overflow(axis.dilation, axis.kernel - 1, &last_tap) && last_tap < kMaxAttribute;
    if (fits) *natural = last_input + last_tap + axis.output_padding + 1; // four terms, each at most 2^61
    if (!fits || *natural >= kMaxAttribute) {
        return overflow("the output size of spatial axis ", i, " does not fit: strides[", i, "] = ", axis.stride,
                        " * (", axis.in, " - 1) + output_padding[", i, "] = ", axis.output_padding, " + (", axis.kernel,
                        " - 1) * dilations[", i, "] = ", axis.dilation, " + 1 must be less than 2^61");
    }
    return Status();
}

// This holds the padding attributes of all axes.
struct Padding {
    AutoPad auto_pad = AutoPad::notset;
    Shape pads;         // begins, then ends
    Shape output_shape; // spatial axes only; empty: not given
};

// Computes the output extent and the pads of one axis whose other fields are set, alike for every version of the operator:
//   output_shape given: the excess of the natural size over it is padding; its own excess is added at the end
//   SAME_*:             the excess of the natural size over in * stride is padding; never negative
//   otherwise:          pads
// An odd element of padding goes to the end for SAME_UPPER and to the beginning otherwise.
Status pad_axis(const Padding &padding, std::size_t axes, std::size_t i, AxisGeometry *axis) {
    std::int64_t natural = 0;
    TRY(natural_extent(*axis, i, &natural));

    const bool same = padding.auto_pad == AutoPad::same_upper || padding.auto_pad == AutoPad::same_lower;
    if (!padding.output_shape.empty() || same) {
        std::int64_t total = 0;
        if (!padding.output_shape.empty()) {
            axis->out = padding.output_shape[i];
            total = std::max<std::int64_t>(0, natural - axis->out);
        } else {
            total = std::max<std::int64_t>(0, natural - axis->in * axis->stride); // fits, as natural does
            axis->out = natural - total;
        }
        axis->pad_begin = padding.auto_pad == AutoPad::same_upper ? total / 2 : total - total / 2;
    } else {
        axis->pad_begin = padding.pads[i];
        axis->out = natural - axis->pad_begin - padding.pads[axes + i];
    }

    if (axis->out <= 0) {
        return invalid("the output size of spatial axis ", i, " is ", axis->out, " = ", natural, " - ", axis->pad_begin,
                       " - ", axis->pad_end(), " (natural size less pads), must be positive");
    }
    if (axis->out > kMaxExtent) {
        return overflow("the output size of spatial axis ", i, " is ", axis->out, ", exceeds ", kMaxExtent);
    }
    return Status();
}

Status read_output_shape(const convt_ints &list, std::size_t axes, Shape *output_shape) {
    output_shape->clear();
    if (!given(list) || list.size == 0) return Status();
    if (list.size != axes && list.size != axes + 2) {
        return invalid("output_shape has ", list.size, " elements, needs ", axes, " (one per spatial axis) or ",
                       axes + 2, " (N and C in front)");
    }
    *output_shape = to_shape(list);
    const std::size_t skip = output_shape->size() - axes; // N and C carry no information, and are not looked at
    TRY(check_extents("output_shape", *output_shape, skip, 1));
    output_shape->erase(output_shape->begin(), output_shape->begin() + static_cast<std::ptrdiff_t>(skip));
    return Status();
}

bool is_integer(int dtype) { return dtype == CONVT_U8 || dtype == CONVT_S8; }

// The name of a type, or the number that is none.
std::string type_text(int dtype) {
    const auto type = static_cast<convt_dtype>(dtype);
    return convt_dtype_size(type) > 0 ? convt_dtype_name(type) : std::to_string(dtype);
}

Status resolve_types(const convt_problem &problem, Geometry *geometry) {
    const int x = raw(problem.dtype);
    if ((x < CONVT_F16 || x > CONVT_F64) && !is_integer(x)) {
        return invalid("dtype = ", type_text(x), " is not one of f16, bf16, f32, f64, u8, s8");
    }
    const int w = raw(problem.w_dtype) ? raw(problem.w_dtype) : x, y = raw(problem.y_dtype) ? raw(problem.y_dtype) : x;
    if (is_integer(x)) {
        if (!is_integer(w)) return invalid("w_dtype = ", type_text(w), " must be u8 or s8, as x is quantized");
        if (!is_integer(y) && y != CONVT_F32) {
            return invalid("y_dtype = ", type_text(y), " must be u8, s8 or f32, as x is quantized");
        }
    } else {
        if (y != x) return invalid("y_dtype = ", type_text(y), " must be that of x, ", type_text(x));
        const bool is_light = w == CONVT_F16 || w == CONVT_BF16 || is_integer(w);
        if (w != x && x != CONVT_F32) return invalid("w_dtype = ", type_text(w), " must be that of x, ", type_text(x));
        if (w != x && !is_light) {
            return invalid("w_dtype = ", type_text(w), " must be f32, f16, bf16, u8 or s8, as x is f32");
        }
        if (problem.quantization && !is_integer(w)) return invalid("quantization is given, but w is ", type_text(w));
        if (problem.quantization && problem.quantization->y_range) {
            return invalid("y_range is given, but x is f32: a clip is among the post_ops");
        }
    }
    if (problem.quantizes_x && (x != CONVT_F32 || !is_integer(w))) {
        return invalid("quantizes_x = ", problem.quantizes_x, " is for x of f32 and w of u8 or s8; x is ", type_text(x),
                       " and w ", type_text(w));
    }
    geometry->dtype = problem.dtype;
    geometry->w_dtype = static_cast<convt_dtype>(w);
    geometry->y_dtype = static_cast<convt_dtype>(y);
    geometry->b_dtype = !is_integer(x) ? problem.dtype : y == CONVT_F32 ? CONVT_F32 : CONVT_S32;
    geometry->quantizes_x = problem.quantizes_x != 0;
    return Status();
}

// Resolves shapes, channels and bias: everything but the spatial attributes.
Status resolve_channels(const convt_problem &problem, Geometry *geometry) {
    if (problem.opset < 1) return invalid("opset = ", problem.opset, " must be at least 1");
    const int layout = raw(problem.layout);
    TRY(resolve_types(problem, geometry));
    if (layout != CONVT_CHANNELS_FIRST && layout != CONVT_CHANNELS_LAST) {
        return invalid("layout = ", layout, " is neither channels first nor channels last");
    }
    geometry->layout = problem.layout;

    Shape &x = geometry->x_shape, &w = geometry->w_shape;
    TRY(read_shape("x_shape", problem.x_shape, &x));
    if (x.size() < 3) return invalid("x_shape has ", x.size(), " elements, needs at least 3 (N, C and a spatial axis)");
    if (given(problem.w_shape) && problem.w_shape.size != x.size()) { // before anything of it is read
        return invalid("w_shape has ", problem.w_shape.size, " elements, needs ", x.size(), " (the rank of x)");
    }
    TRY(read_shape("w_shape", problem.w_shape, &w));
    TRY(check_bytes("x", x, problem.dtype));
    TRY(check_bytes("w", w, geometry->w_dtype));

    const std::size_t channel_axis = dimension_order(problem.layout, x.size()).channel;
    geometry->batch = x[0];
    geometry->in_channels = x[channel_axis];
    geometry->group = problem.attributes->group;
    if (geometry->group <= 0) return invalid("group = ", geometry->group, " must be positive");
    if (geometry->in_channels % geometry->group != 0) {
        return invalid("x_shape[", channel_axis, "] = ", geometry->in_channels,
                       " (input channels) is not divisible by group = ", geometry->group);
    }
    if (w[0] != geometry->in_channels) {
        return invalid("w_shape[0] = ", w[0], " does not match x_shape[", channel_axis, "] = ", geometry->in_channels,
                       " (input channels)");
    }
    if (__builtin_mul_overflow(w[1], geometry->group, &geometry->out_channels) || geometry->out_channels > kMaxExtent) {
        return overflow("output channels w_shape[1] * group = ", w[1], " * ", geometry->group, " exceed ", kMaxExtent);
    }

    geometry->has_bias = given(problem.b_shape);
    if (geometry->has_bias && problem.b_shape.size > x.size()) { // too many for a message, and maybe to be read
        return invalid("b_shape has ", problem.b_shape.size, " elements, needs 1");
    }
    if (geometry->has_bias && to_shape(problem.b_shape) != Shape{geometry->out_channels}) {
        return invalid("b_shape = ", to_string(to_shape(problem.b_shape)), " must be (", geometry->out_channels,
                       "), the output channels w_shape[1] * group");
    }
    return Status();
}

// Resolves the spatial axes. It needs the fields that resolve_channels() fills.
Status resolve_axes(const convt_attributes &attributes, Geometry *geometry) {
    const std::size_t axes = geometry->x_shape.size() - 2;
    const Shape kernel(geometry->w_shape.begin() + 2, geometry->w_shape.end());
    if (given(attributes.kernel_shape)) {
        const convt_ints &expected = attributes.kernel_shape;
        if (expected.size != axes) {
            return invalid("kernel_shape has ", expected.size, " elements, needs ", axes, " (one per spatial axis)");
        }
        for (std::size_t i = 0; i < axes; ++i) {
            if (expected.data[i] == kernel[i]) continue;
            return invalid("kernel_shape[", i, "] = ", expected.data[i], " does not match w_shape[", i + 2,
                           "] = ", kernel[i]);
        }
    }
    for (std::size_t i = 0; i < axes; ++i) {
        if (kernel[i] <= 0) return invalid("w_shape[", i + 2, "] = ", kernel[i], " (kernel extent) must be positive");
    }

    Shape strides, dilations, output_padding;
    Padding padding;
    TRY(read_list(kStrides, attributes.strides, axes, &strides));
    TRY(read_list(kDilations, attributes.dilations, axes, &dilations));
    TRY(read_list(kOutputPadding, attributes.output_padding, axes, &output_padding));
    for (std::size_t i = 0; i < axes; ++i) {
        const std::int64_t limit = std::max(strides[i], dilations[i]);
        if (output_padding[i] < limit) continue;
        return invalid("output_padding[", i, "] = ", output_padding[i],
                       " must be less than max(stride, dilation) = ", limit);
    }
    TRY(read_auto_pad(attributes.auto_pad, &padding.auto_pad));
    TRY(read_list(kPads, attributes.pads, axes, &padding.pads));
    if (given(attributes.pads) && padding.auto_pad != AutoPad::notset)
        return invalid("pads cannot be given together with auto_pad = \"", attributes.auto_pad, "\"");
    TRY(read_output_shape(attributes.output_shape, axes, &padding.output_shape));

    const std::size_t first = geometry->dimensions().first_axis;
    for (std::size_t i = 0; i < axes; ++i) {
        AxisGeometry axis;
        axis.in = geometry->x_shape[first + i];
        axis.kernel = kernel[i];
        axis.stride = strides[i];
        axis.dilation = dilations[i];
        axis.output_padding = output_padding[i];
        TRY(pad_axis(padding, axes, i, &axis));
        geometry->axes.push_back(axis);
    }
    return Status();
}

Status resolve_post_ops(const convt_post_ops &p, Geometry *geometry) {
    switch (const int activation = raw(p.activation)) {
    case CONVT_NO_ACTIVATION:
    case CONVT_RELU:
    case CONVT_SIGMOID:
    case CONVT_TANH: break;
    case CONVT_LEAKY_RELU:
        if (!std::isfinite(p.alpha)) return invalid("post_ops.alpha = ", p.alpha, " must be finite: it is a slope");
        break;
    case CONVT_CLIP:
        if (p.alpha <= p.beta) break;
        return invalid("post_ops.alpha = ", p.alpha, " must be at most post_ops.beta = ", p.beta);
    default: return invalid("post_ops.activation = ", activation, " is not a convt_activation");
    }
    const bool any = p.adds_residual || p.activation != CONVT_NO_ACTIVATION;
    if (any && (geometry->y_dtype == CONVT_U8 || geometry->y_dtype == CONVT_S8)) {
        return invalid("post_ops are given, but y is ", convt_dtype_name(geometry->y_dtype),
                       ": an 8-bit y is clamped by its y_range");
    }
    geometry->post_ops = {p.adds_residual, p.activation, p.alpha, p.beta};
    return Status();
}

} // namespace

AxisGeometry::Inputs AxisGeometry::read_by(std::int64_t begin, std::int64_t end) const {
    if (in == 0) return {0, 0};
    const std::int64_t first = ceil_div(begin + pad_begin - (kernel - 1) * dilation, stride),
                       last = floor_div(end - 1 + pad_begin, stride),
                       inside = std::clamp<std::int64_t>(first, 0, in - 1);
    return {inside, std::clamp<std::int64_t>(last + 1, inside + 1, in)};
}

void Geometry::set_shapes() {
    x_shape = y_shape = {batch};
    w_shape = {in_channels, out_channels_per_group()};
    b_shape = {out_channels};
    for (const AxisGeometry &axis : axes) {
        x_shape.push_back(axis.in);
        w_shape.push_back(axis.kernel);
        y_shape.push_back(axis.out);
    }
    const auto channel = static_cast<std::ptrdiff_t>(dimension_order(layout, w_shape.size()).channel);
    x_shape.insert(x_shape.begin() + channel, in_channels);
    y_shape.insert(y_shape.begin() + channel, out_channels);
}

AxisGeometry pointwise_axis(std::int64_t extent) {
    AxisGeometry axis;
    axis.in = axis.out = extent;
    axis.kernel = 1;
    return axis;
}

Status resolve(const convt_problem &problem, Geometry *geometry) {
    Geometry resolved;
    TRY(resolve_channels(problem, &resolved));
    TRY(resolve_axes(*problem.attributes, &resolved));
    resolved.set_shapes();
    TRY(check_bytes("y", resolved.y_shape, resolved.y_dtype));
    TRY(resolve_post_ops(*problem.post_ops, &resolved));
    *geometry = std::move(resolved);
    return Status();
}

std::vector<std::size_t> without_unit_axes(const Geometry &geometry) {
    const std::size_t rank = geometry.x_shape.size(), first = geometry.dimensions().first_axis;
    std::vector<std::size_t> left;
    std::size_t axes = geometry.axes.size();
    for (std::size_t i = rank; i-- > 0;) {
        const bool is_axis = i >= first && i < first + geometry.axes.size();
        if (is_axis && axes > 1 && is_unit(geometry.axes[i - first])) {
            axes--;
        } else {
            left.push_back(i);
        }
    }
    std::reverse(left.begin(), left.end());
    return left;
}

Geometry with_dimensions(const Geometry &geometry, const std::vector<std::size_t> &dimensions) {
    const std::size_t axes = geometry.axes.size(), first = geometry.dimensions().first_axis;
    Geometry g = geometry;
    if (dimensions.size() < geometry.x_shape.size()) g.given_x_shape = geometry.x_shape;
    g.axes.clear();
    for (const std::size_t i : dimensions) {
        if (i >= first && i < first + axes) g.axes.push_back(geometry.axes[i - first]);
    }
    g.set_shapes();
    if (volume(g.w_shape) > 0) return g;
    // Without weights, y is the bias or has no elements. Groups and extents that bound no tensor's size are dropped.
    g.given_x_shape = geometry.x_shape;
    g.group = 1;
    const bool has_outputs = volume(g.y_shape) > 0;
    for (AxisGeometry &axis : g.axes) {
        const std::int64_t out = has_outputs ? axis.out : 1;
        axis = pointwise_axis(1);
        axis.out = out;
    }
    g.set_shapes();
    return g;
}

double count_macs(const Geometry &geometry) {
    double macs = real(geometry.batch) * real(geometry.in_channels) * real(geometry.out_channels_per_group());
    for (const AxisGeometry &axis : geometry.axes) {
        if (macs == 0) return 0;
        // Input i and kernel element k meet at i * stride + k * dilation - pad_begin. For each of the fewer ones, count
        // the others that land inside the output.
        std::int64_t fewer = axis.kernel, fewer_step = axis.dilation, others = axis.in, others_step = axis.stride;
        if (others < fewer) {
            std::swap(fewer, others);
            std::swap(fewer_step, others_step);
        }
        double pairs = 0;
        for (std::int64_t i = 0; i < fewer; ++i) {
            const std::int64_t position = i * fewer_step - axis.pad_begin; // the other's first element contributes here
            const std::int64_t first = std::max<std::int64_t>(0, -floor_div(position, others_step));
            const std::int64_t last = std::min(others - 1, floor_div(axis.out - 1 - position, others_step));
            if (first <= last) pairs += real(last - first + 1);
        }
        macs *= pairs;
    }
    return macs;
}

} // namespace convtranspose
