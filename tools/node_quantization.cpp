#include "node_quantization.h"

#include "error.h"
#include "text.h"

namespace convtranspose::tools {

namespace {

bool is_8_bit(convt_dtype dtype) { return dtype == CONVT_U8 || dtype == CONVT_S8; }

void require_type(const Node &node, const char *input, const Tensor &tensor, convt_dtype dtype,
                  const std::string &why) {
    if (tensor.dtype == dtype) return;
    throw Rejected(node.label + ": " + input + " is " + convt_dtype_name(tensor.dtype) + ", must be " +
                   convt_dtype_name(dtype) + why);
}

// A number, given as a scalar or as a list of one.
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
    if (taken) return;
    throw Rejected(node.label + ": " + what + " is " + convt_dtype_name(dtype) + "; the operator takes " +
                   (node.quantized ? "u8 and s8" : "f16, bf16, f32 and f64"));
}

void require_bias_type(const Node &node, convt_dtype dtype) {
    if (dtype == CONVT_S32) return;
    throw Rejected(node.label + ": B is " + convt_dtype_name(dtype) + ", must be s32");
}

Quantization quantization_of(const Node &node, const std::function<const Tensor &(const std::string &)> &value) {
    const Tensor &x_scale = value(node.x_scale), &w_scale = value(node.w_scale), &y_scale = value(node.y_scale);
    const Tensor &x_zero = value(node.x_zero_point), &w_zero = value(node.w_zero_point),
                 &y_zero = value(node.y_zero_point);
    require_type(node, "x_scale", x_scale, CONVT_F32, "");
    require_type(node, "w_scale", w_scale, CONVT_F32, "");
    require_type(node, "y_scale", y_scale, CONVT_F32, "");
    require_type(node, "x_zero_point", x_zero, value(node.x).dtype, ", the type of x");
    require_type(node, "w_zero_point", w_zero, value(node.w).dtype, ", the type of w");
    require_operand_type(node, "y_zero_point, whose type is that of y,", y_zero.dtype);
    Quantization q;
    q.x_scale = static_cast<float>(number(node, "x_scale", x_scale));
    q.x_zero_point = static_cast<std::int32_t>(number(node, "x_zero_point", x_zero));
    q.w_scale = list<float>(node, "w_scale", w_scale);
    q.w_zero_point = list<std::int32_t>(node, "w_zero_point", w_zero);
    q.y_scale = static_cast<float>(number(node, "y_scale", y_scale));
    q.y_zero_point = static_cast<std::int32_t>(number(node, "y_zero_point", y_zero));
    return q;
}

} // namespace convtranspose::tools
