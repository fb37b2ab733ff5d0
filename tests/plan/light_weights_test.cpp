// Light weights, and an x that each run quantizes: they give what the values that they stand for give.
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/other_layers.h"
#include "reference/built_types.h"
#include "reference/descriptor.h"
#include "reference/quantized.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

// Layers whose weights are the most of what they read, others, and some of each algorithm.
const std::vector<std::string> kLayers = {
    "f32 nchw n1 ic100 oc96 i1x1 k4x4 bias",
    "f32 nhwc n1 ic96 oc160 i2x2 k2x2 s2x2 bias",
    "f32 nchw n1 ic64 oc130 i4x4 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nhwc n2 ic33 oc70 i5x3 k3x3 s2x2 p1x1_0x0 d2x1",
    "f32 nchw n1 ic64 oc48 i9 k16 s8 p4_4 bias",
    "f32 nhwc n1 ic256 oc64 i8 k16 s8 p4_4", // packed again for fewer columns
    "f32 nchw n1 g4 ic16 oc24 i6x5 k3x3 s2x2",
    "f32 nhwc n1 g16 ic16 oc16 i8x8 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nchw n1 ic8 oc3 i12x12 k9x9 s3x3 bias",
    "f32 nchw n1 ic5 oc7 i3x4x3 k3x2x3 s2x1x2 bias",
    "f32 nchw n1 ic3 oc4 i2x2x2x3 k2x1x2x2 s2x2x1x2 bias",
    "f32 nchw n1 ic0 oc3 i4x4 k2x2 bias",
    "f32 nhwc n2 ic4 oc3 i0x3 k3x2 s2x1 bias",
};

const std::set<std::string> kWithoutLightKernels = {"x86_64", "neon32", "wasm_simd128"}; // ISAs

struct Light {
    convt_dtype dtype;
    std::int32_t zero_point;
};
const std::vector<Light> kTypes = {{CONVT_F16, 0}, {CONVT_BF16, 0}, {CONVT_S8, 0}, {CONVT_U8, 128}, {CONVT_U8, 3}};

std::vector<Problem> light_problems() {
    std::vector<Problem> problems;
    for (const std::string &line : kLayers) {
        for (const Light &light : kTypes) {
            Problem problem = parse_problem(line);
            make_light(&problem, light.dtype, light.zero_point);
            problems.push_back(problem);
            if (!is_quantized(light.dtype) || !is_built(CONVT_U8)) continue;
            problem.quantizes_x = 1;
            problems.push_back(problem);
        }
    }
    return problems;
}

Tensor result_of(const Plan &plan, const Inputs &inputs) {
    Tensor y(CONVT_F32, plan.y_shape());
    const Status status = plan.run(inputs.x.data(), y.data());
    EXPECT_TRUE(status) << status.message();
    return y;
}

TEST(LightWeights, AgreeOnEveryIsa) {
    std::uint64_t seed = 300;
    for (const Problem &problem : light_problems()) {
        for (std::size_t i = 0; i < convt_isa_count(); i++) {
            if (!convt_isa_supported(i)) continue;
            Options options;
            options.isa = convt_isa_name(i);
            options.threads = 1 + static_cast<int>(seed % 2);
            options.all_threads = 1;
            expect_agreement(problem, ++seed, Values::uniform, options);
        }
    }
}

TEST(LightWeights, GiveTheBitsOfTheirValues) {
    for (const Problem &problem : light_problems()) {
        if (problem.quantizes_x) continue;
        const Inputs inputs = draw(problem, 7);
        const Converted converted = convert(problem, inputs);
        SCOPED_TRACE(describe(problem, 7, {}));
        const Plan of_f32 = plan_of(converted.problem, converted.inputs);
        Options options;
        const std::string name = of_f32.algorithm() == "direct" ? of_f32.variant() : of_f32.algorithm();
        options.variant = name.c_str(); // reads weights of f32, whatever they were
        const Plan plan = plan_of(problem, inputs, options);
        if (plan.variant() != of_f32.variant()) continue; // a layer behind it may be computed by another kernel
        EXPECT_TRUE(result_of(plan, inputs) == result_of(of_f32, converted.inputs));
    }
}

