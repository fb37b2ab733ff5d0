// Tuning records: what is read and what is refused, which record a plan uses, and what it says where it cannot.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <locale>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "convtranspose/convtranspose.hpp"
#include "plan/algorithm_names.h"
#include "reference/descriptor.h"
#include "reference/reference.h"
#include "runtime/cpu/cpu.h"
#include "runtime/kernels/kernel_tables.h"
#include "runtime/kernels/variant.h"

namespace convtranspose::test {
namespace {

struct Destroy {
    void operator()(convt_tuning *t) const { convt_tuning_destroy(t); }
};
using TuningPointer = std::unique_ptr<convt_tuning, Destroy>;

struct Fields {
    std::string package = CONVT_VERSION, kernels = convt_kernels_version(), cpu = convt_cpu_name(), isa, problem,
                variant;
    int threads = 1;
};

std::string record(const Fields &f) {
    return "{\"package\": \"" + f.package + "\", \"kernels\": \"" + f.kernels + "\", \"cpu\": \"" + f.cpu +
           "\", \"isa\": \"" + f.isa + "\", \"threads\": " + std::to_string(f.threads) + ", \"problem\": \"" +
           f.problem + "\", \"variant\": \"" + f.variant + "\", \"ms\": 0.25}\n";
}

Status read(const std::string &text, TuningPointer *tuning = nullptr) {
    convt_tuning *made = nullptr;
    Status status = Status::from(convt_tuning_read(text.data(), text.size(), &made));
    TuningPointer owner(made);
    if (tuning) *tuning = std::move(owner);
    return status;
}

std::string record_with_ms(const std::string &ms) {
    std::string text = record({});
    return text.replace(text.find("0.25"), 4, ms);
}

TEST(TuningText, TimesAreNumbers) {
    for (const char *const ms : {"0", "0.25", "1e-3", "12", "7\t", "7\r"}) EXPECT_TRUE(read(record_with_ms(ms))) << ms;
    for (const char *const ms : {"-1", "nan", "inf", "1e400", "\"fast\"", "0.25s", "null", "[1]"}) {
        const Status status = read(record_with_ms(ms));
        EXPECT_EQ(status.code(), CONVT_INVALID_ARGUMENT) << ms;
        EXPECT_NE(status.message().find("must be a number, at least 0"), std::string::npos) << status.message();
    }
}

struct CommaForPoint : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
};

// While it lives, streams write 1024.5 as 1.024,5.
class CommaLocale {
  public:
    CommaLocale() : before_(std::locale::global(std::locale(std::locale::classic(), new CommaForPoint))) {}
    ~CommaLocale() { std::locale::global(before_); }
    CommaLocale(const CommaLocale &) = delete;
    CommaLocale &operator=(const CommaLocale &) = delete;

  private:
    std::locale before_;
};

TEST(TuningText, DoesNotFollowTheLocaleOfTheProgram) {
    const CommaLocale locale;
    const Problem problem = parse_problem("f32 nchw n1 g1 ic1024 oc8 i5x5 k3x3");
    Options measuring{};
    measuring.planning = CONVT_MEASURE;
    measuring.planning_ms = 2;
    Plan plan, followed;
    ASSERT_TRUE(Plan::create(problem, measuring, nullptr, nullptr, &plan));
    const std::string text = convt_plan_record(plan.get());
    EXPECT_NE(text.find("ic1024"), std::string::npos) << text;
    TuningPointer tuning;
    const Status status = read(text, &tuning);
    ASSERT_TRUE(status) << status.message();
    Options following{};
    following.tuning = tuning.get();
    ASSERT_TRUE(Plan::create(problem, following, nullptr, nullptr, &followed));
    EXPECT_NE(std::string(convt_plan_explain(followed.get())).find("says a tuning record"), std::string::npos)
        << convt_plan_explain(followed.get());
}

TEST(TuningText, AByteOrderMarkIsNamed) {
    for (const char *const mark : {"\xEF\xBB\xBF", "\xFF\xFE", "\xFE\xFF"}) {
        const Status status = read(mark + record({}));
        EXPECT_EQ(status.code(), CONVT_INVALID_ARGUMENT);
        EXPECT_NE(status.message().find("byte order mark"), std::string::npos) << status.message();
    }
}

// Whether it names a way to plan a layer as other layers, not each of which can.
bool is_way_to_plan(const std::string &name) {
    const std::vector<std::string> ways = algorithm_names();
    return std::find(ways.begin(), ways.end(), name) != ways.end();
}

class Tuning : public testing::Test {
  protected:
    // The layer is one that several variants and algorithms can compute, with constant weights.
    void SetUp() override {
        problem_ = parse_problem("f32 nchw n1 g1 ic8 oc16 i12x12 k4x4 s4x4 bias");
        inputs_ = draw(problem_, 7);
        plan(nullptr, &plan_);
        fields_.isa = best_isa();
        fields_.problem = convt_plan_problem(plan_.get());
        for (std::size_t i = 0; i < convt_plan_candidate_count(plan_.get()); i++) {
            candidates_.emplace_back(convt_plan_candidate(plan_.get(), i));
        }
    }

