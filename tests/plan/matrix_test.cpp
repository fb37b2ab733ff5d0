// Kernels of matrix instructions, which multiply bf16 as such: where they are chosen, and where they must not be.
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "reference/reference.h"
#include "runtime/base/half.h"
#include "runtime/cpu/cpu.h"
#include "runtime/kernels/variant.h"

namespace convtranspose::test {
namespace {

class Matrix : public testing::Test {
  protected:
    void SetUp() override {
        if (!isa_supported(Isa::kAmx)) GTEST_SKIP() << "this CPU does not run amx";
    }
};

bool is_matrix(const Plan &plan) { return std::string(plan.variant()).rfind("amx_", 0) == 0; }

Plan plan_of(const Problem &problem, const Inputs &inputs) {
    Plan plan;
    const Status status =
        Plan::create(problem, Options{}, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
    EXPECT_TRUE(status) << status.message();
    return plan;
}

void expect_right(const Plan &plan, const Problem &problem, const Inputs &inputs) {
    Tensor y(problem.dtype, plan.y_shape());
    const Status status = plan.run(inputs.x.data(), y.data());
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(agrees(y, reference(problem, inputs)));
}

TEST_F(Matrix, IsChosenForDeepLayersOfBf16InBothLayouts) {
    for (const char *text :
         {"bf16 nhwc n1 ic256 oc128 i16x16 k4x4 s2x2 p1x1_1x1 bias",
          "bf16 nchw n1 ic256 oc128 i16x16 k4x4 s2x2 p1x1_1x1 bias", "bf16 nhwc n2 ic96 oc64 i20x30 k2x2 s2x2",
          "bf16 nhwc n1 g2 ic128 oc64 i40 k16 s8 p4_4 bias"}) {
        SCOPED_TRACE(text);
        const Problem problem = parse_problem(text);
        const Inputs inputs = draw(problem, 1);
        const Plan plan = plan_of(problem, inputs);
        EXPECT_TRUE(is_matrix(plan)) << plan.explain();
        EXPECT_EQ(plan.isa(), "amx");
        expect_right(plan, problem, inputs);
    }
}

// Channels that fill up the last step of a sum are zeros, whatever the workspace held before: here NaNs.
TEST_F(Matrix, PaddedChannelsAreZeros) {
    const Problem problem = parse_problem("bf16 nhwc n2 g2 ic142 oc128 i9x20 k3x3 s2x2 p1x1_1x1 bias");
    const Inputs inputs = draw(problem, 2);
    const Plan plan = plan_of(problem, inputs);
    ASSERT_TRUE(is_matrix(plan)) << plan.explain();
    std::vector<unsigned char> memory(plan.workspace_bytes() + 64, 0xff);
    unsigned char *const workspace = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
    Tensor y(problem.dtype, plan.y_shape());
    const Status status = plan.run(inputs.x.view(), y.view(), workspace);
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(agrees(y, reference(problem, inputs)));
}

// The reference, which does such layers, reads other weights: they are packed again.
TEST_F(Matrix, WeightsThatAreNotFiniteArePackedAgain) {
    const Problem problem = parse_problem("bf16 nhwc n1 ic64 oc64 i16x16 k4x4 s2x2 p1x1_1x1 bias");
    Inputs inputs = draw(problem, 3);
    ASSERT_TRUE(is_matrix(plan_of(problem, inputs)));
    static_cast<Bf16 *>(inputs.w.data())[77] = convtranspose::to_bf16(std::numeric_limits<float>::infinity());
    const Plan plan = plan_of(problem, inputs);
    EXPECT_FALSE(is_matrix(plan)) << plan.explain();
    expect_right(plan, problem, inputs);
}

TEST_F(Matrix, WeightsThatArriveWithEachRunAreNotForIt) {
    const Problem problem = parse_problem("bf16 nhwc n1 ic64 oc64 i16x16 k4x4 s2x2 p1x1_1x1");
    const Inputs inputs = draw(problem, 4);
    Plan plan;
    Status status = Plan::create(problem, Options{}, nullptr, nullptr, &plan);
    ASSERT_TRUE(status) << status.message();
    EXPECT_FALSE(is_matrix(plan));
    Tensor y(problem.dtype, plan.y_shape());
    status = plan.run(inputs.x.view(), inputs.w.view(), nullptr, y.view());
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(agrees(y, reference(problem, inputs)));

    Options named{};
    named.variant = "amx_b16_channels_2x16";
    EXPECT_EQ(Plan::create(problem, named, nullptr, nullptr, &plan).code(), CONVT_UNSUPPORTED);
    EXPECT_NE(std::string(convt_last_error()).find("weights arrive with each run"), std::string::npos)
        << convt_last_error();
}

} // namespace
} // namespace convtranspose::test
