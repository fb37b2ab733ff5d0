// Plans for a device: what is chosen, sums in parts, post-ops, weights of all kinds, views, fallback.
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gpu/device.h"
#include "gpu/device_reference.h"
#include "reference/descriptor.h"
#include "reference/quantized.h"
#include "reference/random_problem.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

class DevicePlans : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Kinds, DevicePlans, testing::ValuesIn(device_kinds()),
                         [](const testing::TestParamInfo<std::string> &c) { return c.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DevicePlans);

TEST_P(DevicePlans, AgreeOnRandomProblems) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    Random random(7);
    int on_the_device = 0;
    for (std::uint64_t seed = 1; seed <= 120; ++seed) {
        Problem problem = random_problem(&random);
        if (is_quantized(problem.dtype)) quantize(&problem, random_quantized_as(problem.dtype, &random));
        Options options = on_device(GetParam());
        options.device.falls_back = 1; // more than three axes
        const Inputs inputs = draw(problem, seed);
        SCOPED_TRACE(describe(problem, seed, options));
        Plan plan;
        Status status = Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
        ASSERT_TRUE(status) << status.message();
        on_the_device += plan.device() == GetParam();
        Tensor y(problem.y_dtype.value_or(problem.dtype), plan.y_shape());
        status = plan.run(inputs.x.data(), y.data());
        ASSERT_TRUE(status) << status.message();
        ASSERT_TRUE(agrees(y, device_reference(problem, inputs))) << plan.explain();
    }
    EXPECT_GT(on_the_device, 90);
}

// Deep and small: sums over input channels are split, and so is each type's result.
TEST_P(DevicePlans, SumInParts) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    for (const char *line :
         {"f32 nchw n1 ic1024 oc64 i2x2 k2x2 s2x2 bias", "f32 nhwc n1 ic700 oc65 i2x2 k3x3 s2x2 p1x1_1x1",
          "f16 nchw n1 ic1024 oc64 i2x2 k2x2 s2x2 bias", "bf16 nchw n1 ic1024 oc64 i2x2 k2x2 s2x2"}) {
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 3);
        Options options = on_device(GetParam());
        // The variant that does it, whatever the device has.
        const std::string variant = problem.dtype == CONVT_F32   ? "tiled_f32_64x64:8"
                                    : problem.dtype == CONVT_F16 ? "tiled_f16_parts_64x64"
                                                                 : "tiled_bf16_parts_64x64";
        options.variant = variant.c_str();
        SCOPED_TRACE(describe(problem, 3, options));
        Plan plan;
        Status status = Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
        ASSERT_TRUE(status) << status.message();
        EXPECT_NE(plan.explain().find("parts"), std::string::npos) << plan.explain();
        Tensor y(problem.dtype, plan.y_shape());
        status = plan.run(inputs.x.data(), y.data());
        ASSERT_TRUE(status) << status.message();
        EXPECT_TRUE(agrees(y, device_reference(problem, inputs)));
    }
}

// The number of parts may be named, and each that is a candidate computes the same.
TEST_P(DevicePlans, SumInAsManyPartsAsNamed) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    const Problem problem = parse_problem("f32 nchw n1 ic129 oc9 i2x2 k2x2 s2x2 bias");
    const Inputs inputs = draw(problem, 4);
    Plan chosen;
    ASSERT_TRUE(Plan::create(problem, on_device(GetParam()), inputs.w.data(), inputs.b->data(), &chosen));
    int in_parts = 0;
    for (std::size_t i = 0; i < convt_plan_candidate_count(chosen.get()); ++i) {
        const std::string name = convt_plan_candidate(chosen.get(), i);
        SCOPED_TRACE(name);
        Options options = on_device(GetParam());
        options.variant = name.c_str();
        Plan plan;
        Status status = Plan::create(problem, options, inputs.w.data(), inputs.b->data(), &plan);
        ASSERT_TRUE(status) << status.message();
        const std::size_t colon = name.find(':');
        const bool has_parts = plan.explain().find(" parts; then combine") != std::string::npos;
        ASSERT_EQ(plan.variant(), name);
        ASSERT_EQ(has_parts, colon != std::string::npos) << plan.explain();
        in_parts += has_parts;
        Tensor y(problem.dtype, plan.y_shape());
        status = plan.run(inputs.x.data(), y.data());
        ASSERT_TRUE(status) << status.message();
        EXPECT_TRUE(agrees(y, device_reference(problem, inputs)));
    }
    EXPECT_GT(in_parts, 3);
    for (const char *name : {"tiled_f32_64x64:3", "tiled_f32_64x64:32", "tiled_f32_64x64:"}) {
        Options options = on_device(GetParam());
        options.variant = name;
        const Status status = Plan::create(problem, options, inputs.w.data(), inputs.b->data(), &chosen);
        EXPECT_EQ(status.code(), CONVT_UNSUPPORTED) << name;
        EXPECT_NE(status.message().find("so many parts"), std::string::npos) << status.message();
    }
}

