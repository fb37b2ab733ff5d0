// Layers that are computed as a matrix product whose columns are added up: what is chosen, and that it agrees.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/crop.h"
#include "plan/other_layers.h"
#include "reference/descriptor.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

bool is_chosen(const Plan &plan) { return plan.algorithm() == "col2im"; }

// Few output channels on small images, and what else there is of attributes: strides 1, 2 and others of w, which are stored
// differently; dilations; pads that crop more than a stride, or the first and last rows of x; outputs beyond all taps; groups,
// batches and axes; rows of one position; strips along each axis, several of them, with rows kept from one to the next.
const std::vector<std::string> kProblems = {
    "f32 nchw n3 ic100 oc2 i6x9 k7x7 s1x1 p3x3_3x3 bias",
    "f32 nhwc n3 ic100 oc2 i6x9 k7x7 s1x1 p3x3_3x3 bias",
    "f32 nchw n1 ic384 oc1 i13x18 k4x4 s2x2 p4x4_4x4 d3x3",
    "f32 nhwc n1 ic384 oc1 i13x18 k4x4 s2x2 p4x4_4x4 d3x3 bias",
    "f32 nchw n3 ic100 oc4 i13x8 k5x5 s3x2 bias",
    "f32 nhwc n2 ic100 oc4 i8x13 k5x5 s2x3 bias",
    "f32 nchw n1 ic320 oc2 i7x9 k7x7 s2x2 p3x3_3x3 op1x1 bias",
    "f32 nchw n1 ic320 oc3 i7x9 k7x7 s2x2 p9x12_7x8 bias",
    "f32 nchw n1 ic320 oc3 i7x9 k3x3 s2x2 os29x35 bias",
    "f32 nchw n1 ic128 oc2 i5x4x5 k3x5x3 s3x2x3 p3x8x3_3x8x3 op0x1x0 d4x4x4 bias",
    "f32 nhwc n1 ic100 oc4 i3x5x6 k3x3x3 s1x1x1 p1x1x1_1x1x1",
    "f32 nchw n1 ic160 oc3 i16 k24 s2 bias",
    "f32 nchw n2 ic160 oc2 i9 k5 s1 d7 bias",
    "f32 nchw n1 g4 ic256 oc8 i11x10 k3x3 s1x1 p1x1_1x1 bias",
    "f32 nchw n1 ic96 oc12 i9x13 k9x9 s1x1 bias",
    "f32 nchw n1 ic100 oc2 i9x1 k7x3 s1x1 p3x1_3x1 bias",
    "f64 nchw n1 ic100 oc2 i6x9 k7x7 s1x1 p3x3_3x3 bias",
    "f16 nchw n2 ic100 oc2 i6x9 k7x7 s1x1 p3x3_3x3 bias",
    "bf16 nhwc n1 ic320 oc2 i7x9 k7x7 s2x2 p3x3_3x3 op1x1 bias",
    "bf16 nchw n1 ic100 oc4 i13x8 k5x5 s3x2",
    // Rows of more than two vectors.
    "f32 nchw n2 ic100 oc3 i9x40 k7x7 s1x1 p3x3_3x3 bias",
    "f32 nhwc n1 ic100 oc1 i9x37 k7x7 s1x1 p3x3_3x3 bias",
    "f32 nchw n1 ic128 oc2 i9x49 k5x6 s2x2 p1x2_2x1 bias",
    // Several strips: along h, w and d; and images, each a strip, of which three threads take one each.
    "f32 nchw n2 ic96 oc2 i75x62 k6x6 s3x3 d2x2 bias",
    "f32 nhwc n1 ic64 oc3 i97x40 k7x7 s1x1 p3x3_3x3 bias",
    "f32 nchw n1 ic96 oc2 i5000 k26 s3 p11_11 bias",
    "f32 nchw n1 ic64 oc3 i13x13x12 k5x5x5 s2x2x2 p2x2x2_2x2x2 bias",
    "f32 nchw n3 ic96 oc2 i60x50 k6x6 s3x3 bias",
};

// Estimates decide, and differ by ISA: for most of these problems they are for it everywhere.
TEST(Col2im, IsChosenAndAgrees) {
    for (std::size_t isa = 0; isa < convt_isa_count(); isa++) {
        if (!convt_isa_supported(isa)) continue;
        std::size_t chosen = 0;
        for (const std::string &line : kProblems) {
            const Problem problem = parse_problem(line);
            const Inputs inputs = draw(problem, 3);
            const Expected expected = reference(problem, inputs);
            Tensor alone;
            for (const int threads : {1, 3}) {
                Options options{};
                options.threads = threads;
                options.all_threads = 1;
                options.isa = convt_isa_name(isa);
                SCOPED_TRACE(describe(problem, 3, options));
                const Plan plan = plan_of(problem, inputs, options);
                chosen += is_chosen(plan);
                Tensor y(problem.dtype, plan.y_shape());
                ASSERT_TRUE(plan.run(inputs.x.data(), y.data()));
                EXPECT_TRUE(agrees(y, expected));
                if (threads == 1) alone = y;
                for (std::int64_t i = 0; i < y.size(); i++) ASSERT_EQ(y.get(i), alone.get(i)) << i;
            }
        }
        EXPECT_GT(chosen, kProblems.size()) << "of " << 2 * kProblems.size() << " on " << convt_isa_name(isa);
        RecordProperty(convt_isa_name(isa), static_cast<int>(chosen));
    }
}

