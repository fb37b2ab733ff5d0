// Post-ops: each kernel on special values, and after layers of every kind.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/algorithm_names.h"
#include "reference/descriptor.h"
#include "reference/effort.h"
#include "reference/quantized.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

const std::vector<PostOps> kPostOps = {
    {1, CONVT_NO_ACTIVATION, 0, 0}, {0, CONVT_RELU, 0, 0},           {1, CONVT_RELU, 0, 0},
    {0, CONVT_LEAKY_RELU, 0.2f, 0}, {1, CONVT_LEAKY_RELU, -1.5f, 0}, {0, CONVT_CLIP, -0.5f, 6},
    {1, CONVT_CLIP, -kInfinity, 0}, {0, CONVT_SIGMOID, 0, 0},        {1, CONVT_SIGMOID, 0, 0},
    {0, CONVT_TANH, 0, 0},          {1, CONVT_TANH, 0, 0},
};

std::string to_string(const PostOps &p) {
    return "activation " + std::to_string(p.activation) + " alpha " + std::to_string(p.alpha) + " beta " +
           std::to_string(p.beta) + (p.adds_residual ? " residual" : "");
}

struct Precision {
    double computed, stored; // unit roundoffs
    double least_normal, least;
};

Precision precision_of(convt_dtype dtype) {
    switch (dtype) {
    case CONVT_F16: return {std::ldexp(1.0, -24), std::ldexp(1.0, -11), std::ldexp(1.0, -14), std::ldexp(1.0, -24)};
    case CONVT_BF16: return {std::ldexp(1.0, -24), std::ldexp(1.0, -8), std::ldexp(1.0, -126), std::ldexp(1.0, -133)};
    case CONVT_F64: return {std::ldexp(1.0, -53), std::ldexp(1.0, -53), std::ldexp(1.0, -1022), std::ldexp(1.0, -1074)};
    default: return {std::ldexp(1.0, -24), std::ldexp(1.0, -24), std::ldexp(1.0, -126), std::ldexp(1.0, -149)};
    }
}

// One element: the value, and how far a result may be from it, by convtranspose.h. An addition and a multiplication round
// once, to the computing type; sigmoid and tanh have slopes of at most 1 and add 4 units in the last place, twice the unit
// roundoff each; then there is the rounding to y.
template<typename T>
T expected(const PostOps &p, convt_dtype dtype, double convolution, double residual, T *tolerance) {
    const Precision u = precision_of(dtype);
    T v = convolution, off = 0;
    if (p.adds_residual) {
        v += residual;
        off += u.computed * std::fabs(v);
    }
    switch (p.activation) {
    case CONVT_NO_ACTIVATION: break;
    case CONVT_RELU: v = v < 0 ? 0 : v; break;
    case CONVT_LEAKY_RELU:
        if (v < 0) {
            v *= p.alpha;
            off = off * std::fabs(p.alpha) + u.computed * std::fabs(v);
        }
        break;
    case CONVT_CLIP: v = v < p.alpha ? p.alpha : v > p.beta ? p.beta : v; break;
    case CONVT_SIGMOID:
        v = 1 / (1 + std::exp(-v));
        off = std::fmin(off, T(1)) + 8 * u.computed * v +
              2 * precision_of(dtype == CONVT_F64 ? CONVT_F64 : CONVT_F32).least_normal;
        break;
    case CONVT_TANH:
        v = std::tanh(v);
        off = std::fmin(off, T(1)) + 8 * u.computed * std::fabs(v);
        break;
    }
    const bool rounds = p.adds_residual || p.activation > CONVT_CLIP || p.activation == CONVT_LEAKY_RELU;
    *tolerance = off + (rounds ? u.stored * std::fabs(v) + u.least : 0);
    return v;
}

template<typename T>
::testing::AssertionResult agrees_in(const Tensor &y, const PostOps &p, const Tensor &convolution,
                                     const Tensor *residual) {
    for (std::int64_t i = 0; i < y.size(); i++) {
        T tolerance = 0;
        const double added = residual ? residual->get(i) : 0;
        T value = expected(p, y.dtype(), convolution.get(i), added, &tolerance);
        const double found = y.get(i);
        if (std::isnan(value) && std::isnan(found)) continue;
        if (y.dtype() == CONVT_F16 && std::fabs(value) >= 65520)
            value = std::copysign(T(kInfinity), value); // rounds so
        if (value == found || std::fabs(value - found) <= tolerance) continue;
        return ::testing::AssertionFailure()
               << "element " << i << " is " << found << ", expected " << static_cast<double>(value) << " +- "
               << static_cast<double>(tolerance) << " of " << convolution.get(i) << " and " << added;
    }
    return ::testing::AssertionSuccess();
}

