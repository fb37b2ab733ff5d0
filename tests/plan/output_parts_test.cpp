// Layers whose y is computed in parts, each of the taps that read inside x there.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/other_layers.h"
#include "reference/descriptor.h"
#include "reference/quantized.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

// Dilated kernels as long as the image, or longer; long ones; strides; three axes; groups; a batch; one axis; other types.
const std::vector<std::string> kProblems = {
    "f32 nchw n1 ic24 oc20 i16x16 k3x3 s1x1 d12x12 bias",
    "f32 nhwc n2 ic24 oc20 i16x16 k3x3 s1x1 d12x12 bias",
    "f32 nchw n1 ic16 oc16 i20x20 k3x3 s1x1 p19x19_19x19 d19x19 bias",
    "f32 nhwc n1 g2 ic32 oc24 i18x14 k3x3 s1x1 p9x11_9x11 d12x11",
    "f32 nchw n2 ic8 oc12 i12x12 k15x15 s1x1 bias",
    "f32 nhwc n1 ic16 oc24 i24 k3 s2 d30 bias",
    "f32 nchw n1 ic8 oc8 i6x10x12 k3x2x3 s1x1x1 d5x8x9 bias",
    "f64 nchw n1 ic8 oc12 i16x16 k3x3 s1x1 d12x12 bias",
    "f16 nhwc n1 ic16 oc20 i16x16 k3x3 s1x1 d12x12 bias",
    "bf16 nchw n1 ic16 oc20 i16x16 k3x3 s1x1 d12x12 bias",
};

Options in_parts(int threads = 1) { return by_algorithm("output_parts", threads); }

TEST(OutputParts, Agree) { expect_agreement_on_all_isas(kProblems, in_parts()); }

TEST(OutputParts, AreChosenForDilatedLayers) {
    for (const char *const line : {"f32 nhwc n1 ic64 oc64 i32x32 k3x3 s1x1 d16x16 bias",
                                   "f32 nhwc n1 ic64 oc64 i60x60 k3x3 s1x1 p59x59_59x59 d59x59 bias"}) {
        const Problem problem = parse_problem(line);
        const Plan plan = plan_of(problem, draw(problem, 4));
        EXPECT_EQ(plan.algorithm(), "output_parts") << plan.explain();
    }
}

// Where few taps leave x there is nothing to part.
TEST(OutputParts, NeedTapsThatLeaveX) {
    const Problem problem = parse_problem("f32 nchw n1 ic64 oc64 i32x32 k4x4 s2x2 p1x1_1x1 bias");
    const Inputs inputs = draw(problem, 4);
    Plan plan;
    const Status status = Plan::create(problem, in_parts(), inputs.w.data(), inputs.b->data(), &plan);
    EXPECT_EQ(status.code(), CONVT_UNSUPPORTED);
    EXPECT_EQ(status.message(), "output_parts cannot compute this problem: no cuts of y spare enough multiply-adds");
}

TEST(OutputParts, InfinitiesReachWhatTheyMust) { expect_infinities_reach_what_they_must(kProblems, in_parts()); }

TEST(OutputParts, OtherSizesOfX) {
    expect_agreement_when_reshaped(kProblems, SpatialAxis::kLast, {1, 9, 40}, in_parts(3));
    expect_agreement_when_reshaped(kProblems, SpatialAxis::kFirst, {2, 30}, in_parts());
}

TEST(OutputParts, OfACrop) { expect_agreement_of_crops(kProblems, in_parts(2)); }

// A residual is added once, and what follows applied once.
TEST(OutputParts, AreFollowedByOthers) {
    Problem problem = parse_problem(kProblems.front());
    problem.post_ops = {1, CONVT_LEAKY_RELU, 0.25f, 0};
    const Inputs inputs = draw(problem, 4, Values::integers);
    Expected expected = reference(parse_problem(kProblems.front()), inputs);
    const Plan plan = plan_of(problem, inputs, in_parts());
    Tensor residual(problem.dtype, plan.y_shape()), y(problem.dtype, plan.y_shape());
    for (std::int64_t i = 0; i < residual.size(); i++) residual.set(i, static_cast<double>(i % 7 - 3));
    for (std::size_t i = 0; i < expected.value.size(); i++) {
        const double sum = expected.value[i] + residual.get(static_cast<std::int64_t>(i));
        expected.value[i] = sum < 0 ? sum / 4 : sum;
    }
    ASSERT_TRUE(plan.run(inputs.x.data(), residual.data(), y.data()));
    EXPECT_TRUE(agrees(y, expected));
}

TEST(OutputParts, OfQuantizedLayersAreExact) {
    for (const char *const line : {"u8 nhwc n1 ic32 oc32 i24x24 k3x3 s1x1 d20x20 bias zx7 zw0 zy3",
                                   "u8 nchw n1 ic16 oc24 i16x16 k3x3 s1x1 d12x12 bias zx128 zw2 zy9 pc"}) {
        for (const int threads : {1, 3}) {
            const Problem problem = parse_problem(line);
            const Options options = in_parts(threads);
            SCOPED_TRACE(describe(problem, 4, options));
            const Inputs inputs = draw(problem, 4);
            Tensor y;
            const Status status = run(problem, inputs, options, &y);
            ASSERT_TRUE(status) << status.message();
            EXPECT_TRUE(agrees(y, quantized_reference(problem, inputs)));
        }
    }
}

} // namespace
} // namespace convtranspose::test
