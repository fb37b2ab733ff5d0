// An infinity or NaN in x or w reaches exactly the outputs that the definition says. What a kernel adds of its own
// (zeros around x, zeros in a tile of weights, elements past a row) must not meet it, for 0 * inf is a NaN.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reference/built_types.h"
#include "reference/descriptor.h"
#include "reference/effort.h"
#include "reference/quantized.h"
#include "reference/reference.h"
#include "reference/tuned_problems.h"
#include "runtime/cpu/cpu.h"
#include "runtime/kernels/variant.h"
#include "tools/kernel_name.h"

namespace convtranspose::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const std::vector<std::string> kProblems = {
    "n1 ic5 oc9 i5x6 k3x3 s2x2 p1x1_1x1 op1x1 bias", // tails in every direction
    "n1 ic4 oc17 i4x33 k4x4 s2x2 p1x1_1x1",
    "n2 ic3 oc32 i6x20 k3x3 s1x1 p1x1_1x1 bias",
    "n1 ic3 oc5 i6x30 k3x3 s1x1", // nothing cropped: all borders lack taps
    "n1 ic4 oc8 i5x49 k2x2 s2x2", // no tap leaves x
    "n1 ic4 oc1 i5x49 k2x2 s2x2",
    "n1 ic3 oc6 i5x40 k3x5 s3x3 p1x2_1x2",
    "n1 ic3 oc10 i4x31 k5x5 s4x4 p1x1_1x1 op3x3",
    "n1 ic5 oc1 i7x35 k9x9 s4x4 p4x4_4x4 op3x3", // few outputs
    "n1 ic5 oc3 i6x33 k4x4 s2x2 p1x1_1x1 bias",
    "n1 ic4 oc2 i6x33 k3x3 s1x1 p1x1_1x1",
    "n1 ic4 oc1 i8x40 k4x8 s2x1 p1x3_1x4",
    "n1 ic3 oc2 i6x35 k6x6 s3x3 p1x2_2x1",
    "n1 ic3 oc2 i3x50 k3x16 s1x8 p1x4_1x4",
    "n1 ic3 oc2 i3x50 k3x8 s1x4 p1x2_1x2",
    "n1 ic3 oc2 i6x40 k3x4 s1x2 p1x1_1x1 bias",
    "n1 ic3 oc2 i6x40 k4x3 s2x1 p1x1_1x1",
    "n1 ic3 oc5 i17x6 k3x3 s1x1 p1x1_1x1", // tiles of several rows
    "n1 ic3 oc5 i17x9 k4x4 s2x2 p1x1_1x1 bias",
    "n1 ic3 oc5 i17x9 k5x5 s3x3 p1x1_1x1",
    "n1 ic3 oc5 i17x9 k6x6 s4x4 p1x1_1x1",
    "n1 ic5 oc1 i5x36 k9x9 s2x2 p4x4_4x4 op1x1", // taps that kernels are built for
    "n1 ic3 oc1 i5x30 k9x9 s3x3 p4x4_4x4 op2x2",
    "n1 ic5 oc4 i5x40 k5x5 s2x2 p2x2_2x2 op1x1",
    "n1 ic4 oc1 i60 k16 s8",
    "n1 ic4 oc5 i60 k4 s2 p1_1",
    "n1 ic3 oc20 i5x20 k4x4 s4x4",
    "n1 g5 ic5 oc5 i5x40 k3x3 s2x2 p1x1_1x1 op1x1",
    "n1 g4 ic4 oc4 i5x20 k8x8 s4x4 p2x2_2x2",
    "n1 g4 ic4 oc4 i4x20 k16x16 s8x8 p4x4_4x4",
    "n1 g3 ic3 oc3 i6x20 k5x5 s1x1 p2x2_2x2",
    "n1 g4 ic4 oc4 i7x20 k2x2 s2x2 bias",
    "n1 g4 ic4 oc4 i3x40 k1x4 s1x2 p0x1_0x1",
    "n1 g4 ic4 oc4 i3x40 k1x3 s1x2 p0x1_0x1 op0x1",
    "n1 ic4 oc7 i5x9 k3x3 s2x2 d2x2 p2x2_2x2", // dilated: phases without taps
    "n1 ic4 oc7 i5x9 k3x3 s2x2 d3x3 p2x2_2x2 bias",
    "n1 ic4 oc7 i6x20 k1x1 s3x3 bias", // stride above kernel
    "n1 ic4 oc7 i6x9 k3x3 s2x2 os15x30 bias",
    "n1 g3 ic9 oc15 i4x20 k3x3 s2x2 p1x1_1x1",
    "n1 g9 ic9 oc9 i5x20 k4x4 s2x2 p1x1_1x1 bias", // depthwise
    "n1 g33 ic33 oc33 i5x6 k3x3 s1x1 p1x1_1x1",
    "n1 g4 ic4 oc8 i4x30 k3x3 s2x2 bias",
    "n1 g5 ic5 oc5 i4x40 k6x6 s3x3 p1x1_1x1",
    "n1 g5 ic5 oc5 i4x40 k8x8 s4x4 p2x2_2x2",
    "n1 g5 ic5 oc5 i4x40 k16x16 s8x8 p4x4_4x4",
    "n1 g3 ic3 oc3 i4x20 k4x32 s2x16 p1x8_1x8 bias",
    "n1 g2 ic2 oc4 i3x9 k2x64 s2x32 p0x5_0x3",
    "n2 ic4 oc9 i41 k5 s2 p2_2",
    "n1 ic3 oc5 i3x4x9 k3x3x3 s2x2x2 p1x1x1_1x1x1",
    "n1 ic2 oc3 i3x2x3x9 k2x2x3x3 s1x2x2x2 p0x0x1x1_0x0x1x1 bias",
};

