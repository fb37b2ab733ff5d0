// The CUDA driver is found at run time, so that nothing of CUDA is needed to build or link. This file overrides what
// Halide's runtime asks of its host: the context, the stream, the handling of errors, and where functions of the driver are.
//
// It uses no standard library, nor anything else that is compiled into every object that uses it, as device_table.h requires.
#include <HalideRuntimeCuda.h>

#include <cstring>

#include "gpu/driver.h"

namespace convtranspose {

namespace {

using Result = int; // CUresult
using Memory = std::uint64_t;

struct Driver {
    DriverLibrary library{"libcuda.so.1"};
    Result (*init)(unsigned) = library.find("cuInit");
    Result (*device_count)(int *) = library.find("cuDeviceGetCount");
    Result (*device_get)(int *, int) = library.find("cuDeviceGet");
    Result (*device_name)(char *, int, int) = library.find("cuDeviceGetName");
    Result (*device_attribute)(int *, int, int) = library.find("cuDeviceGetAttribute");
    Result (*primary_retain)(void **, int) = library.find("cuDevicePrimaryCtxRetain");
    Result (*primary_release)(int) = library.find("cuDevicePrimaryCtxRelease_v2");
    Result (*push)(void *) = library.find("cuCtxPushCurrent_v2");
    Result (*pop)(void **) = library.find("cuCtxPopCurrent_v2");
    Result (*context_device)(int *) = library.find("cuCtxGetDevice");
    Result (*allocate)(Memory *, std::size_t) = library.find("cuMemAlloc_v2");
    Result (*release)(Memory) = library.find("cuMemFree_v2");
    Result (*upload)(Memory, const void *, std::size_t, void *) = library.find("cuMemcpyHtoDAsync_v2");
    Result (*download)(void *, Memory, std::size_t, void *) = library.find("cuMemcpyDtoHAsync_v2");
    Result (*synchronize)(void *) = library.find("cuStreamSynchronize");
    Result (*error_text)(Result, const char **) = library.find("cuGetErrorString");
    Result (*load_module)(void **, const void *, unsigned, int *, void **) = library.find("cuModuleLoadDataEx");
};

const char *driver_name() { return "CUDA"; }

const Driver &loaded() {
    static const Driver the_one;
    return the_one;
}

constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76; // CU_DEVICE_ATTRIBUTE_...
constexpr int kOutOfMemory = 2;                                // CUDA_ERROR_OUT_OF_MEMORY
constexpr int kOldest = 70;      // least compute capability, which kernels are compiled for
constexpr int kMaxRegisters = 0; // CU_JIT_MAX_REGISTERS
// Kernels of 256 threads hold 64 sums in each. With 128 registers, two blocks share a multiprocessor, and nothing is spilled.
constexpr std::uintptr_t kRegisters = 128;

bool failed(Result result, const char *what, DeviceError *error) {
    if (result == 0) return false;
    const char *text = nullptr;
    loaded().error_text(result, &text);
    return !set_error(error, result == kOutOfMemory ? CONVT_OUT_OF_MEMORY : CONVT_DEVICE_ERROR, "CUDA: %s: %s", what,
                      text ? text : "unknown error");
}

// Returns the driver, started.
const Driver *driver(DeviceError *error) {
    const Driver &d = loaded();
    if (!d.library.check("is too old", error)) return nullptr;
    static const Result started = d.init(0);
    if (!failed(started, "cuInit", error)) return &d;
    error->status = CONVT_UNSUPPORTED; // a driver without a GPU
    return nullptr;
}

// Makes a context current for the lifetime of the object.
class Current {
  public:
    Current(const Device *device, DeviceError *error)
        : pushed_(!failed(loaded().push(device->context), "cuCtxPushCurrent", error)) {}
    ~Current() {
        void *context = nullptr;
        if (pushed_) loaded().pop(&context);
    }
    Current(const Current &) = delete;
    Current &operator=(const Current &) = delete;
    explicit operator bool() const { return pushed_; }