    // The best ISA that has kernels of floats.
    static std::string best_isa() {
        for (std::size_t i = 0; i < variant_count(); i++) {
            const Isa isa = variant_at(i).isa;
            if (isa_supported(isa) && variant_at(i).dtype == CONVT_F32 && is_float(variant_at(i).arithmetic)) {
                return isa_name(isa);
            }
        }
        return "";
    }

    void plan(const convt_tuning *tuning, Plan *plan, int threads = 1, const char *variant = nullptr) {
        Options options{};
        options.threads = threads;
        options.variant = variant;
        options.tuning = tuning;
        const Status status = Plan::create(problem_, options, inputs_.w.data(), inputs_.b->data(), plan);
        ASSERT_TRUE(status) << status.message();
    }

    // One that is not what the plan chooses by itself, nor a way to plan it as other layers.
    std::string other_variant() const {
        for (auto name = candidates_.rbegin(); name != candidates_.rend(); ++name) {
            if (*name != plan_.variant() && name->find('_') != std::string::npos && !is_way_to_plan(*name))
                return *name;
        }
        return "";
    }

    Problem problem_;
    Inputs inputs_;
    Plan plan_;
    Fields fields_;
    std::vector<std::string> candidates_;
};

TEST_F(Tuning, CandidatesAreAllThatCan) {
    ASSERT_GT(candidates_.size(), 2u);
    EXPECT_EQ(convt_plan_candidate(plan_.get(), candidates_.size()), nullptr);
    for (const std::string &name : candidates_) {
        Options options{};
        options.variant = name.c_str();
        Plan made;
        const Status status = Plan::create(problem_, options, inputs_.w.data(), inputs_.b->data(), &made);
        if (is_way_to_plan(name)) continue;
        EXPECT_TRUE(status) << name << ": " << status.message();
    }
}

TEST_F(Tuning, ARecordIsUsed) {
    fields_.variant = other_variant();
    ASSERT_FALSE(fields_.variant.empty());
    TuningPointer tuning;
    // Other fields that a record holds are for others.
    const std::string more = record(fields_).insert(1, "\"more\": [1, {\"]\": \"}\"}, []], \"none\": null, ");
    ASSERT_TRUE(read("\n" + more + "  \n", &tuning));
    Plan tuned;
    plan(tuning.get(), &tuned);
    EXPECT_EQ(tuned.variant(), fields_.variant);
    EXPECT_NE(tuned.explain().find("measured to be the fastest, says a tuning record: 0.25 ms"), std::string::npos)
        << tuned.explain();
    ASSERT_EQ(convt_plan_kernel_count(tuned.get()), 1u);
    EXPECT_EQ(convt_plan_kernel(tuned.get(), 0), fields_.variant);
    Plan forced; // a name that is given counts more
    plan(tuning.get(), &forced, 1, plan_.variant().c_str());
    EXPECT_EQ(forced.variant(), plan_.variant());
}

TEST_F(Tuning, TheLastOfSeveralIsUsed) {
    Fields last = fields_;
    last.variant = other_variant();
    fields_.variant = plan_.variant();
    TuningPointer tuning;
    ASSERT_TRUE(read(record(fields_) + record(last), &tuning));
    Plan tuned;
    plan(tuning.get(), &tuned);
    EXPECT_EQ(tuned.variant(), last.variant);
}

TEST_F(Tuning, RecordsOfOthersWait) {
    const auto is_used = [this](Fields fields, int threads) {
        fields.variant = other_variant();
        TuningPointer tuning;
        EXPECT_TRUE(read(record(fields), &tuning));
        Plan tuned;
        plan(tuning.get(), &tuned, threads);
        return tuned.variant() == fields.variant;
    };
    EXPECT_TRUE(is_used(fields_, 1));
    Fields any = fields_;
    any.cpu = "*";
    EXPECT_TRUE(is_used(any, 1));
    Fields other = fields_;
    other.cpu = "another CPU";
    EXPECT_FALSE(is_used(other, 1));
    other = fields_;
    other.isa = "another";
    EXPECT_FALSE(is_used(other, 1));
    other = fields_;
    other.problem += " ";
    EXPECT_FALSE(is_used(other, 1));
    EXPECT_FALSE(is_used(fields_, 2));
    fields_.threads = 2;
    EXPECT_TRUE(is_used(fields_, 2));
    fields_.threads = 0;
    for (const int threads : {1, 2, 3}) EXPECT_TRUE(is_used(fields_, threads));
}

// The package ships kernels that were tuned for it, and records that plans find without being asked.
TEST(ShippedTuning, PlansUseItAndAgree) {
    std::size_t used = 0, all = 0;
    for (std::size_t i = 0; kernel_table(i); i++) {
        std::string why;
        for (const TuningRecord &record : tuning_of_table(i, &why).records()) {
            SCOPED_TRACE(record.problem + " on " + record.isa);
            all++;
            EXPECT_EQ(record.cpu, "*");
            std::size_t v = 0;
            while (v < variant_count() && record.isa != isa_name(variant_at(v).isa)) v++;
            ASSERT_LT(v, variant_count()) << "an ISA without kernels";
            if (!isa_supported(variant_at(v).isa)) continue;
            used++;
            const Problem problem = parse_problem(record.problem);
            for (const int threads : {1, 2}) {
                Options options{};
                options.isa = record.isa.c_str();
                options.threads = threads;
                const Inputs inputs = draw(problem, all);
                Plan plan;
                ASSERT_TRUE(
                    Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan));
                EXPECT_NE(plan.explain().find("says a tuning record"), std::string::npos) << plan.explain();
                expect_agreement(problem, all, Values::uniform, options);
            }
        }
        EXPECT_EQ(why, "");
    }
    if (used < all) std::printf("%zu of %zu records are of ISAs that this CPU lacks\n", all - used, all);
}

