// Questions about single nodes of a model.
#ifndef CONVTRANSPOSE_TOOLS_ONNX_NODES_H_
#define CONVTRANSPOSE_TOOLS_ONNX_NODES_H_

#include <cstdint>
#include <string>

#include <onnx-ml.pb.h>

#include "error.h"

namespace convtranspose::tools {

inline bool is_default_domain(const std::string &domain) { return domain.empty() || domain == "ai.onnx"; }

inline bool is_op(const onnx::NodeProto &node, const char *op_type) {
    return is_default_domain(node.domain()) && node.op_type() == op_type;
}

// A text of a model as it may be printed: control characters, with which it could forge lines, or end a text of C, become "?".
inline std::string printable(std::string text) {
    for (char &c : text) {
        if ((c >= 0 && c < ' ') || c == '\x7f') c = '?';
    }
    return text;
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

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_ONNX_NODES_H_
