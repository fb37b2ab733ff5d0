// Finds DequantizeLinear -> ConvTranspose, and QuantizeLinear behind it, by which ONNX says that a layer is to be computed in
// integers, and weights that DequantizeLinear or Cast makes f32.
#include <algorithm>
#include <cmath>
#include <limits>

#include "bindings/onnxruntime/prefer_floats.h"
#include "tools/onnx_model.h"
#include "tools/onnx_nodes.h"
#include "tools/onnx_tensor.h"

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

bool is_single(const ValueType &type) {
    return type.shape && (type.shape->empty() || (type.shape->size() == 1 && type.shape->front() == 1));
}

bool is_positive(const Tensor &scales) {
    for (std::size_t i = 0; i < scales.count(); i++) {
        if (!(scales.at(i) > 0) || !std::isfinite(scales.at(i))) return false;
    }
    return true;
}

// The functions below return why a layer, or its y, is computed in floats; empty: nothing that they look at is against integers.
// bindings/onnxruntime/quantized.cpp has the same rules, so that what is planned here is what ONNX Runtime's provider computes.
// `what` is a subject with its verb.
std::string fault_of_type(const Model &model, const std::string &what, const std::string &value) {
    const int type = model.type_of(value).data_type;
    return is_8_bit(type) ? "" : what + " quantized to " + onnx_type_name(type) + ", not to 8 bits";
}

// `what` has one scale and one zero point.
std::string fault_of_scale(const Model &model, const std::string &what, const Quantized &q) {
    const int type = model.type_of(q.scale).data_type;
    if (type != onnx::TensorProto::FLOAT) return "the scale of " + what + " is " + onnx_type_name(type);
    for (const auto &[part, value] : {std::pair("scale", &q.scale), {"zero point", &q.zero_point}}) {
        if (value->empty()) continue;
        if (!model.is_constant(*value)) return std::string("the ") + part + " of " + what + " is no constant";
        if (!is_single(model.type_of(*value)))
            return std::string("the ") + part + " of " + what + " is more than one number";
    }
    return is_positive(model.constant(q.scale)) ? "" : "the scale of " + what + " is not positive and finite";
}

std::string fault_of_weights(const Model &model, const Quantized &w) {
    const ValueType scales = model.type_of(w.scale), weights = model.type_of(w.value);
    if (scales.data_type != onnx::TensorProto::FLOAT)
        return "the scale of its weights is " + onnx_type_name(scales.data_type);
    if (!model.is_constant(w.scale)) return "the scale of its weights is no constant";
    if (!w.zero_point.empty() && !model.is_constant(w.zero_point))
        return "the zero point of its weights is no constant";
    if (!is_single(scales)) {
        std::int64_t axis = int_attribute(*w.node, "axis", 1);
        if (axis < 0 && weights.shape) axis += static_cast<std::int64_t>(weights.shape->size());
        if (axis != 1 || !scales.shape || scales.shape->size() != 1)
            return "its weights have scales along axis " + std::to_string(axis) +
                   ", and not only along that of output channels";
        if (weights.shape && (weights.shape->size() < 2 || (*weights.shape)[1] != (*scales.shape)[0]))
            return "its weights have " + scales.text() + " scales, and not one for each output channel of a group";
    }
    const Tensor scale = model.constant(w.scale);
    if (scale.count() == 0) return "its weights have no scale";
    if (!is_positive(scale)) return "a scale of its weights is not positive and finite";
    if (!w.zero_point.empty() && model.constant(w.zero_point).count() != scale.count())
        return "its weights have another number of zero points than of scales";
    return "";
}

