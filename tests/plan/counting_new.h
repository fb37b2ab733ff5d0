// operator new, replaced for the whole program: its calls are counted, and may be made to fail.
#ifndef CONVTRANSPOSE_TESTS_PLAN_COUNTING_NEW_H_
#define CONVTRANSPOSE_TESTS_PLAN_COUNTING_NEW_H_

#include <cstddef>

namespace convtranspose::test {

std::size_t news();      // calls so far
std::size_t live_news(); // blocks that have not been deleted

// The most bytes that one call asked for since the last forget_largest_new().
std::size_t largest_new();
void forget_largest_new();

// Only call number i from now on fails, counting from 0, whichever thread makes it.
void fail_new_at(std::size_t i);

// Tells what became of it. Whoever calls the nothrow form can do without: a buffer to sort in, a thread that helps.
enum class Failure { kNotReached, kThrew, kReturnedNull };
Failure stop_failing_news();

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_PLAN_COUNTING_NEW_H_
