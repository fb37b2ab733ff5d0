// Errors of a single model. Commands catch them for each model, report them and go on with the next.
#ifndef CONVTRANSPOSE_TOOLS_ERROR_H_
#define CONVTRANSPOSE_TOOLS_ERROR_H_

#include <new>
#include <stdexcept>
#include <string>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose::tools {

class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// The model itself breaks a rule of ONNX or of the operator, as opposed to an unreadable file, a model that is valid
// but not supported, or a lack of memory.
class Rejected : public Error {
  public:
    using Error::Error;
};

// Thrown for wrong options or arguments.
class UsageError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

inline void throw_unless(const Status &status) {
    if (status) return;
    if (status.code() == CONVT_INVALID_ARGUMENT) throw Rejected(status.message());
    throw Error(status.message());
}

// The message for the user, which begins with the label unless it already does.
inline std::string message_of(const std::exception &e, const std::string &label = "") {
    const std::string message = dynamic_cast<const std::bad_alloc *>(&e) ? "out of memory" : e.what();
    return label.empty() || message.rfind(label, 0) == 0 ? message : label + ": " + message;
}

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_ERROR_H_
