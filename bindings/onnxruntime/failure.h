// Failures inside the provider, and how they cross the C boundary: as an OrtStatus with our message.
#ifndef CONVTRANSPOSE_ONNXRUNTIME_FAILURE_H_
#define CONVTRANSPOSE_ONNXRUNTIME_FAILURE_H_

#include <new>
#include <stdexcept>
#include <string>

#include "convtranspose/convtranspose.hpp"
#include "ort_api.h"

namespace convtranspose::provider {

// A failure with the code that ONNX Runtime is to report. No other exception is thrown on purpose.
class Failure : public std::runtime_error {
  public:
    Failure(ErrorCode code, const std::string &message) : std::runtime_error(message), code_(code) {}
    ErrorCode code() const { return code_; }

  private:
    ErrorCode code_;
};

// Throws if a call of ONNX Runtime failed.
inline void check(const Api &api, OrtStatus *status) {
    if (!status) return;
    const auto code = static_cast<ErrorCode>(api.GetErrorCode(status));
    const std::string message = api.GetErrorMessage(status);
    api.ReleaseStatus(status);
    throw Failure(code, message);
}

// Throws if a call of the library failed; `what` names the layer.
inline void check(const Status &status, const std::string &what) {
    if (status) return;
    const convt_status code = status.code();
    throw Failure(code == CONVT_INVALID_ARGUMENT                        ? kInvalidArgument
                  : code == CONVT_UNSUPPORTED || code == CONVT_OVERFLOW ? kNotImplemented
                                                                        : kRuntimeException,
                  what + ": " + status.message());
}

// Calls `body`, and turns what it throws into a status.
template<typename Body>
OrtStatus *guarded(const Api &api, const Body &body) noexcept {
    try {
        body();
        return nullptr;
    } catch (const Failure &failure) {
        return api.CreateStatus(failure.code(), failure.what());
    } catch (const std::bad_alloc &) {
        return api.CreateStatus(kFail, "out of memory");
    } catch (const std::exception &error) {
        return api.CreateStatus(kFail, error.what());
    } catch (...) {
        return api.CreateStatus(kFail, "an unknown exception");
    }
}

} // namespace convtranspose::provider

#endif // CONVTRANSPOSE_ONNXRUNTIME_FAILURE_H_
