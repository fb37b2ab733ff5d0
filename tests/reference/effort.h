// How much of what a test could try it does try.
#ifndef CONVTRANSPOSE_TESTS_REFERENCE_EFFORT_H_
#define CONVTRANSPOSE_TESTS_REFERENCE_EFFORT_H_

namespace convtranspose::test {

// Emulated, everything takes ten times as long: then of many problems every fourth is tried, in turn, once each kernel has
// had some.
#ifdef CONVTRANSPOSE_EMULATED
inline constexpr int kOneIn = 4;
#else
inline constexpr int kOneIn = 1;
#endif

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_REFERENCE_EFFORT_H_
