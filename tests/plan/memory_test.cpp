// The caller's memory: hooks for all of it, any of which may fail, and a workspace of the caller's own.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "plan/counting_allocator.h"
#include "reference/descriptor.h"
#include "reference/layer.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

// One per way of computing: padded or not, deep, few outputs, depthwise, several axes, any type.
const std::vector<std::string> kProblems = {
    "f32 nchw n1 ic16 oc24 i9x9 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nhwc n2 ic16 oc24 i9x9 k3x3 s2x2",
    "f32 nchw n1 ic8 oc8 i9x70 k3x3 s1x1 p1x1_1x1",
    "f32 nchw n1 ic8 oc8 i9x70 k2x2 s2x2 bias",
    "f32 nchw n1 ic12 oc1 i9x9 k9x9 s4x4 p4x4_4x4 op3x3 bias",
    "f32 nchw n1 g16 ic16 oc16 i9x9 k4x4 s2x2 p1x1_1x1",
    "f32 nhwc n1 g16 ic16 oc16 i9x9 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nchw n1 g4 ic12 oc20 i9x9 k3x3 s2x2 d2x3",
    "f16 nchw n1 ic16 oc24 i9x9 k4x4 s2x2 p1x1_1x1 bias",
    "bf16 nhwc n1 ic16 oc24 i9x9 k4x4 s2x2 p1x1_1x1",
    "f64 nchw n1 ic5 oc7 i9x9 k3x3 s2x2 p1x1_1x1 bias",
    "f32 nchw n1 ic5 oc7 i3x4x5 k3x3x3 s2x2x2",
    "f32 nchw n1 ic3 oc2 i3x2x2x3 k2x2x2x2 s2x2x1x1 bias",
    "u8 nhwc n1 ic16 oc24 i9x9 k4x4 s2x2 p1x1_1x1 bias zx128",
    "s8 nchw n2 ic6 oc3 i9x9 k3x3 s2x2 zw5",
    "u8 nchw n1 g16 ic16 oc16 i9x9 k4x4 s2x2 p1x1_1x1 bias yf32",
    "u8 nchw n1 ic3 oc2 i3x2x2x3 k2x2x2x2 s2x2x1x1 bias",
    "f32 nchw n0 ic3 oc2 i3x2 k2x2 bias",
    "f32 nchw n1 ic0 oc2 i3x2 k2x2 bias",
};

// Plans and runs. Whatever fails must be the memory, and must leave y as it was.
Status plan_and_run(const Problem &problem, const Inputs &inputs, const Options &options, bool run_time_weights,
                    Tensor *y) {
    Plan plan;
    const void *w = run_time_weights ? nullptr : inputs.w.data();
    const void *b = run_time_weights || !inputs.b ? nullptr : inputs.b->data();
    Status status = Plan::create(problem, options, w, b, &plan);
    if (!status) {
        EXPECT_FALSE(plan);
        return status;
    }
    if (!run_time_weights) return plan.run(inputs.x.data(), y->data());
    const ConstTensorView bias = inputs.b ? inputs.b->view() : ConstTensorView();
    return plan.run(inputs.x.view(), inputs.w.view(), inputs.b ? &bias : nullptr, y->view());
}

class Memory : public testing::TestWithParam<std::tuple<std::string, bool>> {
  protected:
    const Problem problem = parse_problem(std::get<0>(GetParam()));
    const bool run_time_weights = std::get<1>(GetParam());
    const Inputs inputs = draw(problem, 1);
};

TEST_P(Memory, AllOfItComesFromTheHooksAndGoesBack) {
    CountingAllocator allocator;
    Tensor y(problem.y_dtype.value_or(problem.dtype), layer_of(problem).y_shape);
    const Status status = plan_and_run(problem, inputs, allocator.options(), run_time_weights, &y);
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(agrees(y, reference(problem, inputs)));
    if (!run_time_weights) {
        EXPECT_GT(allocator.allocations(), 0u) << "packed weights come from the hooks";
    }
    EXPECT_EQ(allocator.live_blocks(), 0u);
}