TEST_F(Tuning, WaysToPlanAsOtherLayersHaveNames) {
    for (const char *const name : {"phases_as_channels", "depth_to_space", "layout_transpose"}) {
        fields_.variant = name;
        TuningPointer tuning;
        ASSERT_TRUE(read(record(fields_), &tuning));
        Plan tuned, asked_for;
        plan(tuning.get(), &tuned);
        EXPECT_NE(tuned.explain().find("says a tuning record"), std::string::npos) << tuned.explain();
        plan(nullptr, &asked_for, 1, name);
        EXPECT_NE(asked_for.explain().find("asked for by name"), std::string::npos) << asked_for.explain();
        ASSERT_EQ(std::string(convt_plan_candidate(asked_for.get(), 0)), name);

        const Expected expected = reference(problem_, inputs_);
        for (const Plan *const made : {&tuned, &asked_for}) {
            Tensor y(CONVT_F32, expected.shape);
            ASSERT_TRUE(made->run(inputs_.x.data(), y.data()));
            EXPECT_TRUE(agrees(y, expected)) << name;
        }
    }
    // Run-time weights cannot be gathered.
    Options options{};
    options.variant = "phases_as_channels";
    Plan made;
    const Status status = Plan::create(problem_, options, nullptr, nullptr, &made);
    EXPECT_EQ(status.code(), CONVT_UNSUPPORTED);
    EXPECT_EQ(status.message(), "phases_as_channels cannot compute this problem: it needs constant weights");
}