// Against the CPU's: the convolution of integers is exact in both, so that only the activation differs, by units in the last place.
TEST_P(DevicePlans, PostOpsAreTheCpus) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    for (const char *dtype : {"f16", "bf16", "f32", "f64"}) {
        for (const convt_activation activation :
             {CONVT_NO_ACTIVATION, CONVT_RELU, CONVT_LEAKY_RELU, CONVT_CLIP, CONVT_SIGMOID, CONVT_TANH}) {
            for (const int adds_residual : {0, 1}) {
                if (!adds_residual && activation == CONVT_NO_ACTIVATION) continue;
                Problem problem = parse_problem(std::string(dtype) + " nchw n2 ic5 oc6 i3x5 k4x4 s2x2 p1x1_1x1 bias");
                problem.post_ops = {adds_residual, activation, activation == CONVT_CLIP ? -1.5f : 0.25f, 2.5f};
                Inputs inputs = draw(problem, 5, Values::integers);
                inputs.x.set(0, std::numeric_limits<double>::quiet_NaN());
                SCOPED_TRACE(std::string(dtype) + ", activation " + std::to_string(activation));
                std::vector<Tensor> results;
                for (const std::string &device : {std::string("cpu"), GetParam()}) {
                    Plan plan;
                    Status status = Plan::create(problem, on_device(device), inputs.w.data(), inputs.b->data(), &plan);
                    ASSERT_TRUE(status) << status.message();
                    ASSERT_EQ(plan.device(), device);
                    Tensor y(problem.dtype, plan.y_shape()), residual = y;
                    for (std::int64_t i = 0; i < residual.size(); ++i) residual.set(i, static_cast<double>(i % 7) - 3);
                    status = adds_residual ? plan.run(inputs.x.data(), residual.data(), y.data())
                                           : plan.run(inputs.x.data(), y.data());
                    ASSERT_TRUE(status) << status.message();
                    results.push_back(y);
                }
                const double unit = std::string(dtype) == "f64"   ? 0x1p-52
                                    : std::string(dtype) == "f32" ? 0x1p-23
                                    : std::string(dtype) == "f16" ? 0x1p-10
                                                                  : 0x1p-7;
                int nans = 0;
                for (std::int64_t i = 0; i < results[0].size(); ++i) {
                    const double cpu = results[0].get(i), device = results[1].get(i);
                    nans += std::isnan(cpu);
                    ASSERT_EQ(std::isnan(cpu), std::isnan(device)) << i;
                    if (!std::isnan(cpu)) {
                        ASSERT_NEAR(device, cpu, 8 * unit * std::abs(cpu)) << i;
                    }
                }
                EXPECT_GT(nans, 0);
            }
        }
    }
}

// An infinite weight at a tap that reads outside of x must not reach y.
TEST_P(DevicePlans, InfiniteWeightsReachWhatTheyShould) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    const Problem problem = parse_problem("f32 nchw n1 ic9 oc5 i4x5 k3x3 s2x2 p1x1_1x1 bias");
    Inputs inputs = draw(problem, 9);
    inputs.w.set(4, std::numeric_limits<double>::infinity());
    inputs.w.set(100, std::numeric_limits<double>::quiet_NaN());
    for (const bool constant : {true, false}) {
        Plan plan;
        Status status = Plan::create(problem, on_device(GetParam()), constant ? inputs.w.data() : nullptr,
                                     constant ? inputs.b->data() : nullptr, &plan);
        ASSERT_TRUE(status) << status.message();
        Tensor y(problem.dtype, plan.y_shape());
        const ConstTensorView b = inputs.b->view();
        status =
            constant ? plan.run(inputs.x.data(), y.data()) : plan.run(inputs.x.view(), inputs.w.view(), &b, y.view());
        ASSERT_TRUE(status) << status.message();
        EXPECT_TRUE(agrees(y, device_reference(problem, inputs)));
    }
}

