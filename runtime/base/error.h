// A failure is a status with a code, and a message that is concatenated from its parts.
#pragma once

#include <cstdint>
#include <locale>
#include <sstream>
#include <string>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose {

// This stream throws if it runs out of memory, where a plain std::ostringstream would silently drop the rest of the text. It writes
// numbers as C does, because tuning records and their keys are read by other programs: the global locale may write "1.024,5".
struct TextStream : std::ostringstream {
    TextStream() {
        imbue(std::locale::classic());
        exceptions(badbit);
    }
};

template<typename... Parts>
std::string concat(const Parts &...parts) {
    TextStream stream;
    (stream << ... << parts);
    return stream.str();
}

// Returns a name with an index: "pads[3]".
inline std::string element(const char *name, std::size_t i) { return concat(name, "[", i, "]"); }

// Returns the extents in brackets: "(1, 3, 224, 224)".
inline std::string to_string(const Shape &shape) {
    TextStream stream;
    stream << "(";
    for (std::size_t i = 0; i < shape.size(); ++i) stream << (i ? ", " : "") << shape[i];
    stream << ")";
    return stream.str();
}

// Runs body(). If it throws, runs caught() inside the exception handler. A build without exceptions ends the program instead.
template<typename Body, typename Caught>
void attempt(const Body &body, [[maybe_unused]] const Caught &caught) {
#ifdef __cpp_exceptions
    try {
        body();
    } catch (...) {
        caught();
    }
#else
    body();
#endif
}

template<typename... Parts>
Status invalid(const Parts &...parts) {
    return Status(CONVT_INVALID_ARGUMENT, concat(parts...));
}

template<typename... Parts>
Status unsupported(const Parts &...parts) {
    return Status(CONVT_UNSUPPORTED, concat(parts...));
}

template<typename... Parts>
Status overflow(const Parts &...parts) {
    return Status(CONVT_OVERFLOW, concat(parts...));
}

inline Status out_of_memory(std::uint64_t bytes, const char *what) {
    return Status(CONVT_OUT_OF_MEMORY, concat("no memory for ", bytes, " bytes of ", what));
}

// Returns from the function with the status that an expression gives, if that is a failure.
#define TRY(...)                                                                                                       \
    do {                                                                                                               \
        if (convtranspose::Status failure = (__VA_ARGS__); !failure) return failure;                                   \
    } while (false)

} // namespace convtranspose