// By arithmetic of more digits than the kernels': long double, often computed in software, only where double has no more.
::testing::AssertionResult agrees(const Tensor &y, const PostOps &p, const Tensor &convolution,
                                  const Tensor *residual) {
    return y.dtype() == CONVT_F64 ? agrees_in<long double>(y, p, convolution, residual)
                                  : agrees_in<double>(y, p, convolution, residual);
}

// With the same problem less its post-ops, which gives what they are applied to.
void expect_agreement(Problem problem, const PostOps &p, const Inputs &inputs, const Options &options) {
    SCOPED_TRACE(describe(problem, 0, options) + ", " + to_string(p));
    Plan plain, plan;
    const void *const b = inputs.b ? inputs.b->data() : nullptr;
    Status status = Plan::create(problem, options, inputs.w.data(), b, &plain);
    ASSERT_TRUE(status) << status.message();
    problem.post_ops = p;
    status = Plan::create(problem, options, inputs.w.data(), b, &plan);
    ASSERT_TRUE(status) << status.message();
    ASSERT_EQ(plan.variant(), plain.variant());
    const convt_dtype dtype = problem.y_dtype.value_or(problem.dtype);
    Tensor convolution(dtype, plan.y_shape()), y(dtype, plan.y_shape()), residual(dtype, plan.y_shape());
    Random random(7);
    for (std::int64_t i = 0; i < residual.size(); i++) residual.set(i, random.uniform(-3, 3));
    status = plain.run(inputs.x.data(), convolution.data());
    ASSERT_TRUE(status) << status.message();
    status =
        p.adds_residual ? plan.run(inputs.x.data(), residual.data(), y.data()) : plan.run(inputs.x.data(), y.data());
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(agrees(y, p, convolution, p.adds_residual ? &residual : nullptr));
}

// With one channel and a weight of one, y is x, so that any value can be tried.
TEST(PostOps, EachKernelOnSpecialValues) {
    std::vector<double> values;
    for (double v = -40; v <= 40; v += 0.0625) values.push_back(v);
    for (double v = 1e-30; v < 1e30; v *= 7) values.insert(values.end(), {v, -v});
    for (const double v :
         {0.0, 0.625, 0.62499, 5.0e-8, 86.9, 87.1, 88.8, 103.9, 707.9, 708.1, 745.0, 65504.0, 1e-45, 1e-310})
        values.insert(values.end(), {v, -v});
    const double infinity = std::numeric_limits<double>::infinity();
    values.insert(values.end(), {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()});
    Problem problem;
    problem.x_shape = {1, 1, static_cast<std::int64_t>(values.size())};
    problem.w_shape = {1, 1, 1};
    for (std::size_t isa = 0; isa < convt_isa_count(); isa++) {
        if (!convt_isa_supported(isa)) continue;
        Options options{};
        options.isa = convt_isa_name(isa);
        for (const convt_dtype dtype : {CONVT_F16, CONVT_BF16, CONVT_F32, CONVT_F64}) {
            problem.dtype = dtype;
            Inputs inputs = draw(problem, 1);
            inputs.w.set(0, 1);
            for (std::size_t i = 0; i < values.size(); i++) inputs.x.set(static_cast<std::int64_t>(i), values[i]);
            for (const PostOps &p : kPostOps) expect_agreement(problem, p, inputs, options);
        }
    }
}

// Signs of zero and infinities are IEEE's, and a NaN of the convolution or of the residual reaches y alone.
TEST(PostOps, ANaNStaysOne) {
    Problem problem;
    problem.x_shape = {1, 1, 37};
    problem.w_shape = {1, 1, 1};
    Inputs inputs = draw(problem, 1);
    inputs.x.set(3, NAN);
    for (const PostOps &p : kPostOps) {
        problem.post_ops = p;
        Plan plan;
        ASSERT_TRUE(Plan::create(problem, {}, inputs.w.data(), nullptr, &plan));
        Tensor y(CONVT_F32, plan.y_shape()), residual(CONVT_F32, plan.y_shape());
        for (std::int64_t i = 0; i < 37; i++) residual.set(i, i == 35 ? NAN : 1);
        const Status status = p.adds_residual ? plan.run(inputs.x.data(), residual.data(), y.data())
                                              : plan.run(inputs.x.data(), y.data());
        ASSERT_TRUE(status) << status.message();
        for (std::int64_t i = 0; i < 37; i++) {
            EXPECT_EQ(std::isnan(y.get(i)), i == 3 || (p.adds_residual && i == 35)) << i << ", " << to_string(p);
        }
    }
}

