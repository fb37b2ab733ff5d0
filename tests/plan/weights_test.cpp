// Weights and bias given with the plan, or with each run.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

const std::vector<std::string> kProblems = {
    "f32 nchw n2 g1 ic5 oc9 i6x7 k3x3 s2x2 p1x1_1x1 op1x1 bias",
    "f32 nhwc n1 g1 ic16 oc33 i4x5 k4x4 s2x2 p1x1_1x1",
    "f32 nchw n1 g8 ic8 oc8 i9x9 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nchw n1 g1 ic12 oc1 i9x20 k9x9 s4x4 p4x4_4x4 op3x3",
    "f64 nhwc n1 g3 ic6 oc9 i7 k5 s3 d2 bias",
    "f16 nchw n1 g1 ic32 oc32 i3x3 k2x2 s2x2 bias",
    "bf16 nhwc n1 g1 ic7 oc17 i3x4x5 k3x2x1 s1x2x3",
    "f32 nchw n1 g1 ic4 oc4 i3x3x3x3 k2x2x2x2 s2x1x2x1 bias",
};

class Weights : public testing::TestWithParam<std::string> {};

TEST_P(Weights, WithTheRunEqualsWithThePlan) {
    const Problem problem = parse_problem(GetParam());
    const Inputs inputs = draw(problem, 1);
    Tensor constant;
    Status status = run(problem, inputs, Options{}, &constant);
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(agrees(constant, reference(problem, inputs)));

    Plan plan;
    status = Plan::create(problem, Options{}, nullptr, nullptr, &plan);
    ASSERT_TRUE(status) << status.message();
    Tensor y(problem.dtype, plan.y_shape());
    const ConstTensorView b = inputs.b ? inputs.b->view() : ConstTensorView();
    status = plan.run(inputs.x.view(), inputs.w.view(), inputs.b ? &b : nullptr, y.view());
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(agrees(y, reference(problem, inputs)));

    // Other weights in the next run: nothing of the last ones is kept.
    const Inputs others = draw(problem, 2);
    const ConstTensorView other_b = others.b ? others.b->view() : ConstTensorView();
    status = plan.run(others.x.view(), others.w.view(), others.b ? &other_b : nullptr, y.view());
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(agrees(y, reference(problem, others)));
}

TEST_P(Weights, AreNotReferredToAfterPlanning) {
    const Problem problem = parse_problem(GetParam());
    const Inputs inputs = draw(problem, 3);
    Plan plan;
    {
        Inputs scratch = inputs;
        const Status status =
            Plan::create(problem, Options{}, scratch.w.data(), scratch.b ? scratch.b->data() : nullptr, &plan);
        ASSERT_TRUE(status) << status.message();
        for (std::int64_t i = 0; i < scratch.w.size(); ++i) scratch.w.set(i, 1e4);
        if (scratch.b) {
            for (std::int64_t i = 0; i < scratch.b->size(); ++i) scratch.b->set(i, 1e4);
        }
    }
    Tensor y(problem.dtype, plan.y_shape());
    const Status status = plan.run(inputs.x.data(), y.data());
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(agrees(y, reference(problem, inputs)));
}

TEST_P(Weights, BiasOrNone) {
    Problem problem = parse_problem(GetParam());
    const std::int64_t out_channels = problem.w_shape[1] * problem.attributes.group;
    for (const bool bias : {false, true}) {
        problem.b_shape = bias ? Ints(Shape{out_channels}) : Ints();
        expect_agreement(problem, 4);
    }
}

INSTANTIATE_TEST_SUITE_P(Plan, Weights, testing::ValuesIn(kProblems));

// The dense strides of weights may be spelled out.
TEST(WeightStrides, DenseOnesAreAccepted) {
    const Problem problem = parse_problem("f32 nchw n1 g1 ic3 oc2 i4x4 k3x2 bias");
    const Inputs inputs = draw(problem, 5);
    ConstTensorView w = inputs.w.view(), b = inputs.b->view();
    w.strides = {12, 6, 2, 1};
    b.strides = {1};
    const detail::ProblemView c(problem);
    const convt_tensor cw = detail::view(w), cb = detail::view(b);
    convt_plan *plan = nullptr;
    EXPECT_EQ(convt_plan_create(&c, &cw, &cb, nullptr, &plan), CONVT_OK) << convt_last_error();
    convt_plan_destroy(plan);
}

} // namespace
} // namespace convtranspose::test
