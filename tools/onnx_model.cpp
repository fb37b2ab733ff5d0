#include "onnx_model.h"

#include <algorithm>
#include <climits>
#include <set>
#include <utility>
#include <vector>

#include "error.h"
#include "files.h"
#include "onnx_tensor.h"
#include "text.h"

namespace convtranspose::tools {

namespace {

using onnx::AttributeProto;

bool is_default_domain(const std::string &domain) { return domain.empty() || domain == "ai.onnx"; }

bool is_op(const onnx::NodeProto &node, const char *op_type) {
    return is_default_domain(node.domain()) && node.op_type() == op_type;
}

// The domain of ONNX Runtime's channels-last operators.
constexpr const char *kQuantizedDomain = "com.ms.internal.nhwc";
constexpr const char *kQuantizedOp = "QLinearConvTranspose";

bool is_quantized(const onnx::NodeProto &node) {
    return node.domain() == kQuantizedDomain && node.op_type() == kQuantizedOp;
}

bool is_ours(const onnx::NodeProto &node) { return is_op(node, "ConvTranspose") || is_quantized(node); }

std::string type_name(AttributeProto::AttributeType type) { return AttributeProto::AttributeType_Name(type); }

[[noreturn]] void reject_attribute(const std::string &label, const std::string &attribute, const std::string &why) {
    throw Rejected(label + ": attribute " + attribute + " " + why);
}

void require_type(const AttributeProto &attribute, AttributeProto::AttributeType type, const std::string &label) {
    if (!attribute.ref_attr_name().empty()) {
        reject_attribute(label, attribute.name(),
                         "refers to a function's attribute '" + attribute.ref_attr_name() + "' outside a function");
    }
    if (attribute.type() != type) {
        reject_attribute(label, attribute.name(),
                         "has type " + type_name(attribute.type()) + ", must be " + type_name(type));
    }
}

Attributes read_attributes(const onnx::NodeProto &node, const std::string &label) {
    Attributes a;
    const std::map<std::string, Ints *> lists = {
        {"dilations", &a.dilations},
        {"kernel_shape", &a.kernel_shape},
        {"output_padding", &a.output_padding},
        {"output_shape", &a.output_shape},
        {"pads", &a.pads},
        {"strides", &a.strides},
    };
    std::set<std::string> seen;
    for (const AttributeProto &attribute : node.attribute()) {
        const std::string &name = attribute.name();
        if (!seen.insert(name).second) reject_attribute(label, name, "is given twice");
        const auto list = lists.find(name);
        if (list != lists.end()) {
            require_type(attribute, AttributeProto::INTS, label);
            *list->second = Shape(attribute.ints().begin(), attribute.ints().end());
        } else if (name == "group") {
            require_type(attribute, AttributeProto::INT, label);
            a.group = attribute.i();
        } else if (name == "auto_pad") {
            require_type(attribute, AttributeProto::STRING, label);
            // To the library a string ends at its first NUL, so that one with more behind it must not get there.
            if (attribute.s().find('\0') != std::string::npos)
                reject_attribute(label, name, "contains a NUL character");
            a.auto_pad = attribute.s();
        } else {
            reject_attribute(label, name, "is not one of " + node.op_type());
        }
    }
    return a;
}

ValueType type_of_info(const onnx::ValueInfoProto &info) {
    ValueType type;
    if (!info.type().has_tensor_type()) return type;
    type.data_type = info.type().tensor_type().elem_type();
    if (info.type().tensor_type().has_shape()) {
        Shape shape;
        for (const onnx::TensorShapeProto::Dimension &dim : info.type().tensor_type().shape().dim()) {
            shape.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : -1);
        }
        type.shape = shape;
    }
    return type;
}

// "Conv, 2 Relu"
std::string census(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes) {
    std::map<std::string, int> counts;
    for (const onnx::NodeProto &node : nodes) {
        counts[(is_default_domain(node.domain()) ? "" : node.domain() + ".") + node.op_type()]++;
    }
    std::string text;
    for (const auto &[name, count] : counts) {
        text += (text.empty() ? "" : ", ") + (count > 1 ? std::to_string(count) + " " : "") + name;
    }
    return text.empty() ? "no nodes" : text;
}

} // namespace

bool ValueType::is_known() const {
    return data_type != 0 && shape && std::find(shape->begin(), shape->end(), -1) == shape->end();
}

Model::Model(const std::filesystem::path &file) : folder_(file.parent_path()) {
    const std::string bytes = read_file(file);
    if (bytes.size() > INT_MAX) throw Error("'" + file.string() + "' exceeds the 2 GiB of a protobuf message");
    if (!proto_.ParseFromArray(bytes.data(), int(bytes.size())) || !proto_.has_graph()) {
        throw Error("'" + file.string() + "' is not an ONNX model");
    }

    const onnx::GraphProto &graph = proto_.graph();
    for (const onnx::ValueInfoProto &info : graph.value_info()) types_[info.name()] = type_of_info(info);
    for (const onnx::ValueInfoProto &info : graph.output()) types_[info.name()] = type_of_info(info);
    for (const onnx::ValueInfoProto &info : graph.input()) types_[info.name()] = type_of_info(info);
    for (const onnx::TensorProto &tensor : graph.initializer()) constants_[tensor.name()] = &tensor;
    for (const onnx::NodeProto &node : graph.node()) {
        if (is_op(node, "Constant")) add_constant_node(node);
        if (is_ours(node)) convs_.push_back(&node);
    }
    for (const auto &[name, tensor] : constants_) types_[name] = {tensor->data_type(), shape_of(*tensor)};
    for (const onnx::ValueInfoProto &info : graph.input()) {
        if (!is_constant(info.name())) inputs_.push_back(info.name());
    }
}

