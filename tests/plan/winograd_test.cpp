// Winograd's algorithm, for layers that may be computed so.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/other_layers.h"
#include "reference/descriptor.h"
#include "reference/effort.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

// Phases of two taps, of three, of one and two, of two and three, of other numbers along the other axis; of a single axis; odd
// numbers of positions, and phases of different ones; crops and output padding; strips and a shorter last one; batches, some
// images at a time; channels that fill no vectors, that collide in the cache, that are many.
const std::vector<std::string> kProblems = {
    "f32 nhwc n1 ic32 oc48 i8x8 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nhwc n1 ic20 oc17 i7x5 k3x3 s1x1 p1x1_1x1 bias",
    "f32 nhwc n2 ic16 oc33 i5x9 k3x3 s2x2 p1x1_1x1 op1x1 bias",
    "f32 nhwc n1 ic40 oc16 i6x7 k5x5 s2x2 p2x2_2x2 op1x0",
    "f32 nhwc n1 ic24 oc24 i9x4 k3x4 s1x2 p0x1_2x0 bias",
    "f32 nhwc n1 ic17 oc31 i5x6 k6x2 s2x2 bias",
    "f32 nhwc n1 ic16 oc16 i3x70 k2x6 s1x2 p1x2_0x3 bias",
    "f32 nhwc n1 ic48 oc40 i101 k16 s8 p4_4 bias",
    "f32 nhwc n1 ic24 oc17 i50 k16 s8 bias",
    "f32 nhwc n2 ic20 oc16 i41 k3 s2 p1_1 op1 bias",
    "f32 nhwc n3 ic16 oc20 i7 k5 s3 p3_1 op2 bias",
    "f32 nhwc n1 ic24 oc16 i37x35 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nhwc n12 ic16 oc24 i4x4 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nhwc n7 ic512 oc16 i6x6 k4x4 s2x2 p1x1_1x1",
    "f32 nhwc n1 ic16 oc16 i1x1 k2x3 s1x1",
    "f32 nhwc n1 ic16 oc32 i6x6 k4x4 s2x2 p3x0_2x4 bias",
    "f64 nhwc n2 ic24 oc20 i7x9 k4x4 s2x2 p1x1_1x1 bias",
    "f64 nhwc n1 ic16 oc16 i40 k5 s2 p2_2 bias",
};

Options by_winograd(int threads = 1) {
    Options options = by_algorithm("winograd", threads);
    options.winograd = 1;
    return options;
}

double largest(const Tensor &tensor) {
    double most = 0;
    for (std::int64_t i = 0; i < tensor.size(); i++) {
        if (std::isfinite(tensor.get(i))) most = std::fmax(most, std::fabs(tensor.get(i)));
    }
    return most;
}

// X is the largest |x|, and S the sum of |w| of an output. Along one axis, the terms of a y of two taps are at most
// 2 X |w0| + X (|w0| + |w1|) <= 3 X S, those of three taps 2 X |w0| + X S + X S <= 4 X S; with two axes they are 16 X S. A sum of
// that size is rounded once for each input channel, and for each axis once in the transformed x, once in w, and twice in y; the
// bias adds one rounding.
Expected within_bounds_of_winograd(const Problem &problem, const Inputs &inputs) {
    Expected expected = reference(problem, inputs);
    const std::int64_t channels = problem.w_shape[0], outputs = problem.w_shape[1];
    const std::int64_t kernel = inputs.w.size() / (channels * outputs);
    std::vector<double> sums(static_cast<std::size_t>(outputs), 0);
    for (std::int64_t i = 0; i < inputs.w.size(); i++) {
        sums[static_cast<std::size_t>(i / kernel % outputs)] += std::fabs(inputs.w.get(i));
    }
    const double x = largest(inputs.x), u = problem.dtype == CONVT_F64 ? std::ldexp(1.0, -53) : std::ldexp(1.0, -24);
    const bool last = problem.layout == CONVT_CHANNELS_LAST;
    const std::int64_t positions = static_cast<std::int64_t>(expected.value.size()) / (outputs * expected.shape[0]);
    for (std::size_t i = 0; i < expected.value.size(); i++) {
        const auto at = static_cast<std::int64_t>(i);
        const auto oc = static_cast<std::size_t>((last ? at : at / positions) % outputs);
        const double bias = inputs.b ? std::fabs(inputs.b->get(static_cast<std::int64_t>(oc))) : 0;
        const double bound = static_cast<double>(channels + 9) * u * (16 * x * sums[oc] + bias);
        expected.tolerance[i] = std::max(expected.tolerance[i], bound);
    }
    return expected;
}

