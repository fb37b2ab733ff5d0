// The values of constants, and of what Identity, Cast and DequantizeLinear make of them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "error.h"
#include "onnx_model.h"
#include "onnx_nodes.h"
#include "onnx_tensor.h"
#include "text.h"

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
        if (block_ > 0) blocks[along] = (extent_ + block_ - 1) / block_;
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
    const Scales scales(node, x.shape, scale.shape);
    const auto given = static_cast<int>(int_attribute(node, "output_dtype", 0));
    Tensor result(given == 0 ? scale.dtype : dtype_from_onnx(given, label_of(node) + ": its result"), x.shape);
    for (std::size_t i = 0; i < x.count(); i++) {
        const std::size_t s = scales.of(i);
        result.set(i, (x.at(i) - (zero_point ? zero_point->at(s) : 0)) * scale.at(s));
    }
    return result;
}

} // namespace

Tensor Model::evaluate(const std::string &key) const {
    const Value &value = values_.at(key);
    if (value.tensor) return tensor_from_proto(*value.tensor, file_);
    const onnx::NodeProto &node = *value.producer;
    const std::vector<std::string> inputs = inputs_of(node, value.scope);
    const bool dequantizes = is_op(node, "DequantizeLinear");
    if (inputs.empty() || (dequantizes && inputs.size() < 2)) throw Rejected(label_of(node) + " lacks an input");
    if (is_op(node, "Identity")) return evaluate(inputs[0]);
    if (is_op(node, "Cast")) {
        const auto to = static_cast<int>(int_attribute(node, "to", 0));
        return cast(evaluate(inputs[0]), dtype_from_onnx(to, label_of(node) + ": its result"));
    }
    const bool has_zero_point = inputs.size() > 2 && !inputs[2].empty();
    const Tensor zero_point = has_zero_point ? evaluate(inputs[2]) : Tensor();
    return dequantize(node, evaluate(inputs[0]), evaluate(inputs[1]), has_zero_point ? &zero_point : nullptr);
}

} // namespace convtranspose::tools
