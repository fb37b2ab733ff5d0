// The table of taps of an axis lists what the definition says meets, each once, and its bounds hold; so it is with taps in pairs.
#include "runtime/problem/axis_plan.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "geometry/axes.h"
#include "reference/tensor.h"

namespace convtranspose::test {
namespace {

constexpr std::uint64_t kSeed = 37;

// f(offset, packed element, output of position 0, positions) for each tap of each phase that has outputs. For taps in pairs, for
// both elements of each.
template<typename F>
void for_each_tap(const AxisPlan &plan, const F &f) {
    const std::int64_t elements = plan.paired ? 2 : 1;
    plan.for_each_with_taps([&](const PhaseRun &run, std::int64_t phase, const std::int32_t *row) {
        for (std::int64_t t = 0; t < row[1]; t++) {
            for (std::int64_t e = 0; e < elements; e++) {
                f(row[0] + t * plan.step + e * plan.geometry.offset_step(), elements * (row[2] + t) + e, phase,
                  run.q_extent);
            }
        }
    });
}

std::vector<Meeting> by_table(const AxisPlan &plan) {
    const AxisGeometry &axis = plan.geometry;
    std::vector<Meeting> meetings;
    for_each_tap(plan, [&](std::int64_t offset, std::int64_t at, std::int64_t phase, std::int64_t positions) {
        const std::int64_t k = plan.elements.at(static_cast<std::size_t>(at));
        for (std::int64_t q = std::max<std::int64_t>(-offset, 0); q < std::min(positions, axis.in - offset); q++) {
            if (k >= 0) meetings.emplace_back(q * axis.stride + phase, q + offset, k);
        }
    });
    std::sort(meetings.begin(), meetings.end());
    return meetings;
}

// The runs are of all phases that have outputs, each once, in order, with as many positions as the phase has outputs.
void expect_runs(const AxisPlan &plan) {
    const AxisGeometry &axis = plan.geometry;
    std::int64_t next = 0, most = 0, least = axis.out;
    for (const PhaseRun &run : plan.runs) {
        ASSERT_EQ(run.first, next);
        ASSERT_GT(run.count, 0);
        next += run.count;
        // The outputs of the first phase of the run, and of the last: phase, phase + stride and so on.
        for (const std::int64_t phase : {run.first, next - 1}) {
            ASSERT_LT(phase + (run.q_extent - 1) * axis.stride, axis.out);
            ASSERT_GE(phase + run.q_extent * axis.stride, axis.out);
        }
        most = std::max(most, run.q_extent);
        least = std::min(least, run.q_extent);
        ASSERT_GE(run.row, 0);
        ASSERT_LE(run.row + run.count, plan.rows());
        for (std::int64_t i = 0; i < run.count && !run.has_taps; i++) {
            ASSERT_EQ(plan.table[static_cast<std::size_t>(kTapColumns * (run.row + i) + 1)], 0) << "row " << i;
        }
        if (plan.has_row_for_each()) {
            ASSERT_EQ(run.row, run.first);
        }
    }
    ASSERT_EQ(next, std::min(axis.stride, axis.out));
    ASSERT_EQ(plan.q_extent(), most);
    ASSERT_EQ(plan.least_q_extent(), least);
}

// Every tap reads q + low .. q + high - 1 for any q, no narrower bounds would do, and none is listed that no output meets.
void expect_bounds(const AxisPlan &plan) {
    const AxisGeometry &axis = plan.geometry;
    std::int64_t low = INT64_MAX, high = INT64_MIN;
    double taps = 0;
    for_each_tap(plan, [&](std::int64_t offset, std::int64_t, std::int64_t, std::int64_t positions) {
        low = std::min(low, offset);
        high = std::max(high, offset + 1);
        taps++;
        EXPECT_LT(offset, axis.in);
        EXPECT_GE(positions - 1 + offset, 0);
    });
    ASSERT_EQ(plan.taps, taps);
    if (taps == 0) {
        ASSERT_EQ(plan.low, plan.high);
        ASSERT_EQ(plan.max_count, 0);
    } else {
        ASSERT_EQ(plan.low, low);
        ASSERT_EQ(plan.high, high);
    }
    std::int32_t most = 0;
    for (std::int64_t r = 0; r < plan.rows(); r++) {
        most = std::max(most, plan.table[static_cast<std::size_t>(kTapColumns * r + 1)]);
    }
    ASSERT_EQ(plan.max_count, most);
    // Averages are over q_extent() positions, of which the last ones of some phases have no output.
    const auto meetings = static_cast<double>(by_definition(axis).size()),
               inside = plan.taps_inside * static_cast<double>(plan.q_extent());
    ASSERT_GE(inside, meetings * (1 - 1e-12));
    ASSERT_LE(inside, (meetings + taps) * (1 + 1e-12));
    if (axis.out % axis.stride == 0 || axis.out < axis.stride) {
        ASSERT_NEAR(inside, meetings, 1e-9 * meetings);
    }
}

// Rows of equal taps are of one class, and those of others of another.
void expect_classes(const AxisPlan &plan) {
    std::set<std::pair<std::int32_t, std::int32_t>> distinct;
    for (const TapClass &c : plan.classes) distinct.emplace(c.first, c.count);
    ASSERT_EQ(distinct.size(), plan.classes.size());
    for (std::int64_t r = 0; r < plan.rows(); r++) {
        const std::int32_t *const row = plan.table.data() + kTapColumns * r;
        const TapClass &c = plan.classes.at(static_cast<std::size_t>(row[3]));
        ASSERT_EQ(c.count, row[1]) << "row " << r;
        ASSERT_EQ(c.first, row[2]) << "row " << r;
    }
}

// The offsets that every phase has a tap for are shared_first and those after it, where taps are a position apart.
void expect_shared(const AxisPlan &plan) {
    std::map<std::int64_t, std::int64_t> phases_of; // offset: how many phases have it
    for_each_tap(plan, [&](std::int64_t offset, std::int64_t, std::int64_t, std::int64_t) { phases_of[offset]++; });
    std::vector<std::int64_t> shared, listed(static_cast<std::size_t>(plan.shared_count()));
    for (const auto &[offset, phases] : phases_of) {
        if (phases == plan.phases && plan.geometry.offset_step() == 1) shared.push_back(offset);
    }
    std::iota(listed.begin(), listed.end(), plan.shared_first());
    ASSERT_EQ(listed, shared);
}

void expect_right(const AxisGeometry &axis, std::int64_t weight_stride, bool all_phases) {
    SCOPED_TRACE(testing::Message() << describe(axis) << " weight_stride " << weight_stride
                                    << (all_phases ? " all phases" : ""));
    const AxisPlan plan = plan_axis(axis, weight_stride, all_phases);
    ASSERT_EQ(by_table(plan), by_definition(axis));
    ASSERT_EQ(plan.phases, all_phases ? axis.stride : std::min(axis.stride, axis.out));
    std::vector<std::int32_t> sorted = plan.elements, all(static_cast<std::size_t>(axis.kernel));
    std::sort(sorted.begin(), sorted.end());
    std::iota(all.begin(), all.end(), 0);
    ASSERT_EQ(sorted, all);
    ASSERT_NO_FATAL_FAILURE(expect_runs(plan));
    ASSERT_NO_FATAL_FAILURE(expect_bounds(plan));
    ASSERT_NO_FATAL_FAILURE(expect_classes(plan));
    ASSERT_NO_FATAL_FAILURE(expect_shared(plan));
}

// Strides for which each phase has a row of its own.
AxisGeometry near_axis(Random *random) {
    const std::int64_t common = random->pick<std::int64_t>({1, 1, 2, 3, 12}); // at least this in common
    return make_axis(random->integer(0, 20), random->integer(1, 90), random->integer(1, 20),
                     common * random->integer(1, 12), common * random->integer(1, 12), random->integer(0, 200));
}

// Strides of which most phases have no tap, and outputs near a place where an input meets a kernel element.
AxisGeometry far_axis(Random *random) {
    const std::int64_t stride = random->integer(4000, 300000),
                       dilation = random->integer(0, 1) ? random->integer(1, 5) : random->integer(1, 300000),
                       in = random->integer(1, 5), kernel = random->integer(1, 9);
    const std::int64_t meeting = stride * random->integer(0, in - 1) + dilation * random->integer(0, kernel - 1);
    return make_axis(in, random->integer(1, 3 * stride), kernel, stride, dilation,
                     std::max<std::int64_t>(meeting - random->integer(0, stride), 0));
}

TEST(PlanAxis, ByHand) {
    // A kernel of 4, stride 2, pad 1: outputs 2q and 2q + 1 have two taps each, and share the one at offset 0.
    const AxisPlan plan = plan_axis(make_axis(5, 10, 4, 2, 1, 1), 2, false);
    EXPECT_EQ(plan.elements, (std::vector<std::int32_t>{2, 0, 3, 1}));
    EXPECT_EQ(plan.table, (std::vector<std::int32_t>{-1, 2, 2, 0, 0, 2, 0, 1}));
    EXPECT_EQ(plan.low, -1);
    EXPECT_EQ(plan.high, 2);
    EXPECT_EQ(plan.taps, 4);
    EXPECT_EQ(plan.taps_inside, 3.6); // the first output and the last lack one
    EXPECT_EQ(plan.shared_first(), 0);
    EXPECT_EQ(plan.shared_count(), 1);
}

TEST(PlanAxis, ListsWhatMeets) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed);
    Random random(kSeed);
    for (int i = 0; i < 3000; i++) {
        const AxisGeometry axis = near_axis(&random);
        for (const bool all_phases : {false, true}) expect_right(axis, axis.stride, all_phases);
        if (HasFailure()) return;
    }
}

