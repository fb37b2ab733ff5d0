// Random problems.
#ifndef CONVTRANSPOSE_TESTS_REFERENCE_RANDOM_PROBLEM_H_
#define CONVTRANSPOSE_TESTS_REFERENCE_RANDOM_PROBLEM_H_

#include <cstdint>

#include "convtranspose/convtranspose.hpp"
#include "reference/tensor.h"

namespace convtranspose::test {

// A plausible one: small, valid, and with every attribute used now and then; of the float types that are built, or of f32 where
// none is.
Problem random_problem(Random *random);

// One whose y makes several strips, or pieces that are put together before they are rounded.
Problem large_problem(Random *random);

// Small x, w and y, whose strides, dilations and pads may be anything below 2^61: valid, and mostly with inputs that meet y.
Problem far_problem(Random *random);

// One whose attributes are any integers: mostly invalid, at times with a huge y. Its tensors may not fit in memory.
Problem any_problem(Random *random);

// Any integer, small ones and those near powers of two more often than their share.
std::int64_t any_integer(Random *random);

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_REFERENCE_RANDOM_PROBLEM_H_
