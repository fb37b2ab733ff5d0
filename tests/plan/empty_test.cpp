// Extents of 0: nothing to add up is still an output of bias or zeros, and no output is still a run.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/algorithm_names.h"
#include "reference/descriptor.h"
#include "reference/layer.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

struct Case {
    const char *name;
    const char *problem;
    Shape y_shape;
};

void PrintTo(const Case &c, std::ostream *stream) { *stream << c.problem; }

const std::vector<Case> kCases = {
    {"Batch", "f32 nchw n0 ic3 oc2 i4x4 k3x3 bias", {0, 2, 6, 6}},
    {"BatchChannelsLast", "f32 nhwc n0 ic3 oc2 i4x4 k3x3", {0, 6, 6, 2}},
    {"Width", "f32 nchw n1 ic3 oc20 i4x0 k3x3 bias", {1, 20, 6, 2}},
    {"Height", "f32 nchw n2 ic3 oc20 i0x4 k3x3 s2x2 bias", {2, 20, 1, 9}},
    {"HeightChannelsLast", "f32 nhwc n2 ic3 oc20 i0x4 k3x3 s2x2 bias", {2, 1, 9, 20}},
    {"Everything", "f16 nchw n1 ic3 oc2 i0 k5 s3", {1, 2, 2}},
    {"DepthOfThree", "f32 nchw n1 ic3 oc2 i0x3x4 k4x2x2 s2x2x2 bias", {1, 2, 2, 6, 8}},
    {"LeadingOfFour", "f32 nchw n1 ic3 oc2 i0x2x3x4 k4x2x2x2 bias", {1, 2, 3, 3, 4, 5}},
    {"ByOutputShape", "f32 nchw n1 ic3 oc2 i0x0 k2x2 s4x4 os5x6 bias", {1, 2, 5, 6}},
    {"InChannels", "f32 nchw n1 ic0 oc5 i4x4 k3x3 s2x2 bias", {1, 5, 9, 9}},
    {"InChannelsNoBias", "f64 nchw n1 ic0 oc5 i4x4 k3x3 s2x2", {1, 5, 9, 9}},
    {"InChannelsGrouped", "f32 nhwc n1 g3 ic0 oc6 i4 k3 bias", {1, 6, 6}},
    {"OutChannels", "f32 nchw n1 ic3 oc0 i4x4 k3x3 bias", {1, 0, 6, 6}},
    {"OutChannelsChannelsLast", "bf16 nhwc n1 ic3 oc0 i4x4 k3x3", {1, 6, 6, 0}},
    {"InAndOutChannels", "f32 nchw n1 ic0 oc0 i4x4 k3x3 bias", {1, 0, 6, 6}},
    {"DepthwiseWidth", "f32 nchw n1 g8 ic8 oc8 i4x0 k4x4 s2x2 bias", {1, 8, 10, 2}},
    {"TapsThatNeverMeetTheInput", "f32 nchw n1 ic3 oc2 i1x4 k3x3 s1x9 p0x0_2x0 bias", {1, 2, 1, 30}},
    {"StrideTimesAColumnOverflows",
     "f64 nhwc n1 g2 ic16 oc16 i6x3 k4x1 s245855337157522464x4 p491816227431311420x0_737566011472567379x0 "
     "d35184372088832x1",
     {1, 18, 9, 16}},
    {"OutputsThatNoTapReaches", "f32 nchw n1 ic3 oc2 i3x3 k1x1 s4x4 os20x20 bias", {1, 2, 20, 20}},
};

class Empty : public testing::TestWithParam<Case> {};

TEST_P(Empty, IsBiasOrZero) {
    Problem problem = parse_problem(GetParam().problem);
    EXPECT_EQ(layer_of(problem).y_shape, GetParam().y_shape);
    const Inputs inputs = draw(problem, 1);
    for (const int threads : {1, 3}) {
        Options options{};
        options.threads = threads;
        options.all_threads = 1;
        expect_agreement(problem, 1, Values::uniform, options);
    }

    // With weights that arrive with the run.
    Plan plan;
    Status status = Plan::create(problem, Options{}, nullptr, nullptr, &plan);
    ASSERT_TRUE(status) << status.message();
    Tensor y(problem.dtype, plan.y_shape());
    const ConstTensorView b = inputs.b ? inputs.b->view() : ConstTensorView();
    status = plan.run(inputs.x.view(), inputs.w.view(), inputs.b ? &b : nullptr, y.view());
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(agrees(y, reference(problem, inputs)));
}

