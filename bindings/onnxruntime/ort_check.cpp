// Compares our declarations with ONNX Runtime's header, at compile time. Built where -DONNXRUNTIME_INCLUDE_DIR names its folder.
#include <cstddef>

#include <onnxruntime_c_api.h>

#include "ort_api.h"

namespace convtranspose::provider {

#define CONVT_SLOT(name, place, result, parameters) static_assert(offsetof(OrtApi, name) == (place) * sizeof(void *));
#define CONVT_EP_SLOT(name, place, result, parameters)                                                                 \
    static_assert(offsetof(OrtEpApi, name) == (place) * sizeof(void *));
#include "ort_slots.inc"

static_assert(ORT_API_VERSION >= kApiVersion);
static_assert(int(ORT_FAIL) == kFail && int(ORT_INVALID_ARGUMENT) == kInvalidArgument);
static_assert(int(ORT_RUNTIME_EXCEPTION) == kRuntimeException && int(ORT_NOT_IMPLEMENTED) == kNotImplemented);
static_assert(int(ORT_EP_FAIL) == kEpFail && int(ORT_NOT_FOUND) == kNotFound);
static_assert(int(ORT_LOGGING_LEVEL_WARNING) == kLogWarning && int(OrtHardwareDeviceType_CPU) == kCpu);
static_assert(int(ORT_OP_ATTR_INT) == kInt && int(ORT_OP_ATTR_INTS) == kInts);
static_assert(int(ORT_OP_ATTR_FLOAT) == kFloat && int(ORT_OP_ATTR_STRING) == kString);
static_assert(int(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) == kElementFloat);
static_assert(int(ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8) == kElementUint8);
static_assert(int(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8) == kElementInt8);
static_assert(int(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32) == kElementInt32);
static_assert(int(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16) == kElementFloat16);
static_assert(int(ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE) == kElementDouble);
static_assert(int(ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16) == kElementBfloat16);
static_assert(int(ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16) == kElementUint16);
static_assert(int(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16) == kElementInt16);
static_assert(int(ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT4) == kElementUint4);
static_assert(int(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4) == kElementInt4);
static_assert(offsetof(OrtApiBase, GetApi) == offsetof(ApiBase, get_api));

static_assert(offsetof(OrtNodeFusionOptions, drop_constant_initializers) ==
              offsetof(NodeFusionOptions, drop_constant_initializers));
static_assert(offsetof(OrtNodeComputeInfo, CreateState) == offsetof(NodeComputeInfo, create_state));
static_assert(offsetof(OrtNodeComputeInfo, Compute) == offsetof(NodeComputeInfo, compute));
static_assert(offsetof(OrtNodeComputeInfo, ReleaseState) == offsetof(NodeComputeInfo, release_state));
static_assert(offsetof(OrtEp, GetName) == offsetof(Ep, get_name));
static_assert(offsetof(OrtEp, GetCapability) == offsetof(Ep, get_capability));
static_assert(offsetof(OrtEp, Compile) == offsetof(Ep, compile));
static_assert(offsetof(OrtEp, ReleaseNodeComputeInfos) == offsetof(Ep, release_node_compute_infos));
static_assert(offsetof(OrtEp, CreateAllocator) == offsetof(Ep, create_allocator));
static_assert(offsetof(OrtEp, GetCompiledModelCompatibilityInfo) ==
              offsetof(Ep, get_compiled_model_compatibility_info));
static_assert(offsetof(OrtEpFactory, GetName) == offsetof(EpFactory, get_name));
static_assert(offsetof(OrtEpFactory, GetVendor) == offsetof(EpFactory, get_vendor));
static_assert(offsetof(OrtEpFactory, GetSupportedDevices) == offsetof(EpFactory, get_supported_devices));
static_assert(offsetof(OrtEpFactory, CreateEp) == offsetof(EpFactory, create_ep));
static_assert(offsetof(OrtEpFactory, ReleaseEp) == offsetof(EpFactory, release_ep));
static_assert(offsetof(OrtEpFactory, GetVendorId) == offsetof(EpFactory, get_vendor_id));
static_assert(offsetof(OrtEpFactory, GetVersion) == offsetof(EpFactory, get_version));
static_assert(offsetof(OrtEpFactory, CreateAllocator) == offsetof(EpFactory, create_allocator));
static_assert(offsetof(OrtEpFactory, ReleaseAllocator) == offsetof(EpFactory, release_allocator));
static_assert(offsetof(OrtEpFactory, CreateDataTransfer) == offsetof(EpFactory, create_data_transfer));
static_assert(offsetof(OrtEpFactory, IsStreamAware) == offsetof(EpFactory, is_stream_aware));
static_assert(offsetof(OrtEpFactory, CreateSyncStreamForDevice) == offsetof(EpFactory, create_sync_stream_for_device));
#if ORT_API_VERSION == 23
static_assert(sizeof(OrtEp) == sizeof(Ep) && sizeof(OrtEpFactory) == sizeof(EpFactory));
static_assert(sizeof(OrtNodeComputeInfo) == sizeof(NodeComputeInfo));
static_assert(sizeof(OrtNodeFusionOptions) == sizeof(NodeFusionOptions));
#endif

} // namespace convtranspose::provider
