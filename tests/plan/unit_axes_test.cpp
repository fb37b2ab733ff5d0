// Axes of one position: a layer with such is the layer without.
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "plan/other_layers.h"
#include "reference/descriptor.h"
#include "reference/quantized.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

struct Pair {
    const char *with, *without;
};

const Pair kPairs[] = {
    {"f32 nchw n1 g1 ic40 oc24 i60x1 k10x1 s5x1 bias", "f32 nchw n1 g1 ic40 oc24 i60 k10 s5 bias"},
    {"f32 nhwc n2 g1 ic40 oc24 i1x60 k1x10 s1x5", "f32 nhwc n2 g1 ic40 oc24 i60 k10 s5"},
    {"f32 nchw n1 g1 ic24 oc16 i9x11x1 k4x4x1 s2x2x1 p1x1x0_1x1x0",
     "f32 nchw n1 g1 ic24 oc16 i9x11 k4x4 s2x2 p1x1_1x1"},
    {"f64 nhwc n1 g2 ic24 oc16 i9x1x11 k3x1x3 s2x3x2", "f64 nhwc n1 g2 ic24 oc16 i9x11 k3x3 s2x2"},
    {"f32 nchw n1 g1 ic12 oc16 i1x6x1x5 k1x3x1x4 s1x2x1x2", "f32 nchw n1 g1 ic12 oc16 i6x5 k3x4 s2x2"},
    {"f32 nchw n1 g1 ic50 oc24 i1x1x1 k4x4x1 s1x1x1", "f32 nchw n1 g1 ic50 oc24 i1x1 k4x4 s1x1"},
    {"bf16 nchw n1 g1 ic16 oc16 i1x1 k1x1 s1x1", "bf16 nchw n1 g1 ic16 oc16 i1 k1 s1"},
};

TEST(UnitAxes, AreLeftOut) {
    for (const Pair &pair : kPairs) {
        SCOPED_TRACE(pair.with);
        const Problem with = parse_problem(pair.with), without = parse_problem(pair.without);
        const Plan plan = plan_of(with, draw(with, 3)), plain = plan_of(without, draw(without, 3));
        EXPECT_EQ(plan.variant(), plain.variant());
        EXPECT_EQ(plan.workspace_bytes(), plain.workspace_bytes());
        EXPECT_NE(plan.explain().find(": axes of one position are left out"), std::string::npos);
        EXPECT_EQ(plan.y_shape().size(), with.x_shape.size());
        expect_agreement(with, 3);
    }
}

// Views with gaps along such an axis, whose stride means nothing.
TEST(UnitAxes, OfViews) {
    const Problem problem = parse_problem("f32 nchw n1 g1 ic3 oc2 i5x1 k4x1 s2x1");
    const Inputs inputs = draw(problem, 3);
    const Plan plan = plan_of(problem, inputs);
    const Shape shape = plan.y_shape();
    Tensor y(problem.dtype, shape);
    const Status status =
        plan.run(ConstTensorView(inputs.x.data(), problem.dtype, problem.x_shape, {15, 5, 1, 1 << 20}),
                 TensorView{y.data(), problem.dtype, shape, {shape[1] * shape[2], shape[2], 1, 1 << 20}});
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(agrees(y, reference(problem, inputs)));
}

// One column of wider tensors: rows of what is left have gaps.
TEST(UnitAxes, OfOneColumn) {
    for (const char *const line :
         {"f32 nchw n2 g1 ic3 oc40 i40x1 k4x1 s2x1 bias", "f32 nchw n1 g1 ic20 oc3 i9x7x1 k3x2x1 s1x2x1",
          "u8 nchw n1 g1 ic12 oc16 i30x1 k4x1 s2x1 bias zx7 zw1 zy3"}) {
        const Problem problem = parse_problem(line);
        SCOPED_TRACE(line);
        const Inputs inputs = draw(problem, 3);
        const Plan plan = plan_of(problem, inputs);
        constexpr std::int64_t kColumns = 3;
        const auto wider = [](const Shape &shape) {
            Shape strides(shape.size(), 1);
            strides[shape.size() - 2] = kColumns;
            for (std::size_t i = shape.size() - 2; i-- > 0;) strides[i] = strides[i + 1] * shape[i + 1];
            return strides;
        };
        const Shape shape = plan.y_shape();
        Tensor y(problem.y_dtype.value_or(problem.dtype), shape);
        Shape of_x = problem.x_shape, of_y = shape;
        of_x.back() = of_y.back() = kColumns;
        Tensor x_parent(problem.dtype, of_x), y_parent(y.dtype(), of_y);
        for (std::int64_t i = 0; i < inputs.x.size(); i++) x_parent.set(kColumns * i, inputs.x.get(i));
        for (int run = 0; run < 2; run++) {
            const Status status =
                plan.run(ConstTensorView(x_parent.data(), problem.dtype, problem.x_shape, wider(problem.x_shape)),
                         TensorView{y_parent.data(), y.dtype(), shape, wider(shape)});
            ASSERT_TRUE(status) << status.message();
            for (std::int64_t i = 0; i < y.size(); i++) y.set(i, y_parent.get(kColumns * i));
            EXPECT_TRUE(agrees(y, problem.dtype == CONVT_U8 ? quantized_reference(problem, inputs)
                                                            : reference(problem, inputs)));
        }
    }
}

// A size of x that has more along such an axis, and back.
TEST(UnitAxes, Reshaped) {
    for (const Pair &pair : kPairs) {
        for (const std::int64_t extent : {3, 1}) {
            Problem problem = parse_problem(pair.with);
            const Inputs inputs = draw(problem, 3);
            const Plan from = plan_of(problem, inputs);
            for (std::int64_t &x : problem.x_shape) x = x == 1 ? extent : x;
            SCOPED_TRACE(describe(problem));
            Plan plan, back;
            ASSERT_TRUE(from.reshape(problem.x_shape, &plan));
            Inputs other = draw(problem, 5);
            other.w = inputs.w;
            other.b = inputs.b;
            Tensor y(problem.dtype, plan.y_shape());
            ASSERT_TRUE(plan.run(other.x.data(), y.data()));
            EXPECT_TRUE(agrees(y, reference(problem, other)));

            const Problem first = parse_problem(pair.with);
            ASSERT_TRUE(plan.reshape(first.x_shape, &back));
            Tensor y_back(first.dtype, back.y_shape());
            ASSERT_TRUE(back.run(inputs.x.data(), y_back.data()));
            EXPECT_TRUE(agrees(y_back, reference(first, inputs)));
        }
    }
}

TEST(UnitAxes, OfQuantizedLayers) {
    Problem problem = parse_problem("u8 nhwc n1 g1 ic12 oc16 i9x1 k4x1 s2x1 bias zx7 zw1 zy3 pc");
    const Inputs inputs = draw(problem, 3);
    Tensor y;
    ASSERT_TRUE(run(problem, inputs, Options{}, &y));
    EXPECT_TRUE(agrees(y, quantized_reference(problem, inputs)));
    const Plan from = plan_of(problem, inputs);
    problem.x_shape[2] = 2;
    Plan plan;
    ASSERT_TRUE(from.reshape(problem.x_shape, &plan));
    Inputs other = draw(problem, 5);
    other.w = inputs.w;
    other.b = inputs.b;
    Tensor y_of_two(y.dtype(), plan.y_shape());
    ASSERT_TRUE(plan.run(other.x.data(), y_of_two.data()));
    EXPECT_TRUE(agrees(y_of_two, quantized_reference(problem, other)));
}

} // namespace
} // namespace convtranspose::test
