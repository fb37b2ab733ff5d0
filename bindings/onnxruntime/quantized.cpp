// Layers of 8-bit integers: DequantizeLinear -> ConvTranspose -> QuantizeLinear, by which ONNX says that a layer is to be computed
// in integers, and ONNX Runtime's own operator.
#include <algorithm>
#include <cmath>

#include "bindings/onnxruntime/prefer_floats.h"
#include "failure.h"
#include "layer.h"

namespace convtranspose::provider {

namespace {

bool is_8_bit(int element_type) { return element_type == kElementUint8 || element_type == kElementInt8; }

bool is_positive(double scale) { return scale > 0 && std::isfinite(scale); }

// The library's name of a type, or else ONNX's.
std::string type_name(int element_type) {
    if (const std::optional<convt_dtype> dtype = dtype_of(element_type)) return convt_dtype_name(*dtype);
    switch (element_type) {
    case kElementUint16: return "UINT16";
    case kElementInt16: return "INT16";
    case kElementUint4: return "UINT4";
    case kElementInt4: return "INT4";
    default: return "type " + std::to_string(element_type) + " of ONNX";
    }
}

// A scale, or a zero point, that must be one constant number. Returns why it is not.
std::optional<std::string> read_number(const Value &value, const char *what, double *number) {
    if (!value) return std::nullopt; // a zero point that is left out
    if (!value.is_constant()) return std::string(what) + " is no constant";
    const TensorRef tensor = value.constant();
    if (!tensor.is_single()) return std::string(what) + " is more than one number";
    *number = tensor.at(0);
    return std::nullopt;
}

// Reads the scale and the zero point of x or of y.
std::optional<std::string> read_scale(const Value &scale, const Value &zero, const std::string &of, float *scale_out,
                                      std::int32_t *zero_out) {
    double s = 0, z = 0;
    if (scale.element_type() != kElementFloat) return "the scale of " + of + " is " + type_name(scale.element_type());
    if (auto why = read_number(scale, ("the scale of " + of).c_str(), &s)) return why;
    if (auto why = read_number(zero, ("the zero point of " + of).c_str(), &z)) return why;
    if (!is_positive(s)) return "the scale of " + of + " is " + std::to_string(s) + ", not positive and finite";
    *scale_out = static_cast<float>(s);
    *zero_out = static_cast<std::int32_t>(z);
    return std::nullopt;
}

// The values of a list for each output channel. Those of one group are repeated for the others.
template<typename T>
std::vector<T> per_channel(const TensorRef &tensor, std::int64_t group) {
    std::vector<T> values;
    const std::int64_t times = tensor.count() == 1 ? 1 : group;
    for (std::int64_t g = 0; g < times; g++) {
        for (std::size_t i = 0; i < tensor.count(); i++) values.push_back(static_cast<T>(tensor.at(i)));
    }
    return values;
}

// The sums that a layer adds an s32 bias to have the scale of x times that of w, so the bias must have it as well.
std::optional<std::string> check_bias(const Dequantizer &b, const Quantization &q) {
    if (b.x.element_type() != kElementInt32) {
        return "its bias is quantized to " + type_name(b.x.element_type()) + ", not to s32";
    }
    if (!b.scale.is_constant()) return "the scale of its bias is no constant";
    const TensorRef scale = b.scale.constant();
    if (scale.count() == 0) return "its bias has no scale";
    for (std::size_t i = 0; i < std::max(q.w_scale.size(), scale.count()); i++) {
        const double product = static_cast<double>(q.x_scale) * q.w_scale[i % q.w_scale.size()];
        if (!(std::fabs(scale.at(i % scale.count()) - product) <= 1e-4 * product)) {
            return "the scale of its bias is not that of X times that of its weights";
        }
    }
    if (!b.zero_point) return std::nullopt;
    if (!b.zero_point.is_constant()) return "the zero point of its bias is no constant";
    const TensorRef zero = b.zero_point.constant();
    for (std::size_t i = 0; i < zero.count(); i++) {
        if (zero.at(i) != 0) return "its bias has a zero point other than 0";
    }
    return std::nullopt;
}

// The nodes from the convolution to the QuantizeLinear behind it.
struct Output {
    std::vector<Node> nodes;
    Value y;
    convt_dtype dtype = CONVT_U8;
};

std::optional<std::string> find_quantizer(const Value &y, const IsFree &is_free, Quantization *q, Output *output) {
    std::optional<Node> reader = y.only_reader();
    if (!reader || !is_free(*reader)) return "its output goes to no QuantizeLinear alone";
    Value input = y;
    if (const auto range = clamp_of(*reader)) {
        if (reader->input(0).name() != input.name()) return "its output is a bound of " + reader->label();
        q->y_range = range;
        output->nodes.push_back(*reader);
        input = reader->outputs().at(0);
        reader = input.only_reader();
        if (!reader || !is_free(*reader)) return "its output goes to no QuantizeLinear alone";
    }
    if (!reader->is_op("QuantizeLinear")) return "its output goes to " + reader->label() + ", and to no QuantizeLinear";
    if (reader->input(0).name() != input.name()) return "its output is a scale of " + reader->label();
    const Value quantized = reader->outputs().at(0);
    if (!is_8_bit(quantized.element_type())) {
        return "its output is quantized to " + type_name(quantized.element_type()) + ", not to 8 bits";
    }
    if (auto why = read_scale(reader->input(1), reader->input(2), "its output", &q->y_scale, &q->y_zero_point)) {
        return why;
    }
    output->nodes.push_back(*reader);
    output->y = quantized;
    output->dtype = *dtype_of(quantized.element_type());
    return std::nullopt;
}

// The DynamicQuantizeLinear whose three outputs are what a DequantizeLinear reads, if nothing else reads them.
std::optional<Node> dynamic_quantizer_of(const Dequantizer &x, const IsFree &is_free) {
    const std::optional<Node> node = x.x.producer();
    if (!node || !node->is_op("DynamicQuantizeLinear") || !is_free(*node)) return std::nullopt;
    const std::vector<Value> made = node->outputs();
    const std::array<Value, 3> read = {x.x, x.scale, x.zero_point};
    for (std::size_t i = 0; i < read.size(); i++) {
        if (!read[i] || read[i].name() != made[i].name() || !made[i].only_reader()) return std::nullopt;
    }
    return node;
}

} // namespace

std::optional<std::string> read_weight_scales(const Dequantizer &w, std::int64_t group, Quantization *q) {
    if (w.scale.element_type() != kElementFloat) {
        return "the scale of its weights is " + type_name(w.scale.element_type());
    }
    if (!w.scale.is_constant()) return "the scale of its weights is no constant";
    if (w.zero_point && !w.zero_point.is_constant()) return "the zero point of its weights is no constant";
    const TensorRef scale = w.scale.constant();
    const Shape weights = w.x.shape();
    if (scale.count() == 0) return "its weights have no scale";
    if (!scale.is_single()) {
        std::int64_t axis = w.node.int_attribute("axis").value_or(1);
        if (axis < 0) axis += static_cast<std::int64_t>(weights.size());
        if (axis != 1 || scale.shape.size() != 1) {
            return "its weights have scales along axis " + std::to_string(axis) +
                   ", and not only along that of output channels";
        }
        if (weights.size() < 2 || weights[1] != scale.shape[0]) {
            return "its weights have " + std::to_string(scale.shape[0]) +
                   " scales, and not one for each output channel of a group";
        }
        if (group < 1 || group > weights[0]) {
            return "its group is " + std::to_string(group) + ", of " + std::to_string(weights[0]) + " input channels";
        }
    }
    q->w_scale = per_channel<float>(scale, group);
    for (const float s : q->w_scale) {
        if (!is_positive(s)) return "a scale of its weights is " + std::to_string(s) + ", not positive and finite";
    }
    q->w_zero_point = {0};
    if (!w.zero_point) return std::nullopt;
    const TensorRef zero = w.zero_point.constant();
    if (zero.count() != scale.count()) return "its weights have another number of zero points than of scales";
    q->w_zero_point = per_channel<std::int32_t>(zero, group);
    return std::nullopt;
}

std::optional<Dequantizer> dequantizer_of(const Value &value, const IsFree &is_free) {
    if (!value) return std::nullopt;
    const std::optional<Node> node = value.producer();
    if (!node || !node->is_op("DequantizeLinear") || !is_free(*node) || !value.only_reader()) return std::nullopt;
    return Dequantizer{*node, node->input(0), node->input(1), node->input(2)};
}

std::optional<std::string> quantize(const Node &node, const IsFree &is_free, Layer *layer) {
    const Value bias = node.input(2);
    const auto x = dequantizer_of(node.input(0), is_free), w = dequantizer_of(node.input(1), is_free),
               b = dequantizer_of(bias, is_free);
    if (!x && !w) return "";
    if (!x) return "its input X comes from no DequantizeLinear that nothing else reads";
    if (!w) return "its weights come from no DequantizeLinear that nothing else reads";
    const int computed = node.input(0).element_type(); // which a DequantizeLinear need not take from its scale
    if (computed != kElementFloat) return "X is dequantized to " + type_name(computed);
    for (const auto &[what, value] : {std::pair("X is", x->x), {"its weights are", w->x}}) {
        const int type = value.element_type();
        if (type == 0) return std::string(what) + " of an unknown type";
        if (!is_8_bit(type)) return std::string(what) + " quantized to " + type_name(type) + ", not to 8 bits";
    }
    if (auto why = prefer_floats(layer->problem.attributes, w->x.shape(), w->x.is_constant())) return why;
    Quantization q;
    const std::optional<Node> dynamic = dynamic_quantizer_of(*x, is_free);
    if (!dynamic) {
        if (auto why = read_scale(x->scale, x->zero_point, "X", &q.x_scale, &q.x_zero_point)) return why;
    }
    if (auto why = read_weight_scales(*w, layer->problem.attributes.group, &q)) return why;
    Output output;
    std::optional<std::string> float_output = "x is quantized to u8 by each run";
    if (!dynamic) float_output = find_quantizer(node.outputs().at(0), is_free, &q, &output);
    if (!float_output && bias) float_output = b ? check_bias(*b, q) : "its bias comes from no DequantizeLinear";

    layer->x = dynamic ? dynamic->input(0) : x->x;
    layer->w = w->x;
    layer->problem.dtype = *dtype_of(layer->x.element_type());
    layer->problem.quantizes_x = dynamic ? 1 : 0;
    layer->problem.w_dtype = dtype_of(layer->w.element_type());
    layer->nodes = {node, x->node, w->node};
    if (dynamic) layer->nodes.push_back(*dynamic);
    if (!float_output) {
        if (b) {
            layer->b = b->x;
            layer->nodes.push_back(b->node);
        }
        layer->nodes.insert(layer->nodes.end(), output.nodes.begin(), output.nodes.end());
        layer->y = output.y;
        layer->problem.y_dtype = output.dtype;
        layer->problem.quantization = q;
        return std::nullopt;
    }
    layer->notes.push_back("y is f32: " + *float_output);
    q.y_range.reset();
    layer->y = node.outputs().at(0);
    layer->problem.y_dtype = CONVT_F32;
    layer->problem.quantization = q;
    layer->b = bias;
    if (b && b->makes_constant()) {
        layer->b = b->x;
        layer->b_dequantizer = b;
        layer->nodes.push_back(b->node);
    }
    return std::nullopt;
}

void read_qlinear(const Node &node, Layer *layer) {
    enum Input { kX, kXScale, kXZero, kW, kWScale, kWZero, kYScale, kYZero, kB };
    layer->x = node.input(kX);
    layer->w = node.input(kW);
    layer->b = node.input(kB);
    layer->y = node.outputs().at(0);
    layer->nodes = {node};
    layer->problem.layout = CONVT_CHANNELS_LAST;
    const int x = layer->x.element_type(), w = layer->w.element_type(), y = layer->y.element_type();
    if (!is_8_bit(x) || !is_8_bit(w) || !is_8_bit(y)) {
        throw Failure(kNotImplemented, layer->label + ": x, w and y are " + type_name(x) + ", " + type_name(w) +
                                           " and " + type_name(y) + ", must be u8 or s8");
    }
    layer->problem.dtype = *dtype_of(x);
    layer->problem.w_dtype = dtype_of(w);
    layer->problem.y_dtype = dtype_of(y);
    Quantization q;
    const auto require = [&](const std::optional<std::string> &why) {
        if (why) throw Failure(kNotImplemented, layer->label + ": " + *why);
    };
    require(read_scale(node.input(kXScale), node.input(kXZero), "x", &q.x_scale, &q.x_zero_point));
    require(read_scale(node.input(kYScale), node.input(kYZero), "y", &q.y_scale, &q.y_zero_point));
    for (const int i : {kWScale, kWZero}) {
        const Value value = node.input(static_cast<std::size_t>(i));
        if (!value.is_constant()) require("the scale or the zero point of w is no constant");
        if (i == kWScale) q.w_scale = per_channel<float>(value.constant(), 1);
        if (i == kWZero) q.w_zero_point = per_channel<std::int32_t>(value.constant(), 1);
    }
    layer->problem.quantization = q;
}

} // namespace convtranspose::provider