const std::vector<std::string> kProblems = {
    "f32 nchw n2 g1 ic5 oc9 i6x7 k3x3 s2x2 p1x1_1x1 bias",
    "f32 nhwc n2 g1 ic5 oc9 i6x7 k3x3 s2x2 p1x1_1x1 bias",
    "f32 nchw n1 g1 ic16 oc32 i5x4 k4x4 s2x2 p1x1_1x1",
    "f32 nhwc n1 g1 ic16 oc32 i5x4 k4x4 s2x2 p1x1_1x1",
    "f32 nchw n1 g1 ic8 oc48 i50x61 k3x3 s2x2 p1x1_1x1 bias", // y of several pieces
    "f32 nhwc n1 g1 ic8 oc48 i50x61 k3x3 s2x2 p1x1_1x1 bias",
    "f32 nchw n3 g1 ic4 oc40 i40x41 k2x2 s2x2",
    "f32 nhwc n3 g1 ic4 oc40 i40x41 k2x2 s2x2",
    "f32 nchw n1 g1 ic12 oc1 i60x200 k9x9 s4x4 p4x4_4x4 op3x3",
    "f32 nhwc n1 g1 ic12 oc1 i60x20 k9x9 s4x4 p4x4_4x4 op3x3",
    "f32 nhwc n1 g1 ic8 oc3 i5x37 k2x2 s2x2",
    "f32 nchw n2 g40 ic40 oc40 i36x33 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nhwc n2 g77 ic77 oc77 i36x33 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nchw n1 g3 ic6 oc9 i6x7 k3x3 s3x2 d2x1",
    "f32 nhwc n2 g4 ic8 oc80 i40x7 k3x3 s3x2 d2x1",
    "f32 nchw n1 g1 ic64 oc96 i2100 k16 s8 p4_4 bias",
    "f32 nchw n2 g1 ic3 oc4 i3x4x5 k2x3x3 s2x1x2 bias",
    "f32 nhwc n2 g1 ic3 oc4 i3x4x5 k2x3x3 s2x1x2 bias",
    "f32 nchw n1 g1 ic3 oc2 i3x2x2x3 k2x2x2x2 s2x2x1x1",
    "f32 nhwc n1 g1 ic3 oc2 i1x2x1x2x2x1x3 k2x2x1x2x1x1x1 s2x2x1x1x2x1x1",
    "f32 nhwc n2 g1 ic3 oc2 i2x2x2x2x2x2x2 k2x2x2x2x2x2x2 s2x1x1x1x1x1x1", // more axes than a box of y
    "f16 nchw n1 g1 ic17 oc24 i5x9 k4x4 s2x2 p1x1_1x1 bias",
    "bf16 nhwc n1 g1 ic17 oc24 i5x9 k4x4 s2x2 p1x1_1x1",
    "f64 nchw n1 g1 ic5 oc7 i5x9 k3x3 s2x2 p1x1_1x1 bias",
    "f32 nchw n1 g1 ic3 oc2 i4x4 k3x3 s2x2 os19x14 bias", // rows and columns that no tap reaches
};

TEST(PostOps, AfterLayersOfEveryKind) {
    int which = 0;
    for (const std::string &line : kProblems) {
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 3);
        const int one_in =
            kOneIn * (geometry_of(problem).y_shape.back() > 50 ? 4 * kOneIn : 1); // in turn, where y is large
        for (const int threads : {1, 3}) {
            for (const PostOps &p : kPostOps) {
                if (which++ % one_in) continue;
                Options options{};
                options.threads = threads;
                options.all_threads = 1;
                expect_agreement(problem, p, inputs, options);
            }
        }
    }
}

// Asked for by name, what computes a layer through others applies what follows once: a slope or a residual shows a second time,
// which Relu does not.
struct WithAlgorithm {
    const char *name;
    std::vector<std::string> problems;
};

