#include "graph.h"

#include <cstring>

#include "failure.h"

namespace convtranspose::provider {

namespace {

template<typename T>
double element(const void *data, std::size_t i) {
    T value;
    std::memcpy(&value, static_cast<const char *>(data) + i * sizeof value, sizeof value);
    return static_cast<double>(value);
}

double from_bits(std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return static_cast<double>(value);
}

double from_f16(std::uint16_t half) {
    const std::uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31u, fraction = half & 1023u;
    if (exponent == 31) return from_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent > 0) return from_bits(sign | (exponent + 112) << 23 | fraction << 13);
    const double magnitude = static_cast<double>(fraction) / (1 << 24);
    return sign ? -magnitude : magnitude;
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
    case kElementFloat16: return from_f16(static_cast<std::uint16_t>(element<std::uint16_t>(data, i)));
    case kElementDouble: return element<double>(data, i);
    case kElementBfloat16: return from_bits(static_cast<std::uint32_t>(element<std::uint16_t>(data, i)) << 16);
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
    check(*api_, api_->GetValueInfoName(info_, &name));
    return name ? name : "";
}

const OrtTensorTypeAndShapeInfo *Value::type() const {
    const OrtTypeInfo *type = nullptr;
    const OrtTensorTypeAndShapeInfo *tensor = nullptr;
    check(*api_, api_->GetValueInfoTypeInfo(info_, &type));
    if (type) check(*api_, api_->CastTypeInfoToTensorInfo(type, &tensor));
    return tensor;
}

int Value::element_type() const {
    int element_type = 0;
    if (const OrtTensorTypeAndShapeInfo *const info = type()) {
        check(*api_, api_->GetTensorElementType(info, &element_type));
    }
    return element_type;
}

Shape Value::shape() const {
    const OrtTensorTypeAndShapeInfo *const info = type();
    return info ? extents_of(*api_, info) : Shape();
}

std::vector<std::string> Value::symbols() const {
    const OrtTensorTypeAndShapeInfo *const info = type();
    std::size_t rank = 0;
    if (info) check(*api_, api_->GetDimensionsCount(info, &rank));
    std::vector<const char *> names(rank);
    if (rank > 0) check(*api_, api_->GetSymbolicDimensions(info, names.data(), rank));
    std::vector<std::string> symbols;
    symbols.reserve(rank);
    for (const char *const name : names) symbols.emplace_back(name ? name : "");
    return symbols;
}

bool Value::is_constant() const {
    bool is = false;
    check(*api_, api_->ValueInfo_IsConstantInitializer(info_, &is));
    return is;
}

TensorRef Value::constant() const {
    const OrtValue *value = nullptr;
    check(*api_, api_->ValueInfo_GetInitializerValue(info_, &value));
    if (!value) throw Failure(kFail, "constant '" + name() + "' has no value");
    return tensor_of(*api_, value);
}

bool Value::is_graph_output() const {
    bool is = false;
    check(*api_, api_->ValueInfo_IsGraphOutput(info_, &is));
    return is;
}

std::optional<Node> Value::producer() const {
    const OrtNode *node = nullptr;
    std::size_t output = 0;
    check(*api_, api_->ValueInfo_GetValueProducer(info_, &node, &output));
    if (!node) return std::nullopt;
    return Node(api_, node);
}

std::optional<Node> Value::only_reader() const {
    std::size_t count = 0;
    check(*api_, api_->ValueInfo_GetValueNumConsumers(info_, &count));
    if (count != 1 || is_graph_output()) return std::nullopt;
    const OrtNode *node = nullptr;
    std::int64_t input = 0;
    check(*api_, api_->ValueInfo_GetValueConsumers(info_, &node, &input, 1));
    // A node that reads it in a subgraph of its own has no number for the input.
    if (!node || input < 0) return std::nullopt;
    return Node(api_, node);
}

std::size_t Node::id() const {
    std::size_t id = 0;
    check(*api_, api_->Node_GetId(node_, &id));
    return id;
}

std::string Node::text(OrtStatus *(*Api::*get)(const OrtNode *, const char **)) const {
    const char *text = nullptr;
    check(*api_, (api_->*get)(node_, &text));
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
    check(*api_, api_->Node_GetSinceVersion(node_, &version));
    return version;
}

std::vector<Value> Node::inputs() const {
    std::size_t count = 0;
    check(*api_, api_->Node_GetNumInputs(node_, &count));
    std::vector<const OrtValueInfo *> infos(count);
    if (count > 0) check(*api_, api_->Node_GetInputs(node_, infos.data(), count));
    std::vector<Value> values;
    values.reserve(count);
    for (const OrtValueInfo *const info : infos) values.emplace_back(api_, info);
    return values;
}

std::vector<Value> Node::outputs() const {
    std::size_t count = 0;
    check(*api_, api_->Node_GetNumOutputs(node_, &count));
    std::vector<const OrtValueInfo *> infos(count);
    if (count > 0) check(*api_, api_->Node_GetOutputs(node_, infos.data(), count));
    std::vector<Value> values;
    values.reserve(count);
    for (const OrtValueInfo *const info : infos) values.emplace_back(api_, info);
    return values;
}

Value Node::input(std::size_t i) const {
    const std::vector<Value> all = inputs();
    return i < all.size() ? all[i] : Value();
}

bool Node::is_free() const { return text(&Api::Node_GetEpName).empty(); }

const OrtOpAttr *Node::attribute(const char *name) const {
    const OrtOpAttr *attribute = nullptr;
    OrtStatus *const status = api_->Node_GetAttributeByName(node_, name, &attribute);
    if (status && api_->GetErrorCode(status) == kNotFound) {
        api_->ReleaseStatus(status);
        return nullptr;
    }
    check(*api_, status);
    return attribute;
}

std::optional<std::int64_t> Node::int_attribute(const char *name) const {
    const OrtOpAttr *const attr = attribute(name);
    if (!attr) return std::nullopt;
    std::int64_t value = 0;
    std::size_t size = 0;
    check(*api_, api_->ReadOpAttr(attr, kInt, &value, sizeof value, &size));
    return value;
}

std::optional<float> Node::float_attribute(const char *name) const {
    const OrtOpAttr *const attr = attribute(name);
    if (!attr) return std::nullopt;
    float value = 0;
    std::size_t size = 0;
    check(*api_, api_->ReadOpAttr(attr, kFloat, &value, sizeof value, &size));
    return value;
}

std::optional<Shape> Node::ints_attribute(const char *name) const {
    const OrtOpAttr *const attr = attribute(name);
    if (!attr) return std::nullopt;
    std::size_t size = 0;
    OrtStatus *const asked = api_->ReadOpAttr(attr, kInts, nullptr, 0, &size); // fails, and says how much is needed
    if (asked) api_->ReleaseStatus(asked);
    Shape values(size / sizeof(std::int64_t));
    if (!values.empty()) check(*api_, api_->ReadOpAttr(attr, kInts, values.data(), size, &size));
    return values;
}

std::optional<std::string> Node::string_attribute(const char *name) const {
    const OrtOpAttr *const attr = attribute(name);
    if (!attr) return std::nullopt;
    std::size_t size = 0;
    OrtStatus *const asked = api_->ReadOpAttr(attr, kString, nullptr, 0, &size); // as for a list
    if (asked) api_->ReleaseStatus(asked);
    std::string text(size, '\0');
    if (size > 0) check(*api_, api_->ReadOpAttr(attr, kString, text.data(), size, &size));
    return text.substr(0, text.find('\0')); // with or without the byte that ends it
}

std::vector<Node> nodes_of(const Api &api, const OrtGraph *graph) {
    std::size_t count = 0;
    check(api, api.Graph_GetNumNodes(graph, &count));
    std::vector<const OrtNode *> nodes(count);
    if (count > 0) check(api, api.Graph_GetNodes(graph, nodes.data(), count));
    std::vector<Node> wrapped;
    wrapped.reserve(count);
    for (const OrtNode *const node : nodes) wrapped.emplace_back(&api, node);
    return wrapped;
}

} // namespace convtranspose::provider
