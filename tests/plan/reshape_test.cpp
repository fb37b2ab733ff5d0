// A plan for another input size: as good as a fresh one, with the weights of the first.
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/counting_allocator.h"
#include "plan/other_layers.h"
#include "reference/descriptor.h"
#include "reference/layer.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

struct Case {
    const char *name;
    const char *from, *to; // differ in batch and input extents alone
};

void PrintTo(const Case &c, std::ostream *stream) { *stream << c.from << "  ->  " << c.to; }

const std::vector<Case> kCases = {
    {"Bigger", "f32 nchw n1 ic16 oc24 i4x4 k4x4 s2x2 p1x1_1x1 bias",
     "f32 nchw n1 ic16 oc24 i17x33 k4x4 s2x2 p1x1_1x1 bias"},
    {"Smaller", "f32 nchw n1 ic16 oc24 i17x33 k4x4 s2x2 p1x1_1x1", "f32 nchw n1 ic16 oc24 i2x1 k4x4 s2x2 p1x1_1x1"},
    {"OtherBatch", "f32 nhwc n1 ic7 oc9 i5x5 k3x3 s2x2 bias", "f32 nhwc n4 ic7 oc9 i5x5 k3x3 s2x2 bias"},
    {"ToEmptyBatch", "f32 nchw n2 ic7 oc9 i5x5 k3x3 s2x2", "f32 nchw n0 ic7 oc9 i5x5 k3x3 s2x2"},
    {"FromEmptyBatch", "f32 nchw n0 ic7 oc9 i5x5 k3x3 s2x2", "f32 nchw n2 ic7 oc9 i5x5 k3x3 s2x2"},
    {"FromEmptyInput", "f32 nchw n1 ic7 oc9 i0x5 k3x3 s2x2", "f32 nchw n1 ic7 oc9 i6x5 k3x3 s2x2"},
    {"ToEmptyInput", "f32 nhwc n1 ic7 oc9 i6x5 k3x3 s2x2 bias", "f32 nhwc n1 ic7 oc9 i6x0 k3x3 s2x2 bias"},
    // Transposed in strips of rows.
    {"StripsToNoColumns", "f32 nchw n1 ic16 oc128 i64x8 k3x3 s2x2", "f32 nchw n1 ic16 oc128 i1100x0 k3x3 s2x2"},
    {"StripsToNoRows", "f32 nchw n1 ic16 oc128 i64x8 k3x3 s2x2 os1000x15 bias",
     "f32 nchw n1 ic16 oc128 i0x8 k3x3 s2x2 os1000x15 bias"},
    {"NarrowToWide", "f32 nchw n1 ic8 oc8 i3x3 k3x3 s1x1 p1x1_1x1", "f32 nchw n1 ic8 oc8 i3x200 k3x3 s1x1 p1x1_1x1"},
    {"WideToNarrow", "f32 nchw n1 ic8 oc8 i3x200 k3x3 s2x2 p1x1_1x1", "f32 nchw n1 ic8 oc8 i3x1 k3x3 s2x2 p1x1_1x1"},
    {"Depthwise", "f32 nchw n1 g17 ic17 oc17 i5x5 k4x4 s2x2 p1x1_1x1",
     "f32 nchw n2 g17 ic17 oc17 i9x40 k4x4 s2x2 p1x1_1x1"},
    {"FewOutputs", "f32 nchw n1 ic12 oc1 i5x5 k9x9 s4x4 p4x4_4x4 op3x3",
     "f32 nchw n1 ic12 oc1 i9x40 k9x9 s4x4 p4x4_4x4 op3x3"},
    {"OneAxis", "f32 nchw n1 ic8 oc16 i10 k16 s8 p4_4", "f32 nchw n1 ic8 oc16 i211 k16 s8 p4_4"},
    {"ThreeAxes", "f64 nhwc n1 ic3 oc5 i3x3x3 k3x3x3 s2x2x2", "f64 nhwc n1 ic3 oc5 i1x4x7 k3x3x3 s2x2x2"},
    {"FourAxes", "f32 nchw n1 ic3 oc5 i2x2x2x2 k2x2x2x2 s2x2x2x2", "f32 nchw n1 ic3 oc5 i3x1x4x7 k2x2x2x2 s2x2x2x2"},
    // Here the pads, and with them the taps of a phase, depend on the input size.
    {"OutputShape", "f32 nchw n1 ic8 oc16 i6x6 k5x5 s3x3 os18x18", "f32 nchw n1 ic8 oc16 i7x6 k5x5 s3x3 os18x18"},
    {"OutputShapeBelowNatural", "f32 nhwc n1 ic8 oc16 i6x6 k5x5 s3x3 os11x12",
     "f32 nhwc n1 ic8 oc16 i5x8 k5x5 s3x3 os11x12"},
    {"OutputShapeAboveNatural", "f32 nchw n1 ic8 oc16 i6x6 k5x5 s3x3 os18x18",
     "f32 nchw n1 ic8 oc16 i2x2 k5x5 s3x3 os18x18"},
    // Packed for matrix instructions, where there are such, and then not, or for others.
    {"Bf16ToEmpty", "bf16 nhwc n1 ic64 oc48 i16x16 k4x4 s2x2 bias", "bf16 nhwc n1 ic64 oc48 i0x16 k4x4 s2x2 bias"},
    {"Bf16ToOnePosition", "bf16 nhwc n1 ic72 oc48 i16x16 k4x4 s2x2 p1x1_1x1 bias",
     "bf16 nhwc n2 ic72 oc48 i1x1 k4x4 s2x2 p1x1_1x1 bias"},
    {"Bf16FromOnePosition", "bf16 nchw n1 g2 ic64 oc96 i1x1 k4x4 s2x2 p1x1_1x1 bias",
     "bf16 nchw n1 g2 ic64 oc96 i9x33 k4x4 s2x2 p1x1_1x1 bias"},
    {"SameUpper", "f16 nchw n1 ic8 oc16 i6x6 k5x5 s2x2 auto_SAME_UPPER",
     "f16 nchw n1 ic8 oc16 i9x5 k5x5 s2x2 auto_SAME_UPPER"},
};

