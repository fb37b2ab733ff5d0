// Batches whose images are computed side by side, as the positions of a row.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/other_layers.h"
#include "reference/descriptor.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

// Taps that leave images on all sides; one position; rows; a crop and output padding; dilation; groups; strips; other types.
const std::vector<std::string> kProblems = {
    "f32 nhwc n13 ic48 oc40 i4x4 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nhwc n9 ic24 oc70 i1x1 k4x4 s1x1",
    "f32 nhwc n8 ic40 oc33 i7 k6 s3 p2_1 bias",
    "f32 nhwc n16 ic32 oc36 i3x5 k3x5 s2x1 p4x1_0x2 op1x0 bias",
    "f32 nhwc n10 ic16 oc24 i4x3 k3x3 s3x2 p2x1_2x3 d2x2",
    "f32 nhwc n12 g2 ic64 oc48 i5x4 k3x3 s1x1 p1x1_1x1 bias",
    "f32 nhwc n40 ic128 oc32 i6x6 k3x3 s2x2 p1x1_1x1 bias",
    "f32 nhwc n1 ic48 oc40 i2 k31 s1 p8_7 bias", // a row of one
    "f64 nhwc n9 ic24 oc20 i4x4 k4x4 s2x2 p1x1_1x1 bias",
    "f16 nhwc n9 ic24 oc20 i4x4 k4x4 s2x2 p1x1_1x1 bias",
    "bf16 nhwc n9 ic24 oc20 i4x4 k4x4 s2x2 p1x1_1x1 bias",
};

Options as_row(int threads = 1) { return by_algorithm("batch_as_width", threads); }

TEST(BatchAsWidth, Agrees) { expect_agreement_on_all_isas(kProblems, as_row()); }

// Estimates decide, and differ by ISA. Channels first within the other layout.
TEST(BatchAsWidth, IsChosenForBatchesOfSmallImages) {
    int chosen = 0;
    for (const char *const line :
         {"f32 nhwc n16 ic64 oc64 i4x4 k4x4 s2x2 p1x1_1x1", "f32 nhwc n32 ic50 oc128 i1x1 k4x4 s1x1",
          "f64 nhwc n16 ic64 oc64 i4x4 k4x4 s2x2 p1x1_1x1"}) {
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 4);
        const Plan plan = plan_of(problem, inputs);
        chosen += plan.algorithm() == "batch_as_width";
        expect_agreement(problem, 4);
    }
    EXPECT_GT(chosen, 0);
}

TEST(BatchAsWidth, InfinitiesReachWhatTheyMust) { expect_infinities_reach_what_they_must(kProblems, as_row()); }

TEST(BatchAsWidth, OtherSizesOfX) {
    expect_agreement_when_reshaped(kProblems, SpatialAxis::kLast, {1, 2, 9}, as_row(3));
    expect_agreement_when_reshaped(kProblems, SpatialAxis::kFirst, {1, 6}, as_row());
}

// One image, which is a row no longer where the kernel has less to do so; more than were planned for.
TEST(BatchAsWidth, OtherNumbersOfImages) {
    int rows = 0, images_alone = 0;
    for (const std::string &line : kProblems) {
        const Problem problem = parse_problem(line);
        Plan plan = plan_of(problem, draw(problem, 4), as_row());
        for (const std::int64_t images : {1, 21, 2, 3}) {
            SCOPED_TRACE(line + ", images: " + std::to_string(images));
            Problem other = problem;
            other.x_shape[0] = images;
            Inputs inputs = draw(other, 4);
            const Inputs first = draw(problem, 4); // the weights that were packed
            inputs.w = first.w;
            inputs.b = first.b;
            Plan reshaped;
            const Status status = plan.reshape(other.x_shape, &reshaped);
            ASSERT_TRUE(status) << status.message();
            if (reshaped.explain().find("images side by side") != std::string::npos) {
                rows++;
            } else {
                EXPECT_NE(reshaped.explain().find("too few images for a row"), std::string::npos) << reshaped.explain();
                images_alone++;
            }
            Tensor y(problem.dtype, reshaped.y_shape());
            ASSERT_TRUE(reshaped.run(inputs.x.data(), y.data()));
            EXPECT_TRUE(agrees(y, reference(other, inputs)));
            plan = std::move(reshaped);
        }
    }
    EXPECT_GT(rows, 0);
    EXPECT_GT(images_alone, 0);
}

TEST(BatchAsWidth, CropsPostOpsAndWorkspaces) { expect_agreement_of_crops(kProblems, as_row()); }

TEST(BatchAsWidth, IsRefusedWhereThereIsNoRow) {
    for (const char *const line : {"f32 nhwc n1 ic8 oc8 i5x5 k3x3 s2x2", "f32 nchw n4 ic8 oc8 i5x5 k3x3 s2x2",
                                   "f32 nhwc n4 ic8 oc8 i2x2x2 k2x2x2 s1x1x1"}) {
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 4);
        Plan plan;
        const Status status = Plan::create(problem, as_row(), inputs.w.data(), nullptr, &plan);
        EXPECT_EQ(status.code(), CONVT_UNSUPPORTED);
        EXPECT_NE(status.message().find("batch_as_width"), std::string::npos) << status.message();
    }
}

} // namespace
} // namespace convtranspose::test
