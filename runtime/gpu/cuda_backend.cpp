// The CUDA driver is found at run time, so that nothing of CUDA is needed to build or link. This file overrides what
// Halide's runtime asks of its host: the context, the stream, the handling of errors, and where functions of the driver are.
//
// It uses no standard library, nor anything else that is compiled into every object that uses it, as device_table.h requires.
#include <HalideRuntimeCuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gpu/device_error.h"
#include "gpu/device_table.h"
#include "gpu/driver_library.h"

namespace convtranspose {

// A device has a context, the primary one or the caller's.
struct Device {
    int ordinal;
    void *context;
    bool is_primary;
    int multiprocessors;
    bool has_kernels; // true if kernels may be loaded; until then, Halide's runtime does not know the driver
    char name[256];
};

namespace {

using Result = int; // CUresult
using Memory = std::uint64_t;

struct Driver {
    Result (*init)(unsigned);
    Result (*device_count)(int *);
    Result (*device_get)(int *, int);
    Result (*device_name)(char *, int, int);
    Result (*device_attribute)(int *, int, int);
    Result (*primary_retain)(void **, int);
    Result (*primary_release)(int);
    Result (*push)(void *);
    Result (*pop)(void **);
    Result (*context_device)(int *);
    Result (*allocate)(Memory *, std::size_t);
    Result (*release)(Memory);
    Result (*upload)(Memory, const void *, std::size_t, void *);
    Result (*download)(void *, Memory, std::size_t, void *);
    Result (*synchronize)(void *);
    Result (*error_text)(Result, const char **);
    Result (*load_module)(void **, const void *, unsigned, int *, void **);
};

constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76; // CU_DEVICE_ATTRIBUTE_...
constexpr int kOutOfMemory = 2;                                // CUDA_ERROR_OUT_OF_MEMORY
constexpr int kOldest = 70;      // least compute capability, which kernels are compiled for
constexpr int kMaxRegisters = 0; // CU_JIT_MAX_REGISTERS
// Kernels of 256 threads hold 64 sums in each. With 128 registers, two blocks share a multiprocessor, and nothing is spilled.
constexpr std::uintptr_t kRegisters = 128;

const DriverLibrary &library() {
    static const DriverLibrary the_one("libcuda.so.1");
    return the_one;
}

bool find_all(Driver *d) {
    const auto find = [](const char *name, auto *function) { return library().find(name, function); };
    return find("cuInit", &d->init) && find("cuDeviceGetCount", &d->device_count) &&
           find("cuDeviceGet", &d->device_get) && find("cuDeviceGetName", &d->device_name) &&
           find("cuDeviceGetAttribute", &d->device_attribute) && find("cuDevicePrimaryCtxRetain", &d->primary_retain) &&
           find("cuDevicePrimaryCtxRelease_v2", &d->primary_release) && find("cuCtxPushCurrent_v2", &d->push) &&
           find("cuCtxPopCurrent_v2", &d->pop) && find("cuCtxGetDevice", &d->context_device) &&
           find("cuMemAlloc_v2", &d->allocate) && find("cuMemFree_v2", &d->release) &&
           find("cuMemcpyHtoDAsync_v2", &d->upload) && find("cuMemcpyDtoHAsync_v2", &d->download) &&
           find("cuStreamSynchronize", &d->synchronize) && find("cuGetErrorString", &d->error_text) &&
           find("cuModuleLoadDataEx", &d->load_module);
}

bool failed(const Driver &d, Result result, const char *what, DeviceError *error) {
    if (result == 0) return false;
    const char *text = nullptr;
    d.error_text(result, &text);
    set_error(error, result == kOutOfMemory ? CONVT_OUT_OF_MEMORY : CONVT_DEVICE_ERROR, "CUDA: %s: %s", what,
              text ? text : "unknown error");
    return true;
}

// Returns the driver, started, or null if there is none.
const Driver *driver(DeviceError *error) {
    static Driver d;
    static const bool found = find_all(&d);
    if (!found) {
        set_error(error, CONVT_UNSUPPORTED, "CUDA: there is no driver: libcuda.so.1 %s",
                  library().handle ? "is too old" : "was not found");
        return nullptr;
    }
    static const Result started = d.init(0);
    if (started != 0) {
        failed(d, started, "cuInit", error);
        error->status = CONVT_UNSUPPORTED; // a driver without a GPU
        return nullptr;
    }
    return &d;
}

// Makes a context current for the lifetime of the object.
class Current {
  public:
    Current(const Driver &d, const Device *device, DeviceError *error)
        : driver_(d), pushed_(!failed(d, d.push(device->context), "cuCtxPushCurrent", error)) {}
    ~Current() {
        void *context = nullptr;
        if (pushed_) driver_.pop(&context);
    }
    Current(const Current &) = delete;
    Current &operator=(const Current &) = delete;
    explicit operator bool() const { return pushed_; }

