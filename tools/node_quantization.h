// The scales and zero points of a QLinearConvTranspose node, which are inputs of it.
#ifndef CONVTRANSPOSE_TOOLS_NODE_QUANTIZATION_H_
#define CONVTRANSPOSE_TOOLS_NODE_QUANTIZATION_H_

#include <functional>
#include <string>

#include "onnx_model.h"

namespace convtranspose::tools {

// value: the tensor of an input. Throws Rejected where types or shapes break the operator's rules: scales are FLOAT,
// zero points of the type of what they belong to; those of x and y are one number, those of w one or a list of them.
Quantization quantization_of(const Node &node, const std::function<const Tensor &(const std::string &)> &value);

// Likewise for the types of a node's tensors: throws Rejected where the operator does not take dtype. what: "X".
void require_operand_type(const Node &node, const std::string &what, convt_dtype dtype);

// Of a quantized node.
void require_bias_type(const Node &node, convt_dtype dtype);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_NODE_QUANTIZATION_H_