const std::vector<WithAlgorithm> kAlgorithms = {
    {"phases_as_channels",
     {"f32 nhwc n2 g1 ic40 oc2 i50 k70 s16 p7_5 bias", "f32 nchw n1 g1 ic40 oc1 i50 k64 s16 p13_29",
      "f16 nchw n1 g1 ic40 oc1 i50 k70 s16 p7_5 bias", "f32 nchw n1 g1 ic40 oc1 i50 k64 s16 os900 bias"}},
    {"depth_to_space",
     {"f32 nchw n2 g1 ic96 oc3 i7x5 k8x8 s4x4 p2x2_2x2 bias", "f32 nhwc n2 g1 ic96 oc3 i7x5 k8x8 s4x4 p2x2_2x2 bias",
      "f32 nchw n3 g64 ic64 oc64 i22x6 k1x1 s6x6 op1x0 bias", "bf16 nchw n1 g1 ic96 oc3 i7x5 k8x8 s4x4 p2x2_2x2 bias",
      "f64 nchw n1 g1 ic96 oc3 i7x5 k8x8 s4x4 p2x2_2x2 bias"}},
    {"col2im",
     {"f32 nchw n3 ic100 oc2 i6x9 k7x7 s1x1 p3x3_3x3 bias", "f32 nhwc n2 ic16 oc2 i8x8 k4x4 s2x2 p1x1_1x1",
      "f32 nchw n1 ic96 oc2 i5000 k26 s3 p11_11 bias", "f32 nhwc n1 ic64 oc3 i97x40 k7x7 s1x1 p3x3_3x3 bias",
      "f64 nchw n1 ic100 oc2 i6x9 k7x7 s1x1 p3x3_3x3 bias", "f16 nhwc n2 ic16 oc3 i9x12 k4x4 s2x2 p1x1_1x1 bias"}},
    {"output_parts",
     {"f32 nchw n2 ic24 oc20 i16x16 k3x3 s1x1 d12x12 bias",
      "f32 nhwc n1 ic16 oc16 i20x20 k3x3 s1x1 p19x19_19x19 d19x19", "f64 nhwc n1 ic16 oc24 i24 k3 s2 d30 bias"}},
    {"layout_transpose",
     {"f32 nchw n2 g72 ic72 oc72 i19x20 k3x3 s2x2 p1x1_1x1 bias", "f32 nhwc n3 g20 ic20 oc40 i37 k3 s3 bias",
      "f64 nhwc n1 g8 ic8 oc16 i5x9 k3x3 s2x2 p1x1_1x1 bias"}},
    {"batch_as_width",
     {"f32 nhwc n13 ic48 oc40 i4x4 k4x4 s2x2 p1x1_1x1 bias", "f16 nhwc n9 ic24 oc20 i4x4 k4x4 s2x2 p1x1_1x1 bias"}},
    {"winograd",
     {"f32 nhwc n2 ic16 oc33 i5x9 k3x3 s2x2 p1x1_1x1 op1x1 bias", "f32 nhwc n7 ic512 oc16 i6x6 k4x4 s2x2 p1x1_1x1",
      "f64 nhwc n1 ic16 oc16 i40 k5 s2 p2_2 bias"}},
};

const std::vector<PostOps> kOnceOnly = {
    {0, CONVT_LEAKY_RELU, 0.25f, 0}, {1, CONVT_NO_ACTIVATION, 0, 0}, {1, CONVT_LEAKY_RELU, -1.5f, 0}};

TEST(PostOps, AfterEachAlgorithmOnce) {
    for (const std::string &name : algorithm_names()) {
        EXPECT_TRUE(std::any_of(kAlgorithms.begin(), kAlgorithms.end(),
                                [&](const WithAlgorithm &by) { return by.name == name; }))
            << name << " has no layers in kAlgorithms";
    }
    for (const WithAlgorithm &by : kAlgorithms) {
        for (const std::string &line : by.problems) {
            const Problem problem = parse_problem(line);
            const Inputs inputs = draw(problem, 3);
            for (const int threads : {1, 3}) {
                Options options{};
                options.threads = threads;
                options.all_threads = 1;
                options.variant = by.name;
                options.winograd = 1;
                for (const PostOps &p : kOnceOnly) expect_agreement(problem, p, inputs, options);
            }
        }
    }
}