// Integers are finite.
void put(Tensor *tensor, std::int64_t i, double value) {
    if (i >= 0 && i < tensor->size() && !is_quantized(tensor->dtype())) tensor->set(i, value);
}

// The ways in which inputs are spoilt. Elsewhere they are not zero, so that a NaN is only made where one is meant.
struct Poke {
    const char *name;
    std::function<void(Inputs *, Random *)> apply;
};

const std::vector<Poke> kPokes = {
    {"InfinityInX",
     [](Inputs *inputs, Random *random) { put(&inputs->x, random->integer(0, inputs->x.size() - 1), kInfinity); }},
    {"FirstAndLastOfX",
     [](Inputs *inputs, Random *) {
         put(&inputs->x, 0, -kInfinity);
         put(&inputs->x, inputs->x.size() - 1, kInfinity);
     }},
    {"NanInX",
     [](Inputs *inputs, Random *random) { put(&inputs->x, random->integer(0, inputs->x.size() - 1), std::nan("")); }},
    {"InfinityInW",
     [](Inputs *inputs, Random *random) { put(&inputs->w, random->integer(0, inputs->w.size() - 1), kInfinity); }},
    {"FirstAndLastOfW",
     [](Inputs *inputs, Random *) {
         put(&inputs->w, 0, kInfinity);
         put(&inputs->w, inputs->w.size() - 1, -kInfinity);
     }},
    {"NanInW",
     [](Inputs *inputs, Random *random) { put(&inputs->w, random->integer(0, inputs->w.size() - 1), std::nan("")); }},
    {"InfinitiesInBoth",
     [](Inputs *inputs, Random *random) {
         for (int i = 0; i < 3; ++i) {
             put(&inputs->x, random->integer(0, inputs->x.size() - 1), i % 2 ? kInfinity : -kInfinity);
             put(&inputs->w, random->integer(0, inputs->w.size() - 1), i % 2 ? -kInfinity : kInfinity);
         }
     }},
    {"InfinityTimesZero",
     [](Inputs *inputs, Random *random) { // a NaN by the definition
         for (std::int64_t i = 0; i < inputs->w.size(); i += 2) inputs->w.set(i, 0);
         put(&inputs->x, random->integer(0, inputs->x.size() - 1), kInfinity);
     }},
    {"ZeroTimesInfinity",
     [](Inputs *inputs, Random *random) {
         for (std::int64_t i = 0; i < inputs->x.size(); i += 2) inputs->x.set(i, 0);
         put(&inputs->w, random->integer(0, inputs->w.size() - 1), -kInfinity);
     }},
    {"InfinityInBias",
     [](Inputs *inputs, Random *) {
         if (inputs->b) put(&*inputs->b, inputs->b->size() - 1, kInfinity);
     }},
};