TEST(LightWeights, MayComeWithEachRun) {
    std::uint64_t seed = 40;
    for (const Problem &problem : light_problems()) {
        const Inputs inputs = draw(problem, ++seed);
        SCOPED_TRACE(describe(problem, seed, {}));
        Problem planned = problem;
        const bool late_scales = problem.quantization && seed % 2;
        if (late_scales) planned.quantization.reset();
        Plan plan;
        Status status = Plan::create(planned, options_of_the_run(), nullptr, nullptr, &plan);
        ASSERT_TRUE(status) << status.message();
        Arguments arguments;
        Tensor y(CONVT_F32, plan.y_shape());
        arguments.x = inputs.x.view();
        arguments.w = inputs.w.view();
        if (inputs.b) arguments.b = inputs.b->view();
        arguments.y = y.view();
        if (late_scales) arguments.quantization = problem.quantization;
        std::vector<char> memory(plan.workspace_bytes() + 64);
        void *workspace = memory.data();
        std::size_t space = memory.size();
        arguments.workspace = seed % 3 ? nullptr : std::align(64, plan.workspace_bytes(), workspace, space);
        status = plan.run(arguments);
        ASSERT_TRUE(status) << status.message();
        EXPECT_TRUE(agrees(y, reference(problem, inputs)));
    }
}

TEST(LightWeights, MayBeReshapedAndRead) {
    for (const Problem &problem : light_problems()) {
        const Inputs inputs = draw(problem, 3);
        const Plan plan = plan_of(problem, inputs, options_of_the_run());
        Problem larger = problem;
        const std::size_t axis = problem.layout == CONVT_CHANNELS_FIRST ? problem.x_shape.size() - 1 : 1;
        for (const std::int64_t extent : {1, 3, 17}) {
            larger.x_shape[axis] = extent;
            SCOPED_TRACE(describe(larger, 3, {}));
            Shape y_shape;
            if (!infer_shape(larger, &y_shape)) continue; // the pads crop all of y
            Inputs others = draw(larger, 5);
            others.w = inputs.w;
            others.b = inputs.b;
            Plan reshaped;
            const Status status = plan.reshape(larger.x_shape, &reshaped);
            ASSERT_TRUE(status) << status.message();
            EXPECT_TRUE(agrees(result_of(reshaped, others), reference(larger, others)));
        }
    }
}

TEST(LightWeights, TakeTheirOwnBytes) {
    Problem problem = parse_problem("f32 nchw n1 ic128 oc256 i1x1 k4x4 bias");
    const std::size_t of_f32 = plan_of(problem, draw(problem, 1)).packed_bytes();
    for (const Light &light : kTypes) {
        make_light(&problem, light.dtype, light.zero_point);
        const Plan plan = plan_of(problem, draw(problem, 1));
        if (kWithoutLightKernels.count(plan.isa()) || light.zero_point == 3) {
            // No ISA has kernels for values beyond s8.
            EXPECT_EQ(plan.packed_bytes(), of_f32) << plan.variant();
            continue;
        }
        EXPECT_LT(plan.packed_bytes() * (is_quantized(light.dtype) ? 7 : 19),
                  of_f32 * (is_quantized(light.dtype) ? 2 : 10))
            << plan.variant();
    }
}

// With constant weights, or none if what the options ask for does not support the problem.
Plan plan_if_supported(const Problem &problem, const Inputs &inputs, const Options &options) {
    Plan plan;
    const Status status = Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
    EXPECT_TRUE(status || status.code() == CONVT_UNSUPPORTED) << status.message();
    return plan;
}

