// A driver's library, which is found at run time. Like device_error.h, this is part of each backend alone.
#ifndef CONVTRANSPOSE_RUNTIME_GPU_DRIVER_LIBRARY_H_
#define CONVTRANSPOSE_RUNTIME_GPU_DRIVER_LIBRARY_H_

#include <dlfcn.h>

namespace convtranspose {

namespace {

struct DriverLibrary {
    void *const handle; // null: there is none. It is never closed, as drivers may not survive that.

    explicit DriverLibrary(const char *name) : handle(dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {}

    template<typename F>
    bool find(const char *name, F *function) const {
        *function = handle ? reinterpret_cast<F>(dlsym(handle, name)) : nullptr;
        return *function != nullptr;
    }
};

} // namespace

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_GPU_DRIVER_LIBRARY_H_
