// Hundreds of random problems, with whatever is chosen for them.
//
//     CONVTRANSPOSE_TEST_SEED=n         other problems (default 1)
//     CONVTRANSPOSE_TEST_ISA=name       kernels of this ISA
//     CONVTRANSPOSE_TEST_PROBLEM=line   this problem instead of all others: the line that a failure prints
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "reference/built_types.h"
#include "reference/descriptor.h"
#include "reference/effort.h"
#include "reference/quantized.h"
#include "reference/random_problem.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

constexpr int kTests = 20, kProblemsPerTest = 30 / kOneIn;

std::uint64_t seed_of_the_run() {
    const char *text = std::getenv("CONVTRANSPOSE_TEST_SEED");
    return text ? std::strtoull(text, nullptr, 10) : 1;
}

class RandomProblems : public testing::TestWithParam<int> {};

TEST_P(RandomProblems, Agree) {
    if (built_floats().empty()) GTEST_SKIP() << "no float type is built";
    const std::uint64_t seed = seed_of_the_run();
    SCOPED_TRACE("CONVTRANSPOSE_TEST_SEED=" + std::to_string(seed));
    Random random(seed * 1000 + static_cast<std::uint64_t>(GetParam()));
    for (int i = 0; i < kProblemsPerTest; ++i) {
        Problem problem = random_problem(&random);
        if (const char *line = std::getenv("CONVTRANSPOSE_TEST_PROBLEM")) problem = parse_problem(line);
        const std::uint64_t value_seed = random.bits() % 1000000;
        Options options = options_of_the_run();
        options.threads = static_cast<int>(random.integer(1, 4));
        options.all_threads = 1;
        expect_agreement(problem, value_seed, i % 3 ? Values::uniform : Values::integers, options);
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProblems, testing::Range(0, kTests));

// Larger ones, also by candidates that are not chosen.
TEST_P(RandomProblems, LargeAgree) {
    constexpr int kCandidates = 7;
    const int problems = !kEmulated ? 3 : GetParam() % 5 == 0 ? 1 : 0;
    Random random(seed_of_the_run() * 10000 + static_cast<std::uint64_t>(GetParam()));
    for (int i = 0; i < problems; ++i) {
        Problem problem = large_problem(&random);
        if (is_built(CONVT_U8) && random.integer(1, 3) == 1) {
            problem.dtype = random.pick<convt_dtype>({CONVT_U8, CONVT_S8});
            quantize(&problem, random_quantized_as(problem.dtype, &random));
        }
        if (!is_built(problem.dtype)) continue;
        Options options = options_of_the_run();
        options.threads = static_cast<int>(random.integer(1, 3));
        options.all_threads = 1;
        const std::uint64_t value_seed = random.bits() % 1000000;
        SCOPED_TRACE(describe(problem, value_seed, options));
        const Inputs inputs = draw(problem, value_seed);
        const Expected expected = reference(problem, inputs);
        Plan chosen;
        ASSERT_TRUE(Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &chosen));
        for (int k = 0; k < kCandidates; ++k) {
            if (k > 0) {
                const auto last = static_cast<std::int64_t>(convt_plan_candidate_count(chosen.get())) - 1;
                options.variant = convt_plan_candidate(chosen.get(), static_cast<std::size_t>(random.integer(0, last)));
            }
            SCOPED_TRACE(options.variant ? options.variant : "what is chosen");
            Tensor y;
            const Status status = run(problem, inputs, options, &y);
            ASSERT_TRUE(status) << status.message();
            EXPECT_TRUE(agrees(y, expected));
        }
    }
}

// Small tensors whose strides, dilations and pads are anything: what meets y is computed, and nothing else costs memory.
TEST_P(RandomProblems, FarAgree) {
    constexpr std::size_t kMostMemory = 64 << 20;
    Random random(seed_of_the_run() * 4000 + static_cast<std::uint64_t>(GetParam()));
    for (int i = 0; i < kProblemsPerTest; ++i) {
        Problem problem = far_problem(&random);
        if (i % 4 == 0 && is_built(CONVT_U8)) {
            problem.dtype = random.pick<convt_dtype>({CONVT_U8, CONVT_S8});
            quantize(&problem, random_quantized_as(problem.dtype, &random));
        }
        const std::uint64_t value_seed = random.bits() % 1000000;
        Options options{};
        options.threads = static_cast<int>(random.integer(1, 4));
        options.all_threads = 1;
        expect_agreement(problem, value_seed, Values::integers, options);
        SCOPED_TRACE(describe(problem, value_seed, options));
        Plan plan;
        const Status status = Plan::create(problem, options, nullptr, nullptr, &plan);
        ASSERT_TRUE(status) << status.message();
        EXPECT_LE(plan.workspace_bytes(), kMostMemory);
        EXPECT_LE(plan.packed_bytes(), kMostMemory);
    }
}

