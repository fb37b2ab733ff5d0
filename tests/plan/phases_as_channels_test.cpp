// Layers of few output channels, whose phases, along w or along all axes, are computed as output channels.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/other_layers.h"
#include "reference/descriptor.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

bool is_chosen(const Plan &plan) {
    return plan.algorithm() == "phases_as_channels" || plan.algorithm() == "depth_to_space";
}

// Or by another algorithm: of some of these problems that is estimated to take less.
bool is_chosen_or_another(const Plan &plan) {
    return is_chosen(plan) || plan.algorithm() == "layout_transpose" || plan.algorithm() == "col2im";
}

// Kernels that are multiples of the stride and not; pads that are, and not, and that crop more than a stride; outputs that end
// within a position, or beyond all taps; several output channels, groups, axes.
const std::vector<std::string> kProblems = {
    "f32 nchw n1 g1 ic40 oc1 i50 k64 s16",
    "f32 nchw n1 g1 ic40 oc1 i50 k64 s16 p32_32 bias",
    "f32 nchw n2 g1 ic40 oc1 i50 k64 s16 p13_29 bias",
    "f32 nchw n1 g1 ic40 oc1 i50 k70 s16 p13_29 bias",
    "f32 nchw n1 g1 ic40 oc1 i50 k70 s16 p90_3 op9 bias",
    "f32 nchw n1 g1 ic40 oc1 i50 k64 s16 os900 bias",
    "f32 nchw n4 g1 ic40 oc1 i200 k81 s16 p11_11 op1 bias", // one phase by itself
    "f32 nhwc n4 g1 ic40 oc1 i200 k79 s16 p11_11 op1 bias",
    "f32 nchw n1 g1 ic40 oc2 i50 k70 s16 p7_5 bias",
    "f32 nhwc n2 g1 ic40 oc1 i50 k70 s16 p7_5 bias",
    "f32 nhwc n2 g1 ic40 oc2 i50 k70 s16 p7_5 bias",
    "f32 nchw n1 g2 ic80 oc4 i30 k40 s16 p7_5 bias",
    "f32 nchw n1 g1 ic64 oc1 i7x30 k10x18 s5x8 p3x5_1x2 bias",
    "f32 nhwc n1 g1 ic64 oc1 i7x30 k10x18 s5x8 p3x5_1x2",
    "f32 nchw n1 g1 ic64 oc1 i3x4x20 k2x3x33 s2x1x16 p0x1x6_0x1x2 bias",
    "f64 nchw n1 g1 ic40 oc1 i50 k70 s16 p7_5 bias",
    "f16 nchw n1 g1 ic40 oc1 i50 k70 s16 p7_5 bias",
    "bf16 nhwc n1 g1 ic40 oc2 i50 k70 s16 p7_5 bias",
    // Many channels and a long stride.
    "f32 nchw n2 g1 ic6 oc21 i3x5 k6x70 s3x32 p2x19_1x23 op0x3 bias",
    "f32 nchw n1 g20 ic20 oc40 i9 k64 s32 p16_16",
    // Small, of two and three axes, groups; kernels smaller than the stride, which leave gaps of bias.
    "f32 nchw n1 g1 ic96 oc3 i7x5 k8x8 s4x4 p2x2_2x2 bias",
    "f32 nhwc n2 g1 ic96 oc3 i7x5 k8x8 s4x4 p2x2_2x2 bias",
    "f32 nchw n1 g1 ic96 oc3 i7x5 k10x9 s5x4 p3x2_1x0 op1x2 bias",
    "f32 nchw n1 g1 ic96 oc2 i4x5x4 k4x4x4 s2x2x2 p1x1x1_1x1x1",
    "f32 nhwc n1 g1 ic96 oc2 i3x5x4 k5x4x3 s3x2x2 p1x1x1_1x0x1 bias",
    "f32 nchw n2 g4 ic128 oc8 i5x6 k8x8 s8x8 bias",
    "f32 nchw n1 g1 ic64 oc4 i8x8 k3x3 s6x6 bias",
    "f32 nchw n1 g1 ic64 oc4 i8x8 k3x3 s6x6", // gaps of zeros
    "f32 nhwc n1 g1 ic64 oc4 i8x8 k3x7 s6x4 p1x1_2x0 bias",
    "f32 nhwc n2 g1 ic20 oc24 i9x17 k4x5 s2x2 p1x1_1x2 bias",
    "f32 nchw n3 g64 ic64 oc64 i22x6 k1x1 s6x6 op1x0 bias", // one input channel, one phase
    "f64 nchw n1 g1 ic96 oc3 i7x5 k8x8 s4x4 p2x2_2x2 bias",
    "f16 nhwc n1 g1 ic96 oc3 i7x5 k8x8 s4x4 p2x2_2x2",
    "bf16 nchw n1 g1 ic96 oc3 i7x5 k8x8 s4x4 p2x2_2x2 bias",
    // Dilated: phases of a tap each, of several; with a divisor in common, which leaves gaps; whose positions begin before y, and
    // end after it.
    "f32 nchw n2 g1 ic8 oc4 i9x23 k8x8 s8x8 d3x3 p7x7_7x7 bias",
    "f32 nhwc n2 g1 ic20 oc2 i9x7 k7x8 s3x4 d2x3 p3x5_4x2 bias",
    "f32 nchw n1 g1 ic24 oc2 i8x9 k5x4 s4x6 d2x4 p1x3_2x0 op1x3 bias",
    "f32 nchw n2 g2 ic48 oc6 i5x5x6 k3x4x5 s2x3x4 d3x2x6 p2x1x3_0x1x5 bias",
    "f64 nhwc n1 g1 ic96 oc3 i7x5 k8x8 s4x4 d3x5 p15x19_5x9 bias",
    "f16 nchw n1 g1 ic40 oc2 i33 k6 s5 d7 p9_2 bias",
    // Most of y is bias: any number of channels.
    "f32 nchw n2 g1 ic48 oc40 i5x7 k2x3 s5x7 p1x2_0x1 bias",
    "f32 nhwc n1 g1 ic48 oc40 i5x7 k2x3 s5x7 p4x2_0x6 op2x0",
    "f64 nchw n1 g2 ic16 oc40 i4x3x5 k2x2x2 s6x5x4 p3x0x0_0x2x1 bias",
    "f16 nchw n1 g1 ic24 oc32 i6x30 k2x2 s8x3 bias",
    // The same with gaps along h alone, where two layers meet in a row; with rows longer than what is filled at once; in groups.
    "f32 nchw n2 g8 ic8 oc8 i9x16 k1x3 s2x2 p0x1_1x0 bias",
    "f32 nchw n1 g1 ic3 oc5 i3x2500 k3x1 s2x6 p1x0_0x3 op1x0 bias",
    "f32 nhwc n2 g4 ic8 oc12 i4x5x6 k2x1x2 s3x2x5 p1x0x2_0x0x1 bias",
    "f32 nhwc n3 g1 ic5 oc1 i7x9 k1x1 s4x5 p0x2_1x0",
    "f64 nhwc n1 g1 ic4 oc24 i900 k2 s7 p3_0 bias",
};