TEST_F(Tuning, WhatCannotBeUsedIsSaid) {
    const auto explanation = [this](const std::string &variant) {
        fields_.variant = variant;
        TuningPointer tuning;
        EXPECT_TRUE(read(record(fields_), &tuning));
        Plan tuned;
        plan(tuning.get(), &tuned);
        EXPECT_EQ(tuned.variant(), plan_.variant());
        return tuned.explain();
    };
    EXPECT_NE(explanation("no_such_kernel").find("a tuning record names no_such_kernel, which is not built for"),
              std::string::npos);
    std::string unable;
    for (std::size_t i = 0; i < variant_count(); i++) {
        const Variant &v = variant_at(i);
        if (belongs_to(v, Isa::kX86_64) || belongs_to(v, Isa::kNeon)) {
            if (v.family == Family::kDepthwise && v.dtype == CONVT_F32 && is_float(v.arithmetic)) unable = v.name;
        }
    }
    if (!unable.empty() && best_isa() != "wasm_simd128" && best_isa() != "neon32") {
        EXPECT_NE(explanation(unable).find("a tuning record names " + unable + ", which"), std::string::npos);
    }
}

TEST_F(Tuning, StaleRecordsAreRefusedWithTheReason) {
    Fields stale = fields_;
    stale.kernels = "0123456789ab";
    Status status = read(record(fields_) + record(stale));
    EXPECT_EQ(status.code(), CONVT_INVALID_ARGUMENT);
    EXPECT_EQ(status.message(), "line 2 of the tuning records: it is of kernels 0123456789ab, these are " +
                                    std::string(convt_kernels_version()) + ": tune again");
    stale = fields_;
    stale.package = "0.0.1";
    status = read(record(stale));
    EXPECT_EQ(status.message(),
              "line 1 of the tuning records: it is of version 0.0.1 of this library, which is " CONVT_VERSION
              ": tune again");
}

TEST_F(Tuning, WhatIsNoRecordIsRefused) {
    const std::string good = record(fields_);
    for (const std::string &bad :
         {std::string("{"), std::string("[]"), std::string("nonsense"), std::string("{}"),
          good.substr(0, good.size() / 2), good.substr(0, good.size() - 1) + "x", std::string("{\"package\": {}}"),
          std::string("\0", 1), "{: 1, " + good.substr(1), "{\"more\" 1, " + good.substr(1),
          "{\"more\": , " + good.substr(1), "{\"more\": 1 \"a\": 2, " + good.substr(1),
          "{\"more\": 1\"2\", " + good.substr(1), "{\"more\": [1, " + good.substr(1), std::string("{\"more\\")}) {
        const Status status = read(bad);
        EXPECT_EQ(status.code(), CONVT_INVALID_ARGUMENT) << bad;
        EXPECT_EQ(status.message().rfind("line 1 of the tuning records: ", 0), 0u) << status.message();
    }
    fields_.threads = -1;
    EXPECT_EQ(read(record(fields_)).message(),
              "line 1 of the tuning records: threads = -1 must be an integer, at least 1, or 0 for any");
    EXPECT_TRUE(read(""));
    EXPECT_EQ(convt_tuning_read(nullptr, 3, nullptr), CONVT_INVALID_ARGUMENT);
    convt_tuning_destroy(nullptr);
}

// A line with a cost profile. value: JSON.
std::string profile(const std::string &value, const std::string &cpu = "*", const std::string &isa = "*") {
    return "{\"package\": \"" CONVT_VERSION "\", \"kernels\": \"" + std::string(convt_kernels_version()) +
           "\", \"cpu\": \"" + cpu + "\", \"isa\": \"" + isa + "\", \"cost_profile\": " + value + "}\n";
}

double field(const Plan &plan, const std::string &name) {
    double value = -1;
    for (std::size_t i = 0; const char *const other = convt_plan_cost_field(plan.get(), i, &value); i++) {
        if (name == other) return value;
    }
    return -1;
}

