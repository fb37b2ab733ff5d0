// The scales and zero points of a node, quantized or with weights of 8 bits, which are among its inputs or those of its neighbours.
#ifndef CONVTRANSPOSE_TOOLS_NODE_QUANTIZATION_H_
#define CONVTRANSPOSE_TOOLS_NODE_QUANTIZATION_H_

#include <functional>
#include <string>

#include "tools/onnx_model.h"

namespace convtranspose::tools {

// Reads the quantization of a node, whose inputs `value` gives. Throws Rejected if types or shapes break the operator's rules:
// scales are FLOAT, and zero points have the type of their tensor; those of x and y are one number, and those of w one or a list.
Quantization quantization_of(const Node &node, const std::function<const Tensor &(const std::string &)> &value);

// Throws Rejected if the operator does not take the type for a tensor, whose name is `what`.
void require_operand_type(const Node &node, const std::string &what, convt_dtype dtype);

// Throws Rejected if the bias of a quantized node has another type than the operator takes.
void require_bias_type(const Node &node, convt_dtype dtype);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_NODE_QUANTIZATION_H_