  private:
    const bool pushed_;
};

int count(DeviceError *error) {
    const Driver *const d = driver(error);
    int n = 0;
    if (!d || failed(d->device_count(&n), "cuDeviceGetCount", error)) return -1;
    return n;
}

bool capability(const Driver &d, int device, int *value, DeviceError *error) {
    int major = 0, minor = 0;
    if (failed(d.device_attribute(&major, kMajor, device), "cuDeviceGetAttribute", error) ||
        failed(d.device_attribute(&minor, kMinor, device), "cuDeviceGetAttribute", error)) {
        return false;
    }
    *value = 10 * major + minor;
    return true;
}

bool describe_ordinal(const Driver &d, int ordinal, char *text, std::size_t size, DeviceError *error) {
    int version = 0;
    char name[200] = {0};
    if (failed(d.device_name(name, sizeof name, ordinal), "cuDeviceGetName", error) ||
        !capability(d, ordinal, &version, error)) {
        return false;
    }
    std::snprintf(text, size, "%s, compute capability %d.%d", name, version / 10, version % 10);
    return true;
}

bool describe(int index, char *text, std::size_t size, DeviceError *error) {
    const Driver *const d = driver(error);
    int device = 0;
    return d && !failed(d->device_get(&device, index), "cuDeviceGet", error) &&
           describe_ordinal(*d, device, text, size, error);
}

// The context is the caller's or, if that is null, the primary one.
bool fill(const Driver &d, int index, void *context, Device *out, DeviceFacts *facts, DeviceError *error) {
    out->context = context;
    if (context) {
        const Current current(out, error);
        if (!current || failed(d.context_device(&out->ordinal), "cuCtxGetDevice", error)) return false;
    } else if (failed(d.device_get(&out->ordinal, index), "cuDeviceGet", error)) {
        error->status = CONVT_UNSUPPORTED; // no such device
        return false;
    }
    int version = 0;
    if (!capability(d, out->ordinal, &version, error)) return false;
    if (version < kOldest) {
        return set_error(error, CONVT_UNSUPPORTED, "CUDA: compute capability %d.%d, needs %d.%d", version / 10,
                         version % 10, kOldest / 10, kOldest % 10);
    }
    facts->has_f64 = true; // true of every compute capability from kOldest on
    if (!describe_ordinal(d, out->ordinal, facts->name, sizeof facts->name, error) ||
        failed(d.device_attribute(&facts->multiprocessors, kMultiprocessors, out->ordinal), "cuDeviceGetAttribute",
               error)) {
        return false;
    }
    if (!context)
        out->is_primary = !failed(d.primary_retain(&out->context, out->ordinal), "cuDevicePrimaryCtxRetain", error);
    return context || out->is_primary;
}

void let_go(const Driver &d, const Device &device) {
    if (device.is_primary) d.primary_release(device.ordinal);
}

const halide_device_interface_t *interface() { return halide_cuda_device_interface(); }

bool allocate(Device *device, std::uint64_t bytes, Memory *memory, DeviceError *error) {
    const Current current(device, error);
    return current &&
           !failed(loaded().allocate(memory, bytes > kLeastBytes ? bytes : kLeastBytes), "cuMemAlloc", error);
}

void release(Device *device, Memory memory) {
    DeviceError ignored;
    const Current current(device, &ignored);
    if (current) loaded().release(memory);
}

bool wrap(Device *, void *data, Memory *memory, DeviceError *) {
    *memory = reinterpret_cast<Memory>(data);
    return true;
}

void unwrap(Memory) {}

bool upload(Device *device, void *stream, const void *from, Memory to, std::uint64_t bytes, DeviceError *error) {
    const Current current(device, error);
    // The call returns once it has taken the bytes only if memory is pageable. For page-locked memory it returns before.
    return current && !failed(loaded().upload(to, from, bytes, stream), "cuMemcpyHtoDAsync", error) &&
           !failed(loaded().synchronize(stream), "cuStreamSynchronize", error);
}

bool download(Device *device, void *stream, Memory from, void *to, std::uint64_t bytes, DeviceError *error) {
    const Current current(device, error);
    return current && !failed(loaded().download(to, from, bytes, stream), "cuMemcpyDtoHAsync", error) &&
           !failed(loaded().synchronize(stream), "cuStreamSynchronize", error);
}

void *const kPerThread = reinterpret_cast<void *>(2); // CU_STREAM_PER_THREAD

// Loads a module with kRegisters. Halide would ask for a limit of 64 registers, whatever the kernel.
Result load_module(void **module, const void *image, unsigned, int *, void **) {
    int options[] = {kMaxRegisters};
    void *values[] = {reinterpret_cast<void *>(kRegisters)};
    return loaded().load_module(module, image, 1, options, values);
}

} // namespace

extern const DeviceBackend cuda_backend;
const DeviceBackend cuda_backend = {count, describe, open,   close,    interface, allocate,  release,
                                    wrap,  unwrap,   upload, download, call,      kPerThread};

} // namespace convtranspose

using convtranspose::Call;

extern "C" {

int halide_cuda_acquire_context(void *user_context, void **context, bool) {
    // There is no call while Halide's runtime is being shut down.
    *context = user_context ? static_cast<Call *>(user_context)->device->context : nullptr;
    return 0;
}

int halide_cuda_release_context(void *) { return 0; }

int halide_cuda_get_stream(void *user_context, void *, void **stream) {
    *stream = static_cast<Call *>(user_context)->stream;
    return 0;
}

void *halide_cuda_get_symbol(void *, const char *name) {
    if (std::strcmp(name, "cuModuleLoadDataEx") == 0) return reinterpret_cast<void *>(convtranspose::load_module);
    return dlsym(convtranspose::loaded().library.handle, name);
}
}