bool is_in_order_of_y(const Plan &plan) { return plan.explain().find(", positions outermost") != std::string::npos; }

// Columns in the order of a y with channels last: strides 1 to 10 of runs that are a part of a vector, a vector and more; a last
// tap that not all phases have; rows of a few positions; pads that crop phases, or more than the first position; outputs
// beyond all taps; strips along each axis, with rows kept from one to the next; batches, axes and types.
const std::vector<std::string> kInOrderOfY = {
    "f32 nhwc n1 ic8 oc3 i32x32 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nhwc n2 ic16 oc2 i8x8 k4x4 s2x2 p1x1_1x1",
    "f32 nhwc n1 ic32 oc1 i400 k16 s8 p4_4 bias",
    "f32 nhwc n1 ic32 oc2 i3000 k20 s10 p5_5 bias",
    "f32 nhwc n1 ic64 oc1 i9000 k16 s8 bias",
    "f32 nhwc n3 ic20 oc5 i9x11 k5x5 s3x3 p2x1_1x2 op1x1 bias",
    "f32 nhwc n1 ic20 oc3 i6x20 k3x5 s1x2 p1x7_1x6 bias",
    "f32 nhwc n1 ic32 oc3 i7x5 k3x3 s2x2 os29x35 bias",
    "f32 nhwc n1 ic16 oc6 i40x30 k4x4 s4x4 bias",
    "f32 nhwc n1 ic12 oc4 i12x40 k3x4 s2x3 d2x1 bias",
    "f32 nhwc n1 ic32 oc7 i1x3 k2x8 s1x4 p0x1_0x2 bias",
    "f32 nhwc n1 ic16 oc3 i6x7x9 k3x4x4 s2x2x2 p1x1x1_1x1x1 bias",
    "f32 nhwc n2 ic8 oc3 i80x90 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nhwc n1 ic8 oc3 i50x12x13 k4x4x4 s2x2x2 p1x1x1_1x1x1 bias",
    "f64 nhwc n1 ic16 oc3 i9x12 k4x4 s2x2 p1x1_1x1 bias",
    "f16 nhwc n2 ic16 oc3 i9x12 k4x4 s2x2 p1x1_1x1 bias",
    "bf16 nhwc n1 ic16 oc3 i9x12 k5x5 s2x2 p1x1_1x1 bias",
};

TEST(Col2im, InOrderOfYAgrees) {
    for (std::size_t isa = 0; isa < convt_isa_count(); isa++) {
        if (!convt_isa_supported(isa)) continue;
        std::size_t in_order = 0;
        for (const std::string &line : kInOrderOfY) {
            const Problem problem = parse_problem(line);
            const Inputs inputs = draw(problem, 5);
            const Expected expected = reference(problem, inputs);
            for (const int threads : {1, 2, 3}) {
                Options options{};
                options.threads = threads;
                options.all_threads = 1;
                options.isa = convt_isa_name(isa);
                options.variant = "col2im";
                SCOPED_TRACE(describe(problem, 5, options));
                const Plan plan = plan_of(problem, inputs, options);
                in_order += is_in_order_of_y(plan);
                Tensor y(problem.dtype, plan.y_shape());
                ASSERT_TRUE(plan.run(inputs.x.data(), y.data()));
                EXPECT_TRUE(agrees(y, expected));
            }
        }
        const std::string name = convt_isa_name(isa);
        const bool has_kernels = name.rfind("avx512", 0) == 0 || name == "amx";
        EXPECT_GE(in_order, has_kernels ? 2 * kInOrderOfY.size() : 0)
            << "of " << 3 * kInOrderOfY.size() << " on " << name;
    }
}

TEST(Col2im, InfinitiesReachWhatTheyMust) {
    expect_infinities_reach_what_they_must(kProblems);
    expect_infinities_reach_what_they_must(kInOrderOfY);
}

TEST(Col2im, OtherSizesOfX) {
    expect_agreement_when_reshaped(kProblems, SpatialAxis::kFirst, {1, 2, 9, 60});
    expect_agreement_when_reshaped(kInOrderOfY, SpatialAxis::kLast, {1, 2, 9});
}