class Reshape : public testing::TestWithParam<Case> {};

TEST_P(Reshape, EqualsAFreshPlan) {
    const Problem from = parse_problem(GetParam().from), to = parse_problem(GetParam().to);
    const Inputs inputs = draw(to, 7); // w and b have the same shapes in both
    CountingAllocator allocator;
    {
        Plan plan, reshaped;
        Status status =
            Plan::create(from, allocator.options(), inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
        ASSERT_TRUE(status) << status.message();
        status = plan.reshape(to.x_shape, &reshaped);
        ASSERT_TRUE(status) << status.message();
        EXPECT_EQ(reshaped.x_shape(), to.x_shape);
        EXPECT_EQ(reshaped.y_shape(), layer_of(to).y_shape);
        EXPECT_EQ(reshaped.macs(), count_macs(geometry_of(to)));

        Inputs first = draw(from, 8);
        first.w = inputs.w, first.b = inputs.b;
        Tensor y(from.dtype, plan.y_shape());
        status = plan.run(first.x.data(), y.data());
        ASSERT_TRUE(status) << status.message();
        EXPECT_TRUE(agrees(y, reference(from, first))) << "the plan that was reshaped must stay as it was";

        plan = Plan(); // what is shared lives on
        y = Tensor(to.dtype, reshaped.y_shape());
        status = reshaped.run(inputs.x.data(), y.data());
        ASSERT_TRUE(status) << status.message();
        EXPECT_TRUE(agrees(y, reference(to, inputs)));
    }
    EXPECT_EQ(allocator.live_blocks(), 0u);
}

TEST_P(Reshape, OfAPlanThatGetsItsWeightsWithTheRun) {
    const Problem from = parse_problem(GetParam().from), to = parse_problem(GetParam().to);
    const Inputs inputs = draw(to, 9);
    Plan plan, reshaped;
    Status status = Plan::create(from, Options{}, nullptr, nullptr, &plan);
    ASSERT_TRUE(status) << status.message();
    status = plan.reshape(to.x_shape, &reshaped);
    ASSERT_TRUE(status) << status.message();
    Tensor y(to.dtype, reshaped.y_shape());
    const ConstTensorView b = inputs.b ? inputs.b->view() : ConstTensorView();
    status = reshaped.run(inputs.x.view(), inputs.w.view(), inputs.b ? &b : nullptr, y.view());
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(agrees(y, reference(to, inputs)));
}

INSTANTIATE_TEST_SUITE_P(Plan, Reshape, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case> &c) { return std::string(c.param.name); });

