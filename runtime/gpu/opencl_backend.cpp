// OpenCL is found at run time, so that nothing of it is needed to build or link. This file overrides what Halide's
// runtime asks of its host: the context, the queue, and the handling of errors.
//
// It uses no standard library, nor anything else that is compiled into every object that uses it, as device_table.h requires.
#include <HalideRuntimeOpenCL.h>

#include "gpu/driver.h"

namespace convtranspose {

namespace {

using Result = std::int32_t; // cl_int
using Handle = void *;       // cl_platform_id and so on

struct Driver {
    DriverLibrary library{"libOpenCL.so.1"};
    Result (*platforms)(std::uint32_t, Handle *, std::uint32_t *) = library.find("clGetPlatformIDs");
    Result (*platform_info)(Handle, std::uint32_t, std::size_t, void *,
                            std::size_t *) = library.find("clGetPlatformInfo");
    Result (*devices)(Handle, std::uint64_t, std::uint32_t, Handle *, std::uint32_t *) = library.find("clGetDeviceIDs");
    Result (*device_info)(Handle, std::uint32_t, std::size_t, void *, std::size_t *) = library.find("clGetDeviceInfo");
    Handle (*create_context)(const std::intptr_t *, std::uint32_t, const Handle *, void *, void *,
                             Result *) = library.find("clCreateContext");
    Result (*context_info)(Handle, std::uint32_t, std::size_t, void *,
                           std::size_t *) = library.find("clGetContextInfo");
    Result (*retain_context)(Handle) = library.find("clRetainContext");
    Result (*release_context)(Handle) = library.find("clReleaseContext");
    Handle (*create_queue)(Handle, Handle, std::uint64_t, Result *) = library.find("clCreateCommandQueue");
    Result (*release_queue)(Handle) = library.find("clReleaseCommandQueue");
    Handle (*create_buffer)(Handle, std::uint64_t, std::size_t, void *, Result *) = library.find("clCreateBuffer");
    Result (*release_buffer)(Handle) = library.find("clReleaseMemObject");
    Result (*write)(Handle, Handle, std::uint32_t, std::size_t, std::size_t, const void *, std::uint32_t,
                    const Handle *, Handle *) = library.find("clEnqueueWriteBuffer");
    Result (*read)(Handle, Handle, std::uint32_t, std::size_t, std::size_t, void *, std::uint32_t, const Handle *,
                   Handle *) = library.find("clEnqueueReadBuffer");
};

constexpr std::uint32_t kDeviceName = 0x102B, kComputeUnits = 0x1002, kContextDevices = 0x1081,
                        kContextDeviceCount = 0x1083;            // CL_DEVICE_NAME, ...
constexpr std::uint32_t kDevicePlatform = 0x1031, kF64 = 0x1032; // CL_DEVICE_PLATFORM, CL_DEVICE_DOUBLE_FP_CONFIG
constexpr std::uint32_t kPlatformName = 0x0902, kBlocking = 1;
constexpr std::uint64_t kAnyDevice = 0xFFFFFFFF, kReadWrite = 1;
constexpr std::intptr_t kContextPlatform = 0x1084;
constexpr Result kNoDevice = -1, kNoMemoryObject = -4, kNoResources = -5, kNoHostMemory = -6, kTooLarge = -61;
constexpr std::uint32_t kMostPlatforms = 8, kMostDevices = 32;

bool failed(Result result, const char *what, DeviceError *error) {
    if (result == 0) return false;
    const bool no_memory =
        result == kNoMemoryObject || result == kNoResources || result == kNoHostMemory || result == kTooLarge;
    return !set_error(error, no_memory ? CONVT_OUT_OF_MEMORY : CONVT_DEVICE_ERROR, "OpenCL: %s: error %d", what,
                      result);
}

const char *driver_name() { return "OpenCL"; }

const Driver &loaded() {
    static const Driver the_one;
    return the_one;
}

const Driver *driver(DeviceError *error) {
    return loaded().library.check("lacks functions", error) ? &loaded() : nullptr;
}

// This lists the devices of all platforms, one platform after the other.
struct Devices {
    Handle platform[kMostDevices], device[kMostDevices];
    std::uint32_t count;
};

bool list(const Driver &d, Devices *all, DeviceError *error) {
    Handle platforms[kMostPlatforms];
    std::uint32_t platform_count = 0;
    DeviceError broken;
    all->count = 0;
    const Result result = d.platforms(kMostPlatforms, platforms, &platform_count);
    if (result == -1001) return true; // CL_PLATFORM_NOT_FOUND_KHR
    if (failed(result, "clGetPlatformIDs", error)) return false;
    if (platform_count > kMostPlatforms) platform_count = kMostPlatforms;
    for (std::uint32_t p = 0; p < platform_count; p++) {
        std::uint32_t n = 0;
        const std::uint32_t room = kMostDevices - all->count;
        if (room == 0) break;
        const Result found = d.devices(platforms[p], kAnyDevice, room, all->device + all->count, &n);
        if (found == kNoDevice) continue;
        if (failed(found, "clGetDeviceIDs", &broken)) continue; // which must not hide the devices of other platforms
        if (n > room) n = room;
        for (std::uint32_t i = 0; i < n; i++) all->platform[all->count + i] = platforms[p];
        all->count += n;
    }
    if (all->count > 0 || broken.status == CONVT_OK) return true;
    return set_error(error, broken.status, "%s", broken.text);
}

int count(DeviceError *error) {
    const Driver *const d = driver(error);
    Devices all;
    return d && list(*d, &all, error) ? static_cast<int>(all.count) : -1;
}

bool nth(const Driver &d, int index, Handle *platform, Handle *device, DeviceError *error) {
    Devices all;
    if (!list(d, &all, error)) return false;
    if (index < 0 || index >= static_cast<int>(all.count))
        return set_error(error, CONVT_UNSUPPORTED, "OpenCL: there is no device %d, of %u", index, all.count);
    *platform = all.platform[index];
    *device = all.device[index];
    return true;
}

bool describe_handle(const Driver &d, Handle device, char *text, std::size_t size, DeviceError *error) {
    Handle platform = nullptr;
    char device_name[200] = {0}, platform_name[200] = {0};
    if (failed(d.device_info(device, kDeviceName, sizeof device_name - 1, device_name, nullptr), "clGetDeviceInfo",
               error) ||
        failed(d.device_info(device, kDevicePlatform, sizeof platform, &platform, nullptr), "clGetDeviceInfo", error) ||
        failed(d.platform_info(platform, kPlatformName, sizeof platform_name - 1, platform_name, nullptr),
               "clGetPlatformInfo", error)) {
        return false;
    }
    std::snprintf(text, size, "%s, %s", device_name, platform_name);
    return true;
}

bool describe(int index, char *text, std::size_t size, DeviceError *error) {
    const Driver *const d = driver(error);
    Handle platform = nullptr, device = nullptr;
    return d && nth(*d, index, &platform, &device, error) && describe_handle(*d, device, text, size, error);
}

const halide_device_interface_t *interface() { return halide_opencl_device_interface(); }

void let_go(const Driver &d, const Device &device) {
    if (device.queue) d.release_queue(device.queue);
    if (device.context) d.release_context(device.context);
}

// The context is the caller's or, if that is null, a new one.
bool fill(const Driver &d, int index, void *context, Device *out, DeviceFacts *facts, DeviceError *error) {
    Handle platform = nullptr, device = nullptr;
    Result result = 0;
    if (context) {
        // Halide's runtime reads the device of a context into a place for one.
        std::uint32_t devices = 0;
        if (failed(d.context_info(context, kContextDeviceCount, sizeof devices, &devices, nullptr), "clGetContextInfo",
                   error)) {
            return false;
        }
        if (devices != 1)
            return set_error(error, CONVT_UNSUPPORTED, "OpenCL: the context has %u devices, must have one", devices);
        if (failed(d.context_info(context, kContextDevices, sizeof device, &device, nullptr), "clGetContextInfo",
                   error) ||
            failed(d.retain_context(context), "clRetainContext", error)) {
            return false;
        }
        out->context = context;
    } else {
        if (!nth(d, index, &platform, &device, error)) return false;
        const std::intptr_t properties[] = {kContextPlatform, reinterpret_cast<std::intptr_t>(platform), 0};
        out->context = d.create_context(properties, 1, &device, nullptr, nullptr, &result);
        if (failed(result, "clCreateContext", error)) return false;
    }
    std::uint32_t units = 0;
    std::uint64_t f64 = 0; // its abilities with f64; an old device may not know the query
    if (!describe_handle(d, device, facts->name, sizeof facts->name, error) ||
        failed(d.device_info(device, kComputeUnits, sizeof units, &units, nullptr), "clGetDeviceInfo", error)) {
        return false;
    }
    facts->multiprocessors = static_cast<int>(units);
    facts->has_f64 = d.device_info(device, kF64, sizeof f64, &f64, nullptr) == 0 && f64 != 0;
    out->queue = d.create_queue(out->context, device, 0, &result);
    if (failed(result, "clCreateCommandQueue", error)) return false;
    // Halide's runtime finds the driver's functions in its first call, which takes no lock; devices are opened one at a time.
    Call first = {out, nullptr, error};
    int major = 0, minor = 0;
    return interface()->compute_capability(&first, &major, &minor) == 0 ||
           set_error(error, CONVT_DEVICE_ERROR, "OpenCL: Halide's runtime does not find the device");
}

// halide_buffer_t::device points to such an object.
struct HalideMemory {
    std::uint64_t offset;
    Handle memory;
};

HalideMemory *of(std::uint64_t memory) { return reinterpret_cast<HalideMemory *>(memory); }

bool wrap(Device *, void *data, std::uint64_t *memory, DeviceError *error) {
    auto *const m = static_cast<HalideMemory *>(std::malloc(sizeof(HalideMemory)));
    if (!m) return set_error(error, CONVT_OUT_OF_MEMORY, "out of memory");
    *m = {0, data};
    *memory = reinterpret_cast<std::uint64_t>(m);
    return true;
}

void unwrap(std::uint64_t memory) { std::free(of(memory)); }

bool allocate(Device *device, std::uint64_t bytes, std::uint64_t *memory, DeviceError *error) {
    const Driver &d = loaded();
    Result result = 0;
    const Handle buffer =
        d.create_buffer(device->context, kReadWrite, bytes > kLeastBytes ? bytes : kLeastBytes, nullptr, &result);
    if (failed(result, "clCreateBuffer", error)) return false;
    if (wrap(device, buffer, memory, error)) return true;
    d.release_buffer(buffer);
    return false;
}

void release(Device *, std::uint64_t memory) {
    loaded().release_buffer(of(memory)->memory);
    unwrap(memory);
}

Handle queue_of(const Device *device, void *stream) { return stream ? stream : device->queue; }

bool upload(Device *device, void *stream, const void *from, std::uint64_t to, std::uint64_t bytes, DeviceError *error) {
    const Handle queue = queue_of(device, stream);
    return !failed(loaded().write(queue, of(to)->memory, kBlocking, 0, bytes, from, 0, nullptr, nullptr),
                   "clEnqueueWriteBuffer", error);
}

bool download(Device *device, void *stream, std::uint64_t from, void *to, std::uint64_t bytes, DeviceError *error) {
    const Handle queue = queue_of(device, stream);
    return !failed(loaded().read(queue, of(from)->memory, kBlocking, 0, bytes, to, 0, nullptr, nullptr),
                   "clEnqueueReadBuffer", error);
}

} // namespace

extern const DeviceBackend opencl_backend;
const DeviceBackend opencl_backend = {count, describe, open,   close,    interface, allocate, release,
                                      wrap,  unwrap,   upload, download, call,      nullptr};

} // namespace convtranspose

using convtranspose::Call;

extern "C" {

int halide_acquire_cl_context(void *user_context, void **context, void **queue, bool) {
    const Call *const call = static_cast<Call *>(user_context);
    *context = *queue = nullptr;
    if (!call) return 0; // Halide's runtime is being shut down
    *context = call->device->context;
    *queue = convtranspose::queue_of(call->device, call->stream);
    return 0;
}

int halide_release_cl_context(void *) { return 0; }
}
