// A plan and the library tell about themselves.
#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "kernel_contract/kernel_types.h"
#include "reference/descriptor.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

TEST(Queries, OfAPlan) {
    const Problem problem = parse_problem("f32 nhwc n2 g1 ic16 oc24 i5x7 k4x4 s2x2 p1x1_1x1 bias");
    const Inputs inputs = draw(problem, 1);
    Plan plan;
    const Status status = Plan::create(problem, Options{}, inputs.w.data(), inputs.b->data(), &plan);
    ASSERT_TRUE(status) << status.message();
    EXPECT_EQ(plan.x_shape(), (Shape{2, 5, 7, 16}));
    EXPECT_EQ(plan.y_shape(), (Shape{2, 10, 14, 24}));
    EXPECT_EQ(convt_plan_rank(plan.get()), 4u);
    EXPECT_EQ(plan.macs(), count_macs(geometry_of(problem)));
    EXPECT_EQ(plan.threads(), 1);
    EXPECT_GE(plan.packed_bytes(), static_cast<std::size_t>(inputs.w.size() + inputs.b->size()) * sizeof(float));
    // The chosen variant is one of the table, and named in the explanation, with the ISA.
    std::set<std::string> variants, isas;
    for (std::size_t i = 0; i < convt_variant_count(); ++i) variants.insert(convt_variant_name(i));
    for (std::size_t i = 0; i < convt_isa_count(); ++i) isas.insert(convt_isa_name(i));
    EXPECT_EQ(variants.count(plan.variant()), 1u) << plan.variant();
    EXPECT_EQ(isas.count(plan.isa()), 1u) << plan.isa();
    EXPECT_NE(plan.explain().find(plan.variant()), std::string::npos) << plan.explain();
}

TEST(Queries, OfAPlanThatWasNotCreated) {
    const Plan plan;
    EXPECT_FALSE(plan);
    EXPECT_EQ(plan.x_shape(), Shape());
    EXPECT_EQ(plan.y_shape(), Shape());
    EXPECT_EQ(plan.workspace_bytes(), 0u);
    EXPECT_EQ(plan.packed_bytes(), 0u);
    EXPECT_EQ(plan.macs(), 0);
    EXPECT_EQ(plan.threads(), 0);
    EXPECT_EQ(plan.variant(), "");
    EXPECT_EQ(plan.isa(), "");
    EXPECT_EQ(plan.device(), "");
    EXPECT_EQ(plan.explain(), "");
    EXPECT_STREQ(convt_plan_problem(plan.get()), "");
    EXPECT_EQ(convt_plan_rank(plan.get()), 0u);
    EXPECT_EQ(convt_plan_candidate_count(plan.get()), 0u);
    EXPECT_EQ(convt_plan_candidate(plan.get(), 0), nullptr);
    EXPECT_EQ(convt_plan_kernel_count(plan.get()), 0u);
    EXPECT_EQ(convt_plan_kernel(plan.get(), 0), nullptr);
}

// A layer that is planned as several names the kernel that they share once.
TEST(Queries, KernelsAreNamedOnce) {
    for (const char *const line : {"f32 nchw n2 g1 ic24 oc20 i16x16 k3x3 s1x1 d12x12 bias",
                                   "f32 nhwc n1 g1 ic16 oc16 i20x20 k3x3 s1x1 p19x19_19x19 d19x19 bias"}) {
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 1);
        Options options{};
        options.variant = "output_parts";
        Plan plan;
        const Status status = Plan::create(problem, options, inputs.w.data(), inputs.b->data(), &plan);
        ASSERT_TRUE(status) << status.message();
        std::set<std::string> names;
        for (std::size_t i = 0; i < convt_plan_kernel_count(plan.get()); i++)
            names.insert(convt_plan_kernel(plan.get(), i));
        EXPECT_FALSE(names.empty()) << line;
        EXPECT_EQ(names.size(), convt_plan_kernel_count(plan.get())) << line;
    }
}

// Estimates are positive for kernels of other strides too, where y is shorter than the stride, and for an empty batch, which a plan
// may be made for to be reshaped.
TEST(Queries, EstimatesArePositive) {
    for (const char *const line :
         {"f32 nchw n1 g1 ic64 oc64 i1 k2 s2 bias", "f32 nchw n1 g1 ic64 oc64 i1x1 k2x2 s2x2 bias",
          "f32 nhwc n1 g1 ic64 oc64 i1x1 k2x2 s2x2", "f64 nchw n2 g1 ic16 oc3 i1x9 k1x4 s1x2 bias",
          "f32 nchw n1 g1 ic16 oc3 i9x1 k4x3 s2x3 bias", "f32 nchw n1 g8 ic8 oc8 i1x1 k3x3 s3x3",
          "f32 nchw n1 g1 ic32 oc4 i5x7 k4x4 s2x2 p1x1_1x1 bias", "f32 nhwc n0 g1 ic16 oc24 i5x7 k4x4 s2x2"}) {
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 1);
        for (std::size_t isa = 0; isa < convt_isa_count(); isa++) {
            if (!convt_isa_supported(isa)) continue;
            Options options{};
            options.isa = convt_isa_name(isa);
            Plan plan;
            const void *const b = inputs.b ? inputs.b->data() : nullptr;
            ASSERT_TRUE(Plan::create(problem, options, inputs.w.data(), b, &plan));
            const std::string text = plan.explain();
            // "  * NAME CYCLES", the star for the choice, then what they are for; "  no: WHY: NAMES" of those that cannot.
            const std::size_t list = text.find("candidates, by estimated cycles:\n");
            ASSERT_NE(list, std::string::npos) << text;
            std::istringstream lines(text.substr(list));
            std::size_t found = 0;
            for (std::string each; std::getline(lines, each);) {
                std::replace(each.begin(), each.end(), '*', ' ');
                std::istringstream words(each);
                std::string name;
                double cycles = 0;
                if (!(words >> name >> cycles) || name == "no:") continue;
                EXPECT_GT(cycles, 0) << line << " on " << convt_isa_name(isa) << ": " << name;
                found++;
            }
            EXPECT_GT(found, 2u) << text;
        }
    }
}