TEST_P(Memory, EveryAllocationMayFail) {
    const Expected expected = reference(problem, inputs);
    for (const int threads : {1, 3}) {
        SCOPED_TRACE(threads);
        CountingAllocator allocator;
        Options options = allocator.options();
        options.threads = threads;
        options.all_threads = 1;
        std::size_t failures = 0;
        for (std::size_t i = 0;; ++i) {
            SCOPED_TRACE("allocation " + std::to_string(i) + " fails");
            ASSERT_LT(i, 1000u) << "so many allocations can hardly be meant";
            Tensor y(expected.dtype, expected.shape);
            for (std::int64_t k = 0; k < y.size(); ++k) y.set(k, 77);
            const Tensor sentinel = y;
            allocator.fail_at(i);
            const Status status = plan_and_run(problem, inputs, options, run_time_weights, &y);
            EXPECT_EQ(allocator.live_blocks(), 0u) << "leaked";
            if (!allocator.failed()) {
                ASSERT_TRUE(status) << status.message();
                EXPECT_TRUE(agrees(y, expected));
                break;
            }
            ++failures;
            ASSERT_EQ(status.code(), CONVT_OUT_OF_MEMORY) << status.message();
            EXPECT_NE(status.message(), "");
            ASSERT_TRUE(y == sentinel) << "y must stay untouched";
        }
        if (!run_time_weights) {
            EXPECT_GT(failures, 0u);
        }
    }
}