Inputs spoilt_inputs(const Problem &problem, const Poke &poke, std::uint64_t seed) {
    Inputs inputs = draw(problem, seed);
    for (Tensor *tensor : {&inputs.x, &inputs.w}) {
        for (std::int64_t i = 0; i < tensor->size(); ++i) {
            if (std::fabs(tensor->get(i)) < 0.01) tensor->set(i, 0.5);
        }
    }
    Random random(seed);
    poke.apply(&inputs, &random);
    return inputs;
}

// Weights that arrive with the run are not known when a variant is chosen.
Status run_with_run_time_weights(const Problem &problem, const Inputs &inputs, const Options &options, Tensor *y) {
    Plan plan;
    Status status = Plan::create(problem, options, nullptr, nullptr, &plan);
    if (!status) return status;
    *y = Tensor(problem.dtype, plan.y_shape());
    const ConstTensorView b = inputs.b ? inputs.b->view() : ConstTensorView();
    return plan.run(inputs.x.view(), inputs.w.view(), inputs.b ? &b : nullptr, y->view());
}

std::vector<Problem> problems(convt_dtype dtype, convt_layout layout) {
    std::vector<Problem> all;
    all.reserve(kProblems.size());
    for (const std::string &text : kProblems) {
        all.push_back(parse_problem(std::string(convt_dtype_name(dtype)) +
                                    (layout == CONVT_CHANNELS_FIRST ? " nchw " : " nhwc ") + text));
    }
    return all;
}

class DefaultChoice : public testing::TestWithParam<Poke> {};

void PrintTo(const Poke &poke, std::ostream *stream) { *stream << poke.name; }