  private:
    const Driver &driver_;
    const bool pushed_;
};

int count(DeviceError *error) {
    const Driver *const d = driver(error);
    int n = 0;
    if (!d || failed(*d, d->device_count(&n), "cuDeviceGetCount", error)) return -1;
    return n;
}

bool capability(const Driver &d, int device, int *value, DeviceError *error) {
    int major = 0, minor = 0;
    if (failed(d, d.device_attribute(&major, kMajor, device), "cuDeviceGetAttribute", error) ||
        failed(d, d.device_attribute(&minor, kMinor, device), "cuDeviceGetAttribute", error)) {
        return false;
    }
    *value = 10 * major + minor;
    return true;
}

bool describe_ordinal(const Driver &d, int ordinal, char *text, std::size_t size, DeviceError *error) {
    int version = 0;
    char name[200] = {0};
    if (failed(d, d.device_name(name, sizeof name, ordinal), "cuDeviceGetName", error) ||
        !capability(d, ordinal, &version, error)) {
        return false;
    }
    std::snprintf(text, size, "%s, compute capability %d.%d", name, version / 10, version % 10);
    return true;
}

bool describe(int index, char *text, std::size_t size, DeviceError *error) {
    const Driver *const d = driver(error);
    int device = 0;
    return d && !failed(*d, d->device_get(&device, index), "cuDeviceGet", error) &&
           describe_ordinal(*d, device, text, size, error);
}

bool open(int index, void *context, Device **out, DeviceError *error) {
    const Driver *const d = driver(error);
    if (!d) return false;
    Device device = {0, context, context == nullptr, 0, false, {0}};
    if (context) {
        const Current current(*d, &device, error);
        if (!current || failed(*d, d->context_device(&device.ordinal), "cuCtxGetDevice", error)) return false;
    } else if (failed(*d, d->device_get(&device.ordinal, index), "cuDeviceGet", error)) {
        error->status = CONVT_UNSUPPORTED; // no such device
        return false;
    }
    int version = 0;
    if (!capability(*d, device.ordinal, &version, error)) return false;
    if (version < kOldest) {
        set_error(error, CONVT_UNSUPPORTED, "CUDA: compute capability %d.%d, needs %d.%d", version / 10, version % 10,
                  kOldest / 10, kOldest % 10);
        return false;
    }
    if (!describe_ordinal(*d, device.ordinal, device.name, sizeof device.name, error) ||
        failed(*d, d->device_attribute(&device.multiprocessors, kMultiprocessors, device.ordinal),
               "cuDeviceGetAttribute", error) ||
        (!context &&
         failed(*d, d->primary_retain(&device.context, device.ordinal), "cuDevicePrimaryCtxRetain", error))) {
        return false;
    }
    *out = static_cast<Device *>(std::malloc(sizeof(Device)));
    if (!*out) {
        if (device.is_primary) d->primary_release(device.ordinal);
        set_error(error, CONVT_OUT_OF_MEMORY, "out of memory");
        return false;
    }
    **out = device;
    return true;
}

int multiprocessors(const Device *device) { return device->multiprocessors; }

bool has_f64(const Device *) { return true; } // true of every compute capability from kOldest on

const char *name(const Device *device) { return device->name; }

const halide_device_interface_t *interface() { return halide_cuda_device_interface(); }

bool allocate(Device *device, std::uint64_t bytes, Memory *memory, DeviceError *error) {
    const Driver &d = *driver(error);
    const Current current(d, device, error);
    return current && !failed(d, d.allocate(memory, bytes ? bytes : 1), "cuMemAlloc", error);
}

void release(Device *device, Memory memory) {
    DeviceError ignored;
    const Driver &d = *driver(&ignored);
    const Current current(d, device, &ignored);
    if (current) d.release(memory);
}

bool wrap(Device *, void *data, Memory *memory, DeviceError *) {
    *memory = reinterpret_cast<Memory>(data);
    return true;
}

void unwrap(Memory) {}

bool upload(Device *device, void *stream, const void *from, Memory to, std::uint64_t bytes, DeviceError *error) {
    const Driver &d = *driver(error);
    const Current current(d, device, error);
    // The call returns once it has taken the bytes only if memory is pageable. For page-locked memory it returns before.
    return current && !failed(d, d.upload(to, from, bytes, stream), "cuMemcpyHtoDAsync", error) &&
           !failed(d, d.synchronize(stream), "cuStreamSynchronize", error);
}

bool download(Device *device, void *stream, Memory from, void *to, std::uint64_t bytes, DeviceError *error) {
    const Driver &d = *driver(error);
    const Current current(d, device, error);
    return current && !failed(d, d.download(to, from, bytes, stream), "cuMemcpyDtoHAsync", error) &&
           !failed(d, d.synchronize(stream), "cuStreamSynchronize", error);
}

// This is the user context of a kernel.
struct Call {
    Device *device;
    void *stream;
    DeviceError *error;
};

bool call(Device *device, void *stream, DeviceFunction function, void **arguments, DeviceError *error) {
    Call call = {device, stream, error};
    __atomic_store_n(&device->has_kernels, true, __ATOMIC_RELAXED);
    void *context = &call;
    arguments[0] = &context;
    const int result = function(arguments);
    if (result && error->status == CONVT_OK) set_error(error, CONVT_DEVICE_ERROR, "CUDA: Halide's error %d", result);
    return result == 0;
}

void close(Device *device) {
    DeviceError ignored;
    const Driver *const d = driver(&ignored);
    Call call = {device, nullptr, &ignored};
    if (device->has_kernels) halide_device_release(&call, interface()); // unloads the kernels
    if (device->is_primary && d) d->primary_release(device->ordinal);
    std::free(device);
}

// Loads a module with kRegisters. Halide would ask for a limit of 64 registers, whatever the kernel.
Result load_module(void **module, const void *image, unsigned, int *, void **) {
    DeviceError ignored;
    const Driver *const d = driver(&ignored);
    int options[] = {kMaxRegisters};
    void *values[] = {reinterpret_cast<void *>(kRegisters)};
    return d->load_module(module, image, 1, options, values);
}

} // namespace

extern const DeviceBackend cuda_backend;
const DeviceBackend cuda_backend = {count,    describe, open, close,  multiprocessors, has_f64,  name, interface,
                                    allocate, release,  wrap, unwrap, upload,          download, call};

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
    return dlsym(convtranspose::library().handle, name);
}

void halide_error(void *user_context, const char *text) {
    if (user_context) {
        convtranspose::set_error(static_cast<Call *>(user_context)->error, CONVT_DEVICE_ERROR, "CUDA: %s", text);
    }
}
}
