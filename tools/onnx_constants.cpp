// The values of constants, and of what Identity, Cast, Reshape, Transpose and DequantizeLinear make of them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "runtime/base/shape.h"
#include "tools/error.h"
#include "tools/onnx_model.h"
#include "tools/onnx_nodes.h"
#include "tools/onnx_tensor.h"
#include "tools/text.h"

namespace convtranspose::tools {

namespace {

// Converts as ONNX says: integers that do not fit wrap around. The fractions of floats are cut off, and floats that do not fit are
// undefined.
double converted(double value, convt_dtype from, convt_dtype to) {
    const bool from_floats = from == CONVT_F16 || from == CONVT_BF16 || from == CONVT_F32 || from == CONVT_F64;
    if (to != CONVT_U8 && to != CONVT_S8 && to != CONVT_S32) return value;
    const double least = to == CONVT_U8 ? 0 : to == CONVT_S8 ? -128 : std::numeric_limits<std::int32_t>::min();
    const double span = to == CONVT_S32 ? 4294967296.0 : 256.0;
    if (from_floats) return std::isnan(value) ? 0 : std::clamp(std::trunc(value), least, least + span - 1);
    return value - span * std::floor((value - least) / span);
}

Tensor cast(const Tensor &from, convt_dtype to) {
    Tensor result(to, from.shape);
    for (std::size_t i = 0; i < from.count(); i++) result.set(i, converted(from.at(i), from.dtype, to));
    return result;
}

// Converts integers of 64 bits, which a tensor cannot hold. They are rounded to floats once, and wrap around.
Tensor cast(const std::vector<std::int64_t> &from, const Shape &shape, convt_dtype to) {
    Tensor result(to, shape);
    for (std::size_t i = 0; i < from.size(); i++) {
        switch (to) {
        case CONVT_U8: result.set(i, static_cast<std::uint8_t>(from[i])); break;
        case CONVT_S8: result.set(i, static_cast<std::int8_t>(from[i])); break;
        case CONVT_S32: result.set(i, static_cast<std::int32_t>(from[i])); break;
        case CONVT_F64: result.set(i, static_cast<double>(from[i])); break;
        default: result.set(i, static_cast<float>(from[i]));
        }
    }
    return result;
}

// Returns the type of a node's result, which a number says. Types of ONNX that tensors here cannot have are not supported.
convt_dtype type_of_result(const onnx::NodeProto &node, int type) {
    if (const std::optional<convt_dtype> dtype = find_dtype(type)) return *dtype;
    const std::string what = label_of(node) + ": its result has type " + onnx_type_name(type);
    if (type == onnx::TensorProto::UNDEFINED) throw Rejected(what + "; an attribute must name one");
    throw Error(what + ", which is not supported");
}

// Reads the attribute of integers; none: it is not given.
std::optional<std::vector<std::int64_t>> ints_attribute(const onnx::NodeProto &node, const char *name) {
    for (const onnx::AttributeProto &attribute : node.attribute()) {
        if (attribute.name() == name)
            return std::vector<std::int64_t>(attribute.ints().begin(), attribute.ints().end());
    }
    return std::nullopt;
}

// Gives x the shape that Reshape is told: 0 is the extent of x, unless attribute allowzero says otherwise, and -1 what is left.
Tensor reshape(const onnx::NodeProto &node, const Tensor &x, const std::vector<std::int64_t> &told) {
    const auto reject = [&] {
        throw Rejected(label_of(node) + ": its input of shape " + to_string(x.shape) + " cannot have shape " +
                       to_string(Shape(told.begin(), told.end())));
    };
    Shape shape(told.begin(), told.end());
    std::int64_t *left = nullptr;
    for (std::size_t d = 0; d < shape.size(); d++) {
        if (shape[d] == 0 && int_attribute(node, "allowzero", 0) == 0) {
            if (d >= x.shape.size()) reject();
            shape[d] = x.shape[d];
        } else if (shape[d] == -1 && !left) {
            left = &shape[d];
            *left = 1;
        } else if (shape[d] < 0) {
            reject();
        }
    }
    const std::size_t others = element_count(shape);
    if (left && others == 0) reject(); // any extent would do
    if (left) *left = static_cast<std::int64_t>(x.count() / others);
    if (element_count(shape) != x.count()) reject();
    Tensor result(x.dtype, shape);
    std::memcpy(result.data.data(), x.data.data(), x.data.size());
    return result;
}

Tensor transpose(const onnx::NodeProto &node, const Tensor &x) {
    const std::size_t rank = x.shape.size();
    std::vector<std::int64_t> reversed(rank);
    std::iota(reversed.rbegin(), reversed.rend(), 0);
    const std::vector<std::int64_t> perm = ints_attribute(node, "perm").value_or(reversed);
    std::vector<std::int64_t> sorted = perm;
    std::sort(sorted.rbegin(), sorted.rend());
    if (sorted != reversed) {
        throw Rejected(label_of(node) + ": its attribute perm must name each of the " + std::to_string(rank) +
                       " axes of its input once");
    }
    const Strides strides = dense_strides(x.shape);
    // Few axes are longer than 1, whatever the rank is.
    Shape shape, extents = {1}, steps = {1};
    for (const std::int64_t axis : perm) {
        const auto from = static_cast<std::size_t>(axis);
        shape.push_back(x.shape[from]);
        if (x.shape[from] == 1) continue;
        extents.push_back(x.shape[from]);
        steps.push_back(strides[from]);
    }
    Tensor result(x.dtype, shape);
    if (x.count() == 0) return result;
    Strides from_strides(steps.size());
    std::copy(steps.begin(), steps.end(), from_strides.begin());
    copy_tensor(extents, size_of(x.dtype), x.data.data(), from_strides, result.data.data(), dense_strides(extents));
    return result;
}

// Finds the scale of each element of x. There is one scale for all, one for each position of an axis, or one for each block along
// it.
class Scales {
  public:
    Scales(const onnx::NodeProto &node, const Shape &x, const Shape &scale) {
        const auto reject = [&](const std::string &why) {
            throw Rejected(label_of(node) + ": its scale has shape " + to_string(scale) + ", its input " +
                           to_string(x) + why);
        };
        if (element_count(scale) == 1 && scale.size() <= 1) return;
        const auto rank = static_cast<std::int64_t>(x.size());
        std::int64_t axis = int_attribute(node, "axis", 1);
        if (axis < 0) axis += rank;
        if (axis < 0 || axis >= rank) reject("; its attribute axis names none of the input's axes");
        const auto along = static_cast<std::size_t>(axis);
        extent_ = x[along];
        for (std::size_t d = along + 1; d < x.size(); d++) inner_ *= x[d];
        if (scale.size() == 1) {
            if (scale[0] != extent_) reject("; there must be one for each position of axis " + std::to_string(axis));
            inside_ = 1;
            return;
        }
        block_ = int_attribute(node, "block_size", 0);
        Shape blocks = x;
        if (block_ > 0) blocks[along] = extent_ / block_ + (extent_ % block_ != 0);
        if (block_ <= 0 || blocks != scale)
            reject("; there must be one for each block, of attribute block_size, of an axis");
        inside_ = inner_;
        count_ = blocks[along];
    }

