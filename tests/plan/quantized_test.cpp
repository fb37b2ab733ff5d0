// Quantized plans: what they refuse, sums that do not fit in 32 bits, ranges of y, crops, memory.
#include <array>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/counting_allocator.h"
#include "reference/descriptor.h"
#include "reference/quantized.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
const char *const kValid = "u8 nhwc n1 g1 ic5 oc6 i4x5 k3x3 s2x2 p1x1_1x1 bias wu8 ys8 zx3 zw100 zy-4";

Status create(const Problem &problem, const Inputs &inputs, Plan *plan, const Options &options = Options{}) {
    return Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, plan);
}

struct Case {
    const char *name;
    std::function<void(Problem *)> edit;
    std::string message;
};

void PrintTo(const Case &c, std::ostream *stream) { *stream << c.name; }

// Each is refused alike when planning and, as far as it is the run's quantization that is wrong, when running.
const std::vector<Case> kQuantizationCases = {
    {"XScaleZero", [](Problem *p) { p->quantization->x_scale = 0; }, "x_scale = 0 must be positive and finite"},
    {"XScaleNegative", [](Problem *p) { p->quantization->x_scale = -2; }, "x_scale = -2 must be positive and finite"},
    {"XScaleInfinite", [](Problem *p) { p->quantization->x_scale = kInfinity; }, "x_scale = inf must be"},
    {"XScaleNan", [](Problem *p) { p->quantization->x_scale = kNan; }, "x_scale = nan must be"},
    {"YScaleZero", [](Problem *p) { p->quantization->y_scale = 0; }, "y_scale = 0 must be positive and finite"},
    {"YScaleNan", [](Problem *p) { p->quantization->y_scale = kNan; }, "y_scale = nan must be"},
    {"WScaleOfAChannel", [](Problem *p) { p->quantization->w_scale = {1, 1, 1, 0, 1, 1}; }, "w_scale[3] = 0 must be"},
    {"WScaleNone", [](Problem *p) { p->quantization->w_scale.clear(); }, "w_scale has 0 elements, needs 1 or 6"},
    {"WZeroPointNone", [](Problem *p) { p->quantization->w_zero_point = std::vector<std::int32_t>(); },
     "w_zero_point has 0 elements, needs 1 or 6"},
    {"WScaleSize",
     [](Problem *p) {
         p->quantization->w_scale = {1, 1};
     },
     "w_scale has 2 elements, needs 1 or 6"},
    {"WZeroPointSize",
     [](Problem *p) {
         p->quantization->w_zero_point = {1, 1, 1, 1, 1};
     },
     "w_zero_point has 5 elements, needs 1 or 6"},
    {"WZeroPoint", [](Problem *p) { p->quantization->w_zero_point = {256}; },
     "w_zero_point[0] = 256 is not a value of u8"},
    {"XZeroPoint", [](Problem *p) { p->quantization->x_zero_point = -1; }, "x_zero_point = -1 is not a value of u8"},
    {"YZeroPoint", [](Problem *p) { p->quantization->y_zero_point = 128; }, "y_zero_point = 128 is not a value of s8"},
    {"YRangeReversed",
     [](Problem *p) {
         p->quantization->y_range = {{1.0f, 0.0f}};
     },
     "y_range = (1, 0)"},
    {"YRangeNan",
     [](Problem *p) {
         p->quantization->y_range = {{kNan, 0.0f}};
     },
     "y_range = (nan, 0)"},
};

class QuantizationErrors : public testing::TestWithParam<Case> {};

TEST_P(QuantizationErrors, AreRefusedByPlansAndRuns) {
    const Problem valid = parse_problem(kValid);
    Problem broken = valid;
    GetParam().edit(&broken);
    const Inputs inputs = draw(valid, 1);
    Plan plan;
    Status status = create(broken, inputs, &plan);
    EXPECT_EQ(status.code(), CONVT_INVALID_ARGUMENT);
    EXPECT_NE(status.message().find(GetParam().message), std::string::npos) << status.message();

    ASSERT_TRUE(create(valid, inputs, &plan));
    Tensor y(CONVT_S8, plan.y_shape()), before = y;
    status = plan.run(inputs.x.view(), nullptr, nullptr, y.view(), *broken.quantization);
    EXPECT_EQ(status.code(), CONVT_INVALID_ARGUMENT);
    EXPECT_NE(status.message().find(GetParam().message), std::string::npos) << status.message();
    EXPECT_TRUE(y == before) << "something was written";
}