TEST_F(Tuning, TheLastMatchingCostProfileIsUsed) {
    const double own = field(plan_, "latency");
    EXPECT_EQ(convt_plan_cost_field(plan_.get(), 1000, nullptr), nullptr);
    TuningPointer tuning;
    ASSERT_TRUE(read(profile("\"generic\"") + record(fields_) +
                         profile("{\"latency\": 9, \"far_from\": \"infinite\"}") +
                         profile("{\"latency\": 7}", "another CPU") + profile("{\"latency\": 8}", "*", "another ISA"),
                     &tuning));
    Plan other;
    plan(tuning.get(), &other);
    EXPECT_EQ(field(other, "latency"), 9);
    EXPECT_EQ(field(other, "loads"), 2) << "of the generic profile";
    EXPECT_EQ(field(plan_, "latency"), own);
    // Estimates go by it, and so do those of a reshaped plan.
    ASSERT_TRUE(read(profile("{\"latency\": 900}"), &tuning));
    Plan slow, reshaped;
    plan(tuning.get(), &slow);
    EXPECT_GT(convt_plan_candidate_cycles(slow.get(), 0), 2 * convt_plan_candidate_cycles(plan_.get(), 0));
    EXPECT_EQ(convt_plan_candidate_cycles(slow.get(), 1000), 0);
    ASSERT_TRUE(slow.reshape({1, 8, 13, 12}, &reshaped));
    EXPECT_EQ(field(reshaped, "latency"), 900);
}

TEST_F(Tuning, CostProfilesThatAreNoneAreRefused) {
    const std::pair<const char *, const char *> bad[] = {
        {"{\"patience\": 1}", "a cost profile has no field \"patience\""},
        {"{\"latency\": -1}", "latency = -1 must be a number from 0 to 1000, in cycles"},
        {"{\"latency\": nan}", "latency = nan must be a number from 0 to 1000, in cycles"},
        {"{\"latency\": \"infinite\"}", "latency = infinite must be a number from 0 to 1000, in cycles"},
        {"{\"latency\": 1e999}", "latency = 1e999 must be a number from 0 to 1000, in cycles"},
        {"{\"latency\": \"1 \"}", "latency = 1  must be a number from 0 to 1000, in cycles"},
        {"{\"loads\": 0}", "loads = 0 must be a number from 0.01 to 64, in vectors per cycle"},
        {"{\"latency\": {}}", "latency = {} must be a number from 0 to 1000, in cycles"},
        {"[1, 2]", "there is no cost profile \"[1, 2]\"; there are "},
        {"\"zen1\"", "there is no cost profile \"zen1\"; there are "},
    };
    for (const auto &[value, message] : bad) {
        const Status status = read(profile("\"generic\"") + profile(value));
        EXPECT_EQ(status.code(), CONVT_INVALID_ARGUMENT) << value;
        EXPECT_EQ(status.message().rfind(std::string("line 2 of the tuning records: ") + message, 0), 0u)
            << status.message();
    }
    EXPECT_FALSE(read("{\"cost_profile\": {}}"));
    std::string stale = profile("{}");
    stale.replace(stale.find(convt_kernels_version()), 4, "0000");
    EXPECT_FALSE(read(stale));
    EXPECT_TRUE(read(profile("{}")));
}

// A record's layer, asked of another size of x, keeps the weights as they are packed.
TEST_F(Tuning, ReshapedPlansLookForTheirOwn) {
    fields_.variant = other_variant();
    TuningPointer tuning;
    ASSERT_TRUE(read(record(fields_), &tuning));
    Problem larger = problem_;
    larger.x_shape = {1, 8, 13, 12};
    Options options{};
    options.tuning = tuning.get();
    Plan other, back;
    ASSERT_TRUE(Plan::create(larger, options, inputs_.w.data(), inputs_.b->data(), &other));
    ASSERT_TRUE(other.reshape(problem_.x_shape, &back));
    const bool is_used = back.variant() == fields_.variant;
    const bool says_why_not = back.explain().find("a tuning record names") != std::string::npos;
    EXPECT_NE(is_used, says_why_not) << back.explain();
}