// The candidates are those of the kernel that runs with finite weights, whenever the weights arrive, and explain lists the others
// by the reason why they cannot, as it does for CPUs.
TEST_P(DevicePlans, ListCandidatesAndRefusals) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    const Problem problem = parse_problem("f32 nchw n1 ic64 oc40 i5x5 k4x4 s2x2 p1x1_1x1");
    const Inputs inputs = draw(problem, 10);
    std::vector<std::vector<std::string>> candidates;
    for (const bool constant : {true, false}) {
        Plan plan;
        const Status status =
            Plan::create(problem, on_device(GetParam()), constant ? inputs.w.data() : nullptr, nullptr, &plan);
        ASSERT_TRUE(status) << status.message();
        std::vector<std::string> &names = candidates.emplace_back();
        for (std::size_t i = 0; i < convt_plan_candidate_count(plan.get()); ++i) {
            names.emplace_back(convt_plan_candidate(plan.get(), i));
        }
        ASSERT_FALSE(names.empty());
        EXPECT_EQ(names.front(), plan.variant());
        const std::string text = plan.explain();
        EXPECT_NE(text.find("\n  y[2*q + 1] <- "), std::string::npos) << text;
        EXPECT_NE(text.find("\n  * " + names.front() + " "), std::string::npos) << text;
        EXPECT_NE(text.find("\n  no: computes with integers: tiled_u8_64x64, "), std::string::npos) << text;
    }
    EXPECT_EQ(candidates[0], candidates[1]);
}

TEST_P(DevicePlans, ReshapeKeepsTheWeights) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    Problem problem = parse_problem("f32 nchw n1 ic20 oc30 i4x5 k4x4 s2x2 p1x1_1x1 bias");
    const Inputs inputs = draw(problem, 11);
    Plan plan, reshaped;
    Status status = Plan::create(problem, on_device(GetParam()), inputs.w.data(), inputs.b->data(), &plan);
    ASSERT_TRUE(status) << status.message();
    problem.x_shape = {2, 20, 7, 3};
    status = plan.reshape(problem.x_shape, &reshaped);
    ASSERT_TRUE(status) << status.message();
    Inputs others = draw(problem, 12);
    others.w = inputs.w;
    others.b = inputs.b;
    Tensor y(problem.dtype, reshaped.y_shape());
    status = reshaped.run(others.x.data(), y.data());
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(agrees(y, device_reference(problem, others)));
}

TEST_P(DevicePlans, TakeCrops) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    const Problem problem = parse_problem("f32 nchw n2 ic3 oc4 i3x5 k3x3 s2x2");
    const Inputs inputs = draw(problem, 13);
    Plan plan;
    Status status = Plan::create(problem, on_device(GetParam()), inputs.w.data(), nullptr, &plan);
    ASSERT_TRUE(status) << status.message();
    // x inside of rows of 9, y inside of rows of 16.
    Tensor x(CONVT_F32, {2, 3, 3, 9}), y(CONVT_F32, {2, 4, 7, 16}), dense(CONVT_F32, plan.y_shape());
    for (std::int64_t i = 0; i < inputs.x.size(); ++i) x.set(i / 5 * 9 + i % 5, inputs.x.get(i));
    const ConstTensorView x_view(x.data(), CONVT_F32, problem.x_shape, {81, 27, 9, 1});
    TensorView y_view{y.data(), CONVT_F32, plan.y_shape(), {448, 112, 16, 1}};
    status = plan.run(x_view, y_view);
    ASSERT_TRUE(status) << status.message();
    for (std::int64_t i = 0; i < y.size(); ++i) {
        if (i % 16 < 11) {
            dense.set(i / 16 * 11 + i % 16, y.get(i));
        } else {
            ASSERT_TRUE(std::isnan(y.get(i))) << "a gap was written to";
        }
    }
    EXPECT_TRUE(agrees(dense, device_reference(problem, inputs)));
}