// Nothing bounds the other extents of tensors without elements where there are no weights.
TEST(EmptyTensors, OtherExtentsMayBeHuge) {
    constexpr std::int64_t kMost = 2147483647, kFar = 1 << 30;
    struct Huge {
        Shape x, w, dilations, pads;
    };
    const Huge layers[] = {
        {{1, kMost, kMost, kMost, 0}, {0, 3, 1, 1, 1}, {1, 1, 1}, {9, 9, 9, kMost - 11, kMost - 11, kMost - 11}},
        {{1, kMost, kMost, kMost, kMost, 0}, {0, 3, kMost, kMost, kMost, kMost}, {1, 1, 1, 1}, Shape(8, kMost - 2)},
        {{1, 2, 2, 2, 1}, {1, 0, 2, 2, 2}, {kFar, kFar, kFar}, Shape(6, 0)},
        {{1, 1, 1}, {1, 0, kMost}, {1}, Shape(2, 0)},
    };
    for (const Huge &layer : layers) {
        for (const bool constant : {true, false}) {
            Problem problem;
            problem.layout = CONVT_CHANNELS_LAST;
            problem.x_shape = layer.x;
            problem.w_shape = layer.w;
            problem.b_shape = Shape{layer.w[1]};
            problem.attributes.dilations = layer.dilations;
            problem.attributes.pads = layer.pads;
            SCOPED_TRACE(describe(problem));
            const std::vector<float> x(8), w(48), b = {1, 2, 3};
            Plan plan;
            Status status =
                Plan::create(problem, Options{}, constant ? w.data() : nullptr, constant ? b.data() : nullptr, &plan);
            ASSERT_TRUE(status) << status.message();
            EXPECT_LE(plan.workspace_bytes() + plan.packed_bytes(), std::size_t{1} << 16);
            EXPECT_NE(plan.explain(), "");
            Tensor y(problem.dtype, plan.y_shape());
            const ConstTensorView x_view{x.data(), problem.dtype, problem.x_shape, {}},
                w_view{w.data(), problem.dtype, problem.w_shape, {}},
                b_view{b.data(), problem.dtype, *problem.b_shape, {}};
            status = constant ? plan.run(x_view, y.view()) : plan.run(x_view, w_view, &b_view, y.view());
            ASSERT_TRUE(status) << status.message();
            for (std::int64_t i = 0; i < y.size(); i++) EXPECT_EQ(y.get(i), static_cast<double>(1 + i % 3));
        }
    }
}

// Groups without weights may be as many as an attribute can say: planning takes no time for each.
TEST(EmptyTensors, GroupsMayBeMany) {
    for (const char *const line :
         {"bf16 nchw n1 g8589934590 ic0 oc0 i306 k4 s2 auto_SAME_LOWER bias",
          "f32 nhwc n1 g2305843009213693951 ic0 oc0 i9x3 k4x2", "f32 nchw n0 g2147483647 ic2147483647 oc0 i9 k4 bias",
          "f32 nhwc n0 g2147483647 ic2147483647 oc0 i9 k4", "f64 nchw n2 g5000 ic0 oc5000 i3 k4 bias",
          "u8 nhwc n1 g8589934590 ic0 oc0 i9 k4 bias", "s8 nchw n1 g5000 ic0 oc5000 i3 k4 s2 bias"}) {
        const Problem problem = parse_problem(line);
        SCOPED_TRACE(line);
        expect_agreement(problem, 3);
        Plan plan;
        Status status = Plan::create(problem, Options{}, nullptr, nullptr, &plan);
        ASSERT_TRUE(status) << status.message();
        EXPECT_LE(plan.workspace_bytes(), std::size_t{1} << 20);
        EXPECT_NE(plan.explain(), "");
    }
}

INSTANTIATE_TEST_SUITE_P(Plan, Empty, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case> &c) { return std::string(c.param.name); });

// Every kernel and every algorithm that takes a layer without elements does so without a fault.
TEST(EmptyTensors, EveryCandidateTakesThem) {
    int able = 0;
    for (const char *const shape :
         {"n1 ic7 oc0 i6x9 k3x4 s4x1", "n0 ic7 oc5 i6x9 k3x4 s1x2", "n2 ic7 oc5 i6x0 k3x4 s2x2",
          "n1 g8 ic8 oc0 i6x9 k3x4 s2x1", "n1 ic0 oc40 i6x9 k3x4"}) {
        for (const char *const dtype : {"f16", "bf16", "f32", "f64", "u8", "s8"}) {
            for (const char *const layout : {"nchw", "nhwc"}) {
                const Problem problem = parse_problem(std::string(dtype) + " " + layout + " " + shape + " bias");
                Plan every;
                const Inputs inputs = draw(problem, 1);
                ASSERT_TRUE(Plan::create(problem, Options{}, inputs.w.data(), inputs.b->data(), &every));
                for (std::size_t i = 0; i < convt_plan_candidate_count(every.get()); i++) {
                    Options options{};
                    options.variant = convt_plan_candidate(every.get(), i);
                    options.threads = 1 + static_cast<int>(i % 2);
                    options.all_threads = 1;
                    expect_agreement(problem, 1, Values::uniform, options);
                    able++;
                }
            }
        }
    }
    EXPECT_GT(able, 60);
}

