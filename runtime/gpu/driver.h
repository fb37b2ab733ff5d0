// Parts that both backends have: errors of limited length, a driver's library, and calls of kernels. Each backend has its own copy
// of them, as it may share nothing with other objects (device_table.h); for the same reason they use no standard library.
#pragma once

#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "gpu/device_table.h"

namespace convtranspose {

struct Device {
    void *context;    // the library's own, or the caller's
    void *queue;      // OpenCL: the library's own
    int ordinal;      // CUDA: the driver's number for the device
    bool is_primary;  // CUDA: the context is the device's primary one, which is released in the end
    bool has_kernels; // true if kernels may be loaded; until then, Halide's runtime does not know the driver
};

namespace {

// Memory holds an element at least, as kernels are told that tensors do.
constexpr std::uint64_t kLeastBytes = 8;

// Stores an error, unless one is stored already. Returns false.
__attribute__((format(printf, 3, 4))) bool set_error(DeviceError *error, convt_status status, const char *format, ...) {
    if (error->status != CONVT_OK) return false;
    error->status = status;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return false;
}

// A driver's library, which is found at run time.
struct DriverLibrary {
    void *const handle;  // null: there is none. It is never closed, as drivers may not survive that.
    bool has_all = true; // false: it lacks a function that was looked for

    explicit DriverLibrary(const char *name) : handle(dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {}

    // An address of a function becomes a pointer to a function of any type.
    struct Address {
        void *value;
        template<typename F>
        operator F() const {
            return reinterpret_cast<F>(value);
        }
    };
    Address find(const char *name) {
        void *const found = handle ? dlsym(handle, name) : nullptr;
        has_all = has_all && found;
        return {found};
    }
};

// Opens a device by fill(device), which sets its members. If that fails, close() releases those that are set.
template<typename Fill>
bool open_device(const Fill &fill, void (*close)(Device *), Device **out, DeviceError *error) {
    auto *const device = static_cast<Device *>(std::calloc(1, sizeof(Device)));
    if (!device) return set_error(error, CONVT_OUT_OF_MEMORY, "out of memory");
    if (fill(device)) {
        *out = device;
        return true;
    }
    close(device);
    return false;
}

// This is the user context of a kernel.
struct Call {
    Device *device;
    void *stream;
    DeviceError *error;
};

bool call_kernel(const char *driver, Call call, DeviceFunction function, void **arguments) {
    __atomic_store_n(&call.device->has_kernels, true, __ATOMIC_RELAXED);
    void *context = &call;
    arguments[0] = &context;
    const int result = function(arguments);
    return result == 0 || set_error(call.error, CONVT_DEVICE_ERROR, "%s: Halide's error %d", driver, result);
}

// Halide's runtime reports errors to its host by halide_error(). There is no call while it is being shut down.
void take_error(const char *driver, void *user_context, const char *text) {
    if (!user_context) return;
    set_error(static_cast<Call *>(user_context)->error, CONVT_DEVICE_ERROR, "%s: %s", driver, text);
}

} // namespace

} // namespace convtranspose