TEST(ReshapeSharing, PacksNoWeightsAgain) {
    const Problem problem = parse_problem("f32 nchw n1 ic128 oc128 i8x8 k4x4 s2x2 p1x1_1x1 bias");
    const Inputs inputs = draw(problem, 10);
    CountingAllocator allocator;
    Plan plan, reshaped;
    Status status = Plan::create(problem, allocator.options(), inputs.w.data(), inputs.b->data(), &plan);
    ASSERT_TRUE(status) << status.message();
    const std::size_t weight_bytes = static_cast<std::size_t>(inputs.w.size()) * 4;
    EXPECT_GE(plan.packed_bytes(), weight_bytes);
    const std::size_t before = allocator.live_bytes();
    EXPECT_GE(before, weight_bytes);
    status = plan.reshape({2, 128, 9, 10}, &reshaped);
    ASSERT_TRUE(status) << status.message();
    EXPECT_EQ(reshaped.packed_bytes(), plan.packed_bytes());
    EXPECT_LT(allocator.live_bytes() - before, weight_bytes / 4);
}

// Kernels of several columns at a time do not fit one: where no other reads weights that are packed for them, they are packed
// again, rather than left to the reference kernel.
TEST(ReshapeSharing, IsLeftToTheReferenceByNoWidth) {
    const std::vector<std::int64_t> widths = {1, 2, 3, 5};
    std::vector<std::string> problems;
    for (const char *const type :
         {"f32 nhwc", "f32 nchw", "f64 nhwc", "f16 nhwc", "f16 nchw", "bf16 nchw", "bf16 nhwc"}) {
        for (const int oc : {32, 48, 64, 96}) {
            std::ostringstream line;
            line << type << " n1 ic40 oc" << oc << " i13x16 k4x4 s2x2 p1x1_1x1 bias";
            problems.push_back(line.str());
        }
    }
    expect_agreement_when_reshaped(problems, SpatialAxis::kLast, widths);
    for (const std::string &line : problems) {
        Problem problem = parse_problem(line);
        const Plan plan = plan_of(problem, draw(problem, 12));
        for (const std::int64_t width : widths) {
            problem.x_shape[problem.layout == CONVT_CHANNELS_LAST ? 2 : 3] = width;
            SCOPED_TRACE(describe(problem) + " from " + plan.variant());
            Plan reshaped;
            const Status status = plan.reshape(problem.x_shape, &reshaped);
            ASSERT_TRUE(status) << status.message();
            EXPECT_EQ(reshaped.variant().find("reference"), std::string::npos) << reshaped.variant();
        }
    }
}

TEST(ReshapeSharing, AReshapedPlanMayBeReshaped) {
    const Problem problem = parse_problem("f32 nchw n1 ic4 oc6 i5x5 k3x3 s2x2");
    const Inputs inputs = draw(problem, 11);
    Plan plan;
    Status status = Plan::create(problem, Options{}, inputs.w.data(), nullptr, &plan);
    ASSERT_TRUE(status) << status.message();
    for (const Shape &x_shape : {Shape{1, 4, 9, 2}, Shape{3, 4, 1, 1}, problem.x_shape}) {
        Plan next;
        status = plan.reshape(x_shape, &next);
        ASSERT_TRUE(status) << status.message();
        plan = std::move(next);
    }
    Tensor y(problem.dtype, plan.y_shape());
    status = plan.run(inputs.x.data(), y.data());
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(agrees(y, reference(problem, inputs)));
}