TEST(PlanAxis, ListsWhatMeetsOfFarPhases) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed);
    Random random(kSeed);
    std::size_t meetings = 0;
    for (int i = 0; i < 200; i++) {
        const AxisGeometry axis = far_axis(&random);
        expect_right(axis, axis.stride, false);
        const AxisPlan plan = plan_axis(axis, axis.stride, false);
        // Whatever the stride is: rows for a gap that is not shared before each tap, and those that are.
        EXPECT_LE(plan.rows(), std::max<std::int64_t>(4096, 1025 * (axis.kernel + 2))) << describe(axis);
        meetings += by_definition(axis).size();
        if (HasFailure()) return;
    }
    EXPECT_GT(meetings, 200u);
}

// One input position: every output is a phase then, whatever stride the weights are ordered by.
TEST(PlanAxis, ListsWhatMeetsOfASinglePosition) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed);
    Random random(kSeed);
    for (int i = 0; i < 1000; i++) {
        const std::int64_t out = random.integer(1, 60);
        expect_right(make_axis(1, out, random.integer(1, 20), out, random.integer(1, 9), random.integer(0, 30)),
                     random.integer(1, 12), false);
        if (HasFailure()) return;
    }
}

// Packed weights serve every input size, output size and pad.
TEST(PlanAxis, OrdersElementsByTheKernelAlone) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed);
    Random random(kSeed);
    for (int i = 0; i < 500; i++) {
        const AxisGeometry a = near_axis(&random);
        const AxisGeometry b = make_axis(random.integer(0, 20), random.integer(1, 90), a.kernel, a.stride, a.dilation,
                                         random.integer(0, 200));
        ASSERT_EQ(plan_axis(a, a.stride, false).elements, plan_axis(b, a.stride, true).elements)
            << describe(a) << "; " << describe(b);
    }
}

