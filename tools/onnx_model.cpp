#include "tools/onnx_model.h"

#include <algorithm>
#include <climits>
#include <set>
#include <utility>
#include <vector>

#include "tools/error.h"
#include "tools/files.h"
#include "tools/onnx_nodes.h"
#include "tools/onnx_tensor.h"
#include "tools/shape_inference.h"
#include "tools/text.h"

namespace convtranspose::tools {

namespace {

using onnx::AttributeProto;

// The domain of ONNX Runtime's channels-last operators.
constexpr const char *kQuantizedDomain = "com.ms.internal.nhwc";
constexpr const char *kQuantizedOp = "QLinearConvTranspose";

bool is_quantized(const onnx::NodeProto &node) {
    return node.domain() == kQuantizedDomain && node.op_type() == kQuantizedOp;
}

// True for operators that exporters put between weights and a layer; their output is a constant if all inputs are.
bool keeps_constants(const onnx::NodeProto &node) {
    return is_op(node, "Identity") || is_op(node, "Cast") || is_op(node, "Reshape") || is_op(node, "Transpose") ||
           is_op(node, "DequantizeLinear");
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
            // To the library a string ends at its first NUL, so one with more behind it must not get there.
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
            const bool known = dim.has_dim_value() && dim.dim_value() >= 0;
            shape.push_back(known ? dim.dim_value() : -1);
            type.symbols.push_back(known ? "" : dim.dim_param());
        }
        type.shape = shape;
    }
    return type;
}

// Counts operators, as in "Conv, 2 Relu".
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

std::string ValueType::text() const {
    if (!shape) return "<?>";
    std::string text;
    for (std::size_t d = 0; d < shape->size(); d++) {
        if (d > 0) text += "x";
        const std::string symbol = d < symbols.size() && !symbols[d].empty() ? symbols[d] : "?";
        text += (*shape)[d] >= 0 ? std::to_string((*shape)[d]) : "<" + symbol + ">";
    }
    return text.empty() ? "scalar" : text;
}

Model::Model(const std::filesystem::path &file) : file_(file) {
    const std::string bytes = read_message(file);
    if (!proto_.ParseFromArray(bytes.data(), int(bytes.size())) || !proto_.has_graph()) {
        throw Error("'" + file.string() + "' is not an ONNX model");
    }
    index();
}

std::vector<std::string> Model::infer_shapes(const std::vector<InputShape> &shapes) {
    std::vector<std::string> notes = tools::infer_shapes(&proto_, shapes);
    index();
    for (const onnx::FunctionProto &function : proto_.functions()) {
        if (std::none_of(function.node().begin(), function.node().end(), is_ours)) continue;
        notes.push_back("the nodes of function '" + function.name() +
                        "' are skipped: it could not be inlined, for it imports other opsets than the model");
    }
    return notes;
}

void Model::index() {
    scopes_.clear();
    prefixes_.clear();
    convs_.clear();
    inputs_.clear();
    inputs_with_initializers_.clear();
    values_.clear();
    list_constants_.clear();
    index_graph(proto_.graph(), 0, "", "");
    for (const onnx::ValueInfoProto &info : proto_.graph().input()) {
        const Value &value = values_.at(info.name());
        (value.tensor || value.sparse ? inputs_with_initializers_ : inputs_).push_back(info.name());
    }
}

Model::Value &Model::define(const std::string &name, std::size_t scope, const std::string &by) {
    const auto [entry, is_new] = scopes_[scope].names.emplace(name, by);
    if (!is_new) {
        throw Rejected("value '" + scopes_[scope].prefix + name + "' is defined twice, by " + entry->second +
                       " and by " + by + "; names of a graph must be unique");
    }
    Value &value = values_[scopes_[scope].prefix + name];
    value.scope = scope;
    return value;
}

