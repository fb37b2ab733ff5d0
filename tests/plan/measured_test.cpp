// Plans that measure: what they choose computes the layer, is remembered, and can be recorded; and what is not measured.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#ifndef CONVTRANSPOSE_NO_THREADS
#include <thread>
#endif

#include <gtest/gtest.h>

#include "plan/counting_allocator.h"
#include "reference/built_types.h"
#include "reference/descriptor.h"
#include "reference/quantized.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

constexpr int kMs = 5;

// Threads that count how often they are asked for, which shows whether anything ran. No layer is too small to ask for them.
struct Runs {
    std::atomic<int> calls{0};

    Options options(int threads = 2) {
        Options options = options_of_the_run();
        options.threads = threads;
        options.all_threads = 1;
        options.planning = CONVT_MEASURE;
        options.planning_ms = kMs;
        options.parallel_user = this;
        options.parallel_for = [](void *user, std::size_t count, convt_task task, void *context) {
            static_cast<Runs *>(user)->calls++;
            for (std::size_t i = 0; i < count; ++i) task(context, i);
        };
        return options;
    }
};

struct Layer {
    explicit Layer(const std::string &line, std::uint64_t seed = 11) : problem(parse_problem(line)) {
        if (is_quantized(problem.dtype)) quantize(&problem, QuantizedAs());
        inputs = draw(problem, seed);
    }
    Status plan(const Options &options, Plan *made) const {
        return Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, made);
    }
    Problem problem;
    Inputs inputs;
};

bool is_measured(const Plan &plan) {
    return plan.explain().find("measured to be the fastest of ") != std::string::npos;
}

struct Destroy {
    void operator()(convt_tuning *t) const { convt_tuning_destroy(t); }
};
using TuningPointer = std::unique_ptr<convt_tuning, Destroy>;

TuningPointer read(const std::string &text) {
    convt_tuning *tuning = nullptr;
    EXPECT_EQ(convt_tuning_read(text.data(), text.size(), &tuning), CONVT_OK) << convt_last_error() << text;
    return TuningPointer(tuning);
}

class Measured : public testing::TestWithParam<std::string> {};

TEST_P(Measured, ComputesTheLayer) {
    const Layer layer(GetParam());
    if (!is_built(layer.problem.dtype)) GTEST_SKIP() << "this type is not built in";
    Runs runs;
    Plan plan;
    const Status status = layer.plan(runs.options(), &plan);
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(is_measured(plan)) << plan.explain();
    const Expected expected = reference(layer.problem, layer.inputs);
    Tensor y(layer.problem.y_dtype.value_or(layer.problem.dtype), expected.shape);
    ASSERT_TRUE(plan.run(layer.inputs.x.data(), y.data()));
    EXPECT_TRUE(agrees(y, expected)) << plan.explain();
}

INSTANTIATE_TEST_SUITE_P(
    Plan, Measured,
    testing::Values("f32 nchw n1 ic16 oc24 i9x9 k4x4 s2x2 p1x1_1x1 bias", "f32 nhwc n2 ic32 oc16 i7x9 k3x3 s2x2",
                    "f64 nchw n1 ic5 oc7 i3x4x5 k3x3x3 s2x2x2", "f16 nchw n1 ic8 oc20 i9x9 k3x3 s2x2",
                    "f32 nchw n1 ic2 oc3 i3x2x3x2 k2x2x2x2 bias", "f32 nchw n1 ic16 oc8 i12x1 k4x1 s2x1",
                    "u8 nhwc n1 ic16 oc24 i9x9 k4x4 s2x2 bias",
                    "f32 nhwc n1 g16 ic16 oc16 i9x9 k4x4 s2x2 p1x1_1x1 bias"));

TEST(MeasuredPlans, AreRememberedAndRecorded) {
    const Layer layer("f32 nchw n1 ic24 oc40 i11x9 k4x4 s2x2 p1x1_1x1");
    Runs runs;
    Plan first, second, recorded, named;
    ASSERT_TRUE(layer.plan(runs.options(), &first));
    EXPECT_GT(runs.calls, 0);
    const std::string field = "\"ms\": ", measured = first.record();
    ASSERT_NE(measured.find(field), std::string::npos) << measured;
    const double ms = std::strtod(measured.c_str() + measured.find(field) + field.size(), nullptr);
    EXPECT_GT(ms, 0);
    EXPECT_LT(ms, 1e5);
    runs.calls = 0;
    ASSERT_TRUE(layer.plan(runs.options(), &second));
    EXPECT_EQ(runs.calls, 0) << "measured again";
    EXPECT_EQ(second.variant(), first.variant());
    EXPECT_EQ(second.record(), first.record());
    EXPECT_TRUE(is_measured(second));
    EXPECT_EQ(second.threads(), 2);

    // A record does the same without measuring, in a plan that does not ask for measuring too.
    const TuningPointer tuning = read(first.record());
    for (const convt_planning planning : {CONVT_ESTIMATE, CONVT_MEASURE}) {
        Options options = runs.options();
        options.planning = planning;
        options.tuning = tuning.get();
        ASSERT_TRUE(layer.plan(options, &recorded));
        EXPECT_EQ(runs.calls, 0);
        EXPECT_EQ(recorded.variant(), first.variant());
        EXPECT_EQ(recorded.record(), first.record());
        EXPECT_NE(recorded.explain().find("says a tuning record"), std::string::npos) << recorded.explain();
    }
    // A record wins over what was measured, and a name over both.
    std::string other;
    for (std::size_t i = 0; i < convt_plan_candidate_count(first.get()); ++i) {
        const std::string name = convt_plan_candidate(first.get(), i);
        if (name.find("_f32_") != std::string::npos && name != first.variant()) other = name;
    }
    ASSERT_NE(other, "");
    Options options = runs.options();
    options.variant = other.c_str();
    ASSERT_TRUE(layer.plan(options, &named));
    EXPECT_EQ(named.variant(), other);
    const TuningPointer of_named = read(named.record());
    options.variant = nullptr;
    options.tuning = of_named.get();
    ASSERT_TRUE(layer.plan(options, &recorded));
    EXPECT_EQ(recorded.variant(), other);
    EXPECT_EQ(runs.calls, 0);
}

