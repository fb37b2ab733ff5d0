// A run takes no memory from operator new, on any number of threads: what it needs was there when it was planned, or is its
// workspace, which later runs find again. Whatever else takes memory survives that there is none.
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>

#include <gtest/gtest.h>

#include "plan/counting_new.h"
#include "reference/descriptor.h"
#include "reference/quantized.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

constexpr const char *kByWinograd = "f32 nhwc n1 ic64 oc64 i40x40 k3x3 s1x1 p1x1_1x1 bias";

class Allocation : public testing::TestWithParam<std::string> {};

TEST_P(Allocation, RunsNeedNone) {
    Problem problem = parse_problem(GetParam());
    if (is_quantized(problem.dtype)) quantize(&problem, QuantizedAs());
    const Inputs inputs = draw(problem, 1);
    for (const int threads : {1, 2, 100}) {
        SCOPED_TRACE(threads);
        Plan plan;
        Options options{};
        options.winograd = GetParam() == kByWinograd;
        options.threads = threads;
        options.all_threads = 1;
        Status status = Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
        ASSERT_TRUE(status) << status.message();
        Tensor y(problem.y_dtype.value_or(problem.dtype), plan.y_shape());
        status = plan.run(inputs.x.data(), y.data()); // which allocates the workspace, and may start threads
        ASSERT_TRUE(status) << status.message();
        const std::size_t before = news();
        ASSERT_GT(before, 0u) << "nothing is counted";
        bool all_well = true;
        for (int i = 0; i < 3; ++i) all_well = all_well && plan.run(inputs.x.data(), y.data());
        EXPECT_EQ(news() - before, 0u);
        EXPECT_TRUE(all_well);
        if (!options.winograd) { // whose sums are others
            EXPECT_TRUE(agrees(y, reference(problem, inputs)));
        }
    }
}

// Nor do those whose weights come with them and whose y is a part of a larger tensor.
TEST_P(Allocation, RunsWithWeightsAndViewsNeedNone) {
    Problem problem = parse_problem(GetParam());
    if (is_quantized(problem.dtype)) quantize(&problem, QuantizedAs());
    const Inputs inputs = draw(problem, 1);
    Plan plan;
    Status status = Plan::create(problem, {}, nullptr, nullptr, &plan);
    ASSERT_TRUE(status) << status.message();
    const Shape y_shape = plan.y_shape();
    Shape parent = y_shape; // its rows are longer
    parent.back() += 3;
    Tensor y_parent(problem.y_dtype.value_or(problem.dtype), parent), y(y_parent.dtype(), y_shape);
    const Strides strides = dense_strides(parent);
    Arguments arguments;
    arguments.x = inputs.x.view();
    arguments.w = inputs.w.view();
    if (inputs.b) arguments.b = inputs.b->view();
    arguments.y = {y_parent.data(), y_parent.dtype(), y_shape, Shape(strides.begin(), strides.end())};
    status = plan.run(arguments);
    ASSERT_TRUE(status) << status.message();
    const std::size_t before = news();
    bool all_well = true;
    for (int i = 0; i < 3; ++i) all_well = all_well && plan.run(arguments);
    EXPECT_EQ(news() - before, 0u) << plan.variant();
    EXPECT_TRUE(all_well);
    for (std::int64_t i = 0; i < y.size(); ++i)
        y.set(i, y_parent.get(i / y_shape.back() * parent.back() + i % y_shape.back()));
    EXPECT_TRUE(agrees(y, reference(problem, inputs)));
}

