// Whether there is a device to test on.
#ifndef CONVTRANSPOSE_TESTS_GPU_DEVICE_H_
#define CONVTRANSPOSE_TESTS_GPU_DEVICE_H_

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose::test {

// Kinds whose kernels are built in.
inline std::vector<std::string> device_kinds() {
    std::vector<std::string> kinds;
    for (std::size_t i = 0; i < convt_device_kind_count(); ++i) kinds.push_back(convt_device_kind_name(i));
    return kinds;
}

// Empty if there is one.
inline std::string why_no_device(const std::string &kind) {
    if (convt_device_count(kind.c_str()) > 0) return "";
    return convt_last_error();
}

// kind must live as long as the options.
inline Options on_device(const std::string &kind) {
    Options options{};
    options.device.name = kind.c_str();
    return options;
}

} // namespace convtranspose::test

#define CONVTRANSPOSE_NEEDS_DEVICE(kind)                                                                               \
    do {                                                                                                               \
        const std::string why_not = ::convtranspose::test::why_no_device(kind);                                        \
        if (!why_not.empty()) GTEST_SKIP() << why_not;                                                                 \
    } while (false)

#endif // CONVTRANSPOSE_TESTS_GPU_DEVICE_H_
