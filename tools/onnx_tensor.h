// Reads and writes TensorProtos, in models and in .pb files.
#ifndef CONVTRANSPOSE_TOOLS_ONNX_TENSOR_H_
#define CONVTRANSPOSE_TOOLS_ONNX_TENSOR_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <onnx-ml.pb.h>

#include "tools/tensor.h"

namespace convtranspose::tools {

// The ONNX name of an element type ("FLOAT16"), or its number if it has none.
std::string onnx_type_name(int data_type);

// The library's type for an ONNX type, or none.
std::optional<convt_dtype> find_dtype(int data_type);

// The same. Throws Rejected, naming `what`, for a type that neither operator takes.
convt_dtype dtype_from_onnx(int data_type, const std::string &what);

Shape shape_of(const onnx::TensorProto &proto);

// Reads a tensor whose data are raw, in the field of their type, or in a file beside the model's `file` (external data). Throws
// Rejected if the data and the dims are at odds.
Tensor tensor_from_proto(const onnx::TensorProto &proto, const std::filesystem::path &file);

// True for integers of 16 and 4 bits, which the library does not compute with.
bool is_short_integer(int data_type);

// Reads a tensor of such integers likewise, and makes s32 of them.
Tensor widened_from_proto(const onnx::TensorProto &proto, const std::filesystem::path &file);

// Reads a tensor of INT64 likewise.
std::vector<std::int64_t> integers_from_proto(const onnx::TensorProto &proto, const std::filesystem::path &file);

// Reads a .pb (TensorProto) or .npy file.
Tensor load_tensor(const std::filesystem::path &file);

// Throws Error if a tensor exceeds the 2 GiB of a protobuf message. This is to be asked before the tensor is allocated.
void require_serializable(convt_dtype dtype, const Shape &shape, const std::string &name);

// A TensorProto named `name`, serialized.
std::string serialize(const Tensor &tensor, const std::string &name);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_ONNX_TENSOR_H_