void Model::add_constant_node(const onnx::NodeProto &node) {
    if (node.output_size() != 1) return;
    const std::string &name = node.output(0);
    for (const AttributeProto &attribute : node.attribute()) {
        if (attribute.name() == "value" && attribute.has_t()) {
            constants_[name] = &attribute.t();
        } else if (attribute.name() == "value_floats") {
            onnx::TensorProto &list = list_constants_[name];
            list.set_data_type(onnx::TensorProto::FLOAT);
            list.add_dims(attribute.floats_size());
            *list.mutable_float_data() = attribute.floats();
            constants_[name] = &list;
        } else if (attribute.name() == "value_float") {
            onnx::TensorProto &scalar = list_constants_[name];
            scalar.set_data_type(onnx::TensorProto::FLOAT);
            scalar.add_float_data(attribute.f());
            constants_[name] = &scalar;
        }
    }
}

int Model::opset(const std::string &domain) const {
    const std::string what = is_default_domain(domain) ? "the default domain" : "domain '" + domain + "'";
    for (const onnx::OperatorSetIdProto &import : proto_.opset_import()) {
        if (import.domain() != domain && !(is_default_domain(import.domain()) && is_default_domain(domain))) continue;
        if (import.version() < 1 || import.version() > INT_MAX) {
            throw Rejected("opset_import has version " + std::to_string(import.version()) + " of " + what);
        }
        return int(import.version());
    }
    if (proto_.ir_version() < 3 && is_default_domain(domain)) return 1; // models had no opset_import yet
    throw Rejected("the model has no opset_import for " + what);
}

std::string Model::label(std::size_t i) const {
    const std::string &op = convs_[i]->op_type();
    if (!convs_[i]->name().empty()) return op + " '" + convs_[i]->name() + "'";
    return convs_.size() == 1 ? op : op + " #" + std::to_string(i + 1);
}

Node Model::node(std::size_t i) const {
    const onnx::NodeProto &proto = *convs_[i];
    Node node;
    node.label = label(i);
    node.quantized = is_quantized(proto);
    node.opset = opset(proto.domain());
    node.attributes = read_attributes(proto, node.label);
    using Input = std::pair<const char *, std::string *>;
    const std::vector<Input> required = node.quantized ? std::vector<Input>{{"x", &node.x},
                                                                            {"x_scale", &node.x_scale},
                                                                            {"x_zero_point", &node.x_zero_point},
                                                                            {"w", &node.w},
                                                                            {"w_scale", &node.w_scale},
                                                                            {"w_zero_point", &node.w_zero_point},
                                                                            {"y_scale", &node.y_scale},
                                                                            {"y_zero_point", &node.y_zero_point}}
                                                       : std::vector<Input>{{"X", &node.x}, {"W", &node.w}};
    const int most = int(required.size()) + 1;
    for (int k = 0; k < most && k < proto.input_size(); k++) {
        *(k + 1 < most ? required[std::size_t(k)].second : &node.b) = proto.input(k);
    }
    for (const auto &[name, value] : required) {
        if (value->empty()) throw Rejected(node.label + ": required input " + name + " is missing");
    }
    if (proto.input_size() > most) {
        throw Rejected(node.label + " has " + std::to_string(proto.input_size()) + " inputs, takes " +
                       std::to_string(most - 1) + " or " + std::to_string(most));
    }
    if (proto.output_size() != 1 || proto.output(0).empty()) {
        throw Rejected(node.label + " has " + std::to_string(proto.output_size()) + " outputs, must have 1");
    }
    node.y = proto.output(0);
    return node;
}

// One that is called like ours is somebody else's operator in any other domain.
void Model::refuse_other_domains() const {
    for (const onnx::NodeProto &proto : proto_.graph().node()) {
        if (is_ours(proto) || (proto.op_type() != kQuantizedOp && proto.op_type() != "ConvTranspose")) continue;
        throw Error(proto.op_type() + " of domain '" + proto.domain() + "' is not supported, only that of " +
                    (proto.op_type() == kQuantizedOp ? "domain " + std::string(kQuantizedDomain) : "ONNX"));
    }
}

void Model::require_nodes() const {
    if (!convs_.empty()) return;
    refuse_other_domains();
    throw Error("the model has no ConvTranspose or QLinearConvTranspose node");
}

Node Model::only_node() const {
    const onnx::GraphProto &graph = proto_.graph();
    refuse_other_domains();
    const auto others = std::count_if(graph.node().begin(), graph.node().end(), [](const onnx::NodeProto &proto) {
        return !is_ours(proto) && !is_op(proto, "Constant");
    });
    if (convs_.size() != 1 || others != 0) {
        throw Error("the graph must be one ConvTranspose or QLinearConvTranspose node (and Constant nodes); it has " +
                    census(graph.node()));
    }
    Node only = node(0);
    if (graph.output_size() != 1 || graph.output(0).name() != only.y) {
        throw Rejected(
            "the graph must have one output, '" + only.y + "' of " + only.label + "; it has " +
            (graph.output_size() == 1 ? "'" + graph.output(0).name() + "'" : std::to_string(graph.output_size())));
    }
    return only;
}

Tensor Model::constant(const std::string &value) const {
    const auto found = constants_.find(value);
    if (found == constants_.end()) throw Rejected("value '" + value + "' is not a constant");
    return tensor_from_proto(*found->second, folder_);
}

void Model::set_shape(const std::string &value, const Shape &shape) { types_[value].shape = shape; }

ValueType Model::type_of(const std::string &value) const {
    const auto found = types_.find(value);
    return found == types_.end() ? ValueType() : found->second;
}

} // namespace convtranspose::tools
