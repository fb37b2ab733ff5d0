// Finds DequantizeLinear -> ConvTranspose -> QuantizeLinear, by which ONNX says that a layer is to be computed in integers.
#include <algorithm>
#include <cmath>

#include "onnx_model.h"
#include "onnx_nodes.h"
#include "onnx_tensor.h"

namespace convtranspose::tools {

namespace {

bool is_8_bit(int data_type) { return data_type == onnx::TensorProto::UINT8 || data_type == onnx::TensorProto::INT8; }

// A quantized value, with its scale and zero point: what a DequantizeLinear takes, or what a QuantizeLinear gives.
struct Quantized {
    const onnx::NodeProto *node = nullptr;
    std::string value, scale, zero_point;

    Quantized(const onnx::NodeProto *n, const std::vector<std::string> &inputs) {
        if (!n || inputs.size() < 2) return;
        node = n;
        value = inputs[0];
        scale = inputs[1];
        if (inputs.size() > 2) zero_point = inputs[2];
    }
};

// The tensors of a layer, with their names in messages.
using Operands = std::vector<std::pair<const char *, const Quantized *>>;

bool is_single(const ValueType &type) {
    return type.shape && std::all_of(type.shape->begin(), type.shape->end(), [](std::int64_t n) { return n == 1; });
}

// The functions below return why a layer is computed in floats; empty: nothing that they look at is against integers.
std::string fault_of_types(const Model &model, const Operands &operands) {
    for (const auto &[what, q] : operands) {
        const int type = model.type_of(q->value).data_type;
        if (!is_8_bit(type)) return std::string(what) + " is quantized to " + onnx_type_name(type) + ", not to 8 bits";
    }
    for (const auto &[what, q] : operands) {
        const int type = model.type_of(q->scale).data_type;
        if (type != onnx::TensorProto::FLOAT)
            return std::string("the scale of ") + what + " is " + onnx_type_name(type);
    }
    return "";
}

std::string fault_of_scales(const Model &model, const Quantized &x, const Quantized &w, const Quantized &y) {
    if (!is_single(model.type_of(x.scale))) return "X has more than one scale";
    if (!is_single(model.type_of(y.scale))) return "its output has more than one scale";
    const ValueType scales = model.type_of(w.scale);
    if (is_single(scales)) return "";
    const ValueType weights = model.type_of(w.value);
    std::int64_t axis = int_attribute(*w.node, "axis", 1);
    if (axis < 0 && weights.shape) axis += static_cast<std::int64_t>(weights.shape->size());
    if (axis == 1 && scales.shape && scales.shape->size() == 1) return "";
    return "its weights have scales along axis " + std::to_string(axis) +
           ", and not only along that of output channels";
}

std::string fault_of_bias(const Model &model, const Quantized &x, const Quantized &w, const Quantized &b) {
    const int type = model.type_of(b.value).data_type;
    if (type != onnx::TensorProto::INT32) return "its bias is quantized to " + onnx_type_name(type) + ", not to INT32";
    if (!model.is_constant(x.scale) || !model.is_constant(w.scale) || !model.is_constant(b.scale)) return "";
    const Tensor x_scale = model.constant(x.scale), w_scale = model.constant(w.scale),
                 b_scale = model.constant(b.scale);
    for (std::size_t i = 0; i < b_scale.count(); i++) {
        const double product = x_scale.at(0) * w_scale.at(w_scale.count() == 1 ? 0 : i % w_scale.count());
        if (!(std::fabs(b_scale.at(i) - product) <= 1e-4 * std::fabs(product)))
            return "the scale of its bias is not that of X times that of its weights";
    }
    return "";
}

} // namespace

Node Model::with_neighbours(const Node &node) const {
    if (node.quantized) return node;
    const auto dequantized = [&](const std::string &value) {
        std::vector<std::string> inputs;
        const onnx::NodeProto *const by = value.empty() ? nullptr : producer(value, "DequantizeLinear", &inputs);
        return Quantized(by, inputs);
    };
    const Quantized x = dequantized(node.x), w = dequantized(node.w), b = dequantized(node.b);
    if (!x.node && !w.node) return node;
    const auto floats = [&](const std::string &why) {
        Node same = node;
        same.floats_because = why;
        return same;
    };
    if (!x.node) return floats("its input X comes from no DequantizeLinear");
    if (!w.node) return floats("its weights come from no DequantizeLinear");
    if (!node.b.empty() && !b.node) return floats("its bias comes from no DequantizeLinear");
    const Value *const output = find(node.y);
    if (!output || output->graph_output) return floats("its output is one of the graph, and no QuantizeLinear's alone");
    if (output->consumers.size() != 1 || !is_op(*output->consumers[0].node, "QuantizeLinear")) {
        std::string others;
        for (const Place &consumer : output->consumers)
            others += (others.empty() ? "" : ", ") + label_of(*consumer.node);
        return floats("its output goes to " + (others.empty() ? "nothing" : others) +
                      ", and to no QuantizeLinear alone");
    }
    const Place &quantizer = output->consumers[0];
    Quantized y(quantizer.node, inputs_of(*quantizer.node, quantizer.scope));
    if (!y.node || quantizer.node->output_size() != 1)
        return floats("the QuantizeLinear behind it lacks an input or output");
    y.value = resolve(quantizer.node->output(0), quantizer.scope);

    const int computed = type_of(node.x).data_type; // which a DequantizeLinear need not take from its scale
    if (computed != 0 && computed != onnx::TensorProto::FLOAT)
        return floats("X is dequantized to " + onnx_type_name(computed));
    std::string fault = fault_of_types(*this, {{"X", &x}, {"its weights", &w}, {"its output", &y}});
    if (fault.empty()) fault = fault_of_scales(*this, x, w, y);
    if (fault.empty() && b.node) fault = fault_of_bias(*this, x, w, b);
    if (!fault.empty()) return floats(fault);

    Node q = node;
    q.quantized = true;
    q.x = x.value;
    q.x_scale = x.scale;
    q.x_zero_point = x.zero_point;
    q.w = w.value;
    q.w_scale = w.scale;
    q.w_zero_point = w.zero_point;
    q.y = y.value;
    q.y_scale = y.scale;
    q.y_zero_point = y.zero_point;
    q.b = b.node ? b.value : "";
    return q;
}

} // namespace convtranspose::tools