INSTANTIATE_TEST_SUITE_P(Quantized, QuantizationErrors, testing::ValuesIn(kQuantizationCases),
                         [](const testing::TestParamInfo<Case> &c) { return std::string(c.param.name); });

const std::vector<Case> kTypeCases = {
    {"WOfFloats", [](Problem *p) { p->w_dtype = CONVT_F32; }, "w_dtype = f32 must be u8 or s8"},
    {"YOfSums", [](Problem *p) { p->y_dtype = CONVT_S32; }, "y_dtype = s32 must be u8, s8 or f32"},
    {"YOfHalves", [](Problem *p) { p->y_dtype = CONVT_F16; }, "y_dtype = f16 must be u8, s8 or f32"},
    {"XOfSums", [](Problem *p) { p->dtype = CONVT_S32; }, "dtype = s32 is not one of"},
    {"XOfFloats", [](Problem *p) { p->dtype = CONVT_F32; }, "y_dtype = s8 must be that of x, f32"},
    {"FloatsQuantized",
     [](Problem *p) {
         p->dtype = CONVT_F32;
         p->w_dtype = p->y_dtype = std::nullopt;
     },
     "quantization is given, but w is f32"},
    {"BiasSize", [](Problem *p) { p->b_shape = Shape{5}; }, "b_shape = (5) must be (6)"},
    {"NoQuantization", [](Problem *p) { p->quantization.reset(); },
     "w holds u8, whose scales must be known when it is packed"},
};

class TypeErrors : public testing::TestWithParam<Case> {};

TEST_P(TypeErrors, AreRefused) {
    Problem problem = parse_problem(kValid);
    const Inputs inputs = draw(problem, 1);
    GetParam().edit(&problem);
    Plan plan;
    const Status status = create(problem, inputs, &plan);
    EXPECT_EQ(status.code(), CONVT_INVALID_ARGUMENT);
    EXPECT_NE(status.message().find(GetParam().message), std::string::npos) << status.message();
}

INSTANTIATE_TEST_SUITE_P(Quantized, TypeErrors, testing::ValuesIn(kTypeCases),
                         [](const testing::TestParamInfo<Case> &c) { return std::string(c.param.name); });

TEST(Quantized, RunsRefuseTensorsOfOtherTypes) {
    const Problem problem = parse_problem(kValid);
    const Inputs inputs = draw(problem, 1);
    Plan plan;
    ASSERT_TRUE(create(problem, inputs, &plan));
    Tensor y(CONVT_S8, plan.y_shape()), wrong(CONVT_U8, plan.y_shape()), before = y;
    Status status = plan.run(inputs.x.view(), wrong.view());
    EXPECT_EQ(status.message(), "y has type u8, the plan has s8");
    status = plan.run(ConstTensorView(inputs.x.data(), CONVT_S8, problem.x_shape), y.view());
    EXPECT_EQ(status.message(), "x has type s8, the plan has u8");

    Problem at_run_time = problem;
    at_run_time.quantization.reset();
    ASSERT_TRUE(Plan::create(at_run_time, Options{}, nullptr, nullptr, &plan));
    const ConstTensorView w = inputs.w.view(), b(inputs.b->data(), CONVT_F32, {6});
    status = plan.run(inputs.x.view(), &w, &b, y.view(), *problem.quantization);
    EXPECT_EQ(status.message(), "b has type f32, the plan has s32");
    const ConstTensorView good_b = inputs.b->view();
    status = plan.run(inputs.x.view(), w, &good_b, y.view());
    EXPECT_EQ(status.message(), "quantization is missing: the plan was made without it");
    EXPECT_TRUE(y == before) << "something was written";
}