// Likewise after all that can compute a layer here, whatever its name.
TEST(PostOps, AfterEachCandidateOnce) {
    for (const char *const line :
         {"f32 nchw n2 g1 ic20 oc24 i9x17 k4x4 s2x2 p1x1_1x1 bias",
          "f32 nhwc n2 g1 ic20 oc24 i9x17 k4x4 s2x2 p1x1_1x1 bias",
          "f32 nchw n1 g9 ic9 oc9 i9x17 k4x4 s2x2 p1x1_1x1 bias", "f32 nhwc n1 g33 ic33 oc33 i9x17 k4x4 s2x2 p1x1_1x1",
          "f64 nchw n1 g1 ic5 oc3 i9x17 k3x3 s2x2 p1x1_1x1 bias",
          "bf16 nhwc n1 g1 ic16 oc24 i9x17 k3x3 s2x2 p1x1_1x1 bias"}) {
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 4);
        Plan chosen;
        ASSERT_TRUE(Plan::create(problem, {}, nullptr, nullptr, &chosen));
        std::size_t tried = 0;
        for (std::size_t i = 0; i < convt_plan_candidate_count(chosen.get()); i++) {
            Options options{};
            options.variant = convt_plan_candidate(chosen.get(), i);
            options.threads = i % 2 ? 1 : 3;
            options.all_threads = 1;
            Plan plan;
            const void *const b = inputs.b ? inputs.b->data() : nullptr;
            if (!Plan::create(problem, options, inputs.w.data(), b, &plan))
                continue; // an algorithm that does not support it
            expect_agreement(problem, kOnceOnly[i % kOnceOnly.size()], inputs, options);
            tried++;
        }
        EXPECT_GT(tried, 2u) << line;
    }
}

TEST(PostOps, AfterTheReference) {
    const Problem problem = parse_problem("f32 nhwc n2 g2 ic6 oc10 i6x7 k3x3 s2x2 p1x1_1x1 bias");
    Options options{};
    options.variant = "reference_f32";
    for (const PostOps &p : kPostOps) expect_agreement(problem, p, draw(problem, 3), options);
}

TEST(PostOps, AfterQuantizedLayersWithFloatResults) {
    for (const char *const layout : {"nchw", "nhwc"}) {
        const Problem problem = parse_problem("u8 " + std::string(layout) +
                                              " n1 g1 ic8 oc24 i11x14 k3x3 s2x2 p1x1_1x1 bias ws8 yf32 zx128");
        const Inputs inputs = draw(problem, 5);
        for (const PostOps &p : kPostOps) expect_agreement(problem, p, inputs, Options{});
    }
}

// y and the residual as crops of larger tensors, each of its own; weights of the run; a plan of another size.
TEST(PostOps, OfCropsRunTimeWeightsAndReshapedPlans) {
    for (const bool channels_last : {false, true}) {
        Problem problem = parse_problem(channels_last ? "f32 nhwc n2 g1 ic3 oc5 i4x6 k3x3 s2x2"
                                                      : "f32 nchw n2 g1 ic3 oc5 i4x6 k3x3 s2x2");
        const Inputs inputs = draw(problem, 11);
        Problem other = problem;
        other.x_shape = {1, 3, 3, 3}; // in either layout
        // Without them by the same kernel, which a plan for this shape from the start need not take.
        Plan bare, from, plan;
        ASSERT_TRUE(Plan::create(other, Options{}, nullptr, nullptr, &from));
        ASSERT_TRUE(from.reshape(problem.x_shape, &bare));
        Tensor convolution(CONVT_F32, bare.y_shape());
        ASSERT_TRUE(bare.run(inputs.x.view(), inputs.w.view(), nullptr, convolution.view()));
        const PostOps p = {1, CONVT_LEAKY_RELU, 0.25f, 0};
        problem.post_ops = other.post_ops = p;
        ASSERT_TRUE(Plan::create(other, Options{}, nullptr, nullptr, &from));
        ASSERT_TRUE(from.reshape(problem.x_shape, &plan));
        ASSERT_EQ(plan.variant(), bare.variant());

        const Shape shape = plan.y_shape();
        Shape larger = shape, much_larger = shape;
        for (std::size_t i = 1; i < shape.size(); i++) {
            larger[i] += 2;
            much_larger[i] += 5;
        }
        Tensor y_parent(CONVT_F32, larger), residual_parent(CONVT_F32, much_larger);
        const auto strides = [](const Shape &parent) {
            Shape list(parent.size(), 1);
            for (std::size_t i = parent.size() - 1; i-- > 0;) list[i] = list[i + 1] * parent[i + 1];
            return list;
        };
        Random random(13);
        for (std::int64_t i = 0; i < residual_parent.size(); i++) residual_parent.set(i, random.uniform(-3, 3));
        Arguments arguments;
        arguments.x = inputs.x.view();
        arguments.w = inputs.w.view();
        arguments.y = {y_parent.data(), CONVT_F32, shape, strides(larger)};
        arguments.residual = ConstTensorView(residual_parent.data(), CONVT_F32, shape, strides(much_larger));
        const Status status = plan.run(arguments);
        ASSERT_TRUE(status) << status.message();

        // Taken out of their parents; what lies around y must still be NaN.
        Tensor y(CONVT_F32, shape), residual(CONVT_F32, shape);
        std::int64_t written = 0;
        for (std::int64_t i = 0; i < y.size(); i++) {
            std::int64_t rest = i, in_y = 0, in_residual = 0;
            for (std::size_t d = shape.size(); d-- > 0;) {
                in_y += rest % shape[d] * strides(larger)[d];
                in_residual += rest % shape[d] * strides(much_larger)[d];
                rest /= shape[d];
            }
            y.set(i, y_parent.get(in_y));
            residual.set(i, residual_parent.get(in_residual));
        }
        for (std::int64_t i = 0; i < y_parent.size(); i++) written += !std::isnan(y_parent.get(i));
        EXPECT_EQ(written, y.size());
        EXPECT_TRUE(agrees(y, p, convolution, &residual));
    }
}

