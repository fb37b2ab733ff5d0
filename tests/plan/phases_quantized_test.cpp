// Quantized layers whose phases are computed as output channels: they are exact, as all quantized layers are.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/other_layers.h"
#include "reference/descriptor.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

const std::vector<std::string> kProblems = {
    "u8 nchw n1 g1 ic40 oc1 i50 k64 s16 p24_24 zx128",
    "u8 nchw n2 g1 ic40 oc1 i50 k70 s16 p13_29 op9 bias zx3 zw5 zy9",
    "s8 nhwc n2 g1 ic40 oc2 i50 k70 s16 p7_5 bias wu8 ys8 zx-3 zw100 zy-4 pc",
    "u8 nchw n1 g2 ic80 oc4 i30 k40 s16 p7_5 bias zx128 pc",
    "u8 nhwc n1 g1 ic40 oc3 i20 k33 s8 bias zx128 pc yf32",
    "u8 nchw n1 g1 ic64 oc1 i7x30 k10x18 s5x8 p3x5_1x2 bias zx7 zw2 relu",
    "s8 nchw n2 g1 ic96 oc3 i7x5 k8x8 s4x4 p2x2_2x2 bias zx5 zy3 pc",
    "u8 nhwc n1 g4 ic128 oc8 i5x6 k8x8 s8x8 bias zx128 zw3 pc",
    "u8 nchw n1 g1 ic96 oc2 i4x5x4 k4x4x4 s2x2x2 p1x1x1_1x1x1 zx128 yf32",
    "s8 nhwc n2 g1 ic20 oc2 i9x7 k7x8 s3x4 d2x3 p3x5_4x2 bias pc",          // dilated
    "u8 nchw n2 g1 ic6 oc21 i3x5 k6x22 s3x10 p2x7_1x5 op0x3 bias zx128 pc", // many channels and a long stride
    "s8 nchw n1 g20 ic20 oc40 i9 k18 s9 p4_5 bias zx5 zw3 zy9",
};

constexpr const char *kNames[] = {"phases_as_channels", "depth_to_space"};

Status plan_by(const char *algorithm, const char *isa, int threads, const Problem &problem, const Inputs &inputs,
               Plan *plan) {
    Options options{};
    options.variant = algorithm;
    options.isa = isa;
    options.threads = threads;
    return Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, plan);
}

// Calls f(problem, inputs, plan) for each problem, by each of the two algorithms that can. At least one can.
template<typename F>
void for_each_plan(const char *isa, int threads, const F &f) {
    for (const std::string &line : kProblems) {
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 3);
        int able = 0;
        for (const char *const name : kNames) {
            SCOPED_TRACE(line + " by " + name + " on " + (isa ? isa : "the best") + ", threads " +
                         std::to_string(threads));
            Plan plan;
            const Status status = plan_by(name, isa, threads, problem, inputs, &plan);
            if (status.code() == CONVT_UNSUPPORTED) continue;
            ASSERT_TRUE(status) << status.message();
            EXPECT_EQ(plan.algorithm(), name);
            f(problem, inputs, plan);
            able++;
        }
        EXPECT_GT(able, 0) << line;
    }
}

TEST(PhasesQuantized, AreExactOnAllIsas) {
    for (std::size_t isa = 0; isa < convt_isa_count(); isa++) {
        if (!convt_isa_supported(isa)) continue;
        for (const int threads : {1, 3}) {
            for_each_plan(convt_isa_name(isa), threads, [](const Problem &problem, const Inputs &inputs, Plan &plan) {
                Tensor y(*problem.y_dtype, plan.y_shape());
                ASSERT_TRUE(plan.run(inputs.x.data(), y.data()));
                EXPECT_TRUE(agrees(y, reference(problem, inputs)));
            });
        }
    }
}

// Scales and zero points that come with a run are those of the layer's channels too.
TEST(PhasesQuantized, TakeTheQuantizationOfARun) {
    for_each_plan(nullptr, 1, [](const Problem &problem, const Inputs &inputs, Plan &plan) {
        Problem as_run = problem;
        as_run.quantization->x_scale *= 1.5f;
        as_run.quantization->x_zero_point += 1;
        for (float &scale : as_run.quantization->w_scale) scale *= 0.75f;
        Tensor y(*problem.y_dtype, plan.y_shape());
        ASSERT_TRUE(plan.run(inputs.x.view(), nullptr, nullptr, y.view(), *as_run.quantization));
        EXPECT_TRUE(agrees(y, reference(as_run, inputs)));
    });
}