TEST(PlanAxis, HasARowForEachPhase) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed);
    Random random(kSeed);
    for (int i = 0; i < 300; i++) {
        const AxisGeometry axis = i % 10 ? near_axis(&random) : far_axis(&random);
        SCOPED_TRACE(describe(axis));
        const AxisPlan plan = plan_axis(axis, axis.stride, false), all = plan_axis(axis, axis.stride, i % 10 != 0);
        const std::vector<std::int32_t> rows = plan.row_for_each();
        ASSERT_EQ(rows.size(), static_cast<std::size_t>(kTapColumns * std::min(axis.stride, axis.out)));
        std::vector<std::int32_t> counts(rows.size() / kTapColumns, 0); // of taps, of each phase
        plan.for_each_with_taps([&](const PhaseRun &, std::int64_t phase, const std::int32_t *row) {
            const auto first = rows.begin() + static_cast<std::ptrdiff_t>(kTapColumns * phase);
            EXPECT_TRUE(std::equal(first, first + kTapColumns, row)) << "phase " << phase;
            counts[static_cast<std::size_t>(phase)] = row[1];
        });
        for (std::size_t r = 0; r < counts.size(); r++) {
            ASSERT_EQ(rows[static_cast<std::size_t>(kTapColumns) * r + 1], counts[r]) << "phase " << r;
        }
        // A kernel that walks all phases finds no taps at those that have no outputs.
        for (std::int64_t r = plan.phases; all.has_row_for_each() && r < all.rows(); r++) {
            ASSERT_EQ(all.table[static_cast<std::size_t>(kTapColumns * r + 1)], 0) << "phase " << r;
        }
    }
}