// Some layers are computed by the CPU alone.
TEST_P(DevicePlans, RefuseQuantizedLayersThatTheyCannotCompute) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    Problem problem = parse_problem("u8 nchw n1 ic4 oc3 i2x2 k2x2");
    problem.w_dtype = CONVT_U8;
    problem.quantization = Quantization{};
    const Inputs inputs = draw(problem, 3);
    Plan plan;
    Status status = Plan::create(problem, on_device(GetParam()), nullptr, nullptr, &plan);
    EXPECT_EQ(status.code(), CONVT_UNSUPPORTED);
    EXPECT_NE(status.message().find("weights that arrive with each run"), std::string::npos) << status.message();

    // 2^18 products of 255 * 255 do not fit.
    Problem deep = parse_problem("u8 nchw n1 ic262144 oc1 i1x1 k1x1");
    deep.w_dtype = CONVT_U8;
    deep.quantization = Quantization{};
    Inputs large = draw(deep, 4);
    for (std::int64_t i = 0; i < large.w.size(); ++i) large.w.set(i, 255);
    status = Plan::create(deep, on_device(GetParam()), large.w.data(), nullptr, &plan);
    EXPECT_EQ(status.code(), CONVT_UNSUPPORTED);
    EXPECT_NE(status.message().find("may not fit in 32 bits"), std::string::npos) << status.message();
    Options options = on_device(GetParam());
    options.device.falls_back = 1;
    Tensor y;
    status = run(deep, large, options, &y);
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(agrees(y, device_reference(deep, large)));
}

// Four products at a time; reshaped, and with another zero point of x, which the biases hold.
TEST_P(DevicePlans, MultiplyFourBytesAtATime) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    for (const convt_dtype dtype : {CONVT_U8, CONVT_S8}) {
        Problem problem = parse_problem("u8 nchw n1 ic38 oc70 i5x6 k4x3 s2x1 p1x1_1x1 bias");
        problem.dtype = dtype;
        problem.y_dtype = dtype;
        problem.w_dtype = CONVT_S8;
        Quantization q;
        q.x_zero_point = dtype == CONVT_U8 ? 130 : -7;
        q.w_scale = {0.25f};
        q.y_scale = 40;
        q.y_zero_point = 3;
        problem.quantization = q;
        const Inputs inputs = draw(problem, 17);
        Options options = on_device(GetParam());
        options.variant = "tiled_u8_dots_64x64"; // whatever pays on this device
        Plan plan, reshaped;
        Status status = Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
        ASSERT_TRUE(status) << status.message();
        SCOPED_TRACE(plan.explain());
        EXPECT_EQ(plan.variant(), options.variant);
        Tensor y(dtype, plan.y_shape());
        ASSERT_TRUE(plan.run(inputs.x.data(), y.data()));
        EXPECT_TRUE(agrees(y, device_reference(problem, inputs)));

        problem.quantization->x_zero_point = dtype == CONVT_U8 ? 20 : 101;
        problem.x_shape = {3, 38, 4, 9};
        Inputs others = draw(problem, 18);
        others.w = inputs.w;
        others.b = inputs.b;
        status = plan.reshape(problem.x_shape, &reshaped);
        ASSERT_TRUE(status) << status.message();
        EXPECT_EQ(reshaped.variant(), options.variant);
        Tensor again(dtype, reshaped.y_shape());
        Arguments arguments;
        arguments.x = others.x.view();
        arguments.y = again.view();
        arguments.quantization = problem.quantization;
        status = reshaped.run(arguments);
        ASSERT_TRUE(status) << status.message();
        EXPECT_TRUE(agrees(again, device_reference(problem, others)));
    }
}

