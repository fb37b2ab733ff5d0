// Errors of drivers are text of limited length.
#ifndef CONVTRANSPOSE_RUNTIME_GPU_DEVICE_ERROR_H_
#define CONVTRANSPOSE_RUNTIME_GPU_DEVICE_ERROR_H_

#include <cstdarg>
#include <cstdio>

#include "gpu/device_table.h"

namespace convtranspose {

// Stores an error, unless one is stored already.
__attribute__((format(printf, 3, 4))) static inline void set_error(DeviceError *error, convt_status status,
                                                                   const char *format, ...) {
    if (error->status != CONVT_OK) return;
    error->status = status;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
}

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_GPU_DEVICE_ERROR_H_