TEST(PlanAxis, KnowsWhatFitsIn32Bits) {
    constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
    const auto fits = [](const AxisGeometry &axis) { return plan_axis(axis, axis.stride, false).fits_kernels(); };
    EXPECT_TRUE(fits(make_axis(kMost, kMost, 1, 1, 1, 0)));
    EXPECT_FALSE(fits(make_axis(kMost + 1, kMost + 1, 1, 1, 1, 0)));
    EXPECT_TRUE(fits(make_axis(kMost - 1, kMost - 1, 2, 1, 1, 1))); // reads one past the last position
    EXPECT_FALSE(fits(make_axis(kMost, kMost, 2, 1, 1, 1)));        // the same
}

TEST(PairTaps, CoverWhatMeets) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed);
    Random random(kSeed);
    std::size_t alone = 0, both = 0;
    for (int i = 0; i < 3200; i++) {
        const AxisGeometry axis = i % 16 ? near_axis(&random) : far_axis(&random);
        SCOPED_TRACE(describe(axis));
        AxisPlan plan = plan_axis(axis, axis.stride, i % 3 == 0 && i % 16 != 0);
        pair_taps(&plan);
        ASSERT_TRUE(plan.paired);
        ASSERT_EQ(plan.step, 2 * axis.offset_step());
        ASSERT_EQ(by_table(plan), by_definition(axis));
        ASSERT_NO_FATAL_FAILURE(expect_runs(plan));

        // Two for each tap, all elements of the kernel among them once; a second one may be missing, not a first.
        ASSERT_EQ(plan.elements.size() % 2, 0u);
        std::vector<std::int32_t> sorted, all(static_cast<std::size_t>(axis.kernel));
        for (std::size_t e = 0; e < plan.elements.size(); e++) {
            if (plan.elements[e] >= 0) sorted.push_back(plan.elements[e]);
            ASSERT_TRUE(plan.elements[e] >= 0 || (e % 2 == 1 && plan.elements[e] == -1));
            (plan.elements[e] >= 0 ? both : alone)++;
        }
        std::sort(sorted.begin(), sorted.end());
        std::iota(all.begin(), all.end(), 0);
        ASSERT_EQ(sorted, all);

        // The first position of each pair is within the bounds: that is where a kernel reads.
        std::int32_t most = 0;
        plan.for_each_with_taps([&](const PhaseRun &, std::int64_t, const std::int32_t *row) {
            most = std::max(most, row[1]);
            EXPECT_GE(row[0], plan.low);
            EXPECT_LT(row[0] + (row[1] - 1) * plan.step, plan.high);
        });
        ASSERT_EQ(plan.max_count, most);
        if (HasFailure()) return;
    }
    EXPECT_GT(alone, 0u);
    EXPECT_GT(both, 0u);
}

} // namespace
} // namespace convtranspose::test
