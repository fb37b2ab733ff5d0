// ONNX Runtime's C interface, as far as it is used here. No wheel of ONNX Runtime brings its header, and its tables of functions
// are only ever appended to, so these are declarations of our own: opaque types, the numbers of enumerations, the places of
// functions in the tables, and the structs of functions that an execution provider fills in, as of API 23 (ONNX Runtime 1.23).
#ifndef CONVTRANSPOSE_ONNXRUNTIME_ORT_API_H_
#define CONVTRANSPOSE_ONNXRUNTIME_ORT_API_H_

#include <cstddef>
#include <cstdint>

struct OrtEpApi;
struct OrtEpDevice;
struct OrtEpGraphSupportInfo;
struct OrtGraph;
struct OrtHardwareDevice;
struct OrtKernelContext;
struct OrtKeyValuePairs;
struct OrtLogger;
struct OrtNode;
struct OrtNodeComputeContext;
struct OrtOpAttr;
struct OrtRunOptions;
struct OrtSessionOptions;
struct OrtStatus;
struct OrtTensorTypeAndShapeInfo;
struct OrtTypeInfo;
struct OrtValue;
struct OrtValueInfo;

namespace convtranspose::provider {

constexpr std::uint32_t kApiVersion = 23;

#ifdef _WIN32
using PathChar = wchar_t;
#else
using PathChar = char;
#endif

// OrtErrorCode.
enum ErrorCode {
    kFail = 1,
    kInvalidArgument = 2,
    kRuntimeException = 6,
    kNotImplemented = 9,
    kEpFail = 11,
    kNotFound = 14
};
// OrtLoggingLevel.
enum LoggingLevel { kLogWarning = 2 };
// OrtHardwareDeviceType.
enum HardwareType { kCpu = 0 };
// OrtOpAttrType.
enum AttributeType { kInt = 1, kInts = 2, kFloat = 3, kString = 5 };
// ONNXTensorElementDataType.
enum ElementType {
    kElementFloat = 1,
    kElementUint8 = 2,
    kElementInt8 = 3,
    kElementUint16 = 4,
    kElementInt16 = 5,
    kElementInt32 = 6,
    kElementFloat16 = 10,
    kElementDouble = 11,
    kElementBfloat16 = 16,
    kElementUint4 = 21,
    kElementInt4 = 22
};

// A function that is not set, or not called, by this provider.
using Unused = void (*)();

// OrtNodeFusionOptions.
struct NodeFusionOptions {
    std::uint32_t version = kApiVersion;
    bool drop_constant_initializers = false;
};

// OrtNodeComputeInfo: runs what a group of nodes was compiled to.
struct NodeComputeInfo {
    std::uint32_t version = kApiVersion;
    OrtStatus *(*create_state)(NodeComputeInfo *, OrtNodeComputeContext *, void **state) = nullptr;
    OrtStatus *(*compute)(NodeComputeInfo *, void *state, OrtKernelContext *) = nullptr;
    void (*release_state)(NodeComputeInfo *, void *state) = nullptr;
};

// OrtEp: the provider of one session. Members that are null have ONNX Runtime's defaults.
struct Ep {
    std::uint32_t version = kApiVersion;
    const char *(*get_name)(const Ep *) = nullptr;
    OrtStatus *(*get_capability)(Ep *, const OrtGraph *, OrtEpGraphSupportInfo *) = nullptr;
    OrtStatus *(*compile)(Ep *, const OrtGraph **graphs, const OrtNode **fused_nodes, std::size_t count,
                          NodeComputeInfo **infos, OrtNode **context_nodes) = nullptr;
    void (*release_node_compute_infos)(Ep *, NodeComputeInfo **infos, std::size_t count) = nullptr;
    Unused get_preferred_data_layout = nullptr;
    Unused should_convert_data_layout_for_op = nullptr;
    Unused set_dynamic_options = nullptr;
    Unused on_run_start = nullptr;
    Unused on_run_end = nullptr;
    Unused create_allocator = nullptr;
    Unused create_sync_stream_for_device = nullptr;
    Unused get_compiled_model_compatibility_info = nullptr;
};

// OrtEpFactory: makes providers.
struct EpFactory {
    std::uint32_t version = kApiVersion;
    const char *(*get_name)(const EpFactory *) = nullptr;
    const char *(*get_vendor)(const EpFactory *) = nullptr;
    OrtStatus *(*get_supported_devices)(EpFactory *, const OrtHardwareDevice *const *devices, std::size_t count,
                                        OrtEpDevice **ep_devices, std::size_t capacity, std::size_t *made) = nullptr;
    OrtStatus *(*create_ep)(EpFactory *, const OrtHardwareDevice *const *devices,
                            const OrtKeyValuePairs *const *metadata, std::size_t count, const OrtSessionOptions *,
                            const OrtLogger *, Ep **ep) = nullptr;
    void (*release_ep)(EpFactory *, Ep *) = nullptr;
    std::uint32_t (*get_vendor_id)(const EpFactory *) = nullptr;
    const char *(*get_version)(const EpFactory *) = nullptr;
    Unused validate_compiled_model_compatibility_info = nullptr;
    OrtStatus *(*create_allocator)(EpFactory *, const void *memory, const OrtKeyValuePairs *options,
                                   void **allocator) = nullptr;
    void (*release_allocator)(EpFactory *, void *allocator) = nullptr;
    OrtStatus *(*create_data_transfer)(EpFactory *, void **transfer) = nullptr;
    bool (*is_stream_aware)(const EpFactory *) = nullptr;
    Unused create_sync_stream_for_device = nullptr;
};

// OrtApiBase.
struct ApiBase {
    const void *(*get_api)(std::uint32_t version);
    const char *(*get_version)();
};

// The functions that are called, by ONNX Runtime's names. A process may hold several copies of ONNX Runtime, so whoever has an
// object of one has a reference to its Api too.
// NOLINTBEGIN(bugprone-macro-parentheses): types and lists of parameters cannot stand in parentheses.
struct Api {
    explicit Api(const void *table) {
        const auto *const slots = static_cast<const Unused *>(table);
#define CONVT_SLOT(name, place, result, parameters) name = reinterpret_cast<result(*) parameters>(slots[place]);
#include "ort_slots.inc"
#undef CONVT_SLOT
        const auto *const ep_slots = reinterpret_cast<const Unused *>(GetEpApi());
#define CONVT_EP_SLOT(name, place, result, parameters) name = reinterpret_cast<result(*) parameters>(ep_slots[place]);
#include "ort_slots.inc"
#undef CONVT_EP_SLOT
    }

#define CONVT_SLOT(name, place, result, parameters) result(*name) parameters;
#define CONVT_EP_SLOT(name, place, result, parameters) result(*name) parameters;
#include "ort_slots.inc"
#undef CONVT_SLOT
#undef CONVT_EP_SLOT
};
// NOLINTEND(bugprone-macro-parentheses)

} // namespace convtranspose::provider

#endif // CONVTRANSPOSE_ONNXRUNTIME_ORT_API_H_