INSTANTIATE_TEST_SUITE_P(
    Plan, Allocation,
    testing::Values("f32 nchw n1 ic1 oc2 i3x3 k3x3", "f32 nchw n1 ic16 oc24 i9x9 k4x4 s2x2 p1x1_1x1 bias",
                    "f32 nhwc n2 ic16 oc24 i9x9 k3x3 s2x2", "f32 nchw n3 ic12 oc1 i9x9 k9x9 s3x3 p4x4_4x4",
                    "f32 nhwc n1 g16 ic16 oc16 i9x9 k4x4 s2x2 p1x1_1x1 bias",
                    "f16 nchw n1 g4 ic12 oc20 i9x9 k3x3 s2x2 d2x3", "f64 nchw n1 ic5 oc7 i3x4x5 k3x3x3 s2x2x2",
                    "u8 nhwc n1 ic16 oc24 i9x9 k4x4 s2x2 p1x1_1x1 bias", "s8 nchw n1 ic6 oc3 i9x9 k3x3 s2x2",
                    "u8 nhwc n1 g16 ic16 oc16 i9x9 k4x4 s2x2 p1x1_1x1", kByWinograd));

// A plan's whole life, by the C interface: all that is allocated between the first call and the last is the library's.
class Cycle {
  public:
    Cycle(const std::string &line, int threads, bool run_time_weights)
        : problem_(parsed(line)), inputs_(draw(problem_, 1)),
          y_(problem_.y_dtype.value_or(problem_.dtype), geometry_of(problem_).y_shape), other_(problem_.x_shape),
          c_problem_(problem_), run_time_weights_(run_time_weights) {
        options_.threads = threads;
        options_.all_threads = 1;
        other_[0]++;
    }

    // Creates, asks, reshapes, runs and destroys.
    convt_status operator()() {
        const auto view = [](const Tensor &t) {
            return convt_tensor{sizeof(convt_tensor),
                                const_cast<void *>(t.data()),
                                t.dtype(),
                                t.shape().data(),
                                nullptr,
                                t.shape().size(),
                                CONVT_HOST_MEMORY};
        };
        const convt_tensor x = view(inputs_.x), w = view(inputs_.w), b = inputs_.b ? view(*inputs_.b) : convt_tensor{},
                           to = view(y_);
        const convt_tensor *const given_b = inputs_.b ? &b : nullptr,
                                  *const w_of_plan = run_time_weights_ ? nullptr : &w,
                                  *const b_of_plan = run_time_weights_ ? nullptr : given_b;
        const detail::OptionsView c_options(options_);
        convt_plan *plan = nullptr, *reshaped = nullptr;
        convt_status status = convt_plan_create(&c_problem_, w_of_plan, b_of_plan, &c_options, &plan);
        if (status == CONVT_OK) {
            ask(plan);
            status = convt_plan_reshape(plan, {other_.data(), other_.size()}, &reshaped);
        }
        if (status == CONVT_OK) {
            status = convt_plan_run(plan, &x, run_time_weights_ ? &w : nullptr, run_time_weights_ ? given_b : nullptr,
                                    &to, nullptr);
        }
        convt_plan_destroy(reshaped);
        convt_plan_destroy(plan);
        return status;
    }

    Tensor &y() { return y_; }
    std::size_t hash_of_answers() const { return answers_; }
    bool has_been_asked_in_vain() const { return vain_; }

  private:
    static Problem parsed(const std::string &line) {
        Problem problem = parse_problem(line);
        if (is_quantized(problem.dtype)) quantize(&problem, QuantizedAs());
        if (problem.x_shape.size() > 5) problem.post_ops = {0, CONVT_LEAKY_RELU, 0.25F, 0}; // over all of y
        return problem;
    }

    // Queries have no status. The second time there is memory, and what they say must be all of it.
    void ask(const convt_plan *plan) {
        vain_ = !*convt_plan_explain(plan);
        vain_ = !*convt_plan_problem(plan) || vain_;
        vain_ = !convt_plan_candidate(plan, 0) || vain_;
        vain_ = !convt_plan_kernel(plan, 0) || vain_;
        answers_ = 0;
        const auto add = [this](const char *text) {
            answers_ = answers_ * 31 + std::hash<std::string_view>()(text ? text : "");
        };
        add(convt_plan_explain(plan));
        add(convt_plan_problem(plan));
        for (std::size_t i = 0; i < convt_plan_candidate_count(plan); ++i) add(convt_plan_candidate(plan, i));
        for (std::size_t i = 0; i < convt_plan_kernel_count(plan); ++i) add(convt_plan_kernel(plan, i));
    }