// Algorithms compute a layer through others, whose weights may be other numbers.
TEST(LightWeights, AgreeByEveryAlgorithm) {
    std::uint64_t seed = 700;
    std::set<std::string> done;
    for (const char *const line :
         {"f32 nchw n1 ic64 oc64 i4x4 k4x4 s2x2 p1x1_1x1 bias", "f32 nhwc n3 ic64 oc64 i3x3 k3x3 s1x1 p1x1_1x1",
          "f32 nchw n1 ic48 oc32 i7 k4 s2 bias", "f32 nhwc n1 ic40 oc48 i3x5 k2x2 s2x2 bias",
          "f32 nhwc n1 ic96 oc128 i2x2 k4x4 s2x2 p1x1_1x1"}) {
        for (const Light &light : kTypes) {
            for (std::size_t i = 0; i < convt_algorithm_count(); i++) {
                Problem problem = parse_problem(line);
                make_light(&problem, light.dtype, light.zero_point);
                if (seed % 2 && problem.quantization) problem.quantization->w_scale = {0.01f};
                const Inputs inputs = draw(problem, ++seed);
                const Expected expected = reference(problem, inputs);
                Options options;
                options.winograd = 1;
                options.variant = convt_algorithm_name(i);
                if (std::string("direct") == options.variant) continue;
                SCOPED_TRACE(describe(problem, seed, options));
                const Plan plan = plan_if_supported(problem, inputs, options);
                if (!plan) continue;
                done.insert(plan.algorithm());
                Expected looser = expected; // by Winograd's algorithm, the error is bounded by larger magnitudes
                for (double &tolerance : looser.tolerance) tolerance = 32 * tolerance + 1e-4;
                EXPECT_TRUE(agrees(result_of(plan, inputs), plan.algorithm() == "winograd" ? looser : expected));
            }
        }
    }
    EXPECT_TRUE(done.count("winograd"));
    EXPECT_GE(done.size(), 5u);
}

// Each phase has the scale of its channel, also where there are as many phases as channels.
TEST(LightWeights, OfPhasesHaveTheScalesOfTheirChannels) {
    std::uint64_t seed = 900;
    int light_plans = 0;
    for (const char *const line :
         {"f32 nchw n1 ic2048 oc8 i1x2 k1x8 s1x8", "f32 nchw n1 ic2048 oc8 i1x2 k8x8 s8x8",
          "f32 nchw n1 ic2048 oc16 i4x4 k2x16 s2x16 bias", "f32 nhwc n1 g2 ic512 oc8 i2x3 k2x2 s3x3 bias"}) {
        Problem problem = parse_problem(line);
        make_light(&problem, CONVT_S8);
        // Weights that are divided by the scale of another channel fit in no s8.
        for (std::size_t m = 0; m < problem.quantization->w_scale.size(); m += 2)
            problem.quantization->w_scale[m] *= 16;
        const Inputs inputs = draw(problem, ++seed);
        const Expected expected = reference(problem, inputs);
        for (std::size_t i = 0; i < convt_isa_count(); i++) {
            if (!convt_isa_supported(i)) continue;
            for (const char *const algorithm : {"phases_as_channels", "depth_to_space"}) {
                Options options;
                options.isa = convt_isa_name(i);
                options.variant = algorithm;
                options.threads = 1;
                SCOPED_TRACE(describe(problem, seed, options));
                const Plan plan = plan_if_supported(problem, inputs, options);
                if (!plan) continue;
                light_plans += plan.explain().find("_s8w_") != std::string::npos;
                EXPECT_TRUE(agrees(result_of(plan, inputs), expected));
            }
        }
    }
    const Problem any = parse_problem("f32 nchw n1 ic4 oc4 i2x2 k2x2");
    EXPECT_TRUE(light_plans > 0 || kWithoutLightKernels.count(plan_of(any, draw(any, 1)).isa()));
}