TEST(Quantized, ConstantWeightsKeepTheirZeroPoints) {
    const Problem problem = parse_problem(kValid);
    const Inputs inputs = draw(problem, 1);
    Plan plan;
    ASSERT_TRUE(create(problem, inputs, &plan));
    Tensor y(CONVT_S8, plan.y_shape());
    Quantization other = *problem.quantization;
    other.w_zero_point = {100, 100, 101, 100, 100, 100};
    const Status status = plan.run(inputs.x.view(), nullptr, nullptr, y.view(), other);
    EXPECT_EQ(status.message(), "w_zero_point of output channel 2 is 101, the weights were packed with 100");
}

TEST(Quantized, AFloatPlanTakesNoQuantization) {
    const Problem problem = parse_problem("f32 nchw ic2 oc2 i3 k3");
    const Inputs inputs = draw(problem, 1);
    Plan plan;
    ASSERT_TRUE(create(problem, inputs, &plan));
    Tensor y(CONVT_F32, plan.y_shape());
    const Status status = plan.run(inputs.x.view(), nullptr, nullptr, y.view(), Quantization{});
    EXPECT_EQ(status.message(), "quantization is given, but w is f32");
}

// Sums beyond 32 bits, by weights and x at their extremes and by the bias, are computed in more.
TEST(Quantized, SumsThatOverflowAreExact) {
    for (const std::string line : {"u8 nhwc ic64 oc9 i3x4 k3x3 bias wu8 yu8 zx0 zw0 zy7",
                                   "u8 nhwc ic3000 oc2 i4x4 k4x4 s1x1 p3x3_3x3 bias wu8 yu8 zx0 zw0 zy7",
                                   "u8 nchw ic33026 oc1 i2x2x2x2 k1x1x1x1 bias wu8 yu8 zx0 zw0 zy7",
                                   "u8 nhwc ic20000 oc2 i2x2x2x2 k2x1x1x1 bias wu8 yf32 zx0 zw0"}) {
        Problem problem = parse_problem(line);
        const bool large_bias = problem.x_shape.back() == 64, real = problem.y_dtype == CONVT_F32;
        Inputs inputs = draw(problem, 3);
        for (std::int64_t i = 0; i < inputs.x.size(); ++i) inputs.x.set(i, 255);
        for (std::int64_t i = 0; i < inputs.w.size(); ++i) inputs.w.set(i, 255);
        for (std::int64_t m = 0; m < inputs.b->size(); ++m) inputs.b->set(m, large_bias ? 2147483647.0 : 5.0);
        if (!real) problem.quantization->y_scale = 0.05f * 0.01f * (3000.0f * 16 * 255 * 255 / 200);
        const Expected expected = reference(problem, inputs);
        for (const bool constant : {true, false}) {
            SCOPED_TRACE(line + (constant ? ", constant" : ", run-time"));
            Plan plan;
            Status status = Plan::create(problem, Options{}, constant ? inputs.w.data() : nullptr,
                                         constant ? inputs.b->data() : nullptr, &plan);
            ASSERT_TRUE(status) << status.message();
            Tensor y(real ? CONVT_F32 : CONVT_U8, plan.y_shape());
            const ConstTensorView w = inputs.w.view(), b = inputs.b->view();
            status = constant ? plan.run(inputs.x.view(), y.view()) : plan.run(inputs.x.view(), w, &b, y.view());
            ASSERT_TRUE(status) << status.message();
            EXPECT_TRUE(agrees(y, expected));
            if (!constant) continue;
            EXPECT_EQ(plan.variant(), problem.x_shape.size() > 5 ? "reference_i16_f64" : "reference_i16")
                << "whose sums have 64 bits";
        }
    }
}

