// Layers that are computed in the other layout, between transpositions.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/other_layers.h"
#include "reference/descriptor.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

const std::vector<std::string> kProblems = {
    "f32 nchw n1 g100 ic100 oc100 i7x6 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nhwc n3 g20 ic20 oc40 i37 k3 s3 bias",
    "f32 nchw n2 g1 ic19 oc33 i5x9 k3x3 s2x2 p1x1_1x1",
    "f32 nhwc n2 g1 ic19 oc33 i5x9 k3x3 s2x2 p1x1_1x1",
    "f32 nhwc n1 g1 ic40 oc1 i9x17 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nchw n1 g1 ic1 oc5 i9x17 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nchw n2 g3 ic6 oc9 i3x4x5 k2x3x3 s2x1x2 bias",
    "f32 nhwc n2 g3 ic6 oc9 i3x4x5 k2x3x3 s2x1x2 bias",
    "f64 nhwc n1 g8 ic8 oc16 i5x9 k3x3 s2x2 p1x1_1x1 bias",
    // So large that some groups of an image are computed at a time: 3 blocks of 2 images, which 3 threads take as they come, and
    // 7 blocks of one, which they share.
    "f32 nchw n2 g72 ic72 oc72 i19x20 k3x3 s2x2 p1x1_1x1 bias",
    "f32 nhwc n1 g13 ic52 oc104 i30x29 k3x2 s2x1 p1x0_1x0 bias",
    // Strips of the outermost axis: of two images, of which the second ends within a stride; cropped by more than a tap reaches;
    // beyond all taps; dilated; few outputs, whose phases are channels within each strip; groups.
    "f32 nchw n2 g1 ic3 oc20 i1700 k16 s8 p3_9 op5 bias",
    "f32 nhwc n1 g1 ic4 oc20 i3500 k9 s4 p20_33 bias",
    "f32 nchw n1 g1 ic8 oc40 i800 k3 s5 os7900 bias",
    "f32 nhwc n1 g1 ic4 oc24 i61x50 k3x3 s2x2 p2x1_1x1 op1x0 d2x3 bias",
    "f32 nchw n1 g1 ic8 oc3 i61x90 k4x8 s4x4 p0x2_0x2 bias",
    // Cropped by more than a kernel that is shorter than the stride, so that the first strip begins with outputs that no tap
    // reaches.
    "f32 nhwc n1 g1 ic64 oc3 i600x8 k1x3 s2x1 p1x1_1x1 bias",
    "f32 nchw n1 g1 ic64 oc3 i600x8 k2x3 s4x1 p2x1_2x1 bias",
    "f64 nchw n1 g2 ic4 oc6 i14x9x31 k3x3x3 s2x2x2 p1x1x1_1x1x1 bias",
    // To a y that is so large that some channels at a time are transposed.
    "f32 nchw n1 g1 ic3 oc96 i31x45 k3x3 s2x2 p1x1_1x1 op1x1 bias",
    // Strips of which only x, or only y, is transposed.
    "f32 nchw n1 g1 ic40 oc1 i90x80 k4x3 s2x2 p1x1_1x1 bias",
    "f32 nchw n2 g1 ic1 oc12 i61x90 k3x3 s2x2 bias",
    // 16 bits become f32 on the way, and are rounded on the way back: one channel, of which both layouts are the same; groups;
    // strips.
    "f16 nhwc n2 g1 ic40 oc1 i9x17 k4x4 s2x2 p1x1_1x1 bias",
    "bf16 nchw n1 g1 ic1 oc5 i9x17 k4x4 s2x2 p1x1_1x1",
    "f16 nchw n1 g72 ic72 oc72 i19x20 k3x3 s2x2 p1x1_1x1 bias",
    "bf16 nhwc n1 g1 ic4 oc20 i3500 k9 s4 p20_33 bias",
    "f16 nchw n1 g1 ic3 oc96 i31x45 k3x3 s2x2 p1x1_1x1 op1x1 bias",
};

Options in_the_other_layout(int threads = 1) { return by_algorithm("layout_transpose", threads); }

TEST(LayoutTranspose, Agrees) { expect_agreement_on_all_isas(kProblems, in_the_other_layout()); }