    std::size_t of(std::size_t element) const {
        if (extent_ == 0) return 0;
        const auto i = static_cast<std::int64_t>(element);
        const std::int64_t position = i / inner_ % extent_;
        if (inside_ == 1 && count_ == 0) return static_cast<std::size_t>(position);
        return static_cast<std::size_t>((i / inner_ / extent_ * count_ + position / block_) * inner_ + i % inner_);
    }

  private:
    std::int64_t extent_ = 0, inner_ = 1, inside_ = 0, block_ = 0, count_ = 0;
};

Tensor dequantize(const onnx::NodeProto &node, const Tensor &x, const Tensor &scale, const Tensor *zero_point) {
    if (zero_point && zero_point->count() != scale.count()) {
        throw Rejected(label_of(node) + ": its zero point has shape " + to_string(zero_point->shape) + ", its scale " +
                       to_string(scale.shape) + "; they must have one shape");
    }
    if (zero_point && zero_point->dtype != x.dtype) {
        throw Rejected(label_of(node) + ": its zero point is " + convt_dtype_name(zero_point->dtype) + ", its input " +
                       convt_dtype_name(x.dtype) + "; they must have one type");
    }
    const Scales scales(node, x.shape, scale.shape);
    const int given = type_attribute(node, "output_dtype");
    Tensor result(given == 0 ? scale.dtype : type_of_result(node, given), x.shape);
    for (std::size_t i = 0; i < x.count(); i++) {
        const std::size_t s = scales.of(i);
        const double difference = x.at(i) - (zero_point ? zero_point->at(s) : 0);
        // The difference is rounded before it is multiplied, which matters for integers of 32 bits.
        result.set(i, scale.dtype == CONVT_F64 ? difference * scale.at(s)
                                               : static_cast<float>(difference) * static_cast<float>(scale.at(s)));
    }
    return result;
}

} // namespace

std::shared_ptr<Tensor> Model::evaluate(const std::string &key, Evaluated *known) const {
    const auto seen = known->find(key);
    if (seen != known->end()) return seen->second;
    const Value &value = values_.at(key);
    std::shared_ptr<Tensor> result;
    if (value.tensor) {
        result = std::make_shared<Tensor>(tensor_from_proto(*value.tensor, file_));
    } else if (is_op(*value.producer, "Identity") && value.producer->input_size() > 0 &&
               !value.producer->input(0).empty()) {
        result = evaluate(resolve(value.producer->input(0), value.scope), known);
    } else {
        result = std::make_shared<Tensor>(result_of(*value.producer, inputs_of(*value.producer, value.scope), known));
    }
    // Others are asked for once, and need not be kept.
    if (value.consumers.size() > 1) known->emplace(key, result);
    return result;
}

Tensor Model::result_of(const onnx::NodeProto &node, const std::vector<std::string> &inputs, Evaluated *known) const {
    const bool dequantizes = is_op(node, "DequantizeLinear");
    if (inputs.empty() || inputs[0].empty() || (dequantizes && (inputs.size() < 2 || inputs[1].empty())))
        throw Rejected(label_of(node) + " lacks an input");
    const auto operand = [&](std::size_t i) {
        const Value *const source = source_of(inputs[i]);
        // Other nodes give the type that they take, which must not pass for s32.
        if (source && source->tensor && is_short_integer(source->tensor->data_type()) &&
            (dequantizes || is_op(node, "Cast")))
            return std::make_shared<Tensor>(widened_from_proto(*source->tensor, file_));
        if (source && source->tensor && !find_dtype(source->tensor->data_type())) {
            throw Error(label_of(node) + ": its input of type " + onnx_type_name(source->tensor->data_type()) +
                        " is not supported");
        }
        return evaluate(inputs[i], known);
    };
    if (is_op(node, "Cast")) {
        const convt_dtype to = type_of_result(node, type_attribute(node, "to"));
        if (const onnx::TensorProto *const integers = tensor_of_integers(inputs[0]))
            return cast(integers_from_proto(*integers, file_), shape_of(*integers), to);
        return cast(*operand(0), to);
    }
    if (is_op(node, "Transpose")) return transpose(node, *operand(0));
    if (is_op(node, "Reshape")) {
        const onnx::TensorProto *const told = inputs.size() > 1 ? tensor_of_integers(inputs[1]) : nullptr;
        const auto attribute = ints_attribute(node, "shape"); // before opset 5
        if (!told && inputs.size() > 1 && !inputs[1].empty())
            throw Error(label_of(node) + ": a shape that is no initializer or Constant of INT64 is not supported");
        if (!told && !attribute) throw Rejected(label_of(node) + " has no shape");
        return reshape(node, *operand(0), told ? integers_from_proto(*told, file_) : *attribute);
    }
    const std::shared_ptr<Tensor> zero_point = inputs.size() > 2 && !inputs[2].empty() ? operand(2) : nullptr;
    if (zero_point) { // integers of 16 and 4 bits are widened to s32, which hides their types
        const Value *const x = source_of(inputs[0]), *const zero = source_of(inputs[2]);
        if (x && zero && x->tensor && zero->tensor && x->tensor->data_type() != zero->tensor->data_type())
            throw Rejected(label_of(node) + ": its zero point is " + onnx_type_name(zero->tensor->data_type()) +
                           ", its input " + onnx_type_name(x->tensor->data_type()) + "; they must have one type");
    }
    return dequantize(node, *operand(0), *operand(1), zero_point.get());
}

void Model::initialize_type(const std::string &name, const ValueType &type, ValueType *declared) {
    const auto agrees = [](std::int64_t is, std::int64_t says) { return says == -1 || says == is; };
    const bool right_shape = !declared->shape || std::equal(type.shape->begin(), type.shape->end(),
                                                            declared->shape->begin(), declared->shape->end(), agrees);
    if (!right_shape || (declared->data_type != 0 && declared->data_type != type.data_type)) {
        throw Rejected("initializer '" + name + "' is " + onnx_type_name(type.data_type) + " " + type.text() +
                       ", but the graph input of that name is declared " + onnx_type_name(declared->data_type) + " " +
                       declared->text());
    }
    *declared = type;
}

// Returns the initializer or Constant of INT64 that a value is, behind any Identity, or null.
const onnx::TensorProto *Model::tensor_of_integers(const std::string &key) const {
    const Value *const value = source_of(key);
    return value && value->tensor && value->tensor->data_type() == onnx::TensorProto::INT64 ? value->tensor : nullptr;
}

Tensor Model::constant(const std::string &value) const {
    if (!is_constant(value)) throw Rejected("value '" + value + "' is not a constant");
    Evaluated known;
    return std::move(*evaluate(value, &known));
}

} // namespace convtranspose::tools
