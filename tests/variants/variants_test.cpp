// Every row of the table of kernels, forced by name, on all problems that it can do: compared with the reference, and
// with itself on another number of threads. A row that could do none of them would be untested, which is a failure.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "reference/built_types.h"
#include "reference/descriptor.h"
#include "reference/effort.h"
#include "reference/quantized.h"
#include "reference/reference.h"
#include "reference/tuned_problems.h"
#include "runtime/cpu/cpu.h"
#include "runtime/kernels/kernel_tables.h"
#include "runtime/kernels/variant.h"
#include "tools/kernel_name.h"
#include "variants/problems.h"

namespace convtranspose::test {
namespace {

// The rows of one family for one type, arithmetic and ISA: a test each, so that they share the reference's results.
struct Rows {
    Isa isa;
    Arithmetic arithmetic;
    convt_dtype dtype; // of y; u8: of 8 bits
    bool rounded;      // rows of f32, whose y is rounded to f16 and bf16
    std::string family;
    std::vector<std::string> names;
};

std::string name_of(const Rows &rows) {
    const std::string arithmetic = rows.arithmetic == Arithmetic::kFloat  ? ""
                                   : rows.arithmetic == Arithmetic::kHalf ? "sums_in_"
                                   : rows.arithmetic == Arithmetic::kBf16 ? "pairs_of_"
                                   : rows.arithmetic == Arithmetic::kInt8 ? "i8_"
                                   : has_light_weights(rows.arithmetic)
                                       ? std::string(convt_dtype_name(light_dtype(rows.arithmetic))) + "_weights_"
                                       : "i16_";
    return std::string(isa_name(rows.isa)) + "_" + rows.family + "_" + arithmetic + convt_dtype_name(rows.dtype) +
           (rows.rounded ? "_rounded" : "");
}

std::vector<convt_dtype> types_of_16_bits() { return built_of({CONVT_F16, CONVT_BF16}); }

// The problems that such rows are for. Quantized ones are of all types and zero points in turn.
std::vector<Problem> problems_of(const Rows &rows, convt_layout layout) {
    std::vector<Problem> problems;
    if (rows.rounded) {
        problems = variant_problems(CONVT_F16, layout);
        const std::vector<convt_dtype> types = types_of_16_bits();
        for (std::size_t i = 0; i < problems.size(); ++i) problems[i].dtype = types[i % types.size()];
        return problems;
    }
    if (is_float(rows.arithmetic)) {
        problems = variant_problems(rows.dtype, layout);
        const convt_dtype light = light_dtype(rows.arithmetic);
        for (std::size_t i = 0; i < problems.size() && light != CONVT_F32; ++i) {
            // Those of u8 are s8, less their zero points.
            const bool is_u8 = light == CONVT_S8 && i % 4 == 3;
            make_light(&problems[i], is_u8 ? CONVT_U8 : light, is_u8 ? 128 : 0);
        }
        return problems;
    }
    Random random(static_cast<std::uint64_t>(rows.dtype) * 100 + static_cast<std::uint64_t>(layout));
    if (rows.dtype == CONVT_F64) { // the same, where 32 bits may not hold the sums
        for (const std::string line : {"u8 ic70000 oc1 i2x2x2x2 k1x1x1x1 wu8 yu8 zx0 zw0 zy7",
                                       "s8 ic40000 oc1 i2x2x2x2 k2x1x1x1 wu8 yf32 zx0 zw7"})
            problems.push_back(parse_problem(line + (layout == CONVT_CHANNELS_FIRST ? " nchw" : " nhwc")));
        return problems;
    }
    for (Problem &problem : variant_problems(CONVT_U8, layout)) {
        // Bare sums are added over the axes beyond three.
        if ((problem.x_shape.size() > 5) != (rows.dtype == CONVT_S32)) continue;
        for (int i = 0; i < (rows.dtype == CONVT_S32 ? 6 : 1); ++i) {
            problem.dtype = random.pick<convt_dtype>({CONVT_U8, CONVT_S8});
            QuantizedAs as = random_quantized_as(problem.dtype, &random);
            if (rows.dtype == CONVT_F32 || (rows.dtype == CONVT_S32 && i % 3 == 0)) as.y = CONVT_F32;
            quantize(&problem, as);
            problems.push_back(problem);
        }
    }
    return problems;
}

void PrintTo(const Rows &rows, std::ostream *stream) {
    *stream << name_of(rows) << ", " << rows.names.size() << " rows";
}

std::vector<Rows> rows_of_the_table() {
    std::vector<Rows> all;
    const auto add = [&](const Variant &v, bool rounded) {
        const Rows key{v.isa, v.arithmetic, v.dtype, rounded, tools::kernel_name(v.name).family, {}};
        const auto found =
            std::find_if(all.begin(), all.end(), [&](const Rows &rows) { return name_of(rows) == name_of(key); });
        Rows &rows = found == all.end() ? all.emplace_back(key) : *found;
        rows.names.emplace_back(v.name);
    };
    for (std::size_t i = 0; i < variant_count(); ++i) {
        const Variant &v = variant_at(i);
        add(v, false);
        if (!types_of_16_bits().empty() && rounds_y(v, CONVT_F16)) add(v, true);
    }
    return all;
}

class Variants : public testing::TestWithParam<Rows> {};

TEST_P(Variants, Agree) {
    const Rows &rows = GetParam();
    if (!isa_supported(rows.isa)) GTEST_SKIP() << "this CPU does not run " << isa_name(rows.isa);
    std::vector<std::size_t> done(rows.names.size(), 0);
    const std::size_t effort = one_in();
    const bool sums_in_f16 = rows.arithmetic == Arithmetic::kHalf;
    for (const convt_layout layout : {CONVT_CHANNELS_FIRST, CONVT_CHANNELS_LAST}) {
        std::uint64_t seed = 0;
        std::vector<Problem> problems = problems_of(rows, layout);
        for (Problem &problem : tuned_problems(rows.isa, rows.names)) {
            if (problem.layout == layout) problems.push_back(std::move(problem));
        }
        for (const Problem &problem : problems) {
            ++seed;
            std::optional<Inputs> drawn;
            Expected expected;
            for (std::size_t i = 0; i < rows.names.size(); ++i) {
                // Each row tries one of `effort` problems, and all rows together two, as references take long.
                if (done[i] >= 3 && (seed + i % 2 * (effort / 2)) % effort != 0) continue;
                if (!drawn) {
                    drawn = draw(problem, seed, seed % 2 ? Values::uniform : Values::integers);
                    spoil_bias(problem, seed, &*drawn);
                }
                const Inputs &inputs = *drawn;
                Options options{};
                options.threads = 1;
                options.isa = isa_name(rows.isa);
                options.variant = rows.names[i].c_str();
                options.sums_in_f16 = sums_in_f16;
                SCOPED_TRACE(describe(problem, seed, options));
                Plan plan;
                Status status =
                    Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
                if (status.code() == CONVT_UNSUPPORTED) {
                    EXPECT_NE(status.message(), "");
                    continue;
                }
                ASSERT_TRUE(status) << status.message();
                ASSERT_EQ(plan.variant(), options.variant);
                ASSERT_EQ(plan.isa(), options.isa);
                ++done[i];
                if (expected.shape.empty()) expected = reference(problem, inputs, sums_in_f16);
                Tensor y(problem.y_dtype.value_or(problem.dtype), plan.y_shape());
                status = plan.run(inputs.x.data(), y.data());
                ASSERT_TRUE(status) << status.message();
                ASSERT_TRUE(agrees(y, expected));

                if ((seed + i) % 3 != 0) continue; // it is not what differs most between rows
                options.threads = 3;
                options.all_threads = 1;
                Tensor threaded;
                status = run(problem, inputs, options, &threaded);
                ASSERT_TRUE(status) << status.message();
                ASSERT_TRUE(threaded == y) << "three threads give other bits than one";
            }
        }
    }
    for (std::size_t i = 0; i < rows.names.size(); ++i) {
        EXPECT_GT(done[i], 0u) << rows.names[i] << " on " << isa_name(rows.isa) << " can do none of the problems";
        RecordProperty(rows.names[i], static_cast<int>(done[i]));
    }
}

INSTANTIATE_TEST_SUITE_P(Table, Variants, testing::ValuesIn(rows_of_the_table()),
                         [](const testing::TestParamInfo<Rows> &c) { return name_of(c.param); });

// The default choices for the same problems.
class DefaultChoice : public testing::TestWithParam<std::tuple<convt_dtype, convt_layout>> {};

TEST_P(DefaultChoice, Agrees) {
    std::uint64_t seed = 1000;
    Random random(seed);
    for (Problem &problem : variant_problems(std::get<0>(GetParam()), std::get<1>(GetParam()))) {
        if (is_quantized(problem.dtype)) quantize(&problem, random_quantized_as(problem.dtype, &random));
        expect_agreement(problem, seed, seed % 2 ? Values::uniform : Values::integers);
        ++seed;
    }
}

INSTANTIATE_TEST_SUITE_P(Table, DefaultChoice,
                         testing::Combine(testing::ValuesIn(built_of({CONVT_F16, CONVT_BF16, CONVT_F32, CONVT_F64,
                                                                      CONVT_U8, CONVT_S8})),
                                          testing::Values(CONVT_CHANNELS_FIRST, CONVT_CHANNELS_LAST)),
                         [](const testing::TestParamInfo<std::tuple<convt_dtype, convt_layout>> &c) {
                             return std::string(convt_dtype_name(std::get<0>(c.param))) +
                                    (std::get<1>(c.param) == CONVT_CHANNELS_FIRST ? "_nchw" : "_nhwc");
                         });

TEST(Table, IsWhatTheInterfaceLists) {
    std::set<std::string> rows, listed, isas, listed_isas;
    for (std::size_t i = 0; i < variant_count(); ++i) {
        rows.insert(variant_at(i).name);
        isas.insert(isa_name(variant_at(i).isa));
    }
    for (std::size_t i = 0; i < convt_variant_count(); ++i) listed.insert(convt_variant_name(i));
    for (std::size_t i = 0; i < convt_isa_count(); ++i) listed_isas.insert(convt_isa_name(i));
    EXPECT_EQ(listed, rows);
    EXPECT_EQ(listed_isas, isas);
}

TEST(Table, EveryIsaAndTypeHasAReference) {
    std::set<Isa> isas;
    for (std::size_t i = 0; i < variant_count(); ++i) isas.insert(variant_at(i).isa);
    for (const Isa isa : isas) {
        const auto expect_reference = [&](Arithmetic arithmetic, convt_dtype dtype) {
            int count = 0;
            for (std::size_t i = 0; i < variant_count(); ++i) {
                const Variant &v = variant_at(i);
                count += belongs_to(v, isa) && v.family == Family::kReference && v.arithmetic == arithmetic &&
                         v.dtype == dtype;
            }
            EXPECT_EQ(count, 1) << isa_name(isa) << ' ' << convt_dtype_name(dtype);
        };
        if (is_built(CONVT_U8)) {
            for (const convt_dtype dtype : {CONVT_U8, CONVT_F32, CONVT_S32, CONVT_F64}) {
                expect_reference(Arithmetic::kInt16, dtype);
            }
        }
        for (const convt_dtype dtype : built_floats()) {
            expect_reference(Arithmetic::kFloat, dtype);
        }
    }
    EXPECT_FALSE(isas.empty());
}

// Kernels may fetch the lines of y before they store to them, where images are far apart and 160 channels or more are summed.
TEST(FarImages, GiveTheSameBits) {
    constexpr std::int64_t kFar = 1 << 20, kColumns = 32, kChannels = 72; // elements: of two bytes or more, 2 MiB
    std::size_t done = 0;
    for (const convt_dtype dtype : built_floats()) {
        const Problem problem =
            parse_problem(std::string(convt_dtype_name(dtype)) + " nhwc n2 ic170 oc72 i7x16 k2x2 s2x2 bias");
        const Inputs inputs = draw(problem, 3);
        for (std::size_t i = 0; i < variant_count(); i++) {
            const Variant &v = variant_at(i);
            if (v.family != Family::kOcVectorized || v.dtype != problem.dtype || !isa_supported(v.isa)) continue;
            Options options{};
            options.threads = 1;
            options.isa = isa_name(v.isa);
            options.variant = v.name;
            options.sums_in_f16 = v.arithmetic == Arithmetic::kHalf;
            SCOPED_TRACE(describe(problem, 3, options));
            Plan plan;
            Status status = Plan::create(problem, options, inputs.w.data(), inputs.b->data(), &plan);
            if (status.code() == CONVT_UNSUPPORTED) continue;
            ASSERT_TRUE(status) << status.message();
            Tensor near(problem.dtype, plan.y_shape()), far(problem.dtype, {2 * kFar});
            ASSERT_TRUE(plan.run(inputs.x.data(), near.data()));
            Arguments arguments;
            arguments.x = ConstTensorView(inputs.x.data(), problem.dtype, problem.x_shape);
            arguments.y = {far.data(), problem.dtype, plan.y_shape(), {kFar, kColumns * kChannels, kChannels, 1}};
            status = plan.run(arguments);
            ASSERT_TRUE(status) << status.message();
            const std::int64_t image = near.size() / 2;
            for (std::int64_t e = 0; e < near.size(); e++) {
                ASSERT_EQ(far.get(e / image * kFar + e % image), near.get(e)) << e;
            }
            done++;
        }
    }
    EXPECT_GT(done, 0u);
}

// For the ends of rows, which the problems above have.
TEST(NarrowerTiles, AreTheNarrowestThatHoldTheColumns) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < variant_count(); i++) {
        const Variant &v = variant_at(i);
        const NarrowerTiles tiles = narrower_tiles(v);
        EXPECT_EQ(tiles.holding(0), nullptr) << v.name;
        EXPECT_EQ(tiles.holding(v.tile_q), nullptr) << v.name;
        const bool has_some =
            !v.built_in && (v.family == Family::kOcVectorized || (v.family == Family::kOwVectorized && v.tile_qh == 1));
        for (std::int64_t columns = 1; columns < v.tile_q; columns++) {
            const Variant *const n = tiles.holding(columns);
            for (std::size_t j = 0; j < variant_count(); j++) { // none is left out, and none narrower would do
                const Variant &other = variant_at(j);
                const bool same = other.isa == v.isa && other.family == v.family &&
                                  other.output_order == v.output_order && other.arithmetic == v.arithmetic &&
                                  other.dtype == v.dtype && other.stride_w == v.stride_w &&
                                  other.tile_oc == v.tile_oc && other.tile_qh == v.tile_qh;
                if (&other == n) {
                    EXPECT_TRUE(same) << v.name << ' ' << other.name;
                    EXPECT_GE(n->tile_q, columns) << v.name << ' ' << other.name;
                    found++;
                } else if (has_some && same && !other.built_in && other.tile_q >= columns &&
                           4 * other.tile_q <= 3 * v.tile_q) {
                    ASSERT_TRUE(n) << v.name << ' ' << other.name;
                    EXPECT_GE(other.tile_q, n->tile_q) << v.name << ' ' << n->name << ' ' << other.name;
                }
            }
        }
    }
    EXPECT_GT(found, 0u);
}

TEST(Problems, AreManyAndSmall) {
    const std::vector<Problem> problems = variant_problems(CONVT_F32, CONVT_CHANNELS_FIRST);
    EXPECT_GT(problems.size(), 300u);
    for (const Problem &problem : problems) {
        EXPECT_LT(count_macs(geometry_of(problem)), 1e7) << describe(problem) << " takes too long";
    }
}

} // namespace
} // namespace convtranspose::test