// A tensor without elements has no memory either.
TEST(EmptyTensors, NeedNoData) {
    const Problem problem = parse_problem("f32 nchw n0 ic3 oc2 i4x4 k3x3");
    const Inputs inputs = draw(problem, 2);
    Plan plan;
    ASSERT_TRUE(Plan::create(problem, Options{}, inputs.w.data(), nullptr, &plan));
    const Status status = plan.run(static_cast<const void *>(nullptr), nullptr);
    EXPECT_TRUE(status) << status.message();
}

// Also where layers of other shapes compute the plan's, and back.
TEST(EmptyTensors, APlanIsReshapedToNoImages) {
    int able = 0;
    for (const char *const line : {"f32 nchw n2 ic40 oc2 i20x20 k6x6 s2x2 bias",
                                   "f32 nchw n2 g40 ic40 oc40 i40x30 k6x6 s2x2", "f32 nhwc n2 ic8 oc1 i9 k4 s2"}) {
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 2);
        std::vector<std::string> algorithms = algorithm_names();
        algorithms.emplace_back();
        for (const std::string &algorithm : algorithms) {
            for (const int threads : {1, 2}) {
                Options options{};
                options.variant = algorithm.empty() ? nullptr : algorithm.c_str();
                options.winograd = algorithm == "winograd";
                options.threads = threads;
                options.all_threads = 1;
                SCOPED_TRACE(describe(problem, 2, options));
                Plan plan, none, again;
                const void *const b = inputs.b ? inputs.b->data() : nullptr;
                Status status = Plan::create(problem, options, inputs.w.data(), b, &plan);
                if (!algorithm.empty() && status.code() == CONVT_UNSUPPORTED) continue;
                ASSERT_TRUE(status) << status.message();
                Shape shape = problem.x_shape;
                shape[0] = 0;
                status = plan.reshape(shape, &none);
                ASSERT_TRUE(status) << status.message();
                status = none.run(static_cast<const void *>(nullptr), nullptr);
                EXPECT_TRUE(status) << status.message();
                status = none.reshape(problem.x_shape, &again);
                ASSERT_TRUE(status) << status.message();
                Tensor y(problem.dtype, again.y_shape());
                ASSERT_TRUE(again.run(inputs.x.data(), y.data()));
                EXPECT_TRUE(agrees(y, reference(problem, inputs)));
                able++;
            }
        }
    }
    EXPECT_GT(able, 14); // of 30
}

// Their kernels read no row of an x that has some rows along one axis, but no elements.
TEST(EmptyTensors, APlanIsReshapedToNoRows) {
    const Problem problem = parse_problem("f32 nchw n1 ic8 oc1 i3x2 k5x4 s2x2 op1x1 bias");
    const Inputs inputs = draw(problem, 2);
    int able = 0;
    for (const std::string &algorithm : algorithm_names()) {
        Options options{};
        options.variant = algorithm.c_str();
        SCOPED_TRACE(algorithm);
        Plan plan, none;
        Status status = Plan::create(problem, options, inputs.w.data(), inputs.b->data(), &plan);
        if (status.code() == CONVT_UNSUPPORTED) continue;
        ASSERT_TRUE(status) << status.message();
        status = plan.reshape({1, 8, 0, 2}, &none);
        ASSERT_TRUE(status) << status.message();
        Tensor y(problem.dtype, none.y_shape());
        ASSERT_EQ(y.size(), 4 * 7);
        status = none.run(static_cast<const void *>(nullptr), y.data());
        ASSERT_TRUE(status) << status.message();
        for (std::int64_t i = 0; i < y.size(); i++) EXPECT_EQ(y.get(i), inputs.b->get(0)) << i;
        able++;
    }
    EXPECT_GE(able, 4);
}

// A copy of x that nothing will be copied to is not too large.
TEST(EmptyTensors, NoImagesMayBeLarge) {
    Problem problem = parse_problem("u8 nchw n1 ic1 oc1 i4x4 k1x1 ws8 yu8");
    problem.x_shape = {0, 1, 65536, 65536};
    problem.attributes.output_shape = Shape{1, 1};
    const signed char w = 1;
    Plan plan;
    Status status = Plan::create(problem, Options{}, &w, nullptr, &plan);
    ASSERT_TRUE(status) << status.message();
    EXPECT_EQ(plan.y_shape(), Shape({0, 1, 1, 1}));
    status = plan.run(static_cast<const void *>(nullptr), nullptr);
    EXPECT_TRUE(status) << status.message();
}

} // namespace
} // namespace convtranspose::test
