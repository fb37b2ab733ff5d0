// What goes wrong with one model. Commands catch these per model, report them and go on with the next.
#ifndef CONVTRANSPOSE_TOOLS_ERROR_H_
#define CONVTRANSPOSE_TOOLS_ERROR_H_

#include <stdexcept>

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

// The command line makes no sense.
class UsageError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

inline void throw_unless(const Status &status) {
    if (status) return;
    if (status.code() == CONVT_INVALID_ARGUMENT || status.code() == CONVT_OVERFLOW) throw Rejected(status.message());
    throw Error(status.message());
}

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_ERROR_H_