// In parts, which take less workspace than x and y do.
void expect_parts(const std::string &line, const std::string &explained) {
    SCOPED_TRACE(line);
    const Problem problem = parse_problem(line);
    const Inputs inputs = draw(problem, 3);
    const Plan plan = plan_of(problem, inputs, in_the_other_layout());
    EXPECT_NE(plan.explain().find(explained), std::string::npos) << plan.explain();
    const std::int64_t elements = inputs.x.size() + Tensor(problem.dtype, plan.y_shape()).size();
    EXPECT_LT(plan.workspace_bytes(), static_cast<std::size_t>(elements) * sizeof(float));
}

TEST(LayoutTranspose, TransposesSomeGroupsAtATime) {
    expect_parts("f32 nchw n1 g72 ic72 oc72 i19x20 k3x3 s2x2 p1x1_1x1 bias", "groups at a time");
    expect_parts("f32 nhwc n1 g13 ic52 oc104 i30x29 k3x2 s2x1 p1x0_1x0 bias", "groups at a time");
}

// They end where phases do, whatever the number of threads.
TEST(LayoutTranspose, TransposesStrips) {
    for (const std::string &line : {kProblems[11], kProblems[14], kProblems[15], kProblems[19], kProblems[20]}) {
        expect_parts(line, " strips, x and y transposed");
    }
}

// Estimates decide, and differ by ISA.
TEST(LayoutTranspose, IsChosenForSmallPlanesAndForSmallGroups) {
    int chosen = 0;
    for (const char *const line :
         {"f32 nchw n1 g768 ic768 oc768 i7x6 k4x4 s2x2", "f32 nhwc n1 g512 ic512 oc1024 i9x14 k8x8 s4x4 p2x2_2x2"}) {
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 3);
        const Plan plan = plan_of(problem, inputs);
        chosen += plan.algorithm() == "layout_transpose";
        expect_agreement(problem, 3);
    }
    EXPECT_GT(chosen, 0);
}

TEST(LayoutTranspose, InfinitiesReachWhatTheyMust) {
    expect_infinities_reach_what_they_must(kProblems, in_the_other_layout());
}

TEST(LayoutTranspose, OtherSizesOfX) {
    const std::vector<std::string> small(kProblems.begin(), kProblems.begin() + 11);
    expect_agreement_when_reshaped(small, SpatialAxis::kLast, {1, 2, 9, 77}, in_the_other_layout(3));
    expect_agreement_when_reshaped(
        {"f16 nchw n2 g1 ic3 oc20 i50 k16 s8 p3_9 bias", "bf16 nhwc n1 g8 ic8 oc16 i5x9 k3x3 s2x2"}, SpatialAxis::kLast,
        {1, 9, 1700}, in_the_other_layout(3));
    // Into strips, and out of them.
    expect_agreement_when_reshaped({"f32 nchw n2 g1 ic3 oc20 i50 k16 s8 p3_9 op5 bias"}, SpatialAxis::kFirst, {1, 1700},
                                   in_the_other_layout(3));
    expect_agreement_when_reshaped({kProblems[14]}, SpatialAxis::kFirst, {1, 77}, in_the_other_layout(3));
}

TEST(LayoutTranspose, CropsPostOpsAndWorkspaces) { expect_agreement_of_crops(kProblems, in_the_other_layout()); }

TEST(LayoutTranspose, IsRefusedWhereNothingTransposes) {
    const auto refuses = [](const std::string &line, bool constant_weights) {
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 3);
        Plan plan;
        const Status status =
            Plan::create(problem, in_the_other_layout(), constant_weights ? inputs.w.data() : nullptr, nullptr, &plan);
        EXPECT_EQ(status.code(), CONVT_UNSUPPORTED);
        return status.message();
    };
    EXPECT_NE(refuses("f32 nchw n1 g1 ic2 oc2 i2x2x2x2 k2x2x2x2 s1x1x1x1", true).find("layout_transpose"),
              std::string::npos);
    EXPECT_NE(refuses("f32 nchw n1 g1 ic8 oc8 i5x5 k3x3 s2x2", false).find("constant weights"), std::string::npos);
}

} // namespace
} // namespace convtranspose::test
