#include "layer.h"

#include <algorithm>

#include "onnx_tensor.h"
#include "text.h"

namespace convtranspose::tools {

namespace {

Shape known_shape(const Model &model, const std::string &value) {
    const ValueType type = model.type_of(value);
    if (type.is_known()) return *type.shape;
    throw UnknownShape("the shape of its input '" + value + "' is not known" +
                       (type.shape ? " (" + to_string(*type.shape) + ", -1: unknown)" : ""));
}

} // namespace

Layer layer_of(const Model &model, std::size_t i, convt_layout layout) {
    Layer layer;
    layer.node = model.node(i);
    const Node &node = layer.node;
    Problem &problem = layer.problem;
    problem.opset = node.opset;
    problem.attributes = node.attributes;
    problem.layout = layout;
    problem.x_shape = known_shape(model, node.x);
    problem.w_shape = known_shape(model, node.w);
    if (!node.b.empty()) problem.b_shape = known_shape(model, node.b);

    problem.dtype = dtype_from_onnx(model.type_of(node.x).data_type, node.label + ": X");
    for (const std::string &other : {node.w, node.b}) {
        if (!other.empty() &&
            dtype_from_onnx(model.type_of(other).data_type, node.label + ": '" + other + "'") != problem.dtype) {
            throw Rejected(node.label + ": '" + other + "' is " + onnx_type_name(model.type_of(other).data_type) +
                           ", X is " + convt_dtype_name(problem.dtype) + "; they must have one type");
        }
    }
    // A model is written channels first; measured channels last, it is the same layer with C moved behind the extents.
    if (layout == CONVT_CHANNELS_LAST && problem.x_shape.size() > 1) {
        std::rotate(problem.x_shape.begin() + 1, problem.x_shape.begin() + 2, problem.x_shape.end());
    }
    return layer;
}

} // namespace convtranspose::tools