// Each problem by name, as one of the two at least can, and as estimates decide, which differ by ISA.
TEST(PhasesAsChannels, AreChosenAndAgree) {
    for (std::size_t isa = 0; isa < convt_isa_count(); isa++) {
        if (!convt_isa_supported(isa)) continue;
        std::size_t chosen = 0, by_algorithms = 0;
        for (const std::string &line : kProblems) {
            const Problem problem = parse_problem(line);
            const Inputs inputs = draw(problem, 3);
            const Expected expected = reference(problem, inputs);
            int able = 0;
            for (const char *const algorithm : {"phases_as_channels", "depth_to_space", ""}) {
                for (const int threads : {1, 3}) {
                    Options options{};
                    options.threads = threads;
                    options.all_threads = 1;
                    options.isa = convt_isa_name(isa);
                    options.variant = *algorithm ? algorithm : nullptr;
                    SCOPED_TRACE(describe(problem, 3, options));
                    Plan plan;
                    const void *const b = inputs.b ? inputs.b->data() : nullptr;
                    const Status status = Plan::create(problem, options, inputs.w.data(), b, &plan);
                    if (*algorithm && status.code() == CONVT_UNSUPPORTED) continue;
                    ASSERT_TRUE(status) << status.message();
                    if (*algorithm) {
                        able += is_chosen(plan);
                    } else {
                        chosen += is_chosen(plan);
                        by_algorithms += is_chosen_or_another(plan);
                    }
                    Tensor y(problem.dtype, plan.y_shape());
                    ASSERT_TRUE(plan.run(inputs.x.data(), y.data()));
                    EXPECT_TRUE(agrees(y, expected));
                }
            }
            EXPECT_GT(able, 0) << line << " on " << convt_isa_name(isa);
        }
        EXPECT_GT(chosen, kProblems.size() / 3) << "of " << 2 * kProblems.size() << " on " << convt_isa_name(isa);
        EXPECT_GT(by_algorithms, 2 * kProblems.size() / 3)
            << "of " << 2 * kProblems.size() << " on " << convt_isa_name(isa);
        RecordProperty(convt_isa_name(isa), static_cast<int>(chosen));
    }
}