// The zero point of x adds to a sum by the taps that read inside x, and those depend on the shape of x.
TEST_P(DevicePlans, ReshapeQuantizedLayersToOtherTaps) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    const Shape shapes[] = {{1, 6, 1, 1}, {2, 6, 9, 7}, {1, 6, 2, 12}, {1, 6, 5, 1}};
    for (const char *attributes : {"k5x4 s1x1 p2x1_2x1 bias", "k5x4 s2x3 bias os4x4"}) {
        for (const Shape &from : shapes) {
            Problem problem = parse_problem(std::string("u8 nchw n1 ic6 oc70 i4x4 ws8 yu8 ") + attributes);
            problem.w_dtype = CONVT_S8;
            Quantization q;
            q.x_zero_point = 200;
            q.w_scale = {0.25f};
            q.y_scale = 40;
            problem.quantization = q;
            problem.x_shape = from;
            const Inputs inputs = draw(problem, 19);
            Options options = on_device(GetParam());
            options.variant = "tiled_u8_dots_64x64";
            Plan plan;
            Status status = Plan::create(problem, options, inputs.w.data(), inputs.b->data(), &plan);
            ASSERT_TRUE(status) << status.message();
            for (const Shape &to : shapes) {
                problem.x_shape = to;
                SCOPED_TRACE(describe(problem, 20, options));
                Inputs others = draw(problem, 20);
                others.w = inputs.w;
                others.b = inputs.b;
                Plan reshaped;
                status = plan.reshape(to, &reshaped);
                ASSERT_TRUE(status) << status.message();
                Tensor y(CONVT_U8, reshaped.y_shape());
                ASSERT_TRUE(reshaped.run(others.x.data(), y.data()));
                EXPECT_TRUE(agrees(y, device_reference(problem, others)));
                plan = std::move(reshaped); // a plan of another shape, which came from others, is reshaped again
            }
        }
    }
}

// A tuning record of this device is followed; one of another is not; one that cannot be followed is told.
TEST_P(DevicePlans, FollowTuningRecords) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    const Problem problem = parse_problem("f32 nchw n1 ic20 oc30 i4x5 k4x4 s2x2 p1x1_1x1 bias");
    const Inputs inputs = draw(problem, 31);
    std::vector<std::unique_ptr<convt_tuning, decltype(&convt_tuning_destroy)>> records; // which outlive the plans
    const auto plan_with = [&](const std::string &cpu, const std::string &variant, Plan *plan) {
        Plan untuned;
        ASSERT_TRUE(Plan::create(problem, on_device(GetParam()), inputs.w.data(), inputs.b->data(), &untuned));
        const std::string record =
            "{\"package\": \"" CONVT_VERSION "\", \"kernels\": \"" + std::string(convt_kernels_version()) +
            "\", \"cpu\": \"" + cpu + "\", \"isa\": \"" + GetParam() + "\", \"threads\": 1, \"problem\": \"" +
            convt_plan_problem(untuned.get()) + "\", \"variant\": \"" + variant + "\", \"ms\": 0.25}";
        convt_tuning *tuning = nullptr;
        ASSERT_EQ(convt_tuning_read(record.data(), record.size(), &tuning), CONVT_OK) << convt_last_error();
        records.emplace_back(tuning, &convt_tuning_destroy);
        Options options = on_device(GetParam());
        options.tuning = tuning;
        const Status status = Plan::create(problem, options, inputs.w.data(), inputs.b->data(), plan);
        ASSERT_TRUE(status) << status.message();
    };
    const std::string name = convt_device_description(GetParam().c_str(), 0);
    for (const std::string variant : {"each_f32_planar", "tiled_f32_64x64", "small_oc_f32_4x512"}) {
        Plan plan, elsewhere;
        ASSERT_NO_FATAL_FAILURE(plan_with(name, variant, &plan));
        EXPECT_EQ(plan.variant(), variant);
        EXPECT_NE(plan.explain().find("says a tuning record: 0.25 ms"), std::string::npos) << plan.explain();
        ASSERT_NO_FATAL_FAILURE(plan_with("another device", variant, &elsewhere));
        EXPECT_EQ(elsewhere.explain().find("tuning record"), std::string::npos) << elsewhere.explain();
    }
    Plan plan;
    ASSERT_NO_FATAL_FAILURE(plan_with(name, "each_f64_planar", &plan));
    EXPECT_NE(plan.explain().find("a tuning record names each_f64_planar, which cannot"), std::string::npos)
        << plan.explain();
}

