// The columns whose tiles read x in place: none of their taps leaves x, no tile reaches beyond them, and there are no more such.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <gtest/gtest.h>

#include "geometry/axes.h"
#include "reference/tensor.h"
#include "runtime/kernels/kernel_tables.h"
#include "runtime/selection/candidates.h"

namespace convtranspose::test {
namespace {

constexpr std::uint64_t kSeed = 43;

// Whether every tap of position q lies inside x.
bool reads_inside(const AxisPlan &plan, std::int64_t q) {
    bool inside = true;
    plan.for_each_with_taps([&](const PhaseRun &, std::int64_t, const std::int32_t *row) {
        const std::int64_t first = q + row[0], last = first + (row[1] - 1) * plan.step;
        inside = inside && first >= 0 && last < plan.geometry.in;
    });
    return inside;
}

// The width of the tile that ends rows of `columns` columns; that tile overlaps the one before it where it is not filled.
std::int64_t last_tile(const Variant &v, const NarrowerTiles &narrower, std::int64_t columns) {
    const std::int64_t rest = columns % v.tile_q;
    if (rest == 0) return v.tile_q;
    const Variant *const end = narrower.holding(rest);
    return end ? end->tile_q : v.tile_q;
}

// Whether all of a row's columns behind `end`, if any, can be computed without those before it.
bool is_enough_behind(const Variant &v, const NarrowerTiles &narrower, std::int64_t end, std::int64_t positions) {
    return end == positions || positions - last_tile(v, narrower, positions - end) >= end;
}

void expect_right(const Variant &v, const NarrowerTiles &narrower, const AxisGeometry &axis, std::size_t *found) {
    SpatialProblem problem = {};
    problem.plan[0] = plan_axis(axis, axis.stride, false);
    const AxisPlan &w = problem.plan[0];
    if (w.low == w.high) return; // nothing is read, in place or otherwise
    const std::int64_t tile = v.tile_q, least = w.least_q_extent(), most = w.q_extent();
    SCOPED_TRACE(testing::Message() << describe(axis) << " tile " << tile << " seed " << kSeed);
    const Columns c = columns_in_place(v, problem, narrower);
    const auto are_possible = [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t q = begin; q < end; q++) {
            if (!reads_inside(w, q)) return false;
        }
        return end <= least && is_enough_behind(v, narrower, end, least) && is_enough_behind(v, narrower, end, most);
    };
    if (c.any()) {
        (*found)++;
        ASSERT_GE(c.begin, 0);
        ASSERT_EQ(c.begin % tile, 0);
        ASSERT_EQ(c.end % tile, 0);
        ASSERT_TRUE(are_possible(c.begin, c.end)) << c.begin << " .. " << c.end;
        ASSERT_TRUE(c.begin == 0 || !are_possible(c.begin - tile, c.end)) << "begins late, at " << c.begin;
        for (std::int64_t end = c.end + tile; end <= least; end += tile) {
            ASSERT_FALSE(are_possible(c.begin, end)) << "ends early, at " << c.end << " and not at " << end;
        }
    } else {
        ASSERT_EQ(c.begin, 0);
        ASSERT_EQ(c.end, 0);
        for (std::int64_t begin = 0; begin < least; begin += tile) {
            for (std::int64_t end = begin + tile; end <= least; end += tile) {
                ASSERT_FALSE(are_possible(begin, end)) << begin << " .. " << end << " could be in place";
            }
        }
    }
}

TEST(ColumnsInPlace, AreAllThatReadInsideX) {
    Random random(kSeed);
    std::size_t found = 0, with_narrower = 0;
    for (std::size_t i = 0; i < variant_count(); i++) {
        const Variant &v = variant_at(i);
        if (v.family != Family::kOcVectorized || v.stride_w != 0) continue;
        const NarrowerTiles narrower = narrower_tiles(v);
        for (int k = 0; k < 12; k++) {
            const std::int64_t stride = random.integer(1, 4), dilation = random.integer(1, 3),
                               kernel = random.integer(1, 7), in = random.integer(1, 100),
                               natural = (in - 1) * stride + (kernel - 1) * dilation + 1,
                               pad = random.integer(0, kernel * dilation);
            const std::int64_t out = std::max<std::int64_t>(natural - pad - random.integer(-9, kernel * dilation), 1);
            const AxisGeometry axis = make_axis(in, out, kernel, stride, dilation, pad);
            expect_right(v, NarrowerTiles(), axis, &found);
            expect_right(v, narrower, axis, &with_narrower);
            if (HasFailure()) return;
        }
    }
    EXPECT_GT(found, 100u);
    EXPECT_GT(with_narrower, 100u);
}

TEST(ColumnsInPlace, ByHand) {
    Variant v = {};
    v.tile_q = 4;
    SpatialProblem problem = {};
    // A kernel of 3, stride 1, pad 1: column 0 reads one before x, column 18 one behind it.
    problem.plan[0] = plan_axis(make_axis(19, 19, 3, 1, 1, 1), 1, false);
    const Columns c = columns_in_place(v, problem, NarrowerTiles());
    EXPECT_EQ(c.begin, 4);
    EXPECT_EQ(c.end, 12); // 16 .. 18 are less than a tile, which would begin at 15
}

} // namespace
} // namespace convtranspose::test