// Weights that do not fit in 8 bits less their zero points, and sums that do not fit in 32.
TEST(PhasesQuantized, WideWeightsAndSums) {
    Problem problem = parse_problem("u8 nchw n1 g1 ic40 oc1 i50 k64 s16 bias wu8 zx128");
    Inputs inputs = draw(problem, 3);
    for (const bool wide_sums : {false, true}) {
        if (wide_sums) {
            for (std::int64_t i = 0; i < inputs.b->size(); i++) inputs.b->set(i, 2147483647.0);
        }
        Plan plan;
        const Status status = plan_by("phases_as_channels", nullptr, 1, problem, inputs, &plan);
        ASSERT_TRUE(status) << status.message();
        Tensor y(*problem.y_dtype, plan.y_shape());
        ASSERT_TRUE(plan.run(inputs.x.data(), y.data()));
        EXPECT_TRUE(agrees(y, reference(problem, inputs)));
    }
}

TEST(PhasesQuantized, OtherSizesOfX) {
    for (const char *const name : kNames) {
        Options options{};
        options.variant = name;
        std::vector<std::string> able;
        for (const std::string &line : kProblems) {
            const Problem problem = parse_problem(line);
            Plan plan;
            if (plan_by(name, nullptr, 1, problem, draw(problem, 3), &plan)) able.push_back(line);
        }
        EXPECT_GT(able.size(), 2u) << name;
        expect_agreement_when_reshaped(able, SpatialAxis::kLast, {1, 2, 9, 77}, options);
    }
}

// The layer of an inverse Fourier transform, with and without 8-bit multiplication.
TEST(PhasesQuantized, AreChosenForOneChannelAndALargeStride) {
    const Problem problem = parse_problem("u8 nchw n1 g1 ic258 oc1 i40 k256 s64 p96_96 zx128");
    const Inputs inputs = draw(problem, 3);
    for (std::size_t isa = 0; isa < convt_isa_count(); isa++) {
        if (!convt_isa_supported(isa)) continue;
        Plan plan;
        ASSERT_TRUE(plan_by(nullptr, convt_isa_name(isa), 1, problem, inputs, &plan));
        const std::string algorithm = plan.algorithm();
        EXPECT_TRUE(algorithm == kNames[0] || algorithm == kNames[1]) << plan.explain();
    }
}

// Kernels write both types of 8 bits, so the type of y changes no estimate.
TEST(PhasesQuantized, AreChosenForSignedOutputsToo) {
    for (const char *const line :
         {"u8 nchw n1 g1 ic32 oc1 i64x64 k6x6 s6x6 wu8", "u8 nchw n1 g1 ic64 oc3 i16x16 k8x8 s8x8 ws8",
          "u8 nhwc n1 g1 ic128 oc3 i32x32 k4x4 s2x2 p1x1_1x1 ws8"}) {
        SCOPED_TRACE(line);
        std::string names[2];
        for (const bool is_signed : {false, true}) {
            const Problem problem = parse_problem(std::string(line) + (is_signed ? " ys8" : " yu8"));
            const Inputs inputs = draw(problem, 5);
            Plan plan;
            ASSERT_TRUE(Plan::create(problem, {}, inputs.w.data(), nullptr, &plan));
            names[is_signed] = plan.algorithm() + " " + plan.variant();
        }
        EXPECT_EQ(names[0], names[1]);
    }
}

// Phases that no tap reaches hold a bias, which is a float there.
TEST(PhasesQuantized, AreNotForPhasesWithoutTaps) {
    const Problem problem = parse_problem("u8 nchw n1 g1 ic64 oc4 i8x8 k3x3 s6x6 bias");
    const Inputs inputs = draw(problem, 3);
    Plan plan;
    const Status status = plan_by("depth_to_space", nullptr, 1, problem, inputs, &plan);
    EXPECT_EQ(status.code(), CONVT_UNSUPPORTED);
    EXPECT_NE(status.message().find("phases without taps, and sums of integers"), std::string::npos)
        << status.message();
}

} // namespace
} // namespace convtranspose::test