// Values of x are up to 200 from the zero point, and six weights of 2 meet each output.
TEST(Quantized, TheBoundOfSumsIsSaid) {
    const Problem problem = parse_problem("u8 nhwc ic6 oc2 i3x3 k1x1 wu8 yu8 zx55 zw0 zy7");
    Inputs inputs = draw(problem, 3);
    for (std::int64_t i = 0; i < inputs.w.size(); ++i) inputs.w.set(i, 2);
    Plan plan;
    ASSERT_TRUE(create(problem, inputs, &plan));
    EXPECT_NE(plan.explain().find("sums are at most 2400 in magnitude"), std::string::npos) << plan.explain();
}

// Weights that arrive with a run may ask for another kernel than the one that was planned, whose weights, biases and copies have
// other sizes: the workspace is enough for each, to the byte, on each ISA.
TEST(Quantized, WorkspacesAreEnoughForAnyWeights) {
    for (const char *const line : {"u8 nhwc ic9 oc21 i5x6 k3x3 s2x2 bias wu8 yu8 zx7 zw0 zy7",
                                   "u8 nchw ic9 oc3 i5x37 k3x4 s2x2 p1x1_1x1 bias wu8 yu8 zx7 zw0 zy7",
                                   "u8 nhwc g20 ic20 oc20 i5x6 k3x3 s1x1 p1x1_1x1 bias wu8 yu8 zx7 zw0 zy7",
                                   "u8 nchw ic2200 oc2 i2x9 k4x4 s1x1 bias wu8 yu8 zx0 zw0 zy7",
                                   "u8 nhwc ic2200 oc2 i2x9 k4x4 s1x1 bias wu8 ys8 zx0 zw0 zy7",
                                   "s8 nchw ic3 oc4 i2x2x3x3 k2x2x3x3 s1x1x2x2 bias ws8 ys8 zx-7 zw0 zy7"}) {
        Problem problem = parse_problem(line);
        Inputs inputs = draw(problem, 3);
        const bool is_signed = problem.w_dtype == CONVT_S8;
        for (std::size_t isa = 0; isa < convt_isa_count(); ++isa) {
            if (!convt_isa_supported(isa)) continue;
            for (const int threads : {1, 3}) {
                CountingAllocator memory;
                Options options = memory.options();
                options.isa = convt_isa_name(isa);
                options.threads = threads;
                options.all_threads = 1;
                SCOPED_TRACE(describe(problem, 3, options));
                Plan plan;
                const Status created = Plan::create(problem, options, nullptr, nullptr, &plan);
                ASSERT_TRUE(created) << created.message();
                // Those that fit everywhere, that do not fit in 8 bits less their zero point, and whose sums overflow.
                for (const int w_values : {0, 1, 2}) {
                    SCOPED_TRACE(w_values);
                    for (std::int64_t i = 0; i < inputs.w.size(); ++i) {
                        const auto small = static_cast<double>(i % 7);
                        inputs.w.set(i,
                                     w_values == 0 ? small : (is_signed ? 127.0 : 255.0) - (w_values == 1 ? small : 0));
                    }
                    for (std::int64_t m = 0; m < inputs.b->size(); ++m)
                        inputs.b->set(m, w_values == 2 ? 2147483647.0 : 5.0);
                    Quantization quantization = *problem.quantization;
                    quantization.w_zero_point = {w_values == 1 && is_signed ? -128 : 0};
                    Problem as_run = problem;
                    as_run.quantization = quantization;
                    const Expected expected = reference(as_run, inputs);
                    const ConstTensorView w = inputs.w.view(), b = inputs.b->view();
                    Tensor y(*problem.y_dtype, plan.y_shape());
                    ASSERT_TRUE(plan.run(inputs.x.view(), &w, &b, y.view(), quantization));
                    EXPECT_TRUE(agrees(y, expected));
                }
            }
        }
    }
}