// Strides of a tensor that is a crop of one three longer along every axis but the first.
Shape strides_in_larger(const Shape &shape, Shape *larger) {
    *larger = shape;
    for (std::size_t i = 1; i < shape.size(); i++) (*larger)[i] += 3;
    Shape strides(shape.size(), 1);
    for (std::size_t i = shape.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * (*larger)[i + 1];
    return strides;
}

// x and y as crops of something larger, with post-ops and a workspace of the caller's, which is not written past its end.
// Asked for by name: another algorithm, which estimates may prefer, need not compute a y with gaps in the order of one without.
TEST(Col2im, CropsPostOpsAndWorkspaces) {
    std::vector<std::string> lines = kProblems;
    lines.insert(lines.end(), kInOrderOfY.begin(), kInOrderOfY.end());
    Options options{};
    options.variant = "col2im";
    for (const std::string &line : lines) {
        Problem problem = parse_problem(line);
        SCOPED_TRACE(line);
        const Inputs inputs = draw(problem, 11);
        Tensor plain;
        ASSERT_TRUE(run(problem, inputs, options, &plain));
        problem.post_ops = {0, CONVT_RELU, 0, 0};
        const Plan plan = plan_of(problem, inputs, options);
        ASSERT_TRUE(is_chosen(plan));
        Shape larger_x, larger_y;
        const Shape x_strides = strides_in_larger(problem.x_shape, &larger_x),
                    y_strides = strides_in_larger(plan.y_shape(), &larger_y);
        Tensor x_parent(problem.dtype, larger_x), y_parent(problem.dtype, larger_y); // all NaN
        for (std::int64_t i = 0; i < inputs.x.size(); i++) {
            x_parent.set(place(problem.x_shape, x_strides, i), inputs.x.get(i));
        }
        std::vector<unsigned char> memory(plan.workspace_bytes() + 192, 0xa5);
        unsigned char *const workspace = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
        const ConstTensorView x = {x_parent.data(), problem.dtype, problem.x_shape, x_strides};
        const TensorView y = {y_parent.data(), problem.dtype, plan.y_shape(), y_strides};
        const Status status = plan.run(x, y, workspace);
        ASSERT_TRUE(status) << status.message();
        for (std::size_t i = plan.workspace_bytes(); i < plan.workspace_bytes() + 64; i++)
            ASSERT_EQ(workspace[i], 0xa5);
        std::int64_t written = 0;
        for (std::int64_t i = 0; i < y_parent.size(); i++) written += !std::isnan(y_parent.get(i));
        EXPECT_EQ(written, plain.size());
        for (std::int64_t i = 0; i < plain.size(); i++) {
            ASSERT_EQ(y_parent.get(place(plan.y_shape(), y_strides, i)), std::fmax(plain.get(i), 0)) << i;
        }
    }
}

// Weights that arrive with the run are packed for it once: so only where all of x is one strip.
TEST(Col2im, WeightsOfARun) {
    std::size_t chosen = 0;
    for (const std::string &line : kProblems) {
        const Problem problem = parse_problem(line);
        SCOPED_TRACE(line);
        Plan plan;
        ASSERT_TRUE(Plan::create(problem, {}, nullptr, nullptr, &plan));
        chosen += is_chosen(plan);
        for (const std::uint64_t seed : {13, 14}) {
            const Inputs inputs = draw(problem, seed);
            Tensor y(problem.dtype, plan.y_shape());
            const ConstTensorView b = inputs.b ? inputs.b->view() : ConstTensorView();
            const Status status = plan.run(inputs.x.view(), inputs.w.view(), inputs.b ? &b : nullptr, y.view());
            ASSERT_TRUE(status) << status.message();
            EXPECT_TRUE(agrees(y, reference(problem, inputs)));
        }
    }
    EXPECT_GT(chosen, kProblems.size() / 4);
}

// The memory that is held at a time is bounded, however large y is. The kernel is the same, as another one is chosen for an x
// that is further away.
TEST(Col2im, HoldsAStripOfColumns) {
    const Problem problem = parse_problem("f32 nchw n1 ic96 oc2 i320x62 k6x6 s3x3 d2x2 bias");
    Options options;
    options.variant = "col2im";
    const Plan plan = plan_of(problem, draw(problem, 3), options);
    ASSERT_TRUE(is_chosen(plan)) << plan.explain();
    const Problem smaller = parse_problem("f32 nchw n1 ic96 oc2 i160x62 k6x6 s3x3 d2x2 bias");
    EXPECT_EQ(plan.workspace_bytes(), plan_of(smaller, draw(smaller, 3), options).workspace_bytes());
}

TEST(Col2im, IsNotForDeepLayersOfLargeImages) {
    for (const char *line :
         {"f32 nchw n1 ic64 oc64 i64x64 k4x4 s2x2 p1x1_1x1 bias", "f32 nchw n1 ic64 oc64 i30x40 k1x1 s1x1"}) {
        const Problem problem = parse_problem(line);
        EXPECT_FALSE(is_chosen(plan_of(problem, draw(problem, 3)))) << line;
    }
}

} // namespace
} // namespace convtranspose::test