TEST(LightWeights, AreExplained) {
    Problem problem = parse_problem("f32 nchw n1 ic64 oc8 i40x40 k4x4 s2x2");
    const auto explanation = [&] { return plan_of(problem, draw(problem, 1)).explain(); };
    const auto expect_text = [](const std::string &text, const std::string &wanted) {
        EXPECT_NE(text.find(wanted), std::string::npos) << wanted << " is not in\n" << text;
    };
    make_light(&problem, CONVT_F16);
    expect_text(explanation(), "ConvTranspose f32 x and y, weights of f16, channels first");
    expect_text(explanation(), "its weights are packed as f32");
    make_light(&problem, CONVT_U8, 3);
    expect_text(explanation(), "weights of u8 are f32: less their zero points, they are no s8");
    if (!is_built(CONVT_U8)) return;
    problem.quantizes_x = 1;
    expect_text(explanation(), "x of f32 becomes u8 with each run");
}

TEST(LightWeights, MayBeInfinite) {
    for (const convt_dtype dtype : {CONVT_F16, CONVT_BF16}) {
        Problem problem = parse_problem("f32 nchw n1 ic64 oc130 i4x4 k4x4 s2x2 p1x1_1x1 bias");
        problem.w_dtype = dtype;
        Inputs inputs = draw(problem, 9);
        inputs.w.set(77, std::numeric_limits<double>::infinity());
        inputs.w.set(1999, std::numeric_limits<double>::quiet_NaN());
        EXPECT_TRUE(agrees(result_of(plan_of(problem, inputs), inputs), reference(problem, inputs)));
    }
    Problem problem = parse_problem("f32 nchw n1 ic64 oc130 i4x4 k4x4 s2x2 p1x1_1x1 bias");
    make_light(&problem, CONVT_S8);
    problem.quantization->w_scale = {std::numeric_limits<float>::max()}; // times 2 it is infinite
    const Inputs inputs = draw(problem, 9);
    EXPECT_TRUE(agrees(result_of(plan_of(problem, inputs), inputs), reference(problem, inputs)));
}

TEST(LightWeights, AreRefusedWithAReason) {
    const auto expect_refusal = [](const Problem &problem, const std::string &text) {
        Plan plan;
        const Inputs inputs = draw(problem, 1);
        const Status status = Plan::create(problem, {}, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
        EXPECT_EQ(status.code(), CONVT_INVALID_ARGUMENT);
        EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
    };
    Problem problem = parse_problem("f32 nchw n1 ic8 oc8 i4x4 k2x2 bias");
    problem.w_dtype = CONVT_F64;
    expect_refusal(problem, "w_dtype = f64 must be f32, f16, bf16, u8 or s8, as x is f32");
    problem.w_dtype = CONVT_F16;
    problem.quantization = Quantization{};
    expect_refusal(problem, "quantization is given, but w is f16");
    problem.quantization.reset();
    problem.quantizes_x = 1;
    expect_refusal(problem, "quantizes_x = 1 is for x of f32 and w of u8 or s8; x is f32 and w f16");
    problem.quantizes_x = 0;
    problem.w_dtype = CONVT_S8;
    expect_refusal(problem, "w holds s8, whose scales must be known when it is packed");
    make_light(&problem, CONVT_S8);
    problem.quantization->y_range = {{0, 6}};
    expect_refusal(problem, "y_range is given, but x is f32");
    problem.quantization->y_range.reset();
    problem.quantization->w_scale = {0};
    expect_refusal(problem, "w_scale[0] = 0 must be positive and finite");
    problem.quantization->w_scale = {1, 2};
    expect_refusal(problem, "w_scale has 2 elements, needs 1 or 8");
    problem.quantization->w_scale = {1};
    problem.quantization->w_zero_point = {200};
    expect_refusal(problem, "w_zero_point[0] = 200 is not a value of s8");

    make_light(&problem, CONVT_S8);
    const Inputs inputs = draw(problem, 1);
    const Plan plan = plan_of(problem, inputs);
    Tensor y(CONVT_F32, plan.y_shape());
    Arguments arguments;
    arguments.x = inputs.x.view();
    arguments.y = y.view();
    arguments.quantization = problem.quantization;
    const Status status = plan.run(arguments);
    EXPECT_EQ(status.code(), CONVT_INVALID_ARGUMENT);
    EXPECT_NE(status.message().find("the weights were converted to f32"), std::string::npos) << status.message();
}

class QuantizedInput : public testing::Test {
  protected:
    void SetUp() override {
        if (!is_built(CONVT_U8)) GTEST_SKIP() << "kernels of 8-bit integers are not built";
        problem = parse_problem("f32 nhwc n2 ic9 oc8 i6x5 k3x3 s2x2 bias");
        make_light(&problem, CONVT_S8);
        problem.quantizes_x = 1;
        inputs = draw(problem, 2);
    }

    void expect_agreement_now() const {
        EXPECT_TRUE(agrees(result_of(plan_of(problem, inputs), inputs), reference(problem, inputs)));
    }

    Problem problem;
    Inputs inputs;
};

TEST_F(QuantizedInput, MayBeOfAnyRange) {
    for (const double magnitude : {0.0, 1e-45, 1e-40, 1e-20, 1.0, 1e20, 3e38}) {
        for (const int signs : {-1, 0, 1}) {
            Random random(static_cast<std::uint64_t>(signs + 2));
            for (std::int64_t i = 0; i < inputs.x.size(); i++) {
                inputs.x.set(i, magnitude * (signs ? signs * random.uniform(0, 1) : random.uniform(-1, 1)));
            }
            SCOPED_TRACE(testing::Message() << magnitude << " " << signs);
            expect_agreement_now();
        }
    }
}

TEST_F(QuantizedInput, MakesNaNsOfWhatIsNotFinite) {
    for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity()}) {
        for (const std::int64_t at : {std::int64_t{0}, inputs.x.size() / 2, inputs.x.size() - 1}) {
            Inputs others = inputs;
            others.x.set(at, value);
            const Tensor y = result_of(plan_of(problem, others), others);
            for (std::int64_t i = 0; i < y.size(); i++) ASSERT_TRUE(std::isnan(y.get(i))) << value << " at " << at;
        }
    }
}