// Weights that arrive with a run may need 9 bits, less their zero point. The reference kernel is for sums of more than 32 bits
// only.
TEST(Quantized, WeightsOf9BitsHaveAFastKernel) {
    const Problem problem = parse_problem("u8 nhwc n1 ic32 oc32 i8x8 k3x3 s1x1 wu8 yu8");
    for (std::size_t isa = 0; isa < convt_isa_count(); ++isa) {
        if (!convt_isa_supported(isa)) continue;
        Options options{};
        options.isa = convt_isa_name(isa);
        SCOPED_TRACE(options.isa);
        Plan plan;
        const Status status = Plan::create(problem, options, nullptr, nullptr, &plan);
        ASSERT_TRUE(status) << status.message();
        std::size_t fast = 0;
        for (std::size_t i = 0; i < convt_plan_kernel_count(plan.get()); ++i) {
            const std::string name = convt_plan_kernel(plan.get(), i);
            fast += name.find("_i16") != std::string::npos && name.rfind("reference", 0) != 0;
        }
        EXPECT_GE(fast, 1u);
    }
}

TEST(Quantized, ClampsToARange) {
    Problem problem = parse_problem("s8 nhwc ic16 oc20 i5x6 k3x3 s2x2 p1x1_1x1 bias yu8 zx5 zy30");
    const std::vector<std::array<float, 2>> ranges = {{0, kInfinity}, {0, 6}, {-kInfinity, 0}, {-1e30f, 1e30f},
                                                      {-0.7f, 0.3f},  {2, 2}, {1e9f, 2e9f}};
    for (const convt_dtype y_dtype : {CONVT_U8, CONVT_F32}) {
        problem.y_dtype = y_dtype;
        for (const std::array<float, 2> &range : ranges) {
            problem.quantization->y_range = range;
            problem.quantization->y_scale = 0.05f;
            problem.quantization->x_scale = 0.0002f; // y is of order 1
            SCOPED_TRACE(testing::Message() << range[0] << " .. " << range[1]);
            const Inputs inputs = draw(problem, 5);
            Tensor y;
            const Status status = run(problem, inputs, Options{}, &y);
            ASSERT_TRUE(status) << status.message();
            EXPECT_TRUE(agrees(y, reference(problem, inputs)));
        }
    }
}

// Scales whose product leaves f32, or whose quotient does: the nearest factor, and 0 of a sum of 0.
TEST(Quantized, ScalesAtTheEndsOfTheirRange) {
    Problem problem = parse_problem("u8 nhwc ic1 oc1 i3 k1 wu8 yu8 zx1 zw0 zy9");
    Inputs inputs = draw(problem, 1);
    for (std::int64_t i = 0; i < 3; ++i) inputs.x.set(i, static_cast<double>(i)); // -1, 0, 1
    inputs.w.set(0, 3);
    const auto results = [&](float x_scale, float w_scale, float y_scale) {
        problem.quantization->x_scale = x_scale;
        problem.quantization->w_scale = {w_scale};
        problem.quantization->y_scale = y_scale;
        Tensor y;
        EXPECT_TRUE(run(problem, inputs, Options{}, &y));
        return std::array<double, 3>{y.get(0), y.get(1), y.get(2)};
    };
    EXPECT_EQ(results(1e30f, 1e30f, 1e38f), (std::array<double, 3>{0, 9, 255}));    // the product overflows
    EXPECT_EQ(results(1e30f, 1e30f, 1e-30f), (std::array<double, 3>{0, 9, 255}));   // so does the quotient
    EXPECT_EQ(results(1e-30f, 1e-30f, 1e-38f), (std::array<double, 3>{9, 9, 9}));   // the product underflows: 1e-22
    EXPECT_EQ(results(1e-25f, 1e-25f, 0.5e-38f), (std::array<double, 3>{9, 9, 9})); // to 0; the quotient is 2e-12
    EXPECT_EQ(results(1e-20f, 1e-22f, 1e-42f), (std::array<double, 3>{6, 9, 12}));  // of subnormals: 1
}