TEST_P(DevicePlans, NumbersOfDevicesDoNotWrap) {
    constexpr std::size_t kBeyondInt = std::size_t{1} << 32;
    for (const std::size_t index : {kBeyondInt / 2, kBeyondInt, kBeyondInt + 1, SIZE_MAX}) {
        EXPECT_EQ(convt_device_description(GetParam().c_str(), index), nullptr) << index;
        EXPECT_EQ(convt_last_error(), "there is no device " + std::to_string(index) + " of " + GetParam());
    }
}

TEST_P(DevicePlans, RefuseOrFallBack) {
    const Problem problem = parse_problem("f32 nchw n1 ic2 oc3 i2x2x2x2 k2x2x2x2"); // four axes
    const Inputs inputs = draw(problem, 15);
    Options options = on_device(GetParam());
    Plan plan;
    Status status = Plan::create(problem, options, inputs.w.data(), nullptr, &plan);
    EXPECT_EQ(status.code(), CONVT_UNSUPPORTED) << status.message();
    options.device.falls_back = 1;
    status = Plan::create(problem, options, inputs.w.data(), nullptr, &plan);
    ASSERT_TRUE(status) << status.message();
    EXPECT_EQ(plan.device(), "cpu");

    const Problem flat = parse_problem("f32 nchw n1 ic2 oc3 i2x2 k2x2");
    options = on_device(GetParam());
    options.device.index = 1000;
    status = Plan::create(flat, options, draw(flat, 1).w.data(), nullptr, &plan);
    EXPECT_EQ(status.code(), CONVT_UNSUPPORTED) << status.message();
    EXPECT_NE(status.message(), "");
    options.device.index = -1;
    status = Plan::create(flat, options, draw(flat, 1).w.data(), nullptr, &plan);
    EXPECT_EQ(status.message(), "device.index = -1 must not be negative");
    options.device.index = 0;
    options.planning = CONVT_MEASURE;
    status = Plan::create(flat, options, draw(flat, 1).w.data(), nullptr, &plan);
    EXPECT_EQ(status.code(), CONVT_UNSUPPORTED);
    EXPECT_EQ(status.message(), "planning = CONVT_MEASURE is for plans for the CPU: tune the device instead");
}

// Whatever a driver is missing: skips where there is a device.
TEST_P(DevicePlans, SayWhyThereIsNoDevice) {
    const std::string why = why_no_device(GetParam());
    if (why.empty()) GTEST_SKIP() << "there is one";
    const Problem problem = parse_problem("f32 nchw n1 ic2 oc3 i2x2 k2x2");
    const Inputs inputs = draw(problem, 1);
    Plan plan;
    const Status status = Plan::create(problem, on_device(GetParam()), inputs.w.data(), nullptr, &plan);
    EXPECT_EQ(status.code(), CONVT_UNSUPPORTED);
    EXPECT_NE(status.message(), "");
    Options options = on_device(GetParam());
    options.device.falls_back = 1;
    ASSERT_TRUE(Plan::create(problem, options, inputs.w.data(), nullptr, &plan));
    EXPECT_EQ(plan.device(), "cpu");
    Tensor y;
    ASSERT_TRUE(run(problem, inputs, options, &y));
    EXPECT_TRUE(agrees(y, device_reference(problem, inputs)));
}

TEST(Devices, UnknownOnesAreRefused) {
    const Problem problem = parse_problem("f32 nchw n1 ic2 oc3 i2x2 k2x2");
    const Inputs inputs = draw(problem, 1);
    Options options{};
    options.device.name = "abacus";
    Plan plan;
    EXPECT_EQ(Plan::create(problem, options, inputs.w.data(), nullptr, &plan).code(), CONVT_UNSUPPORTED);
    options.device.falls_back = 1;
    ASSERT_TRUE(Plan::create(problem, options, inputs.w.data(), nullptr, &plan));
    EXPECT_EQ(plan.device(), "cpu");
    // A plan for the CPU takes no memory of a device.
    Tensor y(CONVT_F32, plan.y_shape());
    ConstTensorView x = inputs.x.view();
    x.memory = CONVT_DEVICE_MEMORY;
    EXPECT_EQ(plan.run(x, y.view()).code(), CONVT_INVALID_ARGUMENT);
}

} // namespace
} // namespace convtranspose::test