TEST_F(QuantizedInput, MayHaveGaps) {
    const Plan plan = plan_of(problem, inputs);
    const Tensor expected = result_of(plan, inputs);
    // The last axis is dense, and all others have gaps.
    const Strides strides = dense_strides({2, 9, 7, 13});
    Tensor wide(CONVT_F32, {std::int64_t{2} * 9 * 7 * 13});
    for (std::int64_t i = 0; i < inputs.x.size(); i++) {
        const std::int64_t c = i % 9, w = i / 9 % 5, h = i / 45 % 6, n = i / 270;
        wide.set(n * strides[0] + h * strides[1] + w * strides[2] + c, inputs.x.get(i));
    }
    Arguments arguments;
    Tensor y(CONVT_F32, plan.y_shape());
    arguments.x = {wide.data(), CONVT_F32, problem.x_shape, Shape(strides.begin(), strides.end())};
    arguments.y = y.view();
    const Status status = plan.run(arguments);
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(y == expected);
}

TEST_F(QuantizedInput, IsTheSameOnSeveralThreads) {
    problem = parse_problem("f32 nchw n3 ic40 oc4 i40x43 k2x2 s2x2");
    make_light(&problem, CONVT_S8);
    problem.quantizes_x = 1;
    inputs = draw(problem, 5);
    inputs.x.set(inputs.x.size() - 1, 1.5); // the greatest
    Options options;
    options.threads = 3;
    options.all_threads = 1;
    const Tensor y = result_of(plan_of(problem, inputs, options), inputs);
    EXPECT_TRUE(y == result_of(plan_of(problem, inputs), inputs));
    EXPECT_TRUE(agrees(y, reference(problem, inputs)));
}

TEST_F(QuantizedInput, HasPostOpsBehind) {
    problem.post_ops.activation = CONVT_RELU;
    const Tensor y = result_of(plan_of(problem, inputs), inputs);
    problem.post_ops = {};
    const Expected expected = reference(problem, inputs);
    for (std::int64_t i = 0; i < y.size(); i++) {
        ASSERT_EQ(y.get(i), std::max(expected.value[static_cast<std::size_t>(i)], 0.0)) << i;
    }
}

} // namespace
} // namespace convtranspose::test
