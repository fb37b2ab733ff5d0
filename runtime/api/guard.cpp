#include "api/guard.h"

#include <cstdio>
#include <exception>
#include <new>

#include "base/threads.h"

namespace convtranspose {

namespace {

// This memory needs no allocation and no destructor, so that reporting a failure cannot fail. A longer message is cut off.
CONVTRANSPOSE_THREAD_LOCAL char message[2048] = "";

[[maybe_unused]] convt_status report(convt_status code, const char *begin, const char *end = "") {
    if (code != CONVT_OK) std::snprintf(message, sizeof message, "%s%s", begin, end);
    return code;
}

} // namespace

const char *last_error() { return message; }

convt_status report(const Status &status) { return report(status.code(), status.message().c_str()); }

#ifdef __cpp_exceptions
convt_status report_caught() {
    try {
        throw;
    } catch (const std::bad_alloc &) {
        return report(CONVT_OUT_OF_MEMORY, "out of memory");
    } catch (const std::exception &e) {
        return report(CONVT_INTERNAL, "an exception in a hook, or inside the library: ", e.what());
    } catch (...) {
        return report(CONVT_INTERNAL, "an exception of an unknown type, which a hook threw");
    }
}
#else
convt_status report_caught() { return CONVT_INTERNAL; }
#endif

} // namespace convtranspose
