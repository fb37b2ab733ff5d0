// Cost profiles as the tools see them: fields by name, and lines of a tuning text that hold a profile.
#ifndef CONVTRANSPOSE_TOOLS_PROFILE_LINE_H_
#define CONVTRANSPOSE_TOOLS_PROFILE_LINE_H_

#include <memory>
#include <string>

#include "convtranspose/convtranspose.hpp"
#include "tools/error.h"

namespace convtranspose::tools {

// Returns a line for any CPU and ISA. value: JSON, the quoted name of a profile that ships or an object of fields.
inline std::string profile_line(const std::string &value) {
    return std::string("{\"package\": \"") + CONVT_VERSION + "\", \"kernels\": \"" + convt_kernels_version() +
           "\", \"cpu\": \"*\", \"isa\": \"*\", \"cost_profile\": " + value + "}\n";
}

// Reads a tuning text. Throws Rejected or Error, with the line, if it is refused.
inline std::shared_ptr<convt_tuning> read_tuning(const std::string &text) {
    convt_tuning *tuning = nullptr;
    throw_unless(Status::from(convt_tuning_read(text.data(), text.size(), &tuning)));
    return std::shared_ptr<convt_tuning>(tuning, convt_tuning_destroy);
}

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_PROFILE_LINE_H_
