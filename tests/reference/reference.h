// The y that is expected, by the definition of the operator, written as the loop that it is; and how far a kernel may be from it.
#ifndef CONVTRANSPOSE_TESTS_REFERENCE_REFERENCE_H_
#define CONVTRANSPOSE_TESTS_REFERENCE_REFERENCE_H_

#include <vector>

#include <gtest/gtest.h>

#include "convtranspose/convtranspose.hpp"
#include "reference/tensor.h"
#include "runtime/problem/geometry.h"

namespace convtranspose::test {

// The library's own, for tests of what it derives. Throws std::runtime_error with the message of a problem that does not resolve.
Geometry geometry_of(const Problem &problem);

// y by the definition, with pads and sizes by layer.h, summed in double (f64 in long double and then rounded, but for integers of
// which double holds every sum), and per element the tolerance
//
//     (terms + 4) * u_sum * sum(|x * w|, |b|)  +  4 * u_y * |y|  +  the least subnormal number of y's type
//
// where terms is the number of products that meet there (plus the bias), u_sum the unit roundoff of the accumulator
// (2^-24 for f16, bf16 and f32; 2^-53 for f64; 2^-11 for sums_in_f16, where also 2^-25 is lost at a time below its normal
// numbers) and u_y that of y's type, 2^-(bits of its significand, the hidden one
// included): the usual bound of a sum in any order, then of the rounding to y. It is 0 where x, w and b are integers
// and the sum of magnitudes fits in the significand of y: then every order of summation is exact.
struct Expected {
    convt_dtype dtype = CONVT_F32;
    Shape shape;
    std::vector<double> value; // before rounding to dtype
    std::vector<double> tolerance;
};

Expected reference(const Problem &problem, const Inputs &inputs, bool sums_in_f16 = false);

// Whether y is what is expected; NaN and infinities must be where they are expected. The message names the worst
// element.
::testing::AssertionResult agrees(const Tensor &y, const Expected &expected);

// Plans with constant weights and runs. y: its shape is set.
Status run(const Problem &problem, const Inputs &inputs, const Options &options, Tensor *y);

// Options of a test that leaves the choice of a kernel to the library: with the ISA of CONVTRANSPOSE_TEST_ISA, if that is set, and
// memory of the plan that ends at pages which may not be touched (guarded_memory.h).
Options options_of_the_run();

// The test of most tests: draws, runs, and compares with the reference.
void expect_agreement(const Problem &problem, std::uint64_t seed, Values values = Values::uniform,
                      const Options &options = Options{});

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_REFERENCE_REFERENCE_H_