TEST(Winograd, IsExactWhereSumsAre) {
    for (const std::string &line : kProblems) {
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 3, Values::integers);
        const Expected expected = reference(problem, inputs);
        EXPECT_EQ(*std::max_element(expected.tolerance.begin(), expected.tolerance.end()), 0);
        for (std::size_t isa = 0; isa < convt_isa_count(); isa++) {
            if (!convt_isa_supported(isa)) continue;
            for (const int threads : {1, 2, 3}) {
                Options options = by_winograd(threads);
                options.isa = convt_isa_name(isa);
                SCOPED_TRACE(describe(problem, 3, options));
                const Plan plan = plan_of(problem, inputs, options);
                EXPECT_EQ(plan.algorithm(), "winograd") << plan.explain();
                Tensor y(problem.dtype, plan.y_shape());
                ASSERT_TRUE(plan.run(inputs.x.data(), y.data()));
                EXPECT_TRUE(agrees(y, expected));
            }
        }
    }
}

TEST(Winograd, StaysWithinItsBound) {
    for (const std::string &line : kProblems) {
        const Problem problem = parse_problem(line);
        SCOPED_TRACE(describe(problem, 5, by_winograd()));
        const Inputs inputs = draw(problem, 5);
        Tensor y, again;
        ASSERT_TRUE(run(problem, inputs, by_winograd(), &y));
        EXPECT_TRUE(agrees(y, within_bounds_of_winograd(problem, inputs)));
        ASSERT_TRUE(run(problem, inputs, by_winograd(3), &again));
        EXPECT_TRUE(y == again);
    }
}

TEST(Winograd, IsForThoseWhoAsk) {
    const Problem problem = parse_problem("f32 nhwc n1 ic64 oc64 i40x40 k3x3 s1x1 p1x1_1x1 bias");
    const Inputs inputs = draw(problem, 1);
    Options options{};
    EXPECT_NE(plan_of(problem, inputs).algorithm(), "winograd");
    options.variant = "winograd";
    Plan plan;
    const Status status = Plan::create(problem, options, inputs.w.data(), inputs.b->data(), &plan);
    EXPECT_EQ(status.code(), CONVT_UNSUPPORTED);
    EXPECT_NE(status.message().find("only where the option winograd is set"), std::string::npos) << status.message();
    options.winograd = 1;
    options.variant = nullptr;
    const Plan asked = plan_of(problem, inputs, options);
    EXPECT_EQ(asked.algorithm(), "winograd") << asked.explain();
    Tensor y(CONVT_F32, asked.y_shape());
    ASSERT_TRUE(asked.run(inputs.x.data(), y.data()));
    EXPECT_TRUE(agrees(y, within_bounds_of_winograd(problem, inputs)));
}

// Other types, groups, three axes, kernels shorter than the stride, more than three taps, few channels, weights that arrive later.
TEST(Winograd, ElsewhereTheWishChangesNothing) {
    Options options{};
    options.winograd = 1;
    for (const char *const line :
         {"f16 nhwc n1 ic32 oc32 i8x8 k4x4 s2x2 p1x1_1x1", "bf16 nhwc n1 ic32 oc32 i8x8 k4x4 s2x2 p1x1_1x1",
          "f32 nhwc n1 g2 ic64 oc64 i8x8 k4x4 s2x2 p1x1_1x1", "f32 nhwc n1 ic16 oc16 i4x4x4 k4x4x4 s2x2x2",
          "f32 nhwc n1 ic32 oc32 i8x8 k4x1 s2x2", "f32 nhwc n1 ic32 oc32 i8x8 k4x4 s1x1",
          "f32 nhwc n1 ic8 oc32 i8x8 k4x4 s2x2", "f32 nhwc n1 ic32 oc8 i8x8 k4x4 s2x2",
          "f32 nhwc n1 ic32 oc32 i8x8 k2x2 s2x2", "f32 nhwc n1 ic32 oc32 i8x8 k3x3 s1x1 d2x2"}) {
        SCOPED_TRACE(line);
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 7);
        Tensor y, plain;
        ASSERT_TRUE(run(problem, inputs, options, &y));
        ASSERT_TRUE(run(problem, inputs, Options{}, &plain));
        EXPECT_TRUE(y == plain);
        Plan plan;
        const void *const b = inputs.b ? inputs.b->data() : nullptr;
        EXPECT_EQ(Plan::create(problem, by_winograd(), inputs.w.data(), b, &plan).code(), CONVT_UNSUPPORTED);
    }
    const Problem problem = parse_problem(kProblems.front());
    Plan plan;
    EXPECT_EQ(Plan::create(problem, by_winograd(), nullptr, nullptr, &plan).code(), CONVT_UNSUPPORTED);
}

