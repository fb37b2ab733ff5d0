// operator new, replaced for the whole program to count its calls.
#ifndef CONVTRANSPOSE_TESTS_PLAN_COUNTING_NEW_H_
#define CONVTRANSPOSE_TESTS_PLAN_COUNTING_NEW_H_

#include <cstddef>

namespace convtranspose::test {

std::size_t news(); // calls so far

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_PLAN_COUNTING_NEW_H_
