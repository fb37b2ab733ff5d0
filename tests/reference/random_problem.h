// Problems by chance, plausible ones: small, valid, and with every attribute used now and then; of the float types that are
// built, or of f32 where none is.
#ifndef CONVTRANSPOSE_TESTS_REFERENCE_RANDOM_PROBLEM_H_
#define CONVTRANSPOSE_TESTS_REFERENCE_RANDOM_PROBLEM_H_

#include "convtranspose/convtranspose.hpp"
#include "reference/tensor.h"

namespace convtranspose::test {

Problem random_problem(Random *random);

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_REFERENCE_RANDOM_PROBLEM_H_
