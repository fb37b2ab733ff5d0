// Finds DequantizeLinear -> ConvTranspose -> QuantizeLinear, by which ONNX says that a layer is to be computed in integers, and
// weights that DequantizeLinear or Cast makes f32.
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

std::string fault_of_weight_scales(const Model &model, const Quantized &w) {
    const ValueType scales = model.type_of(w.scale);
    if (is_single(scales)) return "";
    const ValueType weights = model.type_of(w.value);
    std::int64_t axis = int_attribute(*w.node, "axis", 1);
    if (axis < 0 && weights.shape) axis += static_cast<std::int64_t>(weights.shape->size());
    if (axis == 1 && scales.shape && scales.shape->size() == 1) return "";
    return "its weights have scales along axis " + std::to_string(axis) +
           ", and not only along that of output channels";
}

std::string fault_of_scales(const Model &model, const Quantized &x, const Quantized &w, const Quantized &y) {
    if (!is_single(model.type_of(x.scale))) return "X has more than one scale";
    if (!is_single(model.type_of(y.scale))) return "its output has more than one scale";
    return fault_of_weight_scales(model, w);
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
    Node result = node;
    if (!node.quantized) result.floats_because = quantize(&result);
    if (!result.quantized) lighten(&result);
    return result;
}

// Makes the node the quantized layer that it is with the nodes around it, or returns why it is none; empty: there is nothing quantized.
std::string Model::quantize(Node *node) const {
    const auto dequantized = [&](const std::string &value) {
        std::vector<std::string> inputs;
        const onnx::NodeProto *const by = value.empty() ? nullptr : producer(value, "DequantizeLinear", &inputs);
        return Quantized(by, inputs);
    };
    const Quantized x = dequantized(node->x), w = dequantized(node->w), b = dequantized(node->b);
    if (!x.node && !w.node) return "";
    if (!x.node) return "its input X comes from no DequantizeLinear";
    if (!w.node) return "its weights come from no DequantizeLinear";
    if (!node->b.empty() && !b.node) return "its bias comes from no DequantizeLinear";
    const Value *const output = find(node->y);
    if (!output || output->graph_output) return "its output is one of the graph, and no QuantizeLinear's alone";
    if (output->consumers.size() != 1 || !is_op(*output->consumers[0].node, "QuantizeLinear")) {
        std::string others;
        for (const Place &consumer : output->consumers)
            others += (others.empty() ? "" : ", ") + label_of(*consumer.node);
        return "its output goes to " + (others.empty() ? "nothing" : others) + ", and to no QuantizeLinear alone";
    }
    const Place &quantizer = output->consumers[0];
    Quantized y(quantizer.node, inputs_of(*quantizer.node, quantizer.scope));
    if (!y.node || quantizer.node->output_size() != 1) return "the QuantizeLinear behind it lacks an input or output";
    y.value = resolve(quantizer.node->output(0), quantizer.scope);

    const int computed = type_of(node->x).data_type; // which a DequantizeLinear need not take from its scale
    if (computed != 0 && computed != onnx::TensorProto::FLOAT) return "X is dequantized to " + onnx_type_name(computed);
    std::string fault = fault_of_types(*this, {{"X", &x}, {"its weights", &w}, {"its output", &y}});
    if (fault.empty()) fault = fault_of_scales(*this, x, w, y);
    if (fault.empty() && b.node) fault = fault_of_bias(*this, x, w, b);
    if (!fault.empty()) return fault;

    node->quantized = true;
    node->x = x.value;
    node->x_scale = x.scale;
    node->x_zero_point = x.zero_point;
    node->w = w.value;
    node->w_scale = w.scale;
    node->w_zero_point = w.zero_point;
    node->y = y.value;
    node->y_scale = y.scale;
    node->y_zero_point = y.zero_point;
    node->b = b.node ? b.value : "";
    return "";
}

// Takes the weights of a layer of f32 as they are before a Cast or a DequantizeLinear, and x before it is quantized dynamically.
void Model::lighten(Node *node) const {
    const auto is_f32 = [](int type) {
        return type == 0 || type == onnx::TensorProto::FLOAT;
    }; // 0: not known, or not given
    if (!is_f32(type_of(node->x).data_type)) return;
    std::vector<std::string> inputs;
    const onnx::NodeProto *by = producer(node->w, "Cast", &inputs);
    if (by && inputs.size() == 1 && is_constant(inputs[0]) && int_attribute(*by, "to", 0) == onnx::TensorProto::FLOAT) {
        const int type = type_of(inputs[0]).data_type;
        node->light = type == onnx::TensorProto::FLOAT16 || type == onnx::TensorProto::BFLOAT16;
        if (node->light) node->w = inputs[0];
        return;
    }
    by = producer(node->w, "DequantizeLinear", &inputs);
    const Quantized w(by, inputs);
    if (!w.node || !is_constant(node->w) || !is_f32(static_cast<int>(int_attribute(*by, "output_dtype", 0)))) return;
    if (!fault_of_types(*this, {{"its weights", &w}}).empty() || !fault_of_weight_scales(*this, w).empty()) return;
    if (!w.zero_point.empty() && type_of(w.zero_point).shape != type_of(w.scale).shape) return;
    const Tensor scales = constant(w.scale);
    for (std::size_t i = 0; i < scales.count(); i++) {
        if (!(scales.at(i) > 0) || !std::isfinite(scales.at(i))) return; // which only floats can have
    }
    node->light = true;
    node->w = w.value;
    node->w_scale = w.scale;
    node->w_zero_point = w.zero_point;
    std::vector<std::string> of_x;
    if (!producer(node->x, "DequantizeLinear", &of_x)) {
        node->floats_because.clear(); // x was never quantized
    } else if (is_made_by_dynamic_quantization(of_x, &node->x)) {
        node->quantizes_x = true;
        node->floats_because.clear();
    }
}

// True if the inputs of a DequantizeLinear are the outputs of a DynamicQuantizeLinear, whose input *x becomes.
bool Model::is_made_by_dynamic_quantization(const std::vector<std::string> &dequantized, std::string *x) const {
    const Value *const value = dequantized.empty() ? nullptr : find(dequantized[0]);
    if (!value || !value->producer || !is_op(*value->producer, "DynamicQuantizeLinear")) return false;
    std::vector<std::string> outputs;
    for (const std::string &output : value->producer->output()) outputs.push_back(resolve(output, value->scope));
    if (outputs != dequantized || value->producer->input_size() != 1) return false;
    *x = resolve(value->producer->input(0), value->scope);
    return true;
}

} // namespace convtranspose::tools