void Model::index_graph(const onnx::GraphProto &graph, std::size_t outer, const std::string &prefix,
                        const std::string &description) {
    const std::size_t scope = scopes_.size();
    scopes_.push_back({outer, prefix, description, {}});
    for (const onnx::ValueInfoProto &info : graph.input())
        define(info.name(), scope, "a graph input").type = type_of_info(info);
    // An initializer may be the default of a graph input.
    std::set<std::string> initialized;
    const auto initialize = [&](const std::string &name) -> Value & {
        const auto input = scopes_[scope].names.find(name);
        const bool of_input = input != scopes_[scope].names.end() && input->second == "a graph input";
        if (!of_input || !initialized.insert(name).second) return define(name, scope, "an initializer");
        return values_[prefix + name];
    };
    for (const onnx::TensorProto &tensor : graph.initializer()) {
        Value &value = initialize(tensor.name());
        value.tensor = &tensor;
        value.constant_steps = 0;
        initialize_type(tensor.name(), {tensor.data_type(), shape_of(tensor), {}}, &value.type);
    }
    for (const onnx::SparseTensorProto &tensor : graph.sparse_initializer()) {
        Value &value = initialize(tensor.values().name());
        value.sparse = true;
        const ValueType type{tensor.values().data_type(), Shape(tensor.dims().begin(), tensor.dims().end()), {}};
        initialize_type(tensor.values().name(), type, &value.type);
    }
    for (const onnx::NodeProto &node : graph.node()) {
        for (const std::string &output : node.output()) {
            if (!output.empty()) define(output, scope, label_of(node)).producer = &node;
        }
    }
    for (const auto *const list : {&graph.value_info(), &graph.output()}) {
        for (const onnx::ValueInfoProto &info : *list) {
            Value &value = values_[resolve(info.name(), scope)];
            if (list == &graph.output()) value.graph_output = true;
            const bool is_input = scopes_[scope].names.count(info.name()) && !value.producer;
            if (!is_input && info.has_type() && !value.tensor) value.type = type_of_info(info);
        }
    }
    for (const onnx::NodeProto &node : graph.node()) {
        for (const std::string &input : inputs_of(node, scope))
            if (!input.empty()) values_[input]; // take_prefix() must find names that nothing defines, too
    }
    for (int i = 0; i < graph.node_size(); i++) index_node(graph.node(i), scope, i);
}

void Model::index_node(const onnx::NodeProto &node, std::size_t scope, int position) {
    if (is_ours(node)) convs_.push_back({&node, scope});
    for (const std::string &input : inputs_of(node, scope)) {
        if (!input.empty()) values_[input].consumers.push_back({&node, scope});
    }
    if (node.output_size() == 1 && !node.output(0).empty()) {
        Value &value = values_[resolve(node.output(0), scope)];
        if (is_op(node, "Constant")) add_constant_node(node, &value);
        if (keeps_constants(node)) value.constant_steps = steps_to_constants(node, scope);
    }
    for (const onnx::AttributeProto &attribute : node.attribute()) {
        if (attribute.has_g()) index_subgraph(attribute.g(), node, attribute.name(), scope, position);
        for (int i = 0; i < attribute.graphs_size(); i++) {
            index_subgraph(attribute.graphs(i), node, attribute.name() + std::to_string(i), scope, position);
        }
    }
}

// Indexes the nodes of a subgraph. The place in the graph tells nodes apart, because names need not be unique, nor given.
void Model::index_subgraph(const onnx::GraphProto &graph, const onnx::NodeProto &node, const std::string &attribute,
                           std::size_t scope, int position) {
    const std::string of = scopes_[scope].prefix + (node.name().empty() ? node.op_type() : node.name());
    const std::string end = "." + attribute + "/";
    std::string prefix = of + end;
    if (node.name().empty() || !take_prefix(prefix)) {
        std::string place = of + "#" + std::to_string(position);
        while (!take_prefix(prefix = place + end)) place += "#";
    }
    index_graph(graph, scope, prefix, attribute + " of " + label_of(node));
}

