// The functions of the C interface always return. Exceptions become statuses and messages.
#ifndef CONVTRANSPOSE_RUNTIME_API_GUARD_H_
#define CONVTRANSPOSE_RUNTIME_API_GUARD_H_

#include "base/error.h"
#include "base/float_mode.h"
#include "convtranspose/convtranspose.hpp"

namespace convtranspose {

const char *last_error(); // message of the last failure on this thread
convt_status report(const Status &status);
convt_status report_caught(); // call it in the handler of an exception

// Runs body(), rounding to nearest, and turns what it throws into a status: no exception may leave a C function.
template<typename Body>
convt_status guarded(const Body &body) noexcept {
    const FloatMode::Scope nearest(FloatMode::of_this_thread().to_nearest());
    convt_status code = CONVT_INTERNAL;
    attempt([&] { code = report(body()); }, [&] { code = report_caught(); });
    return code;
}

// Returns what body() returns, or `otherwise` if that fails, for want of memory.
template<typename T, typename Body>
T guarded_or(T otherwise, const Body &body) noexcept {
    guarded([&] {
        otherwise = body();
        return Status();
    });
    return otherwise;
}

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_API_GUARD_H_
