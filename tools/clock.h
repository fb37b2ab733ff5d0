// The clock by which all of the command line and the worker measure.
#ifndef CONVTRANSPOSE_TOOLS_CLOCK_H_
#define CONVTRANSPOSE_TOOLS_CLOCK_H_

#include <chrono>

namespace convtranspose::tools {

// Returns the seconds since some fixed moment.
inline double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_CLOCK_H_