// Layers that differ anywhere have other records.
TEST(TuningKeys, SayAllOfALayer) {
    for (const std::string line : {"f32 nchw n2 g3 ic6 oc9 i7x8 k3x4 s2x3 p1x2_3x0 op0x0 d2x1 bias",
                                   "f32 nhwc n1 g1 ic4 oc5 i9 k2 s3 p1_0 op2 d1",
                                   "f32 nchw n1 g1 ic2 oc3 i4x5x6 k3x2x1 s1x2x3 p0x1x0_2x0x0 op0x0x1 d1x2x3",
                                   "u8 nhwc n1 g1 ic4 oc8 i5x6 k3x3 s2x2 p1x1_0x0 op0x0 d1x1 bias ws8 yu8"}) {
        const Problem problem = parse_problem(line);
        Plan plan;
        const Status status = Plan::create(problem, Options{}, nullptr, nullptr, &plan);
        ASSERT_TRUE(status) << line << ": " << status.message();
        EXPECT_EQ(convt_plan_problem(plan.get()), line);
    }
}

TEST(AddedKernels, AreOfThisVersionAndFoundByName) {
    EXPECT_EQ(convt_add_kernels(nullptr), CONVT_INVALID_ARGUMENT);
    static convt_kernels table{};
    table.version = "another";
    EXPECT_EQ(convt_add_kernels(&table), CONVT_UNSUPPORTED);
    EXPECT_NE(std::string(convt_last_error()).find("another"), std::string::npos);

    const Problem problem = parse_problem("f32 nchw n1 g1 ic8 oc4 i12x12 k4x4 s4x4");
    const Inputs inputs = draw(problem, 7);
    // A kernel that computes this layer by itself; which one the default plan would take differs between ISAs.
    Plan plan;
    Options options{};
    static Variant added;
    for (std::size_t i = 0; i < variant_count() && !added.run; i++) {
        const Variant &v = variant_at(i);
        if (v.dtype != CONVT_F32 || v.family == Family::kReference || !isa_supported(v.isa)) continue;
        options.isa = isa_name(v.isa);
        options.variant = v.name;
        if (Plan::create(problem, options, inputs.w.data(), nullptr, &plan)) added = v;
    }
    ASSERT_NE(added.run, nullptr);
    added.name = "added_kernel";
    static const std::string records =
        record({CONVT_VERSION, convt_kernels_version(), "*", plan.isa(),
                "f32 nchw n1 g1 ic8 oc4 i13x12 k4x4 s4x4 p0x0_0x0 op0x0 d1x1", added.name, 1});
    table.version = convt_kernels_version();
    table.variants = &added;
    table.variant_count = 1;
    table.records = records.c_str();
    ASSERT_EQ(convt_add_kernels(&table), CONVT_OK) << convt_last_error();
    ASSERT_EQ(convt_add_kernels(&table), CONVT_OK); // it is there already

    options.variant = "added_kernel";
    Plan by_name, by_record;
    ASSERT_TRUE(Plan::create(problem, options, inputs.w.data(), nullptr, &by_name)) << convt_last_error();
    EXPECT_EQ(by_name.variant(), "added_kernel");
    Tensor y(CONVT_F32, plan.y_shape()), same(CONVT_F32, plan.y_shape());
    ASSERT_TRUE(plan.run(inputs.x.data(), y.data()));
    ASSERT_TRUE(by_name.run(inputs.x.data(), same.data()));
    EXPECT_EQ(y, same);
    // The records that come with it, of another layer that it can compute.
    Problem recorded = problem;
    recorded.x_shape = {1, 8, 13, 12};
    const Inputs its = draw(recorded, 8);
    options.variant = nullptr;
    ASSERT_TRUE(Plan::create(recorded, options, its.w.data(), nullptr, &by_record)) << convt_last_error();
    EXPECT_EQ(by_record.variant(), "added_kernel") << by_record.explain();
}

} // namespace
} // namespace convtranspose::test