// A plan that could not allocate its workspace runs when there is memory again.
TEST_P(Memory, APlanSurvivesARunThatFailed) {
    CountingAllocator allocator;
    Plan plan;
    Status status =
        Plan::create(problem, allocator.options(), inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
    ASSERT_TRUE(status) << status.message();
    Tensor y(problem.y_dtype.value_or(problem.dtype), plan.y_shape());
    allocator.fail_at(0);
    status = plan.run(inputs.x.data(), y.data());
    if (allocator.failed()) { // it may need none
        EXPECT_EQ(status.code(), CONVT_OUT_OF_MEMORY);
        status = plan.run(inputs.x.data(), y.data());
    }
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(agrees(y, reference(problem, inputs)));
}

TEST_P(Memory, WorkspaceOfTheCaller) {
    CountingAllocator allocator;
    Plan plan;
    const void *w = run_time_weights ? nullptr : inputs.w.data();
    const void *b = run_time_weights || !inputs.b ? nullptr : inputs.b->data();
    Status status = Plan::create(problem, allocator.options(), w, b, &plan);
    ASSERT_TRUE(status) << status.message();

    // Exactly what the plan asks for, aligned to 64 and no more, with guards on both sides and garbage inside.
    constexpr std::size_t kGuard = 64;
    const std::size_t bytes = plan.workspace_bytes();
    std::vector<unsigned char> memory(bytes + 2 * kGuard + 192, 0xff);
    void *start = memory.data() + kGuard;
    std::size_t space = memory.size() - kGuard;
    ASSERT_NE(std::align(128, 64, start, space), nullptr);
    unsigned char *workspace = static_cast<unsigned char *>(start) + 64; // an odd multiple of 64

    const Expected expected = reference(problem, inputs);
    for (int repetition = 0; repetition < 2; ++repetition) {
        Tensor y(problem.y_dtype.value_or(problem.dtype), plan.y_shape());
        const std::size_t before = allocator.allocations();
        if (run_time_weights) {
            const ConstTensorView bias = inputs.b ? inputs.b->view() : ConstTensorView();
            status = plan.run(inputs.x.view(), inputs.w.view(), inputs.b ? &bias : nullptr, y.view(), workspace);
        } else {
            status = plan.run(inputs.x.view(), y.view(), workspace);
        }
        ASSERT_TRUE(status) << status.message();
        EXPECT_TRUE(agrees(y, expected));
        EXPECT_EQ(allocator.allocations(), before) << "with a workspace, a run allocates nothing";
    }
    for (const unsigned char *p = memory.data(); p < workspace; ++p) ASSERT_EQ(*p, 0xff);
    for (const unsigned char *p = workspace + bytes; p < memory.data() + memory.size(); ++p) ASSERT_EQ(*p, 0xff);
}

TEST_P(Memory, TheSecondRunAllocatesNothing) {
    CountingAllocator allocator;
    Plan plan;
    Status status =
        Plan::create(problem, allocator.options(), inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
    ASSERT_TRUE(status) << status.message();
    Tensor y(problem.y_dtype.value_or(problem.dtype), plan.y_shape());
    ASSERT_TRUE(plan.run(inputs.x.data(), y.data()));
    const std::size_t before = allocator.allocations();
    ASSERT_TRUE(plan.run(inputs.x.data(), y.data()));
    EXPECT_EQ(allocator.allocations(), before);
}

INSTANTIATE_TEST_SUITE_P(Plan, Memory, testing::Combine(testing::ValuesIn(kProblems), testing::Bool()),
                         [](const testing::TestParamInfo<std::tuple<std::string, bool>> &c) {
                             return std::to_string(c.index / 2) +
                                    (std::get<1>(c.param) ? "_WeightsWithRun" : "_WeightsWithPlan");
                         });

TEST(MemoryOfReshape, EveryAllocationMayFail) {
    const Problem problem = parse_problem("f32 nchw n1 ic16 oc24 i9x9 k4x4 s2x2 p1x1_1x1 bias");
    const Inputs inputs = draw(problem, 2);
    CountingAllocator allocator;
    {
        Plan plan;
        ASSERT_TRUE(Plan::create(problem, allocator.options(), inputs.w.data(), inputs.b->data(), &plan));
        for (std::size_t i = 0;; ++i) {
            ASSERT_LT(i, 1000u);
            const std::size_t before = allocator.live_blocks();
            allocator.fail_at(i);
            Plan reshaped;
            const Status status = plan.reshape({2, 16, 5, 30}, &reshaped);
            if (!allocator.failed()) {
                EXPECT_TRUE(status) << status.message();
                break;
            }
            ASSERT_EQ(status.code(), CONVT_OUT_OF_MEMORY) << status.message();
            EXPECT_FALSE(reshaped);
            EXPECT_EQ(allocator.live_blocks(), before);
        }
        allocator.stop_failing();
        Tensor y(problem.y_dtype.value_or(problem.dtype), plan.y_shape());
        ASSERT_TRUE(plan.run(inputs.x.data(), y.data()));
        EXPECT_TRUE(agrees(y, reference(problem, inputs)));
    }
    EXPECT_EQ(allocator.live_blocks(), 0u);
}

// Pieces of y that are rounded to 16 bits are no more than there are tasks.
TEST(Workspace, IsNotThatOfThreadsWithoutTasks) {
    const Problem problem = parse_problem("f16 nhwc n8 ic4 oc4 i64x64 k4x4 s2x2 p1x1_1x1");
    const Inputs inputs = draw(problem, 1);
    Options options{};
    options.threads = 4096;
    options.all_threads = 1;
    Plan plan;
    const Status status = Plan::create(problem, options, inputs.w.data(), nullptr, &plan);
    ASSERT_TRUE(status) << status.message();
    EXPECT_LE(plan.workspace_bytes(), std::size_t{32} << 20);
}

// Weights that arrive at run time are packed into the workspace: here 2^30 of four bytes.
TEST(AddressSpace, TooSmallForAWorkspace) {
    Problem problem;
    problem.x_shape = {1, 1 << 15, 1, 1};
    problem.w_shape = {1 << 15, 1 << 15, 1, 1};
    Plan plan;
    const Status status = Plan::create(problem, Options{}, nullptr, nullptr, &plan);
    if (sizeof(std::size_t) > 4) {
        ASSERT_TRUE(status) << status.message();
        EXPECT_GE(plan.workspace_bytes(), std::uint64_t{1} << 32);
    } else {
        EXPECT_EQ(status.code(), CONVT_OUT_OF_MEMORY) << status.message();
    }
}

} // namespace
} // namespace convtranspose::test