TEST(Quantized, CropsAreReadAndWrittenWhereTheyAre) {
    for (const std::string layout : {"nhwc", "nchw"}) {
        for (const std::string rest :
             {" n2 ic8 oc20 i4x9 k2x2 s2x2 bias ys8 zx7", " n2 ic5 oc3 i4x9 k3x3 s2x2 p1x1_1x1 zx7",
              " n1 ic16 oc1 i6x33 k4x4 s2x2 p1x1_1x1 zx7"}) {
            const Problem problem = parse_problem(std::string("u8 ").append(layout).append(rest));
            SCOPED_TRACE(describe(problem));
            const Inputs inputs = draw(problem, 9);
            const auto spread = [](const Shape &shape) { // room for two more of each axis but the first
                Shape room = shape;
                for (std::size_t i = 1; i < room.size(); ++i) room[i] += 2;
                return room;
            };
            const auto strides_of = [](const Shape &room) {
                Shape strides(room.size(), 1);
                for (std::size_t i = room.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * room[i];
                return strides;
            };
            Plan plan;
            ASSERT_TRUE(create(problem, inputs, &plan));
            const Shape y_shape = plan.y_shape(), x_room = spread(problem.x_shape), y_room = spread(y_shape);
            const Shape x_strides = strides_of(x_room), y_strides = strides_of(y_room);
            Tensor x(problem.dtype, x_room), y(*problem.y_dtype, y_room), dense(*problem.y_dtype, y_shape);
            const auto each = [](const Shape &shape, const Shape &strides, const auto &f) {
                for (std::int64_t i = 0; i < element_count(shape); ++i) {
                    std::int64_t rest_of_i = i, at = 0;
                    for (std::size_t a = shape.size(); a-- > 0;) {
                        at += rest_of_i % shape[a] * strides[a];
                        rest_of_i /= shape[a];
                    }
                    f(i, at);
                }
            };
            each(problem.x_shape, x_strides, [&](std::int64_t i, std::int64_t at) { x.set(at, inputs.x.get(i)); });
            for (std::int64_t i = 0; i < y.size(); ++i) y.set(i, 99);
            const Status status = plan.run(ConstTensorView(x.data(), problem.dtype, problem.x_shape, x_strides),
                                           TensorView{y.data(), *problem.y_dtype, y_shape, y_strides});
            ASSERT_TRUE(status) << status.message();
            each(y_shape, y_strides, [&](std::int64_t i, std::int64_t at) {
                dense.set(i, y.get(at));
                y.set(at, 99);
            });
            EXPECT_TRUE(agrees(dense, reference(problem, inputs)));
            for (std::int64_t i = 0; i < y.size(); ++i) ASSERT_EQ(y.get(i), 99) << "written between the elements of y";
        }
    }
}

TEST(Quantized, EmptyInputsLeaveTheBias) {
    for (const char *line : {"u8 nhwc ic0 oc3 i4x5 k3x3 s2x2 bias zx3 zy50",
                             "s8 nchw ic4 oc3 i0x5 k3x3 s2x2 bias zx3 zy50", "u8 nhwc n0 ic4 oc3 i3x5 k3x3 bias",
                             "u8 nhwc ic4 oc0 i3x5 k3x3", "u8 nhwc ic4 oc3 i3x5 k2x2 s5x5 os20x31 bias zx200 zy7"}) {
        expect_agreement(parse_problem(line), 2);
    }
}

// Halves, of which every second sum has one here, go to the even neighbour, with any number of axes, on each ISA and by the
// reference: beyond three axes sums are added up before they are rounded.
TEST(Quantized, TiesAreRoundedToEven) {
    for (const char *const line :
         {"u8 nchw n1 ic2 oc3 i40 k2 s2 bias ws8 ys8", "u8 nhwc n1 ic2 oc20 i6x7 k2x2 s2x2 ws8 yu8",
          "s8 nchw n1 ic1 oc2 i3x4x5 k2x2x2 s2x2x2 ws8 ys8",
          "u8 nhwc n1 ic2 oc3 i3x2x3x4 k1x2x1x2 s1x1x2x1 bias ws8 ys8",
          "s8 nchw n1 ic2 oc17 i2x2x3x3 k2x1x2x1 s1x1x1x1 ws8 yu8"}) {
        Problem problem = parse_problem(line);
        problem.quantization->x_scale = 1;
        problem.quantization->w_scale = {1};
        problem.quantization->y_scale = 2;
        problem.quantization->y_zero_point = 0;
        Inputs inputs = draw(problem, 1);
        for (std::int64_t i = 0; i < inputs.x.size(); ++i) inputs.x.set(i, static_cast<double>(i * 7 % 10));
        for (std::int64_t i = 0; i < inputs.w.size(); ++i) inputs.w.set(i, static_cast<double>(i * 5 % 7 - 2));
        for (std::int64_t i = 0; inputs.b && i < inputs.b->size(); ++i) inputs.b->set(i, static_cast<double>(i - 20));
        const Expected expected = quantized_reference(problem, inputs);
        for (std::size_t isa = 0; isa <= convt_isa_count(); ++isa) {
            if (isa < convt_isa_count() && !convt_isa_supported(isa)) continue;
            Options options{};
            if (isa < convt_isa_count()) options.isa = convt_isa_name(isa);
            SCOPED_TRACE(describe(problem, 1, options));
            Tensor y;
            const Status status = run(problem, inputs, options, &y);
            ASSERT_TRUE(status) << status.message();
            EXPECT_TRUE(agrees(y, expected));
        }
    }
}

TEST(Quantized, ManyAxes) {
    for (const char *line :
         {"u8 nhwc ic5 oc7 i9 k4 s2 p1_1 bias zx100", "s8 nchw ic5 oc7 i3x4x5 k3x2x3 s2x1x2 zx-100 pc",
          "u8 nhwc ic3 oc5 i2x3x3x4 k2x3x2x3 s2x1x2x2 p1x0x0x1_0x0x1x1 bias zx128 zw3 ws8 yu8 zy3 pc",
          "u8 nchw ic2 oc3 i2x2x2x3x4 k2x1x2x2x3 s2x1x2x2x1 bias zx17 yu8 relu"}) {
        for (const convt_dtype y : {CONVT_U8, CONVT_F32}) {
            Problem problem = parse_problem(line);
            QuantizedAs as = quantized_as(problem);
            as.y = y;
            quantize(&problem, as);
            expect_agreement(problem, 4);
        }
    }
}

TEST(Quantized, SteadyRunsAllocateNothing) {
    CountingAllocator memory;
    {
        Problem problem = parse_problem("u8 nhwc n2 ic13 oc20 i8x9 k4x4 s2x2 p1x1_1x1 bias zx9 zy100");
        const Inputs inputs = draw(problem, 1);
        for (const bool own_workspace : {false, true}) {
            Plan plan;
            ASSERT_TRUE(create(problem, inputs, &plan, memory.options()));
            Tensor y(*problem.y_dtype, plan.y_shape());
            std::vector<unsigned char> bytes(plan.workspace_bytes() + 64, 0xa5);
            void *workspace = nullptr;
            if (own_workspace) workspace = bytes.data() + (64 - reinterpret_cast<std::uintptr_t>(bytes.data()) % 64);
            ASSERT_TRUE(plan.run(inputs.x.view(), y.view(), workspace));
            const std::size_t before = memory.allocations();
            for (int i = 0; i < 3; ++i) ASSERT_TRUE(plan.run(inputs.x.view(), y.view(), workspace));
            ASSERT_TRUE(plan.run(inputs.x.view(), nullptr, nullptr, y.view(), *problem.quantization, workspace));
            EXPECT_EQ(memory.allocations(), before);
            EXPECT_TRUE(agrees(y, reference(problem, inputs)));
        }
        // Each allocation that fails is reported, and leaves nothing behind.
        for (std::size_t i = 0;; ++i) {
            memory.fail_at(i);
            Plan plan;
            const Status status = create(problem, inputs, &plan, memory.options());
            if (!memory.failed()) break;
            EXPECT_EQ(status.code(), CONVT_OUT_OF_MEMORY) << i;
        }
        memory.stop_failing();
    }
    EXPECT_EQ(memory.live_blocks(), 0u);
}

} // namespace
} // namespace convtranspose::test
