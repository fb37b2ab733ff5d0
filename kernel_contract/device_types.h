// The form in which kernels for a kind of device keep tensors, in words that generators and the runtime share.
#ifndef CONVTRANSPOSE_KERNEL_CONTRACT_DEVICE_TYPES_H_
#define CONVTRANSPOSE_KERNEL_CONTRACT_DEVICE_TYPES_H_

#include <string_view>

namespace convtranspose {

// True if kernels for this kind of device ("cuda", "opencl") take tensors of f16 as u16 that holds their bits. OpenCL has f16 only
// as an extension, which PoCL lacks. bf16 is kept so everywhere, as Halide 21 fails to convert it on GPUs.
constexpr bool keeps_f16_as_bits(std::string_view device) { return device == "opencl"; }

} // namespace convtranspose

#endif // CONVTRANSPOSE_KERNEL_CONTRACT_DEVICE_TYPES_H_
