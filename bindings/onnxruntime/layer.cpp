#include "layer.h"

#include "failure.h"

namespace convtranspose::provider {

namespace {

constexpr const char *kNhwcDomain = "com.ms.internal.nhwc";

Attributes attributes_of(const Node &node) {
    Attributes a;
    a.auto_pad = node.string_attribute("auto_pad");
    a.dilations = node.ints_attribute("dilations");
    a.group = node.int_attribute("group").value_or(1);
    a.kernel_shape = node.ints_attribute("kernel_shape");
    a.output_padding = node.ints_attribute("output_padding");
    a.output_shape = node.ints_attribute("output_shape");
    a.pads = node.ints_attribute("pads");
    a.strides = node.ints_attribute("strides");
    return a;
}

// The Cast that makes f32 of constant 16-bit floats, if nothing else reads what it makes. ONNX Runtime computes it beforehand
// unless its optimizations are switched off.
std::optional<Node> cast_of(const Value &value, const IsFree &is_free) {
    const std::optional<Node> node = value.producer();
    if (!node || !node->is_op("Cast") || !is_free(*node) || !value.only_reader()) return std::nullopt;
    const Value from = node->input(0);
    const bool is_16_bit = from.element_type() == kElementFloat16 || from.element_type() == kElementBfloat16;
    return is_16_bit && from.is_constant() ? node : std::nullopt;
}

// A layer of floats. Constants that a DequantizeLinear or a Cast makes are floats as soon as the layer is compiled.
void read_floats(const Node &node, bool fuse, const IsFree &is_free, Layer *layer) {
    layer->x = node.input(0);
    layer->w = node.input(1);
    layer->b = node.input(2);
    layer->y = node.outputs().at(0);
    layer->nodes = {node};
    const std::optional<convt_dtype> dtype = dtype_of(layer->x.element_type());
    if (!dtype || *dtype == CONVT_U8 || *dtype == CONVT_S8 || *dtype == CONVT_S32) {
        throw Failure(kNotImplemented, layer->label + ": X has ONNX type " + std::to_string(layer->x.element_type()) +
                                           "; this provider takes FLOAT16, BFLOAT16, FLOAT and DOUBLE");
    }
    layer->problem.dtype = *dtype;
    if (!fuse || *dtype != CONVT_F32) return;
    for (auto *const input : {&layer->w, &layer->b}) {
        if (!*input) continue;
        if (const std::optional<Node> cast = cast_of(*input, is_free)) {
            layer->nodes.push_back(*cast);
            *input = cast->input(0);
            continue;
        }
        const std::optional<Dequantizer> by = dequantizer_of(*input, is_free);
        if (!by || !by->makes_constant()) continue;
        (input == &layer->w ? layer->w_dequantizer : layer->b_dequantizer) = by;
        layer->nodes.push_back(by->node);
        *input = by->x;
    }
}

} // namespace

bool Dequantizer::makes_constant() const {
    return x.is_constant() && can_read(x.element_type()) && scale.is_constant() &&
           (!zero_point || zero_point.is_constant()) && scale.element_type() == kElementFloat &&
           scale.shape().size() <= 1 && node.int_attribute("block_size").value_or(0) == 0;
}

std::int64_t Layer::channels() const {
    const Shape &w_shape = problem.w_shape;
    const std::int64_t group = problem.attributes.group;
    return w_shape.size() > 1 && w_shape[1] >= 0 && group >= 1 && w_shape[0] % group == 0 ? w_shape[1] * group : -1;
}

std::string Layer::description() const {
    std::string text = label;
    for (const Node &node : nodes) {
        const std::string other = node.label();
        if (other != label) text += " + " + other;
    }
    return text;
}

bool is_transposed_convolution(const Node &node) {
    return node.is_op("ConvTranspose") || node.is_op(kNhwcDomain, "QLinearConvTranspose");
}

Layer layer_of(const Node &node, bool fuse, const IsFree &is_free) {
    Layer layer;
    layer.label = node.label();
    layer.problem.opset = node.since_version();
    layer.problem.attributes = attributes_of(node);
    if (node.is_op(kNhwcDomain, "QLinearConvTranspose")) {
        read_qlinear(node, &layer);
    } else {
        std::optional<std::string> floats_because = "fusing is switched off";
        if (fuse) floats_because = quantize(node, is_free, &layer);
        if (floats_because) {
            if (fuse && !floats_because->empty()) layer.notes.push_back("computed in floats: " + *floats_because);
            read_floats(node, fuse, is_free, &layer);
        }
    }
    layer.problem.x_shape = layer.x.shape();
    layer.problem.w_shape = layer.w.shape();
    if (layer.b) layer.problem.b_shape = layer.b.shape();
    const bool float_output = layer.has_float_input() || layer.problem.y_dtype == CONVT_F32;
    if (fuse && float_output) fuse_followers(is_free, &layer);
    return layer;
}

} // namespace convtranspose::provider