// The same weights with the plan, with the run, and in a plan for another size: three ways to the same y.
TEST_P(RandomProblems, AgreeAfterReshape) {
    if (built_floats().empty()) GTEST_SKIP() << "no float type is built";
    Random random(seed_of_the_run() * 2000 + static_cast<std::uint64_t>(GetParam()));
    for (int i = 0; i < kProblemsPerTest / 3; ++i) {
        Problem problem = random_problem(&random);
        if (problem.dtype == CONVT_F32 && random.integer(1, 2) == 1) {
            const convt_dtype light = random.pick<convt_dtype>({CONVT_F16, CONVT_BF16, CONVT_S8, CONVT_U8});
            make_light(&problem, light, light == CONVT_U8 ? 128 : 0);
            problem.quantizes_x = is_quantized(light) && is_built(CONVT_U8) && random.integer(1, 3) == 1;
        }
        Problem other = problem; // another batch, and rows one longer
        other.x_shape[0] += 1;
        other.x_shape[problem.layout == CONVT_CHANNELS_FIRST ? other.x_shape.size() - 1 : other.x_shape.size() - 2] +=
            1;
        const std::uint64_t value_seed = random.bits() % 1000000;
        SCOPED_TRACE(describe(problem, value_seed, options_of_the_run()));
        const Inputs inputs = draw(problem, value_seed);
        Plan from, to;
        Status status =
            Plan::create(other, options_of_the_run(), inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &from);
        ASSERT_TRUE(status) << status.message();
        status = from.reshape(problem.x_shape, &to);
        ASSERT_TRUE(status) << status.message();
        Tensor y(problem.dtype, to.y_shape());
        status = to.run(inputs.x.data(), y.data());
        ASSERT_TRUE(status) << status.message();
        EXPECT_TRUE(agrees(y, reference(problem, inputs)));
    }
}

// Quantized ones: weights with the plan or with the run, scales of the plan or of the run, another size first.
TEST_P(RandomProblems, QuantizedAgree) {
    if (!is_built(CONVT_U8)) GTEST_SKIP() << "quantized kernels are not built";
    Random random(seed_of_the_run() * 3000 + static_cast<std::uint64_t>(GetParam()));
    for (int i = 0; i < kProblemsPerTest; ++i) {
        Problem problem = random_problem(&random);
        problem.dtype = random.pick<convt_dtype>({CONVT_U8, CONVT_S8});
        QuantizedAs as = random_quantized_as(problem.dtype, &random);
        if (random.integer(1, 5) == 1) as.y = CONVT_F32;
        quantize(&problem, as);
        if (const char *line = std::getenv("CONVTRANSPOSE_TEST_PROBLEM")) problem = parse_problem(line);
        if (!is_quantized(problem.dtype)) return;
        const std::uint64_t value_seed = random.bits() % 1000000;
        Options options = options_of_the_run();
        options.threads = static_cast<int>(random.integer(1, 4));
        options.all_threads = 1;
        SCOPED_TRACE(describe(problem, value_seed, options));
        const Inputs inputs = draw(problem, value_seed);
        const ConstTensorView w = inputs.w.view(), b = inputs.b ? inputs.b->view() : ConstTensorView();
        const void *const b_data = inputs.b ? inputs.b->data() : nullptr;
        const Expected expected = reference(problem, inputs);
        const auto check = [&](const char *way, const Problem &planned, bool constant, bool own_scales) {
            SCOPED_TRACE(way);
            Plan plan;
            Status status =
                Plan::create(planned, options, constant ? w.data : nullptr, constant ? b_data : nullptr, &plan);
            ASSERT_TRUE(status) << status.message();
            if (plan.x_shape() != problem.x_shape) {
                Plan reshaped;
                status = plan.reshape(problem.x_shape, &reshaped);
                ASSERT_TRUE(status) << status.message();
                plan = std::move(reshaped);
            }
            Tensor y(*problem.y_dtype, plan.y_shape());
            const ConstTensorView *const run_w = constant ? nullptr : &w, *const run_b =
                                                                              constant || !inputs.b ? nullptr : &b;
            if (own_scales) {
                status = plan.run(inputs.x.view(), run_w, run_b, y.view(), *problem.quantization);
            } else if (constant) {
                status = plan.run(inputs.x.view(), y.view());
            } else {
                status = plan.run(inputs.x.view(), w, run_b, y.view());
            }
            ASSERT_TRUE(status) << status.message();
            EXPECT_TRUE(agrees(y, expected)) << plan.variant();
        };
        check("all constant", problem, true, false);
        check("weights at run time", problem, false, false);
        Problem other = problem; // planned with other scales, and another zero point of x and y
        other.quantization->x_scale *= 3;
        other.quantization->x_zero_point = problem.dtype == CONVT_U8 ? 77 : -77;
        other.quantization->y_scale /= 5;
        check("scales at run time", other, true, true);
        other = problem;
        other.quantization.reset();
        check("everything at run time", other, false, true);
        other = problem;
        other.x_shape[0] += 1;
        other.x_shape[problem.layout == CONVT_CHANNELS_FIRST ? other.x_shape.size() - 1 : other.x_shape.size() - 2] +=
            1;
        check("reshaped", other, true, false);
    }
}

} // namespace
} // namespace convtranspose::test
