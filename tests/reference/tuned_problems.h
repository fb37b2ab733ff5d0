// The layers that kernels of the table were found for, and take no others: schedules/tuned.
#ifndef CONVTRANSPOSE_TESTS_REFERENCE_TUNED_PROBLEMS_H_
#define CONVTRANSPOSE_TESTS_REFERENCE_TUNED_PROBLEMS_H_

#include <string>
#include <vector>

#include "reference/descriptor.h"
#include "runtime/kernels/variant.h"

namespace convtranspose::test {

// The problems that variants of those names are for.
std::vector<Problem> tuned_problems(Isa isa, const std::vector<std::string> &variants);

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_REFERENCE_TUNED_PROBLEMS_H_
