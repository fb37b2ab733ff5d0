// A run takes no memory from operator new: what it needs was there when it was planned, or is its workspace, which later runs
// find again.
#include <cstddef>
#include <string>

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
    Plan plan;
    Options options{};
    options.winograd = GetParam() == kByWinograd;
    Status status = Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
    ASSERT_TRUE(status) << status.message();
    Tensor y(problem.y_dtype.value_or(problem.dtype), plan.y_shape());
    status = plan.run(inputs.x.data(), y.data()); // which allocates the workspace
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

INSTANTIATE_TEST_SUITE_P(
    Plan, Allocation,
    testing::Values("f32 nchw n1 ic1 oc2 i3x3 k3x3", "f32 nchw n1 ic16 oc24 i9x9 k4x4 s2x2 p1x1_1x1 bias",
                    "f32 nhwc n2 ic16 oc24 i9x9 k3x3 s2x2", "f32 nchw n3 ic12 oc1 i9x9 k9x9 s3x3 p4x4_4x4",
                    "f32 nhwc n1 g16 ic16 oc16 i9x9 k4x4 s2x2 p1x1_1x1 bias",
                    "f16 nchw n1 g4 ic12 oc20 i9x9 k3x3 s2x2 d2x3", "f64 nchw n1 ic5 oc7 i3x4x5 k3x3x3 s2x2x2",
                    "u8 nhwc n1 ic16 oc24 i9x9 k4x4 s2x2 p1x1_1x1 bias", "s8 nchw n1 ic6 oc3 i9x9 k3x3 s2x2",
                    "u8 nhwc n1 g16 ic16 oc16 i9x9 k4x4 s2x2 p1x1_1x1", kByWinograd));

} // namespace
} // namespace convtranspose::test