TEST(Queries, PackedBytesAreZeroWhenWeightsArriveWithTheRun) {
    const Problem problem = parse_problem("f32 nchw ic16 oc24 i5x7 k4x4");
    Plan plan;
    ASSERT_TRUE(Plan::create(problem, Options{}, nullptr, nullptr, &plan));
    EXPECT_EQ(plan.packed_bytes(), 0u);
}

TEST(Queries, OfTheLibrary) {
    // A name behind the last one is null.
    EXPECT_EQ(convt_isa_name(convt_isa_count()), nullptr);
    EXPECT_EQ(convt_variant_name(convt_variant_count()), nullptr);
    EXPECT_EQ(convt_algorithm_name(convt_algorithm_count()), nullptr);
    ASSERT_GT(convt_isa_count(), 0u);
    ASSERT_GT(convt_variant_count(), 0u);
    std::set<std::string> names;
    bool runs_here = false;
    for (std::size_t i = 0; i < convt_isa_count(); ++i) {
        names.insert(convt_isa_name(i));
        runs_here = runs_here || convt_isa_supported(i) != 0;
    }
    EXPECT_EQ(names.size(), convt_isa_count()) << "names must differ";
    EXPECT_TRUE(runs_here);
    names.clear();
    for (std::size_t i = 0; i < convt_variant_count(); ++i) names.insert(convt_variant_name(i));
    EXPECT_EQ(names.size(), convt_variant_count()) << "names must differ";
    for (std::size_t i = 1; i < convt_algorithm_count(); ++i) {
        EXPECT_LT(std::string(convt_algorithm_name(i - 1)), convt_algorithm_name(i)) << "the order is alphabetical";
    }

    EXPECT_STREQ(convt_dtype_name(CONVT_F16), "f16");
    EXPECT_STREQ(convt_dtype_name(CONVT_BF16), "bf16");
    EXPECT_STREQ(convt_dtype_name(CONVT_F32), "f32");
    EXPECT_STREQ(convt_dtype_name(CONVT_F64), "f64");
    EXPECT_EQ(convt_dtype_size(CONVT_F16), 2u);
    EXPECT_EQ(convt_dtype_size(CONVT_BF16), 2u);
    EXPECT_EQ(convt_dtype_size(CONVT_F32), 4u);
    EXPECT_EQ(convt_dtype_size(CONVT_F64), 8u);

    std::set<std::string> statuses;
    for (const convt_status status :
         {CONVT_OK, CONVT_INVALID_ARGUMENT, CONVT_UNSUPPORTED, CONVT_OVERFLOW, CONVT_OUT_OF_MEMORY, CONVT_INTERNAL}) {
        statuses.insert(convt_status_name(status));
    }
    EXPECT_EQ(statuses.size(), 6u) << "names must differ";
}

// The best ISA comes first, and a plan runs on it.
TEST(Queries, APlanRunsOnTheBestIsa) {
    std::string best, best_of_floats;
    for (std::size_t i = 0; i < convt_isa_count(); ++i) {
        if (!convt_isa_supported(i)) continue;
        const std::string name = convt_isa_name(i);
        if (best.empty()) best = name;
        const auto *const facts =
            std::find_if(std::begin(kIsas), std::end(kIsas), [&](const IsaFacts &isa) { return name == isa.name; });
        ASSERT_NE(facts, std::end(kIsas)) << name;
        if (best_of_floats.empty() && facts->adds_to == facts->value) best_of_floats = name;
    }
    Plan plan;
    ASSERT_TRUE(
        Plan::create(parse_problem("f32 nhwc n2 g1 ic16 oc24 i5x7 k4x4 s2x2"), Options{}, nullptr, nullptr, &plan));
    EXPECT_EQ(plan.isa(), best_of_floats);
    ASSERT_TRUE(
        Plan::create(parse_problem("u8 nhwc n2 g1 ic64 oc64 i16x16 k4x4 s2x2"), Options{}, nullptr, nullptr, &plan));
    EXPECT_EQ(plan.isa(), best);
}

} // namespace
} // namespace convtranspose::test
