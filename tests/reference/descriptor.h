// One line that repeats a problem, printed with every failure:
// that of tools/problem_line.h, and of a quantized problem its zero points, zx128 zw0 zy-3, pc (per channel), relu.
#ifndef CONVTRANSPOSE_TESTS_REFERENCE_DESCRIPTOR_H_
#define CONVTRANSPOSE_TESTS_REFERENCE_DESCRIPTOR_H_

#include <string>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose::test {

std::string describe(const Problem &problem);
Problem parse_problem(const std::string &line); // throws std::invalid_argument

// For the line of a run: the problem, the seed of its values and what was asked for.
std::string describe(const Problem &problem, std::uint64_t seed, const Options &options);

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_REFERENCE_DESCRIPTOR_H_