TEST(Winograd, OtherSizesOfX) {
    for (const std::string &line : kProblems) {
        Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 7, Values::integers);
        const Plan from = plan_of(problem, inputs, by_winograd(2));
        int turn = static_cast<int>(&line - kProblems.data()); // of its sizes, where not all are tried
        for (const std::int64_t extent : {0, 1, 2, 5, 40}) {
            for (std::size_t axis = 0; axis < problem.x_shape.size() - 1; axis++) {
                if (turn++ % kOneIn != 0) continue;
                Problem other = problem;
                other.x_shape[axis] = extent;
                SCOPED_TRACE(describe(other));
                Plan plan;
                const Status status = from.reshape(other.x_shape, &plan);
                if (status.code() == CONVT_INVALID_ARGUMENT) continue; // cropped to nothing
                ASSERT_TRUE(status) << status.message();
                Inputs own = draw(other, 9, Values::integers);
                own.w = inputs.w;
                own.b = inputs.b;
                Tensor y(problem.dtype, plan.y_shape());
                ASSERT_TRUE(plan.run(own.x.data(), y.data()));
                EXPECT_TRUE(agrees(y, reference(other, own)));
            }
        }
    }
}

// Channels first, within the other layout.
TEST(Winograd, ServesTheOtherLayout) {
    const Problem problem = parse_problem("f32 nchw n1 ic128 oc96 i40x44 k4x4 s2x2 p1x1_1x1 bias");
    const Inputs inputs = draw(problem, 2);
    Options options{};
    options.winograd = 1;
    options.variant = "layout_transpose";
    const Plan plan = plan_of(problem, inputs, options);
    Tensor y(CONVT_F32, plan.y_shape()), plain;
    ASSERT_TRUE(plan.run(inputs.x.data(), y.data()));
    EXPECT_TRUE(agrees(y, within_bounds_of_winograd(problem, inputs)));
    options.winograd = 0;
    ASSERT_TRUE(run(problem, inputs, options, &plain));
    EXPECT_FALSE(y == plain); // by other sums
}

TEST(Winograd, WeightsThatAreNotFiniteAreNotTransformed) {
    Problem problem = parse_problem(kProblems.front());
    Inputs inputs = draw(problem, 4);
    for (const double value :
         {static_cast<double>(INFINITY), static_cast<double>(NAN), 3e38}) { // of which a sum is not
        for (std::int64_t i = 0; i < 16; i++) inputs.w.set(80 + i, value);
        Plan plan;
        EXPECT_EQ(Plan::create(problem, by_winograd(), inputs.w.data(), inputs.b->data(), &plan).code(),
                  CONVT_UNSUPPORTED);
        Options options{};
        options.winograd = 1;
        Tensor y;
        ASSERT_TRUE(run(problem, inputs, options, &y));
        if (std::isfinite(value)) continue; // sums overflow
        EXPECT_TRUE(agrees(y, reference(problem, inputs)));
    }
}

// Outputs that an infinity within x reaches by the definition are not finite; all others are as they would be.
TEST(Winograd, InfinitiesReachWhatTheyMust) {
    for (const char *const line :
         {"f32 nhwc n1 ic16 oc16 i20x20 k4x4 s2x2 p1x1_1x1", "f32 nhwc n1 ic16 oc16 i20x20 k3x3 s1x1"}) {
        const Problem problem = parse_problem(line);
        for (const std::int64_t position : {10 * 20 + 9, 9 * 20 + 10}) {
            SCOPED_TRACE(describe(problem, 6, by_winograd()));
            Inputs inputs = draw(problem, 6);
            inputs.x.set(position * 16 + 3, static_cast<double>(INFINITY));
            Tensor y;
            ASSERT_TRUE(run(problem, inputs, by_winograd(), &y));
            Expected expected = within_bounds_of_winograd(problem, inputs);
            for (std::size_t i = 0; i < expected.value.size(); i++) {
                const auto at = static_cast<std::int64_t>(i);
                if (std::isfinite(expected.value[i])) continue;
                EXPECT_FALSE(std::isfinite(y.get(at))) << i;
                expected.value[i] = y.get(at);
            }
            EXPECT_TRUE(agrees(y, expected));
        }
    }
}

TEST(Winograd, CropsAndPostOps) {
    expect_agreement_of_crops(kProblems, by_winograd(), CropOrder::kSame, Values::integers);
}

} // namespace
} // namespace convtranspose::test
