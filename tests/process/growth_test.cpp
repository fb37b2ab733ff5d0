// Plans that are made, run and destroyed many times leave nothing behind.
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) // which keeps what is freed, and finds leaks by itself

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "reference/effort.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

std::int64_t resident_bytes() {
    std::int64_t pages = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> pages >> resident;
    return resident * sysconf(_SC_PAGESIZE);
}

// A layer for each way of computing, small enough that most of the time is planning.
const char *const kProblems[] = {
    "f32 nchw n1 ic2 oc3 i3x4 k3x3 s2x2 p1x1_1x1 bias",
    "f32 nhwc n1 ic8 oc8 i3x3 k2x2 s2x2",
    "f32 nchw n1 g8 ic8 oc8 i3x4 k3x3 s2x2 p1x1_1x1 bias",
    "f64 nchw n1 ic2 oc1 i2x2x2x2 k2x2x1x2 s1x2x1x1",
    "bf16 nchw n2 ic4 oc4 i2x3 k2x2 bias",
    "u8 nhwc n1 ic4 oc4 i3x3 k3x3 s2x2 bias zx3",
    "f32 nchw n0 ic1 oc1 i2 k1",
};

struct Cycle {
    Problem problem;
    Inputs inputs;
    Tensor y;

    explicit Cycle(const char *line) : problem(parse_problem(line)), inputs(draw(problem, 1)) {
        Plan plan;
        const Status status = Plan::create(problem, Options{}, nullptr, nullptr, &plan);
        EXPECT_TRUE(status) << status.message();
        y = Tensor(problem.y_dtype.value_or(problem.dtype), plan.y_shape());
    }

    // Everything that a plan may be asked for, some of it now and then.
    bool run(int i) {
        Options options{};
        options.threads = i % 8 == 0 ? 2 : 1;
        options.all_threads = 1;
        options.winograd = i % 16 == 1;
        Plan plan, reshaped, refused;
        const bool with_run = i % 4 == 3;
        const void *const b = inputs.b ? inputs.b->data() : nullptr;
        if (!Plan::create(problem, options, with_run ? nullptr : inputs.w.data(), with_run ? nullptr : b, &plan))
            return false;
        if (i % 32 == 5) plan.explain();
        if (i % 16 == 6) {
            Shape larger = problem.x_shape;
            larger[0] += 1;
            if (!plan.reshape(larger, &reshaped)) return false;
        }
        if (i % 16 == 7) {
            Problem wrong = problem;
            wrong.attributes.strides = Shape{-1};
            if (Plan::create(wrong, options, nullptr, nullptr, &refused)) return false;
        }
        if (!with_run) return static_cast<bool>(plan.run(inputs.x.data(), y.data()));
        const ConstTensorView bias = inputs.b ? inputs.b->view() : ConstTensorView();
        return static_cast<bool>(plan.run(inputs.x.view(), inputs.w.view(), inputs.b ? &bias : nullptr, y.view()));
    }
};

TEST(Growth, IsNoneOverManyCycles) {
    std::vector<Cycle> cycles;
    for (const char *const line : kProblems) cycles.emplace_back(line);
    constexpr int kFirst = 10'000, kAll = 100'000 / kOneIn; // the first fill the allocator's lists
    std::int64_t before = 0;
    for (int i = 0; i < kAll; ++i) {
        if (i == kFirst) before = resident_bytes();
        ASSERT_TRUE(cycles[static_cast<std::size_t>(i) % cycles.size()].run(i / 7)) << i;
    }
    // Eight bytes a cycle would be more.
    EXPECT_LT(resident_bytes() - before, 512 << 10);
}

} // namespace
} // namespace convtranspose::test

#endif