// Returns whether a prefix is free: no other graph has it, and no name of a value begins with it, which a value of a subgraph could
// be taken for then.
bool Model::take_prefix(const std::string &prefix) {
    const auto next = values_.lower_bound(prefix);
    const bool begins_a_name = next != values_.end() && next->first.compare(0, prefix.size(), prefix) == 0;
    return !begins_a_name && prefixes_.insert(prefix).second;
}

int Model::steps_to_constants(const onnx::NodeProto &node, std::size_t scope) const {
    int steps = -1;
    for (const std::string &input : inputs_of(node, scope)) {
        if (input.empty()) continue;
        const Value *const value = find(input);
        if (!value || value->constant_steps < 0 || value->constant_steps >= kMostSteps) return -1;
        steps = std::max(steps, value->constant_steps + 1);
    }
    return steps;
}

std::string Model::resolve(const std::string &name, std::size_t scope) const {
    for (std::size_t s = scope;; s = scopes_[s].outer) {
        if (scopes_[s].names.count(name)) return scopes_[s].prefix + name;
        if (s == 0) return scopes_[scope].prefix + name;
    }
}

std::vector<std::string> Model::inputs_of(const onnx::NodeProto &node, std::size_t scope) const {
    std::vector<std::string> inputs;
    for (const std::string &input : node.input()) inputs.push_back(input.empty() ? "" : resolve(input, scope));
    return inputs;
}

const Model::Value *Model::find(const std::string &key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
}

const Model::Value *Model::source_of(std::string key) const {
    for (int step = 0; step < kMostSteps; step++) {
        const Value *const value = find(key);
        if (!value || !value->producer || !is_op(*value->producer, "Identity")) return value;
        const std::vector<std::string> inputs = inputs_of(*value->producer, value->scope);
        if (inputs.empty()) return nullptr;
        key = inputs.front();
    }
    return nullptr;
}

const onnx::NodeProto *Model::producer(const std::string &key, const char *op_type,
                                       std::vector<std::string> *inputs) const {
    const Value *const value = source_of(key);
    if (!value || !value->producer || !is_op(*value->producer, op_type)) return nullptr;
    *inputs = inputs_of(*value->producer, value->scope);
    return value->producer;
}

void Model::add_constant_node(const onnx::NodeProto &node, Value *value) {
    for (const AttributeProto &attribute : node.attribute()) {
        if (attribute.name() == "value" && attribute.has_t()) {
            value->tensor = &attribute.t();
        } else if (attribute.name() == "value_floats") {
            onnx::TensorProto &list = list_constants_[&node];
            list.set_data_type(onnx::TensorProto::FLOAT);
            list.add_dims(attribute.floats_size());
            *list.mutable_float_data() = attribute.floats();
            value->tensor = &list;
        } else if (attribute.name() == "value_float") {
            onnx::TensorProto &scalar = list_constants_[&node];
            scalar.set_data_type(onnx::TensorProto::FLOAT);
            scalar.add_float_data(attribute.f());
            value->tensor = &scalar;
        } else if (attribute.name() == "value_ints" || attribute.name() == "value_int") {
            onnx::TensorProto &integers = list_constants_[&node];
            integers.set_data_type(onnx::TensorProto::INT64);
            if (attribute.name() == "value_int") {
                integers.add_int64_data(attribute.i());
            } else {
                integers.add_dims(attribute.ints_size());
                *integers.mutable_int64_data() = attribute.ints();
            }
            value->tensor = &integers;
        } else if (attribute.name() == "sparse_value") {
            value->sparse = true;
        }
    }
    if (!value->tensor) return;
    value->constant_steps = 0;
    value->type = {value->tensor->data_type(), shape_of(*value->tensor), {}};
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
    const onnx::NodeProto &node = *convs_[i].node;
    std::string label = label_of(node);
    if (node.name().empty() && convs_.size() > 1) label += " #" + std::to_string(i + 1);
    const std::string &description = scopes_[convs_[i].scope].description;
    return description.empty() ? label : label + " in " + printable(description);
}

