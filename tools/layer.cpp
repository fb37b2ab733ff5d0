#include "tools/layer.h"

#include <algorithm>

#include "bindings/onnxruntime/prefer_floats.h"
#include "tools/node_quantization.h"
#include "tools/onnx_tensor.h"
#include "tools/text.h"

namespace convtranspose::tools {

namespace {

Shape known_shape(const Model &model, const std::string &value) {
    model.require_supported(value);
    const ValueType type = model.type_of(value);
    if (type.shape && std::find(type.shape->begin(), type.shape->end(), -1) == type.shape->end()) return *type.shape;
    throw UnknownShape("the shape of its input '" + value + "' is not known" +
                       (type.shape ? " (" + type.text() + ")" : "") + ": " + model.shape_options(value) +
                       " tells it, with a number for each <>");
}

} // namespace

Layer layer_of(const Model &model, std::size_t i, std::optional<convt_layout> layout) {
    Layer layer;
    layer.node = model.with_neighbours(model.node(i));
    const Node &node = layer.node;
    Problem &problem = layer.problem;
    problem.opset = node.opset;
    problem.attributes = node.attributes;
    problem.layout = layout.value_or(node.layout());
    problem.x_shape = known_shape(model, node.x);
    problem.w_shape = known_shape(model, node.w);
    if (!node.b.empty()) problem.b_shape = known_shape(model, node.b);

    const auto dtype_of = [&](const std::string &value, const std::string &what) {
        int type = model.type_of(value).data_type;
        if (type == 0 && value == node.x && !node.quantized) // which must be alike
            type = node.light ? int{onnx::TensorProto::FLOAT} : model.type_of(node.w).data_type;
        if (type == 0) throw UnknownShape("the type of its input '" + value + "' is not known");
        return dtype_from_onnx(type, node.label + ": " + what);
    };
    const std::string x = node.quantized ? "x" : "X";
    problem.dtype = dtype_of(node.x, x);
    require_operand_type(node, x, problem.dtype);
    if (node.quantized) {
        problem.w_dtype = dtype_of(node.w, "w");
        require_operand_type(node, "w", *problem.w_dtype);
        if (node.float_output.empty()) {
            problem.y_dtype = dtype_of(node.y_zero_point.empty() ? node.y : node.y_zero_point, "y_zero_point");
            require_operand_type(node, "y_zero_point, whose type is that of y,", *problem.y_dtype);
        } else {
            problem.y_dtype = CONVT_F32;
        }
        if (!node.b.empty()) require_bias_type(node, dtype_of(node.b, "B"));
    }
    if (node.light) problem.w_dtype = dtype_of(node.w, "W");
    if (node.quantizes_x) {
        const std::optional<std::string> why =
            prefer_floats(node.attributes, problem.w_shape, model.is_constant(node.w));
        if (why) layer.node.floats_because = *why;
        layer.node.quantizes_x = !why;
    }
    problem.quantizes_x = node.quantizes_x;
    for (const std::string &other : {node.w, node.b}) {
        if (node.quantized || other.empty() || (node.light && other == node.w)) continue;
        if (dtype_of(other, "'" + other + "'") != problem.dtype) {
            throw Rejected(node.label + ": '" + other + "' is " + onnx_type_name(model.type_of(other).data_type) +
                           ", X is " + convt_dtype_name(problem.dtype) + "; they must have one type");
        }
    }
    // The layer in the other layout is the same one with C moved.
    if (problem.layout != node.layout()) move_channels(&problem.x_shape, problem.layout);
    return layer;
}

} // namespace convtranspose::tools