#ifndef CONVTRANSPOSE_NO_THREADS
TEST(MeasuredPlans, SeveralCallersAgreeWithTheReference) {
    const Layer layer("f32 nhwc n1 ic24 oc40 i10x9 k4x4 s2x2 p1x1_1x1");
    const Expected expected = reference(layer.problem, layer.inputs);
    std::atomic<int> right{0};
    const auto make = [&] {
        Options measuring = options_of_the_run();
        measuring.planning = CONVT_MEASURE;
        measuring.planning_ms = kMs;
        Plan plan;
        Tensor y(CONVT_F32, expected.shape);
        right += layer.plan(measuring, &plan) && plan.run(layer.inputs.x.data(), y.data()) && agrees(y, expected);
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(make);
    for (std::thread &thread : threads) thread.join();
    EXPECT_EQ(right, 4);
}
#endif

TEST(MeasuredPlans, MayUseFewerThreads) {
    const Layer layer("f32 nchw n1 ic8 oc8 i5x5 k3x3 s2x2");
    Runs runs;
    Options options = runs.options(1);
    Plan one, fewer;
    ASSERT_TRUE(layer.plan(options, &one));
    std::string record = one.record();
    const std::string threads = "\"threads\": 1";
    record.replace(record.find(threads), threads.size(), "\"threads\": 3, \"on_threads\": 1");
    const TuningPointer tuning = read(record);
    options = runs.options(3);
    options.all_threads = 0;
    options.tuning = tuning.get();
    ASSERT_TRUE(layer.plan(options, &fewer));
    EXPECT_EQ(fewer.threads(), 3) << "as asked for";
    EXPECT_NE(fewer.explain().find("threads 1 of 3 that are allowed"), std::string::npos) << fewer.explain();
    EXPECT_EQ(fewer.record(), record);
    const Expected expected = reference(layer.problem, layer.inputs);
    Tensor y(CONVT_F32, expected.shape);
    runs.calls = 0;
    ASSERT_TRUE(fewer.run(layer.inputs.x.data(), y.data()));
    EXPECT_TRUE(agrees(y, expected));
    EXPECT_EQ(runs.calls, 0);
    // Another size is planned for all threads again.
    Plan larger;
    ASSERT_TRUE(fewer.reshape({1, 8, 64, 64}, &larger));
    EXPECT_EQ(larger.explain().find("that are allowed"), std::string::npos) << larger.explain();
}

// Sums of one layer's weights do not fit in 32 bits, which leaves the reference kernel; the other layer is not to follow it.
TEST(MeasuredPlans, FollowNoneOfOtherWeights) {
    if (!is_built(CONVT_U8)) GTEST_SKIP() << "this type is not built in";
    const Layer layer("u8 nchw n1 ic4 oc4 i5x5 k3x3 s2x2 bias");
    Layer large = layer;
    for (std::int64_t m = 0; m < large.inputs.b->size(); ++m) large.inputs.b->set(m, 2147483647);
    Runs runs;
    Plan of_large, plan;
    ASSERT_TRUE(large.plan(runs.options(), &of_large));
    EXPECT_TRUE(is_measured(of_large));
    EXPECT_EQ(of_large.variant().find("reference"), 0U) << of_large.variant();
    ASSERT_TRUE(layer.plan(runs.options(), &plan));
    EXPECT_EQ(plan.variant().find("reference"), std::string::npos) << plan.variant();
}

// A first run that takes the whole budget leaves no time for another candidate, nor for other threads.
TEST(MeasuredPlans, KeepTheEstimateWhereNothingElseIsTried) {
    const Layer layer("f32 nhwc n1 ic64 oc64 i8x8 k4x4 s2x2");
    Options options{};
    options.threads = 2;
    options.planning = CONVT_MEASURE;
    options.planning_ms = kMs;
    options.parallel_for = [](void *, std::size_t count, convt_task task, void *context) {
        using Clock = std::chrono::steady_clock;
        for (const auto end = Clock::now() + std::chrono::milliseconds(kMs); Clock::now() < end;) continue;
        for (std::size_t i = 0; i < count; ++i) task(context, i);
    };
    Plan plan;
    const Status status = layer.plan(options, &plan);
    ASSERT_TRUE(status) << status.message();
    EXPECT_NE(plan.explain().find("measured to be the fastest of 1: "), std::string::npos) << plan.explain();
}

TEST(MeasuredPlans, ReshapeToWhatWasMeasured) {
    const Layer small("f32 nchw n1 ic24 oc40 i5x7 k4x4 s2x2"), large("f32 nchw n1 ic24 oc40 i13x15 k4x4 s2x2");
    Runs runs;
    Plan plan, other, reshaped;
    ASSERT_TRUE(small.plan(runs.options(), &plan));
    ASSERT_TRUE(large.plan(runs.options(), &other));
    runs.calls = 0;
    ASSERT_TRUE(plan.reshape(large.problem.x_shape, &reshaped));
    EXPECT_EQ(runs.calls, 0);
    const Expected expected = reference(large.problem, {large.inputs.x, small.inputs.w, small.inputs.b});
    Tensor y(CONVT_F32, expected.shape);
    ASSERT_TRUE(reshaped.run(large.inputs.x.data(), y.data()));
    EXPECT_TRUE(agrees(y, expected));
}

TEST(MeasuredPlans, TakeWeightsOfEachRunAndResiduals) {
    for (const char *const line :
         {"f32 nchw n1 ic12 oc20 i8x9 k3x3 s2x2 bias", "u8 nhwc n1 ic12 oc20 i8x9 k3x3 s2x2 bias"}) {
        SCOPED_TRACE(line);
        Layer layer(line);
        if (!is_built(layer.problem.dtype)) continue;
        Runs runs;
        Plan plan;
        layer.problem.post_ops = {layer.problem.dtype == CONVT_F32, CONVT_NO_ACTIVATION, 0, 0};
        const Status status = Plan::create(layer.problem, runs.options(), nullptr, nullptr, &plan);
        ASSERT_TRUE(status) << status.message();
        EXPECT_TRUE(is_measured(plan)) << plan.explain();
        EXPECT_GT(runs.calls, 0);
    }
}

TEST(MeasuredPlans, WhatIsTooSlowOrEmptyIsNotRun) {
    for (const char *const line : {"f32 nchw n1 ic512 oc512 i64x64 k4x4 s2x2", "f32 nchw n0 ic4 oc4 i8x8 k3x3 s1x1"}) {
        SCOPED_TRACE(line);
        const Layer layer(line);
        Runs runs;
        Options options = runs.options();
        options.planning_ms = 1;
        Plan plan;
        ASSERT_TRUE(Plan::create(layer.problem, options, nullptr, nullptr, &plan));
        EXPECT_EQ(runs.calls, 0);
        EXPECT_FALSE(is_measured(plan)) << plan.explain();
    }
}

TEST(MeasuredPlans, SurviveThatThereIsNoMemory) {
    for (const char *const line : {"f32 nchw n1 ic6 oc4 i4x5 k3x3 s2x2 bias", "f32 nhwc n1 ic16 oc16 i4x5 k4x4 s2x2",
                                   "u8 nhwc n1 ic4 oc4 i4x4 k2x2"}) {
        SCOPED_TRACE(line);
        const Layer layer(line);
        if (!is_built(layer.problem.dtype)) continue;
        std::size_t failures = 0;
        for (std::size_t i = 0; i < 400; i++) {
            // The process remembers what it measured for a number of threads, so each attempt has a number of its own.
            CountingAllocator allocator;
            Runs runs;
            Options options = allocator.options();
            options.planning = CONVT_MEASURE;
            options.planning_ms = 1;
            options.threads = static_cast<int>(i) + 5;
            options.parallel_for = runs.options().parallel_for;
            options.parallel_user = &runs;
            allocator.fail_at(i);
            Plan plan;
            const Status status = layer.plan(options, &plan);
            if (!allocator.failed()) break;
            failures++;
            if (!status) {
                EXPECT_EQ(status.code(), CONVT_OUT_OF_MEMORY) << status.message();
            }
        }
        EXPECT_GT(failures, 3u);
    }
}

TEST(MeasuredPlans, RulesAreSaid) {
    const Layer layer("f32 nchw n1 ic2 oc2 i3x3 k2x2");
    Options options{};
    Plan plan;
    options.planning = CONVT_MEASURE;
    options.planning_ms = -1;
    const Status status = layer.plan(options, &plan);
    EXPECT_EQ(status.code(), CONVT_INVALID_ARGUMENT);
    EXPECT_EQ(status.message(), "planning_ms = -1 must not be negative");
    EXPECT_STREQ(convt_plan_record(nullptr), "");
}

} // namespace
} // namespace convtranspose::test
