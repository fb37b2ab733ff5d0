// Hundreds of problems by chance, with whatever is chosen for them.
//
//     CONVTRANSPOSE_TEST_SEED=n         other problems (default 1)
//     CONVTRANSPOSE_TEST_PROBLEM=line   this problem instead of all others: the line that a failure prints
#include <cstdint>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "reference/random_problem.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

constexpr int kTests = 20, kProblemsPerTest = 30;

std::uint64_t seed_of_the_run() {
    const char *text = std::getenv("CONVTRANSPOSE_TEST_SEED");
    return text ? std::strtoull(text, nullptr, 10) : 1;
}

class RandomProblems : public testing::TestWithParam<int> {};

TEST_P(RandomProblems, Agree) {
    const std::uint64_t seed = seed_of_the_run();
    SCOPED_TRACE("CONVTRANSPOSE_TEST_SEED=" + std::to_string(seed));
    Random random(seed * 1000 + static_cast<std::uint64_t>(GetParam()));
    for (int i = 0; i < kProblemsPerTest; ++i) {
        Problem problem = random_problem(&random);
        if (const char *line = std::getenv("CONVTRANSPOSE_TEST_PROBLEM")) problem = parse_problem(line);
        const std::uint64_t value_seed = random.bits() % 1000000;
        Options options{};
        options.threads = static_cast<int>(random.integer(1, 4));
        expect_agreement(problem, value_seed, i % 3 ? Values::uniform : Values::integers, options);
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProblems, testing::Range(0, kTests));

// The same weights with the plan, with the run, and in a plan for another size: three ways to the same y.
TEST_P(RandomProblems, AgreeAfterReshape) {
    Random random(seed_of_the_run() * 2000 + static_cast<std::uint64_t>(GetParam()));
    for (int i = 0; i < kProblemsPerTest / 3; ++i) {
        const Problem problem = random_problem(&random);
        Problem other = problem; // another batch, and rows one longer
        other.x_shape[0] += 1;
        other.x_shape[problem.layout == CONVT_CHANNELS_FIRST ? other.x_shape.size() - 1 : other.x_shape.size() - 2] +=
            1;
        const std::uint64_t value_seed = random.bits() % 1000000;
        SCOPED_TRACE(describe(problem, value_seed, Options{}));
        const Inputs inputs = draw(problem, value_seed);
        Plan from, to;
        Status status = Plan::create(other, Options{}, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &from);
        ASSERT_TRUE(status) << status.message();
        status = from.reshape(problem.x_shape, &to);
        ASSERT_TRUE(status) << status.message();
        Tensor y(problem.dtype, to.y_shape());
        status = to.run(inputs.x.data(), y.data());
        ASSERT_TRUE(status) << status.message();
        EXPECT_TRUE(agrees(y, reference(problem, inputs)));
    }
}

} // namespace
} // namespace convtranspose::test