TEST_P(DefaultChoice, ReachesWhatItMust) {
    for (const convt_dtype dtype : built_floats()) {
        for (const convt_layout layout : {CONVT_CHANNELS_FIRST, CONVT_CHANNELS_LAST}) {
            std::uint64_t seed = 1;
            for (const Problem &problem : problems(dtype, layout)) {
                SCOPED_TRACE(describe(problem, ++seed, Options{}));
                const Inputs inputs = spoilt_inputs(problem, GetParam(), seed);
                const Expected expected = reference(problem, inputs);
                Tensor y;
                Status status = run(problem, inputs, Options{}, &y);
                ASSERT_TRUE(status) << status.message();
                EXPECT_TRUE(agrees(y, expected));
                status = run_with_run_time_weights(problem, inputs, Options{}, &y);
                ASSERT_TRUE(status) << status.message();
                EXPECT_TRUE(agrees(y, expected)) << "with weights that arrive with the run";
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Nonfinite, DefaultChoice, testing::ValuesIn(kPokes),
                         [](const testing::TestParamInfo<Poke> &c) { return std::string(c.param.name); });

// Every row of the table of kernels, for the problems that it takes. One that cannot have weights that are not finite
// refuses them, and is run with infinities in x alone; but of weights that arrive with the run it cannot know, and must
// manage.
std::string isa_and_family(const Variant &variant) {
    return std::string(isa_name(variant.isa)) + "_" + tools::kernel_name(variant.name).family;
}

class Families : public testing::TestWithParam<std::string> {
  protected:
    struct Row {
        const Variant *variant;
        std::size_t done = 0; // cases that it computed with constant weights
        bool right = true;    // a row that went wrong is not tried again: one failure says it
    };

    void try_row(Row *row, const Problem &problem, const Inputs &inputs, const Expected &expected) {
        Options options{};
        options.isa = isa_name(row->variant->isa);
        options.variant = row->variant->name;
        options.sums_in_f16 = row->variant->arithmetic == Arithmetic::kHalf;
        const auto check = [&](const Status &status, const Tensor &y, const char *how) {
            const testing::AssertionResult result =
                status ? agrees(y, expected) : testing::AssertionFailure() << status.message();
            EXPECT_TRUE(result) << row->variant->name << " on " << options.isa << how;
            row->right = row->right && result;
        };
        const bool at_run_time = row->variant->arithmetic != Arithmetic::kBf16 &&
                                 !has_light_weights(row->variant->arithmetic); // whose weights are constant
        Plan plan;
        if (at_run_time && !Plan::create(problem, options, nullptr, nullptr, &plan))
            return; // not a problem for this row

        Tensor y;
        Status status = run(problem, inputs, options, &y);
        if (status.code() != CONVT_UNSUPPORTED) {
            check(status, y, ", constant weights");
            ++row->done;
        }
        if (!at_run_time) return;
        status = run_with_run_time_weights(problem, inputs, options, &y);
        check(status, y, ", weights that arrive with the run");
    }

    void try_rows(convt_dtype dtype, std::vector<Row> *rows) {
        if (rows->empty()) return;
        const bool sums_in_f16 = rows->front().variant->arithmetic == Arithmetic::kHalf; // an ISA's all, or none
        const std::size_t effort = one_in();
        std::vector<std::string> names;
        for (const Row &row : *rows) names.emplace_back(row.variant->name);
        for (const convt_layout layout : {CONVT_CHANNELS_FIRST, CONVT_CHANNELS_LAST}) {
            std::uint64_t seed = 100;
            std::vector<Problem> all = problems(dtype, layout);
            const convt_dtype light = light_dtype(rows->front().variant->arithmetic); // likewise, of all rows
            for (Problem &problem : all) {
                if (light != CONVT_F32) make_light(&problem, light);
            }
            for (Problem &problem : tuned_problems(rows->front().variant->isa, names)) {
                if (problem.layout == layout) all.push_back(std::move(problem));
            }
            for (const Problem &problem : all) {
                ++seed;
                // A third of the ways for each problem, so that each row meets all of them.
                for (auto i = static_cast<std::size_t>(seed % 3); i < kPokes.size(); i += 3) {
                    const bool in_turn = (seed + i / 3) % effort == 0;
                    const auto is_tried = [&](const Row &row) { return row.right && (in_turn || row.done == 0); };
                    if (std::none_of(rows->begin(), rows->end(), is_tried)) continue;
                    SCOPED_TRACE(std::string(kPokes[i].name) + ": " + describe(problem, seed, Options{}));
                    const Inputs inputs = spoilt_inputs(problem, kPokes[i], seed);
                    const Expected expected = reference(problem, inputs, sums_in_f16);
                    for (Row &row : *rows) {
                        if (is_tried(row)) try_row(&row, problem, inputs, expected);
                    }
                }
            }
        }
    }
};

TEST_P(Families, ReachWhatTheyMust) {
    for (const convt_dtype dtype : built_floats()) {
        std::map<convt_dtype, std::vector<Row>> rows; // by their light weights; f32: of no such
        for (std::size_t i = 0; i < variant_count(); ++i) {
            const Variant &variant = variant_at(i);
            if (isa_and_family(variant) != GetParam() || variant.dtype != dtype) continue;
            if (!is_float(variant.arithmetic)) continue; // integers are finite
            if (!isa_supported(variant.isa)) GTEST_SKIP() << "this CPU does not run " << isa_name(variant.isa);
            rows[light_dtype(variant.arithmetic)].push_back(Row{&variant});
        }
        for (auto &[light, alike] : rows) {
            try_rows(dtype, &alike);
            for (const Row &row : alike) EXPECT_GT(row.done, 0u) << row.variant->name << " took none of the problems";
        }
    }
}

std::vector<std::string> families() {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < variant_count(); ++i) {
        if (!is_float(variant_at(i).arithmetic)) continue;
        const std::string name = isa_and_family(variant_at(i));
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return names;
}

INSTANTIATE_TEST_SUITE_P(Nonfinite, Families, testing::ValuesIn(families()),
                         [](const testing::TestParamInfo<std::string> &c) { return c.param; });

// By hand: w = (inf, 1, 1) and x = (1, 2, 3), stride 1, pad 1 at either end. The infinite element lands on o = i - 1:
// on 0 and 1 (of i = 1 and 2). Output 2 sees no input through it and must be finite.
TEST(Nonfinite, AWeightThatNoInputMeets) {
    for (const convt_dtype dtype : built_floats()) {
        Problem problem = parse_problem("f32 nchw n1 g1 ic1 oc1 i3 k3 p1_1");
        problem.dtype = dtype;
        SCOPED_TRACE(describe(problem));
        Inputs inputs = draw(problem, 1);
        for (std::int64_t i = 0; i < 3; ++i) {
            inputs.x.set(i, static_cast<double>(i + 1));
            inputs.w.set(i, i == 0 ? kInfinity : 1);
        }
        Tensor y;
        const Status status = run(problem, inputs, Options{}, &y);
        ASSERT_TRUE(status) << status.message();
        EXPECT_EQ(y.get(0), kInfinity);
        EXPECT_EQ(y.get(1), kInfinity);
        EXPECT_EQ(y.get(2), 5);
    }
}

} // namespace
} // namespace convtranspose::test