std::string fault_of_bias(const Model &model, const Quantized &x, const Quantized &w, const Quantized &b) {
    const int type = model.type_of(b.value).data_type;
    if (type != onnx::TensorProto::INT32) return "its bias is quantized to " + onnx_type_name(type) + ", not to INT32";
    if (!model.is_constant(b.scale)) return "the scale of its bias is no constant";
    const Tensor x_scale = model.constant(x.scale), w_scale = model.constant(w.scale),
                 b_scale = model.constant(b.scale);
    if (b_scale.count() == 0) return "its bias has no scale";
    for (std::size_t i = 0; i < std::max(w_scale.count(), b_scale.count()); i++) {
        const double product = x_scale.at(0) * w_scale.at(i % w_scale.count());
        if (!(std::fabs(b_scale.at(i % b_scale.count()) - product) <= 1e-4 * product))
            return "the scale of its bias is not that of X times that of its weights";
    }
    if (b.zero_point.empty()) return "";
    if (!model.is_constant(b.zero_point)) return "the zero point of its bias is no constant";
    const Tensor zero = model.constant(b.zero_point);
    for (std::size_t i = 0; i < zero.count(); i++) {
        if (zero.at(i) != 0) return "its bias has a zero point other than 0";
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

// Makes the node the quantized layer that it is with the nodes around it, or returns why it is none; empty: there is nothing
// quantized.
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
    const int computed = type_of(node->x).data_type; // which a DequantizeLinear need not take from its scale
    if (computed != 0 && computed != onnx::TensorProto::FLOAT) return "X is dequantized to " + onnx_type_name(computed);
    std::string fault = fault_of_type(*this, "X is", x.value);
    if (fault.empty()) fault = fault_of_type(*this, "its weights are", w.value);
    if (!fault.empty()) return fault;
    std::string unused;
    const bool dynamic = is_made_by_dynamic_quantization({x.value, x.scale, x.zero_point}, &unused);
    const Shape w_shape = type_of(w.value).shape.value_or(Shape());
    if (const auto why = prefer_floats(node->attributes, w_shape, is_constant(w.value)); why && !dynamic) return *why;
    if (!dynamic) fault = fault_of_scale(*this, "X", x);
    if (fault.empty()) fault = fault_of_weights(*this, w);
    if (!fault.empty()) return fault;
    if (dynamic) return "X is quantized by each run"; // which lighten() sees to

    node->quantized = true;
    Node with_quantizer = *node;
    node->float_output = find_quantizer(&with_quantizer);
    if (node->float_output.empty() && !node->b.empty())
        node->float_output = b.node ? fault_of_bias(*this, x, w, b) : "its bias comes from no DequantizeLinear";
    if (node->float_output.empty()) {
        *node = with_quantizer;
        node->b = b.node ? b.value : "";
    }
    node->x = x.value;
    node->x_scale = x.scale;
    node->x_zero_point = x.zero_point;
    node->w = w.value;
    node->w_scale = w.scale;
    node->w_zero_point = w.zero_point;
    return "";
}

// Takes y from behind the QuantizeLinear that alone reads it, or the Relu or Clip in between, or returns why there is none such.
std::string Model::find_quantizer(Node *node) const {
    const Place *reader = only_reader(node->y);
    std::string value = node->y;
    if (reader) {
        if (const auto range = clamp_of(*reader, value)) {
            node->y_range = range;
            value = resolve(reader->node->output(0), reader->scope);
            reader = only_reader(value);
        }
    }
    if (!reader) return "its output goes to no QuantizeLinear alone";
    if (!is_op(*reader->node, "QuantizeLinear"))
        return "its output goes to " + label_of(*reader->node) + ", and to no QuantizeLinear";
    const std::vector<std::string> inputs = inputs_of(*reader->node, reader->scope);
    const Quantized y(reader->node, inputs);
    if (!y.node || reader->node->output_size() != 1) return "the QuantizeLinear behind it lacks an input or output";
    if (y.value != value) return "its output is a scale of " + label_of(*reader->node);
    node->y = resolve(reader->node->output(0), reader->scope);
    node->y_scale = y.scale;
    node->y_zero_point = y.zero_point;
    const std::string fault = fault_of_type(*this, "its output is", node->y);
    return fault.empty() ? fault_of_scale(*this, "its output", y) : fault;
}

// Returns the only node that reads a value, if it is no output of the graph, or null.
const Model::Place *Model::only_reader(const std::string &value) const {
    const Value *const found = find(value);
    return found && !found->graph_output && found->consumers.size() == 1 ? &found->consumers[0] : nullptr;
}

// Returns the range to which a Relu, or a Clip of constant bounds, clamps a value.
std::optional<std::array<float, 2>> Model::clamp_of(const Place &place, const std::string &value) const {
    constexpr float kInfinity = std::numeric_limits<float>::infinity(), kMost = std::numeric_limits<float>::max();
    constexpr int kClipWithInputs = 11;
    const onnx::NodeProto &node = *place.node;
    const std::vector<std::string> inputs = inputs_of(node, place.scope);
    if (inputs.empty() || inputs[0] != value || node.output_size() != 1) return std::nullopt;
    if (is_op(node, "Relu")) return std::array<float, 2>{0, kInfinity};
    if (!is_op(node, "Clip")) return std::nullopt;
    std::array<float, 2> range = {-kMost, kMost};
    if (opset(node.domain()) < kClipWithInputs) {
        for (const onnx::AttributeProto &attribute : node.attribute()) {
            if (attribute.name() == "min") range[0] = attribute.f();
            if (attribute.name() == "max") range[1] = attribute.f();
        }
    } else {
        for (const std::size_t i : {0, 1}) {
            if (i + 1 >= inputs.size() || inputs[i + 1].empty()) continue;
            if (!is_constant(inputs[i + 1])) return std::nullopt;
            const Tensor bound = constant(inputs[i + 1]);
            if (bound.count() != 1) return std::nullopt;
            range[i] = static_cast<float>(bound.at(0));
        }
    }
    if (!(range[0] <= range[1])) return std::nullopt;
    return range;
}

// Takes the weights of a layer of f32 as they are before a Cast or a DequantizeLinear, and x before it is quantized dynamically.
void Model::lighten(Node *node) const {
    const auto is_f32 = [](int type) {
        return type == 0 || type == onnx::TensorProto::FLOAT;
    }; // 0: not known, or not given
    if (!is_f32(type_of(node->x).data_type)) return;
    std::vector<std::string> inputs;
    const onnx::NodeProto *by = producer(node->w, "Cast", &inputs);
    if (by && inputs.size() == 1 && is_constant(inputs[0]) && type_attribute(*by, "to") == onnx::TensorProto::FLOAT) {
        const int type = type_of(inputs[0]).data_type;
        node->light = type == onnx::TensorProto::FLOAT16 || type == onnx::TensorProto::BFLOAT16;
        if (node->light) node->w = inputs[0];
        return;
    }
    by = producer(node->w, "DequantizeLinear", &inputs);
    const Quantized w(by, inputs);
    if (!w.node || !is_constant(node->w) || !is_f32(type_attribute(*by, "output_dtype"))) return;
    if (!fault_of_type(*this, "its weights are", w.value).empty() || !fault_of_weights(*this, w).empty()) return;
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