    Problem problem_;
    Inputs inputs_;
    Tensor y_;
    Shape other_;
    detail::ProblemView c_problem_;
    Options options_{};
    bool run_time_weights_ = false, vain_ = false;
    std::size_t answers_ = 0;
};

class AllocationOfCycles : public testing::TestWithParam<std::tuple<std::string, bool>> {};

#if GTEST_HAS_EXCEPTIONS
TEST_P(AllocationOfCycles, AnyMayFail) {
    const auto &[line, run_time_weights] = GetParam();
    for (const int threads : {1, 3}) {
        SCOPED_TRACE(threads);
        Cycle cycle(line, threads, run_time_weights);
        ASSERT_EQ(cycle(), CONVT_OK) << convt_last_error();
        const Tensor expected = cycle.y();
        const std::size_t live = live_news(), answers = cycle.hash_of_answers();
        for (std::size_t i = 0;; ++i) {
            SCOPED_TRACE("call " + std::to_string(i) + " of operator new fails");
            ASSERT_LT(i, 100000u);
            const Tensor untouched(expected.dtype(), expected.shape());
            cycle.y() = untouched;
            fail_new_at(i);
            const convt_status code = cycle();
            const Failure failure = stop_failing_news();
            if (code == CONVT_OK) {
                ASSERT_EQ(cycle.hash_of_answers(), answers);
                ASSERT_TRUE(failure != Failure::kThrew || cycle.has_been_asked_in_vain());
            } else {
                ASSERT_EQ(code, CONVT_OUT_OF_MEMORY) << convt_last_error();
                ASSERT_EQ(failure, Failure::kThrew);
                ASSERT_TRUE(cycle.y() == untouched) << "y is written in part";
            }
            if (failure == Failure::kNotReached) break;
        }
        cycle.y() = Tensor(expected.dtype(), expected.shape());
        ASSERT_EQ(cycle(), CONVT_OK) << convt_last_error();
        EXPECT_TRUE(cycle.y() == expected);
        EXPECT_EQ(live_news(), live);
    }
}
#endif

TEST_P(AllocationOfCycles, NothingGrows) {
    const auto &[line, run_time_weights] = GetParam();
    Cycle cycle(line, 2, run_time_weights);
    ASSERT_EQ(cycle(), CONVT_OK) << convt_last_error();
    const std::size_t live = live_news();
    bool all_well = true;
    for (int i = 0; i < 20; ++i) all_well = all_well && cycle() == CONVT_OK;
    EXPECT_EQ(live_news(), live);
    EXPECT_TRUE(all_well);
}

INSTANTIATE_TEST_SUITE_P(Plan, AllocationOfCycles,
                         testing::Combine(testing::Values("f32 nchw n1 ic16 oc24 i9x9 k4x4 s2x2 p1x1_1x1 bias",
                                                          "f32 nhwc n1 ic16 oc24 i9x9 k3x3 s2x2 d1x3",
                                                          "f32 nchw n1 ic3 oc2 i3x2x2x3 k2x2x2x2 s2x2x1x1 bias",
                                                          "f32 nhwc n1 ic2 oc2 i2x1x2x1x1x2 k1x2x1x2x2x1 s2x1x1x1x1x1",
                                                          "u8 nhwc n1 ic16 oc24 i9x9 k4x4 s2x2 p1x1_1x1 bias"),
                                          testing::Bool()),
                         [](const testing::TestParamInfo<std::tuple<std::string, bool>> &c) {
                             return std::to_string(c.index / 2) +
                                    (std::get<1>(c.param) ? "_WeightsWithRun" : "_WeightsWithPlan");
                         });

} // namespace
} // namespace convtranspose::test
