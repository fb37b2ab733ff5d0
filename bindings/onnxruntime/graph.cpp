#include "graph.h"

#include <algorithm>
#include <cstring>

#include "failure.h"
#include "runtime/base/half.h"

namespace convtranspose::provider {

namespace {

// An element of type T, whose value is a Real.
template<typename T, typename Real = T>
double element(const void *data, std::size_t i) {
    T value;
    std::memcpy(&value, static_cast<const char *>(data) + i * sizeof value, sizeof value);
    return static_cast<double>(static_cast<Real>(value));
}

// An element of 4 bits, as if it had no sign. The even ones are the low halves of bytes.
int nibble(const void *data, std::size_t i) {
    return static_cast<const std::uint8_t *>(data)[i / 2] >> (i % 2 * 4) & 0xf;
}

Shape extents_of(const Api &api, const OrtTensorTypeAndShapeInfo *info) {
    std::size_t rank = 0;
    check(api, api.GetDimensionsCount(info, &rank));
    Shape shape(rank);
    if (rank > 0) check(api, api.GetDimensions(info, shape.data(), rank));
    return shape;
}

} // namespace

std::optional<convt_dtype> dtype_of(int element_type) {
    switch (element_type) {
    case kElementFloat: return CONVT_F32;
    case kElementUint8: return CONVT_U8;
    case kElementInt8: return CONVT_S8;
    case kElementInt32: return CONVT_S32;
    case kElementFloat16: return CONVT_F16;
    case kElementDouble: return CONVT_F64;
    case kElementBfloat16: return CONVT_BF16;
    default: return std::nullopt;
    }
}

bool can_read(int element_type) {
    switch (element_type) {
    case kElementUint16:
    case kElementInt16:
    case kElementUint4:
    case kElementInt4: return true;
    default: return dtype_of(element_type).has_value();
    }
}

bool is_known(const Shape &shape) { return !shape.empty() && std::find(shape.begin(), shape.end(), -1) == shape.end(); }

std::size_t TensorRef::count() const {
    std::size_t count = 1;
    for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
    return count;
}

double TensorRef::at(std::size_t i) const {
    switch (element_type) {
    case kElementFloat: return element<float>(data, i);
    case kElementUint8: return element<std::uint8_t>(data, i);
    case kElementInt8: return element<std::int8_t>(data, i);
    case kElementInt32: return element<std::int32_t>(data, i);
    case kElementFloat16: return element<F16, float>(data, i);
    case kElementDouble: return element<double>(data, i);
    case kElementBfloat16: return element<Bf16, float>(data, i);
    case kElementUint16: return element<std::uint16_t>(data, i);
    case kElementInt16: return element<std::int16_t>(data, i);
    case kElementUint4: return nibble(data, i);
    case kElementInt4: return nibble(data, i) < 8 ? nibble(data, i) : nibble(data, i) - 16;
    default: throw Failure(kFail, "an element of ONNX type " + std::to_string(element_type) + " is asked for");
    }
}

TensorRef tensor_of(const Api &api, const OrtValue *value) {
    OrtTensorTypeAndShapeInfo *info = nullptr;
    check(api, api.GetTensorTypeAndShape(value, &info));
    struct Release {
        const Api &api;
        OrtTensorTypeAndShapeInfo *info;
        ~Release() { api.ReleaseTensorTypeAndShapeInfo(info); }
    } const release{api, info};
    TensorRef tensor;
    check(api, api.GetTensorElementType(info, &tensor.element_type));
    tensor.shape = extents_of(api, info);
    check(api, api.GetTensorData(value, &tensor.data));
    return tensor;
}

std::string Value::name() const {
    const char *name = nullptr;
    check(api(), api().GetValueInfoName(info_, &name));
    return name ? name : "";
}

const OrtTensorTypeAndShapeInfo *Value::type() const {
    const OrtTypeInfo *type = nullptr;
    const OrtTensorTypeAndShapeInfo *tensor = nullptr;
    check(api(), api().GetValueInfoTypeInfo(info_, &type));
    if (type) check(api(), api().CastTypeInfoToTensorInfo(type, &tensor));
    return tensor;
}

int Value::element_type() const {
    int element_type = 0;
    if (const OrtTensorTypeAndShapeInfo *const info = type()) {
        check(api(), api().GetTensorElementType(info, &element_type));
    }
    return element_type;
}

Shape Value::shape() const {
    const OrtTensorTypeAndShapeInfo *const info = type();
    return info ? extents_of(api(), info) : Shape();
}

std::vector<std::string> Value::symbols() const {
    const OrtTensorTypeAndShapeInfo *const info = type();
    std::size_t rank = 0;
    if (info) check(api(), api().GetDimensionsCount(info, &rank));
    std::vector<const char *> names(rank);
    if (rank > 0) check(api(), api().GetSymbolicDimensions(info, names.data(), rank));
    std::vector<std::string> symbols;
    symbols.reserve(rank);
    for (const char *const name : names) symbols.emplace_back(name ? name : "");
    return symbols;
}

bool Value::is_constant() const {
    bool is = false;
    check(api(), api().ValueInfo_IsConstantInitializer(info_, &is));
    return is;
}

TensorRef Value::constant() const {
    const OrtValue *value = nullptr;
    check(api(), api().ValueInfo_GetInitializerValue(info_, &value));
    if (!value) throw Failure(kFail, "constant '" + name() + "' has no value");
    return tensor_of(api(), value);
}

bool Value::is_graph_output() const {
    bool is = false;
    check(api(), api().ValueInfo_IsGraphOutput(info_, &is));
    return is;
}

const Api &Value::api() const { return graph_->api(); }

std::optional<Node> Value::producer() const {
    const auto found = graph_->producers_.find(name());
    if (found == graph_->producers_.end()) return std::nullopt;
    return Node(graph_, found->second);
}

std::optional<Node> Value::only_reader() const {
    const auto found = graph_->readers_.find(name());
    if (found == graph_->readers_.end() || found->second.count != 1 || !found->second.first) return std::nullopt;
    if (is_graph_output()) return std::nullopt;
    return Node(graph_, found->second.first);
}

const Api &Node::api() const { return graph_->api(); }

std::size_t Node::id() const {
    std::size_t id = 0;
    check(api(), api().Node_GetId(node_, &id));
    return id;
}

std::string Node::text(OrtStatus *(*Api::*get)(const OrtNode *, const char **)) const {
    const char *text = nullptr;
    check(api(), (api().*get)(node_, &text));
    return text ? text : "";
}

std::string Node::label() const {
    const std::string name = text(&Api::Node_GetName), type = text(&Api::Node_GetOperatorType);
    return name.empty() ? type : type + " '" + name + "'";
}

bool Node::is_op(const char *type) const {
    if (text(&Api::Node_GetOperatorType) != type) return false;
    const std::string domain = text(&Api::Node_GetDomain);
    return domain.empty() || domain == "ai.onnx";
}

bool Node::is_op(const char *domain, const char *type) const {
    return text(&Api::Node_GetOperatorType) == type && text(&Api::Node_GetDomain) == domain;
}

int Node::since_version() const {
    int version = 0;
    check(api(), api().Node_GetSinceVersion(node_, &version));
    return version;
}

std::vector<Value> Node::values(Count count, List list) const {
    std::size_t size = 0;
    check(api(), (api().*count)(node_, &size));
    std::vector<const OrtValueInfo *> infos(size);
    if (size > 0) check(api(), (api().*list)(node_, infos.data(), size));
    std::vector<Value> values;
    values.reserve(size);
    for (const OrtValueInfo *const info : infos) values.emplace_back(graph_, info);
    return values;
}

std::vector<Value> Node::inputs() const { return values(&Api::Node_GetNumInputs, &Api::Node_GetInputs); }

std::vector<Value> Node::outputs() const { return values(&Api::Node_GetNumOutputs, &Api::Node_GetOutputs); }

std::vector<Value> Node::implicit_inputs() const {
    return values(&Api::Node_GetNumImplicitInputs, &Api::Node_GetImplicitInputs);
}

Value Node::input(std::size_t i) const {
    const std::vector<Value> all = inputs();
    return i < all.size() ? all[i] : Value();
}

bool Node::is_free() const { return text(&Api::Node_GetEpName).empty(); }

const OrtOpAttr *Node::attribute(const char *name) const {
    const OrtOpAttr *attribute = nullptr;
    OrtStatus *const status = api().Node_GetAttributeByName(node_, name, &attribute);
    if (status && api().GetErrorCode(status) == kNotFound) {
        api().ReleaseStatus(status);
        return nullptr;
    }
    check(api(), status);
    return attribute;
}

template<typename T>
std::optional<T> Node::number(const char *name, AttributeType type) const {
    const OrtOpAttr *const attr = attribute(name);
    if (!attr) return std::nullopt;
    T value = 0;
    std::size_t size = 0;
    check(api(), api().ReadOpAttr(attr, type, &value, sizeof value, &size));
    return value;
}

std::optional<std::int64_t> Node::int_attribute(const char *name) const { return number<std::int64_t>(name, kInt); }

std::optional<float> Node::float_attribute(const char *name) const { return number<float>(name, kFloat); }

std::optional<Shape> Node::ints_attribute(const char *name) const {
    const OrtOpAttr *const attr = attribute(name);
    if (!attr) return std::nullopt;
    std::size_t size = 0;
    OrtStatus *const asked = api().ReadOpAttr(attr, kInts, nullptr, 0, &size); // fails, and says how much is needed
    if (asked) api().ReleaseStatus(asked);
    Shape values(size / sizeof(std::int64_t));
    if (!values.empty()) check(api(), api().ReadOpAttr(attr, kInts, values.data(), size, &size));
    return values;
}

std::optional<std::string> Node::string_attribute(const char *name) const {
    const OrtOpAttr *const attr = attribute(name);
    if (!attr) return std::nullopt;
    std::size_t size = 0;
    OrtStatus *const asked = api().ReadOpAttr(attr, kString, nullptr, 0, &size); // as for a list
    if (asked) api().ReleaseStatus(asked);
    std::string text(size, '\0');
    if (size > 0) check(api(), api().ReadOpAttr(attr, kString, text.data(), size, &size));
    return text.substr(0, text.find('\0')); // with or without the byte that ends it
}

Graph::Graph(const Api &api, const OrtGraph *graph) : api_(api) {
    std::size_t count = 0;
    check(api, api.Graph_GetNumNodes(graph, &count));
    std::vector<const OrtNode *> nodes(count);
    if (count > 0) check(api, api.Graph_GetNodes(graph, nodes.data(), count));
    nodes_.reserve(count);
    for (const OrtNode *const node : nodes) {
        const Node &added = nodes_.emplace_back(this, node);
        for (const Value &value : added.outputs()) {
            if (value) producers_[value.name()] = node;
        }
        for (const Value &value : added.inputs()) {
            if (!value) continue;
            Readers &readers = readers_[value.name()];
            if (readers.count++ == 0) readers.first = node;
        }
        for (const Value &value : added.implicit_inputs()) {
            if (value) readers_[value.name()].count++;
        }
    }
}

Graph::Graph(const Api &api, const OrtNode *node) : api_(api), nodes_{Node(this, node)} {}

} // namespace convtranspose::provider