TEST(PostOps, WhatMakesNoSenseIsRefused) {
    Problem problem = parse_problem("f32 nchw n1 g1 ic3 oc5 i4x6 k3x3 s2x2");
    const Inputs inputs = draw(problem, 11);
    Plan plan;
    const auto message = [&](const PostOps &p) {
        problem.post_ops = p;
        const Status status = Plan::create(problem, {}, inputs.w.data(), nullptr, &plan);
        return status ? std::string("taken") : status.message();
    };
    EXPECT_EQ(message({0, CONVT_CLIP, 2, 1}), "post_ops.alpha = 2 must be at most post_ops.beta = 1");
    EXPECT_EQ(message({0, CONVT_CLIP, NAN, 1}), "post_ops.alpha = nan must be at most post_ops.beta = 1");
    EXPECT_EQ(message({0, CONVT_LEAKY_RELU, INFINITY, 0}), "post_ops.alpha = inf must be finite: it is a slope");
    EXPECT_EQ(message({0, static_cast<convt_activation>(6), 0, 0}),
              "post_ops.activation = 6 is not a convt_activation");

    EXPECT_EQ(message({0, CONVT_RELU, 0, 0}), "taken");
    Tensor y(CONVT_F32, plan.y_shape()), residual(CONVT_F32, plan.y_shape());
    EXPECT_EQ(plan.run(inputs.x.data(), residual.data(), y.data()).message(),
              "residual is given, but the problem's post_ops add none");
    EXPECT_EQ(message({1, CONVT_RELU, 0, 0}), "taken");
    EXPECT_EQ(plan.run(inputs.x.data(), y.data()).message(), "residual is missing: the problem's post_ops add one");
    ConstTensorView other = residual.view();
    other.dtype = CONVT_F64;
    for (const bool constant : {true, false}) {
        ASSERT_TRUE(Plan::create(problem, {}, constant ? inputs.w.data() : nullptr, nullptr, &plan));
        Arguments arguments;
        arguments.x = inputs.x.view();
        arguments.y = y.view();
        if (!constant) arguments.w = inputs.w.view();
        arguments.residual = other;
        EXPECT_EQ(plan.run(arguments).message(), "residual has type f64, the plan has f32");
    }
    EXPECT_TRUE(std::isnan(y.get(0))) << "y was written by a run that was refused";

    problem = parse_problem("u8 nhwc n1 g1 ic3 oc5 i4x6 k3x3 s2x2 ws8 yu8");
    problem.post_ops = {0, CONVT_RELU, 0, 0};
    EXPECT_EQ(Plan::create(problem, {}, nullptr, nullptr, &plan).message(),
              "post_ops are given, but y is u8: an 8-bit y is clamped by its y_range");
}

TEST(PostOps, AreExplained) {
    Problem problem = parse_problem("f32 nchw n1 g1 ic3 oc5 i4x6 k3x3 s2x2");
    problem.post_ops = {1, CONVT_CLIP, 0, 6};
    Plan plan;
    ASSERT_TRUE(Plan::create(problem, {}, nullptr, nullptr, &plan));
    EXPECT_NE(plan.explain().find("then + residual clip to 0 .. 6, on pieces of y"), std::string::npos)
        << plan.explain();
}

} // namespace
} // namespace convtranspose::test