TEST(ReshapeErrors, NameTheRule) {
    const Problem problem = parse_problem("f32 nchw n1 ic4 oc6 i5x5 k3x3 s2x2 p2x2_2x2");
    const Inputs inputs = draw(problem, 12);
    Plan plan;
    ASSERT_TRUE(Plan::create(problem, Options{}, inputs.w.data(), nullptr, &plan));
    const auto message = [&plan](const Shape &x_shape) {
        Plan reshaped;
        const Status status = plan.reshape(x_shape, &reshaped);
        EXPECT_EQ(status.code(), CONVT_INVALID_ARGUMENT);
        EXPECT_FALSE(reshaped);
        return status.message();
    };
    EXPECT_NE(message({1, 4, 5}).find("3 elements"), std::string::npos) << message({1, 4, 5});
    EXPECT_NE(message({1, 4, 5, 5, 5}).find("5 elements"), std::string::npos) << message({1, 4, 5, 5, 5});
    EXPECT_NE(message({1, 5, 5, 5}).find("x_shape[1] = 5"), std::string::npos) << message({1, 5, 5, 5});
    EXPECT_EQ(message({1, 4, -5, 5}), "x_shape[2] = -5 must not be negative");
    EXPECT_EQ(message({1, 4, 1, 5}),
              "the output size of spatial axis 0 is -1 = 3 - 2 - 2 (natural size less pads), must be positive");

    convt_plan *reshaped = nullptr;
    EXPECT_EQ(convt_plan_reshape(plan.get(), {nullptr, 4}, &reshaped), CONVT_INVALID_ARGUMENT);
    EXPECT_STRNE(convt_last_error(), "");
    EXPECT_EQ(convt_plan_reshape(nullptr, detail::view(problem.x_shape), &reshaped), CONVT_INVALID_ARGUMENT);
    EXPECT_EQ(convt_plan_reshape(plan.get(), detail::view(problem.x_shape), nullptr), CONVT_INVALID_ARGUMENT);
    EXPECT_EQ(reshaped, nullptr);
}

// The intermediate results of an algorithm, which the problem has no tensor of, are counted as well.
TEST(ReshapeErrors, AlgorithmsMayHaveNoRoomForTheirOwnTensors) {
    struct TooLarge {
        const char *algorithm, *line;
        std::vector<std::int64_t> fits, is_too_large;
    };
    const TooLarge cases[] = {
        {"col2im", "f32 nchw n1 ic8 oc3 i4x8 k9x9 s2x2", {1, 8, 4, 800}, {1, 8, 4, 9000000}},
        {"depth_to_space",
         "f32 nchw n1 ic1 oc1 i2x8 k1048576x1 s1048576x1 p1048575x0_1048575x0",
         {1, 1, 2, 9},
         {1, 1, 2, 1025}},
        {"winograd", "f32 nhwc n1 ic16 oc16 i1x64 k3x3 s1x1 p1x1_1x1", {1, 1, 65, 16}, {1, 1, 1 << 24, 16}},
    };
    for (const TooLarge &c : cases) {
        SCOPED_TRACE(c.line);
        const Problem problem = parse_problem(c.line);
        const Inputs inputs = draw(problem, 13);
        Options options;
        options.variant = c.algorithm;
        options.winograd = 1;
        Plan plan, reshaped;
        ASSERT_TRUE(Plan::create(problem, options, inputs.w.data(), nullptr, &plan));
        ASSERT_TRUE(plan.reshape(c.fits, &reshaped));
        const Status status = plan.reshape(c.is_too_large, &reshaped);
        EXPECT_EQ(status.code(), CONVT_OVERFLOW);
        EXPECT_NE(status.message().find("cannot be reshaped to x_shape (1, "), std::string::npos) << status.message();
        EXPECT_EQ(status.message().find(std::string("a plan by ") + c.algorithm), 0U) << status.message();
    }
}

} // namespace
} // namespace convtranspose::test
