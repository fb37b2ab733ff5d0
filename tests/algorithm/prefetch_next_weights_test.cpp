// The lines of the next tile's weights that a reduction fetches, when it does so, and that sums stay the same.
#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <Halide.h>
#include <gtest/gtest.h>

#include "schedules/cpu/passes/prefetch.h"
#include "schedules/cpu/passes/prefetch_next_weights.h"

namespace convtranspose {

namespace {

constexpr int kSecondLevelCache = 2 << 20;

using namespace Halide;
using Internal::For;
using Internal::Stmt;

constexpr int kLine = 64;

Stmt loop(const std::string &name, int extent) {
    return For::make(name, 0, extent, Internal::ForType::Serial, Partition::Auto, DeviceAPI::None,
                     Internal::Evaluate::make(0));
}

// Loops as they lie around a reduction, outermost first: groups, tiles of output channels, phases, positions.
struct Loops {
    static constexpr int kTiles = 3, kPhases = 2;
    Stmt groups = loop("y.g", 1), tiles = loop("y.oo", kTiles), phases = loop("y.r", kPhases), rows, columns, steps;
    Expr group = Internal::Variable::make(Int(32), "y.g"), tile = Internal::Variable::make(Int(32), "y.oo"),
         phase = Internal::Variable::make(Int(32), "y.r"), step = Internal::Variable::make(Int(32), "k");
    int step_bytes, count;
    Expr at; // weights of steps, of phases and of tiles lie behind one another

    Loops(int rows_count, int columns_count, int steps_count, int bytes)
        : rows(loop("y.h", rows_count)), columns(loop("y.w", columns_count)), steps(loop("k", steps_count)),
          step_bytes(bytes), count(steps_count),
          at((((group * kTiles + tile) * kPhases + phase) * steps_count + step) * step_bytes) {}

