// Sums in f16, which are for layers of f16 on CPUs that compute with it; elsewhere the wish changes nothing.
#include <string>

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

bool has_f16_arithmetic() {
    for (std::size_t i = 0; i < convt_isa_count(); i++) {
        if (std::string(convt_isa_name(i)) == "neon_fp16") return convt_isa_supported(i);
    }
    return false;
}

TEST(SumsInF16, AreUsedWhereAskedForAndOnlyThere) {
    const Problem problem = parse_problem("f16 nhwc n1 g1 ic16 oc64 i8x8 k4x4 s2x2 p1x1_1x1 bias");
    const Inputs inputs = draw(problem, 1);
    Options options{};
    for (const int asked : {0, 1}) {
        options.sums_in_f16 = asked;
        Plan plan;
        ASSERT_TRUE(Plan::create(problem, options, inputs.w.data(), inputs.b->data(), &plan));
        const bool half = plan.variant().find("_h16_") != std::string::npos;
        EXPECT_EQ(half, asked && has_f16_arithmetic()) << plan.variant();
        Tensor y(CONVT_F16, plan.y_shape());
        ASSERT_TRUE(plan.run(inputs.x.data(), y.data()));
        EXPECT_TRUE(agrees(y, reference(problem, inputs, half)));
    }
}

// Packed as f16, weights serve a plan of another size: by a variant that packs alike, or by the reference.
TEST(SumsInF16, AfterReshapeAndWithRunTimeWeights) {
    Options options{};
    options.sums_in_f16 = 1;
    for (const char *const line :
         {"f16 nhwc n1 g1 ic9 oc33 i8x8 k4x4 s2x2 p1x1_1x1 bias", "f16 nchw n2 g3 ic9 oc33 i8x40 k3x3 s2x2",
          "f16 nhwc n1 g40 ic40 oc40 i8x8 k4x4 s2x2 p1x1_1x1"}) {
        Problem problem = parse_problem(line);
        SCOPED_TRACE(line);
        Plan from, with_run;
        const Inputs inputs = draw(problem, 3);
        ASSERT_TRUE(Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &from));
        for (const std::int64_t extent : {1, 3, 19}) {
            const std::size_t axis = problem.layout == CONVT_CHANNELS_LAST ? 1 : 2;
            problem.x_shape[axis] = problem.x_shape[axis + 1] = extent;
            Inputs other = draw(problem, 5);
            other.w = inputs.w;
            other.b = inputs.b;
            Plan plan;
            Status status = from.reshape(problem.x_shape, &plan);
            ASSERT_TRUE(status) << status.message();
            Tensor y(CONVT_F16, plan.y_shape()), again(CONVT_F16, plan.y_shape());
            ASSERT_TRUE(plan.run(other.x.data(), y.data()));
            EXPECT_TRUE(agrees(y, reference(problem, other, true))) << plan.variant();

            ASSERT_TRUE(Plan::create(problem, options, nullptr, nullptr, &with_run));
            const ConstTensorView b = other.b ? other.b->view() : ConstTensorView();
            status = with_run.run(other.x.view(), other.w.view(), other.b ? &b : nullptr, again.view());
            ASSERT_TRUE(status) << status.message();
            EXPECT_TRUE(agrees(again, reference(problem, other, true))) << with_run.variant();
        }
    }
}

// Axes beyond three are summed in f32, and other types have no such sums.
TEST(SumsInF16, ElsewhereTheWishChangesNothing) {
    Options options{};
    options.sums_in_f16 = 1;
    for (const char *const line : {"f16 nchw n1 g1 ic3 oc2 i3x2x2x3 k2x2x2x2 s2x2x1x1",
                                   "f32 nchw n1 g1 ic3 oc5 i4x6 k3x3 s2x2", "bf16 nhwc n1 g1 ic3 oc5 i4x6 k3x3 s2x2"}) {
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 7);
        Tensor y, plain;
        ASSERT_TRUE(run(problem, inputs, options, &y));
        ASSERT_TRUE(run(problem, inputs, Options{}, &plain));
        EXPECT_TRUE(y == plain) << line;
    }
}

} // namespace
} // namespace convtranspose::test
