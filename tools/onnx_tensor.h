// TensorProtos, in models and in .pb files.
#ifndef CONVTRANSPOSE_TOOLS_ONNX_TENSOR_H_
#define CONVTRANSPOSE_TOOLS_ONNX_TENSOR_H_

#include <filesystem>
#include <string>

#include "onnx-ml.pb.h"
#include "tensor.h"

namespace convtranspose::tools {

// The ONNX name of an element type ("FLOAT16"), or its number where it has none.
std::string onnx_type_name(int data_type);

// Throws Rejected, naming `what`, for a type that neither operator takes.
convt_dtype dtype_from_onnx(int data_type, const std::string &what);

Shape shape_of(const onnx::TensorProto &proto);

// Whatever way the data are kept: raw, in the field of their type, or in a file beside the model (external data), which
// `folder` is then. Throws Rejected where the data and the dims are at odds.
Tensor tensor_from_proto(const onnx::TensorProto &proto, const std::filesystem::path &folder);

// A .pb (TensorProto) or .npy file.
Tensor load_tensor(const std::filesystem::path &file);

// Throws Error where a tensor exceeds the 2 GiB of a protobuf message. To be asked before such a tensor is allocated.
void require_serializable(convt_dtype dtype, const Shape &shape, const std::string &name);

// A TensorProto named `name`, serialized.
std::string serialize(const Tensor &tensor, const std::string &name);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_ONNX_TENSOR_H_