Node Model::node(std::size_t i) const {
    const onnx::NodeProto &proto = *convs_[i].node;
    Node node;
    node.label = label(i);
    node.quantized = node.channels_last = is_quantized(proto);
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
    const std::vector<std::string> inputs = inputs_of(proto, convs_[i].scope);
    for (std::size_t k = 0; k < inputs.size() && k <= required.size(); k++) {
        *(k < required.size() ? required[k].second : &node.b) = inputs[k];
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
    node.y = resolve(proto.output(0), convs_[i].scope);
    return node;
}

// Refuses nodes that have our operators' names in another domain, where they are somebody else's operators.
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
    const auto require_no_others = [&](bool quantizes_x) {
        const auto others = std::count_if(graph.node().begin(), graph.node().end(), [&](const onnx::NodeProto &proto) {
            const bool of_x = is_op(proto, "DynamicQuantizeLinear") || is_op(proto, "DequantizeLinear");
            const bool makes_constant = proto.output_size() == 1 && is_constant(proto.output(0));
            return !is_ours(proto) && !is_op(proto, "Constant") && !makes_constant && !(of_x && quantizes_x);
        });
        if (convs_.size() == 1 && others == 0) return;
        throw Error("the graph must be one ConvTranspose or QLinearConvTranspose node (and Constant nodes); it has " +
                    census(graph.node()));
    };
    require_no_others(true);
    Node only = with_neighbours(node(0));
    require_no_others(only.quantizes_x);
    if (graph.output_size() != 1 || graph.output(0).name() != only.y) {
        const std::string message =
            "the graph must have one output, '" + only.y + "' of " + only.label + "; it has " +
            (graph.output_size() == 1 ? "'" + graph.output(0).name() + "'" : std::to_string(graph.output_size()));
        // Other outputs are fine for ONNX if they are values of the graph.
        const bool valid = graph.output_size() > 0 &&
                           std::all_of(graph.output().begin(), graph.output().end(), [this](const auto &output) {
                               return scopes_[0].names.count(output.name()) != 0;
                           });
        if (valid) throw Error(message + ", which is not supported");
        throw Rejected(message);
    }
    return only;
}

bool Model::is_constant(const std::string &value) const {
    const Value *const found = find(value);
    return found && found->constant_steps >= 0;
}

void Model::require_supported(const std::string &value) const {
    const Value *const found = find(value);
    if (!found || !found->sparse) return;
    throw Error("value '" + value +
                "' is a sparse initializer or constant, which is not supported: store it as a dense one");
}

ValueType Model::type_of(const std::string &value) const {
    const Value *const found = find(value);
    return found ? found->type : ValueType();
}

// Returns what is known of a value's shape, with a <> for each extent that is not: by its place in a layer if nothing is.
std::string Model::open_shape(const std::string &value) const {
    const Value *const found = find(value);
    if (found && found->type.shape) return found->type.text();
    const auto takes = [&](int input, const Place &place) {
        const onnx::NodeProto &node = *place.node;
        return is_ours(node) && input < node.input_size() && resolve(node.input(input), place.scope) == value;
    };
    for (const Place &place : found ? found->consumers : std::vector<Place>()) {
        const bool quantized = is_quantized(*place.node);
        if (takes(quantized ? 3 : 1, place)) return "<input channels>x<output channels>x<height>x<width>";
        if (takes(quantized ? 8 : 2, place)) return "<output channels>";
        if (quantized && takes(0, place)) return "<batch>x<height>x<width>x<channels>";
    }
    return "<batch>x<channels>x<height>x<width>";
}

std::string Model::shape_options(const std::string &value) const {
    std::string options;
    for (const std::string &input : inputs_) {
        const ValueType type = type_of(input);
        if (!type.shape || std::find(type.shape->begin(), type.shape->end(), -1) != type.shape->end())
            options += " --input-shape " + input + "=" + open_shape(input);
    }
    if (!options.empty()) return options.substr(1);
    const Value *const found = find(value);
    const std::string name = found ? value.substr(scopes_[found->scope].prefix.size()) : value;
    return "--input-shape " + name + "=" + open_shape(value);
}

} // namespace convtranspose::tools
