// How a target reports what is wrong: libFuzzer keeps the input of a process that aborts.
#ifndef CONVTRANSPOSE_TESTS_FUZZ_FAIL_H_
#define CONVTRANSPOSE_TESTS_FUZZ_FAIL_H_

#include <cstdio>
#include <cstdlib>
#include <string>

namespace convtranspose::fuzz {

inline std::string &context() {
    static std::string text;
    return text;
}

// The problem that is being tried, for the message. With the environment variable CONVTRANSPOSE_FUZZ_PRINT it is printed at once,
// for faults that the sanitizers report.
inline void set_context(const std::string &text) {
    context() = text;
    static const bool prints = std::getenv("CONVTRANSPOSE_FUZZ_PRINT") != nullptr;
    if (prints) std::fprintf(stderr, "%s\n", text.c_str());
}

[[noreturn]] inline void fail(const std::string &what) {
    std::fprintf(stderr, "%s\nWRONG: %s\n", context().c_str(), what.c_str());
    std::abort();
}

template<typename T> // a bool, or what says so
void require(const T &holds, const std::string &what) {
    if (!holds) fail(what);
}

} // namespace convtranspose::fuzz

#endif // CONVTRANSPOSE_TESTS_FUZZ_FAIL_H_
