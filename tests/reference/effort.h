// How much of what a test could try it does try.
#ifndef CONVTRANSPOSE_TESTS_REFERENCE_EFFORT_H_
#define CONVTRANSPOSE_TESTS_REFERENCE_EFFORT_H_

#include <cstddef>
#include <cstdlib>

namespace convtranspose::test {

// Emulated, everything takes ten times as long: then of many problems every fourth is tried, in turn, once each kernel has
// had some. CONVTRANSPOSE_TEST_ONE_IN asks for fewer at run time.
#ifdef CONVTRANSPOSE_EMULATED
inline constexpr int kOneIn = 4;
#else
inline constexpr int kOneIn = 1;
#endif
inline constexpr bool kEmulated = kOneIn > 1;

inline std::size_t one_in() {
    const char *const text = std::getenv("CONVTRANSPOSE_TEST_ONE_IN");
    return text ? std::strtoul(text, nullptr, 10) : static_cast<std::size_t>(kOneIn);
}

// True if tests that take long try everything, which scripts/test.sh --all asks for, and not a part. Emulated, they try a part.
inline bool tries_all() { return !kEmulated && std::getenv("CONVTRANSPOSE_TEST_ALL") != nullptr; }

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_REFERENCE_EFFORT_H_
