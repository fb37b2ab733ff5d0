// Parts that both backends have: errors of limited length, a driver's library, devices, and calls of kernels. Each backend has its
// own copy of them, as it may share nothing with other objects (device_table.h); for the same reason they use no standard library.
#pragma once

#include <HalideRuntime.h>
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

// These are the backend's own.
const char *driver_name();
struct Driver;                            // the functions of its library
const Driver *driver(DeviceError *error); // null: there is none
const halide_device_interface_t *interface();
// Sets the members of a device, and its facts. context: the caller's, or null.
bool fill(const Driver &d, int index, void *context, Device *out, DeviceFacts *facts, DeviceError *error);
void let_go(const Driver &d, const Device &device); // of the members that are set

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
    const char *const name;
    void *const handle;  // null: there is none. It is never closed, as drivers may not survive that.
    bool has_all = true; // false: it lacks a function that was looked for

    explicit DriverLibrary(const char *name_) : name(name_), handle(dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {}

    // An address of a function becomes a pointer to a function of any type.
    struct Address {
        void *value;
        template<typename F>
        operator F() const {
            return reinterpret_cast<F>(value);
        }
    };
    Address find(const char *function) {
        void *const found = handle ? dlsym(handle, function) : nullptr;
        has_all = has_all && found;
        return {found};
    }
    // Returns has_all; sets the error if it is false. lacking: says of a library that it lacks functions.
    bool check(const char *lacking, DeviceError *error) const {
        return has_all || set_error(error, CONVT_UNSUPPORTED, "%s: there is no driver: %s %s", driver_name(), name,
                                    handle ? lacking : "was not found");
    }
};

// This is the user context of a kernel.
struct Call {
    Device *device;
    void *stream;
    DeviceError *error;
};

bool call(Device *device, void *stream, DeviceFunction function, void **arguments, DeviceError *error) {
    __atomic_store_n(&device->has_kernels, true, __ATOMIC_RELAXED);
    Call call = {device, stream, error};
    void *context = &call;
    arguments[0] = &context;
    const int result = function(arguments);
    return result == 0 || set_error(error, CONVT_DEVICE_ERROR, "%s: Halide's error %d", driver_name(), result);
}

void close(Device *device) {
    DeviceError ignored;
    Call call = {device, nullptr, &ignored};
    if (device->has_kernels) halide_device_release(&call, interface()); // unloads the kernels
    if (const Driver *const d = driver(&ignored)) let_go(*d, *device);
    std::free(device);
}

bool open(int index, void *context, Device **out, DeviceFacts *facts, DeviceError *error) {
    const Driver *const d = driver(error);
    if (!d) return false;
    auto *const device = static_cast<Device *>(std::calloc(1, sizeof(Device)));
    if (!device) return set_error(error, CONVT_OUT_OF_MEMORY, "out of memory");
    const bool is_open = fill(*d, index, context, device, facts, error);
    if (is_open)
        *out = device;
    else
        close(device);
    return is_open;
}

} // namespace

} // namespace convtranspose

// Halide's runtime reports errors to its host by this function. There is no call while it is being shut down.
extern "C" void halide_error(void *user_context, const char *text) {
    if (!user_context) return;
    convtranspose::set_error(static_cast<convtranspose::Call *>(user_context)->error, CONVT_DEVICE_ERROR, "%s: %s",
                             convtranspose::driver_name(), text);
}
