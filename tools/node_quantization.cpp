#include "tools/node_quantization.h"

#include "tools/error.h"
#include "tools/text.h"

namespace convtranspose::tools {

namespace {

constexpr int kBf16Opset = 22;

bool is_8_bit(convt_dtype dtype) { return dtype == CONVT_U8 || dtype == CONVT_S8; }

void require_type(const Node &node, const char *input, const Tensor &tensor, convt_dtype dtype,
                  const std::string &why) {
    if (tensor.dtype == dtype) return;
    throw Rejected(node.label + ": " + input + " is " + convt_dtype_name(tensor.dtype) + ", must be " +
                   convt_dtype_name(dtype) + why);
}

// Repeats the values of one group for each group, so that there is one for each output channel.
template<typename T>
void repeat_for_groups(const Node &node, const Tensor &w, std::vector<T> *values) {
    const std::int64_t group = node.attributes.group;
    const auto given = static_cast<std::int64_t>(values->size());
    if (node.channels_last || given < 2 || w.shape.size() < 2 || w.shape[1] != given || group > w.shape[0]) return;
    const std::vector<T> one = *values;
    for (std::int64_t g = 1; g < group; g++) values->insert(values->end(), one.begin(), one.end());
}

// A number that is given as a scalar or as a list of one element.
double number(const Node &node, const char *input, const Tensor &tensor) {
    if (tensor.shape.size() > 1 || tensor.count() != 1) {
        throw Rejected(node.label + ": " + input + " has shape " + to_string(tensor.shape) + ", must be one number");
    }
    return tensor.at(0);
}

template<typename T>
std::vector<T> list(const Node &node, const char *input, const Tensor &tensor) {
    if (tensor.shape.size() > 1 || tensor.count() == 0) {
        throw Rejected(node.label + ": " + input + " has shape " + to_string(tensor.shape) +
                       ", must be one number or one for each output channel");
    }
    std::vector<T> values;
    for (std::size_t i = 0; i < tensor.count(); i++) values.push_back(static_cast<T>(tensor.at(i)));
    return values;
}

} // namespace

void require_operand_type(const Node &node, const std::string &what, convt_dtype dtype) {
    const bool taken = node.quantized ? is_8_bit(dtype) : !is_8_bit(dtype) && dtype != CONVT_S32;
    if (dtype == CONVT_BF16 && taken && node.opset < kBf16Opset) {
        throw Rejected(node.label + ": " + what + " is bf16, which the operator takes from opset " +
                       std::to_string(kBf16Opset) + " on; the model imports opset " + std::to_string(node.opset));
    }
    if (taken) return;
    throw Rejected(node.label + ": " + what + " is " + convt_dtype_name(dtype) + "; the operator takes " +
                   (node.quantized ? "u8 and s8" : "f16, bf16, f32 and f64"));
}

void require_bias_type(const Node &node, convt_dtype dtype) {
    const convt_dtype must = node.float_output.empty() ? CONVT_S32 : CONVT_F32;
    if (dtype == must) return;
    throw Rejected(node.label + ": B is " + convt_dtype_name(dtype) + ", must be " + convt_dtype_name(must));
}

Quantization quantization_of(const Node &node, const std::function<const Tensor &(const std::string &)> &value) {
    for (const auto &[input, name] :
         {std::pair("x_scale", node.x_scale), {"w_scale", node.w_scale}, {"y_scale", node.y_scale}}) {
        if (!name.empty()) require_type(node, input, value(name), CONVT_F32, "");
    }
    Quantization q;
    q.w_scale = list<float>(node, "w_scale", value(node.w_scale));
    repeat_for_groups(node, value(node.w), &q.w_scale);
    if (node.quantized) {
        q.x_scale = static_cast<float>(number(node, "x_scale", value(node.x_scale)));
        if (node.float_output.empty()) q.y_scale = static_cast<float>(number(node, "y_scale", value(node.y_scale)));
        q.y_range = node.y_range;
    }
    if (!node.x_zero_point.empty()) {
        const Tensor &zero = value(node.x_zero_point);
        require_type(node, "x_zero_point", zero, value(node.x).dtype, ", the type of x");
        q.x_zero_point = static_cast<std::int32_t>(number(node, "x_zero_point", zero));
    }
    if (!node.w_zero_point.empty()) {
        const Tensor &zero = value(node.w_zero_point);
        require_type(node, "w_zero_point", zero, value(node.w).dtype, ", the type of w");
        q.w_zero_point = list<std::int32_t>(node, "w_zero_point", zero);
        repeat_for_groups(node, value(node.w), &q.w_zero_point);
    }
    if (!node.y_zero_point.empty()) {
        const Tensor &zero = value(node.y_zero_point);
        require_operand_type(node, "y_zero_point, whose type is that of y,", zero.dtype);
        q.y_zero_point = static_cast<std::int32_t>(number(node, "y_zero_point", zero));
    }
    return q;
}

} // namespace convtranspose::tools
