// Whether there is a device to test on.
#ifndef CONVTRANSPOSE_TESTS_GPU_DEVICE_H_
#define CONVTRANSPOSE_TESTS_GPU_DEVICE_H_

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose::test {

// Kinds whose kernels are built in.
inline std::vector<std::string> device_kinds() {
    std::vector<std::string> kinds;
    for (std::size_t i = 0; i < convt_device_kind_count(); ++i) kinds.emplace_back(convt_device_kind_name(i));
    return kinds;
}

// Empty if there is one.
inline std::string why_no_device(const std::string &kind) {
    if (convt_device_count(kind.c_str()) > 0) return "";
    return convt_last_error();
}

// Whether CONVTRANSPOSE_TEST_DEVICES, a list with spaces, has the kind: somebody has set up what such a device needs.
inline bool must_have_device(const std::string &kind) {
    const char *const list = std::getenv("CONVTRANSPOSE_TEST_DEVICES");
    return list && (" " + std::string(list) + " ").find(" " + kind + " ") != std::string::npos;
}

// kind must live as long as the options.
inline Options on_device(const std::string &kind) {
    Options options{};
    options.device.name = kind.c_str();
    return options;
}

} // namespace convtranspose::test

// Skips a test where there is no such device, but for a kind that CONVTRANSPOSE_TEST_DEVICES says there is one of.
#define CONVTRANSPOSE_NEEDS_DEVICE(kind)                                                                               \
    do {                                                                                                               \
        const std::string why_not = ::convtranspose::test::why_no_device(kind);                                        \
        if (why_not.empty()) break;                                                                                    \
        if (::convtranspose::test::must_have_device(kind)) FAIL() << why_not;                                          \
        GTEST_SKIP() << why_not;                                                                                       \
    } while (false)

#endif // CONVTRANSPOSE_TESTS_GPU_DEVICE_H_