// Nor are the cropped positions at either end, each a layer one column wide, left to the reference kernel.
TEST(PhasesAsChannels, ComputeNoPieceByTheReference) {
    for (const char *const line :
         {"f32 nhwc n1 g1 ic24 oc12 i37x24 k16x16 s8x8 p4x4_4x4 bias",
          "f32 nhwc n1 g1 ic16 oc24 i29x46 k8x8 s4x4 p2x2_2x2", "f32 nchw n1 g1 ic40 oc2 i50 k70 s16 p7_5 bias"}) {
        SCOPED_TRACE(line);
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 4);
        Options options{};
        options.variant = "phases_as_channels";
        const Plan plan = plan_of(problem, inputs, options);
        ASSERT_TRUE(plan);
        const std::size_t kernels = convt_plan_kernel_count(plan.get());
        EXPECT_GT(kernels, 0u);
        for (std::size_t i = 0; i < kernels; i++) {
            EXPECT_STRNE(std::string(convt_plan_kernel(plan.get(), i)).substr(0, 9).c_str(), "reference");
        }
        Tensor y(problem.dtype, plan.y_shape());
        ASSERT_TRUE(plan.run(inputs.x.data(), y.data()));
        EXPECT_TRUE(agrees(y, reference(problem, inputs)));
    }
}

TEST(PhasesAsChannels, InfinitiesReachWhatTheyMust) { expect_infinities_reach_what_they_must(kProblems); }

TEST(PhasesAsChannels, OtherSizesOfX) { expect_agreement_when_reshaped(kProblems, SpatialAxis::kLast, {1, 2, 9, 77}); }

TEST(PhasesAsChannels, CropsPostOpsAndWorkspaces) {
    expect_agreement_of_crops({kProblems[3], kProblems[7], kProblems[8], kProblems[10], kProblems[18], kProblems[19],
                               kProblems[24], kProblems[31], kProblems[33], kProblems[34], kProblems[36],
                               kProblems[37]},
                              {}, CropOrder::kOther);
}

// For a y that is a part of more channels either.
TEST(PhasesAsChannels, HaveNoRoomForAllOfY) {
    const Problem problem = parse_problem("f32 nhwc n1 g1 ic24 oc24 i64x64 k2x2 s2x2 bias");
    const Inputs inputs = draw(problem, 5);
    Options options{};
    options.variant = "phases_as_channels";
    const Plan plan = plan_of(problem, inputs, options);
    ASSERT_TRUE(plan);
    EXPECT_LT(plan.workspace_bytes(), std::size_t{128} * 128 * 24 * sizeof(float) / 2);
}

TEST(PhasesAsChannels, AreNotForLayersOfManyChannels) {
    const Problem problem = parse_problem("f32 nchw n1 g1 ic40 oc64 i50 k64 s16 p32_32 bias");
    const Inputs inputs = draw(problem, 3);
    Plan plan;
    ASSERT_TRUE(Plan::create(problem, {}, inputs.w.data(), inputs.b->data(), &plan));
    EXPECT_FALSE(is_chosen(plan));
}

// Phases that lie together have taps that do not: with the layer's own dilation, further outside of x than x is long.
TEST(PhasesAsChannels, DilatedTapsOfOnePosition) {
    for (const char *const line : {"f32 nchw n1 g1 ic1 oc1 i1 k11 s3 p0_0 d2",
                                   "f16 nchw n1 g1 ic1 oc1 i1x1x1 k12x1x1 s5x1x1 p2x0x0_0x0x0 d3x1x1"}) {
        for (const char *const variant : {static_cast<const char *>(nullptr), "depth_to_space"}) {
            Options options{};
            options.variant = variant;
            expect_agreement(parse_problem(line), 1, Values::uniform, options);
        }
    }
}

} // namespace
} // namespace convtranspose::test