    std::vector<const For *> around() const {
        return {groups.as<For>(), tiles.as<For>(), phases.as<For>(), rows.as<For>(), columns.as<For>()};
    }
    int extent(const Stmt &s) const { return static_cast<int>(*as_const_int(s.as<For>()->extent)); }
    std::int64_t value(Expr e, int t, int r, int h, int w) const {
        for (const auto &[name, now] : {std::pair{"y.g", 0}, {"y.oo", t}, {"y.r", r}, {"y.h", h}, {"y.w", w}}) {
            e = Internal::substitute(name, now, e);
        }
        return *as_const_int(Internal::simplify(e));
    }
};

void expect_each_line_of_the_next_tile(const Loops &loops) {
    const PrefetchNextWeights next(loops.at, loops.around(), "oo", kSecondLevelCache);
    const auto [first, share] = next.lines(loops.steps.as<For>(), loops.at);
    ASSERT_TRUE(first.defined());
    const std::int64_t tile_bytes = std::int64_t{loops.step_bytes} * loops.count;
    for (int t = 0; t < Loops::kTiles; t++) {
        for (int r = 0; r < Loops::kPhases; r++) {
            std::set<std::int64_t> fetched;
            for (int h = 0; h < loops.extent(loops.rows); h++) {
                for (int w = 0; w < loops.extent(loops.columns); w++) {
                    for (int k = 0; k < loops.count; k++) {
                        fetched.insert((loops.value(first, t, r, h, w) + k * loops.value(share, t, r, h, w)) / kLine);
                    }
                }
            }
            const std::int64_t begin = (t * Loops::kPhases + r + 1) * tile_bytes;
            for (std::int64_t line = begin / kLine; line < (begin + tile_bytes) / kLine; line++) {
                EXPECT_EQ(fetched.count(line), 1U) << "tile " << t << ", phase " << r << ", line " << line;
            }
            EXPECT_LT(*fetched.rbegin() * kLine, begin + tile_bytes + tile_bytes / 2) << "that far beyond is in vain";
        }
    }
}

TEST(PrefetchNextWeights, EveryLineIsFetchedInSharesOfPasses) {
    expect_each_line_of_the_next_tile(Loops(1, 2, 8, 128));
    expect_each_line_of_the_next_tile(Loops(2, 2, 8, 256));
    expect_each_line_of_the_next_tile(Loops(1, 3, 10, 128));
    expect_each_line_of_the_next_tile(Loops(3, 5, 16, 192));
    expect_each_line_of_the_next_tile(Loops(1, 2, 9, 64));
}

TEST(PrefetchNextWeights, AreFetchedWhereTheyAreFarAndReadAgain) {
    const auto are_far = [](const Loops &loops, int second_level_cache = kSecondLevelCache) {
        const Expr far = PrefetchNextWeights(loops.at, loops.around(), "oo", second_level_cache).are_far();
        return Internal::is_const_one(Internal::simplify(far));
    };
    constexpr int kThird = 1 << 20; // of 3 MiB, in each of three tiles
    constexpr int kSteps = kThird / Loops::kPhases / 128;
    EXPECT_TRUE(are_far(Loops(1, 2, kSteps, 128)));
    EXPECT_FALSE(are_far(Loops(1, 1, kSteps, 128))) << "there is one pass";
    EXPECT_FALSE(are_far(Loops(1, 2, kSteps - 1, 128))) << "they may stay in the second-level cache";
    EXPECT_TRUE(are_far(Loops(1, 2, 2 * kSteps, 128))) << "1 MiB of a tile and phase";
    EXPECT_FALSE(are_far(Loops(1, 2, 2 * kSteps + 1, 128))) << "two tiles do not fit in that cache";
    EXPECT_TRUE(are_far(Loops(1, 2, kSteps / 4, 128), kSecondLevelCache / 4));
    EXPECT_FALSE(are_far(Loops(1, 2, kSteps / 4 - 1, 128), kSecondLevelCache / 4));
}

TEST(PrefetchNextWeights, NeedALoopOverTiles) {
    const Loops loops(2, 2, 8, 128);
    EXPECT_FALSE(PrefetchNextWeights(loops.at, {loops.phases.as<For>(), loops.rows.as<For>()}, "oo", kSecondLevelCache)
                     .are_far()
                     .defined());
    EXPECT_FALSE(PrefetchNextWeights(loops.at, {}, "oo", kSecondLevelCache).are_far().defined());
}

TEST(PrefetchNextWeights, LoopsWithinAPassHaveTheirOwn) {
    // As where all phases of w are computed for a tile of positions, one after the other.
    const Loops loops(2, 2, 8, 128);
    const PrefetchNextWeights next(
        loops.at, {loops.groups.as<For>(), loops.tiles.as<For>(), loops.rows.as<For>(), loops.phases.as<For>()}, "oo",
        kSecondLevelCache);
    const Expr first = next.lines(loops.steps.as<For>(), loops.at).first;
    constexpr std::int64_t kPhaseBytes = 1024;
    EXPECT_EQ(loops.value(first, 0, 1, 0, 0), (1 * Loops::kPhases + 1) * kPhaseBytes);
    EXPECT_EQ(loops.value(first, 0, 1, 1, 0), (1 * Loops::kPhases + 1) * kPhaseBytes + kPhaseBytes / 2);
}

TEST(PrefetchNextWeights, TheRestOfARowComesAfterItsWholeTiles) {
    const auto pass_of_rest = [](int columns) {
        const Loops loops(3, columns, 8, 128);
        const PrefetchNextWeights next(loops.at, loops.around(), "oo", kSecondLevelCache);
        std::vector<const For *> around = loops.around();
        around.pop_back();
        return loops.value(next.pass(around), 0, 0, 1, 0);
    };
    EXPECT_EQ(pass_of_rest(2), 1 * 2 + 2);
    EXPECT_EQ(pass_of_rest(0), 1) << "there is nothing but the rest";
}

TEST(PrefetchNextWeights, StepsMustLieBehindOneAnother) {
    const Loops loops(2, 2, 8, 128);
    const Expr stride = Internal::Variable::make(Int(32), "stride");
    const Expr at = loops.group * 3000 + loops.tile * 1000 + loops.step * stride;
    EXPECT_FALSE(PrefetchNextWeights(at, loops.around(), "oo", kSecondLevelCache)
                     .lines(loops.steps.as<For>(), at)
                     .first.defined());
}

// y(i, q, o, g) = sum over k of w(i, k, o, g) * x(k, q), a tile of weights for each o.
TEST(PrefetchNextWeights, FetchingLeavesSumsAsTheyAre) {
    if (get_jit_target_from_environment().arch != Target::X86) GTEST_SKIP() << "kernels of x86 alone prefetch";
    constexpr int kWidth = 32, kSteps = 5000, kTiles = 5, kColumns = 3, kGroups = 2; // of 3.2 MB each
    ImageParam w(Float(32), 4, "w"), x(Float(32), 2, "x");
    Var i("i"), q("q"), o("o"), g("g"), oo("oo"), oi("oi");
    Func y("y"), sum("sum");
    RDom k(0, x.dim(0).extent());
    sum(i, q, o, g) = 0.0F;
    sum(i, q, o, g) += w(i, k, o, g) * x(k, q);
    y(i, q, o, g) = sum(i, q, o, g);
    w.dim(1).set_stride(kWidth);
    y.bound(i, 0, kWidth).split(o, oo, oi, 1).reorder(i, oi, q, oo, g).vectorize(i, 8).unroll(i);
    sum.compute_at(y, q).bound_extent(i, kWidth).vectorize(i, 8).unroll(i);
    sum.update().reorder(i, k).vectorize(i, 8).unroll(i);
    auto *const prefetch = new Prefetch({sum.name(), x.name(), w.name()}, {2048, 0}, kSecondLevelCache);
    prefetch->fetch_next_weights("oo");
    Pipeline pipeline(y);
    pipeline.add_custom_lowering_pass(prefetch);

    Buffer<float> weights(kWidth, kSteps, kTiles, kGroups), inputs(kSteps, kColumns);
    weights.for_each_element(
        [&](int e, int s, int t, int n) { weights(e, s, t, n) = static_cast<float>((e + s + t + n) % 7); });
    inputs.for_each_element([&](int s, int c) { inputs(s, c) = static_cast<float>((s + c) % 5); });
    w.set(weights);
    x.set(inputs);
    std::ostringstream code;
    code << pipeline.compile_to_module({w, x}, "f");
    EXPECT_NE(code.str().find("next_w"), std::string::npos) << "nothing is fetched";
    const Buffer<float> sums = pipeline.realize({kWidth, kColumns, kTiles, kGroups});
    sums.for_each_element([&](int e, int c, int t, int n) {
        float expected = 0;
        for (int s = 0; s < kSteps; s++) expected += weights(e, s, t, n) * inputs(s, c);
        EXPECT_EQ(sums(e, c, t, n), expected) << e << ", " << c << ", " << t << ", " << n;
    });
}

} // namespace

} // namespace convtranspose
