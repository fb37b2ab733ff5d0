// Questions about single nodes of a model.
#ifndef CONVTRANSPOSE_TOOLS_ONNX_NODES_H_
#define CONVTRANSPOSE_TOOLS_ONNX_NODES_H_

#include <climits>
#include <cstdint>
#include <string>

#include <onnx-ml.pb.h>

#include "tools/error.h"
#include "tools/text.h"

namespace convtranspose::tools {

inline bool is_default_domain(const std::string &domain) { return domain.empty() || domain == "ai.onnx"; }

inline bool is_op(const onnx::NodeProto &node, const char *op_type) {
    return is_default_domain(node.domain()) && node.op_type() == op_type;
}

// The label of a node: "Conv 'name'", or "Conv" if it has no name.
inline std::string label_of(const onnx::NodeProto &node) {
    return printable(node.name().empty() ? node.op_type() : node.op_type() + " '" + node.name() + "'");
}

inline std::int64_t int_attribute(const onnx::NodeProto &node, const char *name, std::int64_t by_default) {
    for (const onnx::AttributeProto &attribute : node.attribute()) {
        if (attribute.name() != name) continue;
        if (attribute.type() != onnx::AttributeProto::INT)
            throw Rejected(label_of(node) + ": its attribute " + name + " is no integer");
        return attribute.i();
    }
    return by_default;
}

// Reads an attribute that says a type of TensorProto, by number or, as in Cast before opset 6, by name. 0: it is not given. Throws
// Rejected for what is no type.
inline int type_attribute(const onnx::NodeProto &node, const char *name) {
    for (const onnx::AttributeProto &attribute : node.attribute()) {
        if (attribute.name() != name || attribute.type() != onnx::AttributeProto::STRING) continue;
        onnx::TensorProto::DataType type = onnx::TensorProto::UNDEFINED;
        if (onnx::TensorProto::DataType_Parse(attribute.s(), &type)) return type;
        throw Rejected(label_of(node) + ": its attribute " + name + " is '" + attribute.s() + "', which is no type");
    }
    const std::int64_t number = int_attribute(node, name, 0);
    if (number >= 0 && number <= INT_MAX && onnx::TensorProto::DataType_IsValid(static_cast<int>(number)))
        return static_cast<int>(number);
    throw Rejected(label_of(node) + ": its attribute " + name + " is " + std::to_string(number) +
                   ", which is the number of no type");
}

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_ONNX_NODES_H_
