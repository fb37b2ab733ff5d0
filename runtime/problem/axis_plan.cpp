#include "problem/axis_plan.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

#include "base/division.h"

namespace convtranspose {

namespace {

// A table has one row for each phase while there are at most kMostRows phases. With more, runs of at least kSharedRows
// neighbouring phases without taps share rows, because a valid stride may be as large as 10^8 although few of its phases
// have taps.
constexpr std::int64_t kMostRows = 4096, kSharedRows = 1024;

// A TapRun holds taps of one phase whose elements stand side by side in the packed order. Their offsets rise by
// geometry.offset_step.
struct TapRun {
    std::int64_t phase, offset; // offset: that of the first tap
    std::int32_t place, count;  // place: index of the first tap's element in the packed order
};

// Returns the kernel elements in packed order: those that meet the same phase stand together, in the order of their taps. The
// pads decide which phase that is, but they do not change the order.
std::vector<std::int32_t> order_elements(const AxisGeometry &g, std::int64_t weight_stride) {
    // Elements `period` apart meet the same phase.
    const std::int64_t period = weight_stride / std::gcd(weight_stride, g.dilation),
                       firsts = std::min(period, g.kernel);
    std::vector<std::int64_t> first(static_cast<std::size_t>(firsts));
    std::iota(first.begin(), first.end(), std::int64_t{0});
    std::sort(first.begin(), first.end(), [&](std::int64_t a, std::int64_t b) {
        return a * g.dilation % weight_stride < b * g.dilation % weight_stride;
    });
    std::vector<std::int32_t> elements;
    elements.reserve(static_cast<std::size_t>(g.kernel));
    for (const std::int64_t k : first) {
        for (std::int64_t at = k + (g.kernel - 1 - k) / period * period; at >= 0; at -= period)
            elements.push_back(static_cast<std::int32_t>(at));
    }
    return elements;
}

// Returns the taps that at least one output position meets inside x, sorted by phase. *inside counts the pairs of a tap and
// an output position that meet inside x.
std::vector<TapRun> reached_taps(const AxisPlan &p, double *inside) {
    const AxisGeometry &g = p.geometry;
    const std::int64_t q_extent = p.q_extent();
    std::vector<TapRun> taps;
    for (std::size_t i = 0; i < p.elements.size(); i++) {
        // Position 0 of x times kernel element k contributes to output position `lands`.
        const std::int64_t lands = p.elements[i] * g.dilation - g.pad_begin, phase = floor_mod(lands, g.stride);
        if (phase >= g.out) continue;
        const std::int64_t offset = (phase - lands) / g.stride, positions = ceil_div(g.out - phase, g.stride);
        if (offset >= g.in || -offset >= positions) continue;
        const std::int64_t begin = std::clamp<std::int64_t>(-offset, 0, q_extent);
        *inside += real(std::clamp(g.in - offset, begin, q_extent) - begin);
        const auto place = static_cast<std::int32_t>(i);
        if (!taps.empty() && taps.back().phase == phase && taps.back().place + taps.back().count == place) {
            taps.back().count++;
        } else {
            taps.push_back({phase, offset, place, 1});
        }
    }
    std::sort(taps.begin(), taps.end(), [](const TapRun &a, const TapRun &b) { return a.phase < b.phase; });
    return taps;
}

} // namespace

std::vector<std::int32_t> AxisPlan::row_for_each() const {
    if (has_row_for_each()) return table;
    std::vector<std::int32_t> all;
    for (const PhaseRun &run : runs) {
        all.insert(all.end(), row(run.row), row(run.row + run.count));
    }
    return all;
}

Taps AxisPlan::taps_of(std::int64_t phase) const {
    const auto run =
        std::find_if(runs.begin(), runs.end(), [&](const PhaseRun &r) { return phase < r.first + r.count; });
    if (run == runs.end() || !run->has_taps) return Taps();
    const std::int32_t *const taps_of_phase = row(run->row + phase - run->first);
    if (taps_of_phase[kTapCount] == 0) return Taps();
    const auto first = static_cast<std::size_t>(taps_of_phase[kTapFirst]);
    return {elements[first], taps_of_phase[kTapOffset], taps_of_phase[kTapCount]};
}

bool AxisPlan::fits_kernels() const {
    return step <= kMostElements && q_extent() + high - 1 <= kMostElements && low >= -kMostElements;
}

AxisPlan plan_axis(const AxisGeometry &geometry, std::int64_t weight_stride, bool all_phases) {
    AxisPlan p;
    p.geometry = geometry;
    p.phases = all_phases ? geometry.stride : std::min(geometry.stride, geometry.out);
    p.elements = order_elements(geometry, weight_stride);
    double inside = 0;
    const std::vector<TapRun> reached = reached_taps(p, &inside);

    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> classes;
    const std::int64_t step = geometry.offset_step();
    const auto add_row = [&](std::int64_t offset, const TapClass &own) {
        p.add(offset, own.count, step);
        const auto [found, is_new] =
            classes.try_emplace({own.first, own.count}, static_cast<std::int32_t>(p.classes.size()));
        if (is_new) p.classes.push_back(own);
        p.table.insert(p.table.end(), {static_cast<std::int32_t>(offset), own.count, own.first, found->second});
    };
    // Phases from `more` on have one position less. If each phase has a row, those without outputs have one too.
    const std::int64_t more = geometry.out % geometry.stride, with_outputs = std::min(geometry.stride, geometry.out);
    const auto add_run = [&](std::int64_t first, std::int64_t count, std::int64_t row, bool has_taps) {
        const std::int64_t split = std::clamp(more, first, first + count), end = std::min(first + count, with_outputs);
        for (const auto &[from, to] : {std::pair(first, split), std::pair(split, end)}) {
            if (from >= to) continue;
            const std::int64_t q_extent = (geometry.out - from + geometry.stride - 1) / geometry.stride;
            p.runs.push_back({from, to - from, row + (has_taps ? from - first : 0), q_extent, has_taps});
        }
    };
    const auto add_empty_rows = [&](std::int64_t count) {
        for (std::int64_t i = 0; i < count; i++) add_row(0, TapClass());
    };
    const bool each = p.phases <= kMostRows;
    const std::int64_t shared_rows = each ? 0 : kSharedRows;
    add_empty_rows(shared_rows);

    std::int64_t next = 0, run_first = 0, run_row = p.rows(); // the phase after the last row; the run under way
    // Adds rows for the phases before the given one; a long gap uses the shared rows.
    const auto fill_up_to = [&](std::int64_t phase) {
        if (each || phase - next < kSharedRows) {
            add_empty_rows(phase - next);
        } else {
            if (next > run_first) add_run(run_first, next - run_first, run_row, true);
            for (std::int64_t r = next; r < phase; r += kSharedRows)
                add_run(r, std::min(kSharedRows, phase - r), 0, false);
            run_first = phase;
            run_row = p.rows();
        }
        next = phase;
    };
    for (const TapRun &taps : reached) {
        fill_up_to(taps.phase);
        add_row(taps.offset, {taps.place, taps.count});
        next++;
        p.taps += taps.count;
    }
    fill_up_to(p.phases);
    if (next > run_first) add_run(run_first, next - run_first, run_row, true);
    p.taps_inside = inside / real(p.q_extent());
    if (p.max_count > 1 || step <= kMostElements) p.step = step;
    return p;
}

void pair_taps(AxisPlan *plan) {
    const AxisGeometry &g = plan->geometry;
    std::vector<std::int32_t> pairs;
    // These map an element's place in the old order to its new tap, and say whether it is the second element of that tap.
    std::vector<std::int32_t> tap_of(plan->elements.size());
    std::vector<bool> is_second(plan->elements.size());
    for (std::size_t begin = 0, end = 0; begin < plan->elements.size(); begin = end) {
        const auto meets = [&](std::size_t i) { return plan->elements[i] * g.dilation % g.stride; };
        for (end = begin; end < plan->elements.size() && meets(end) == meets(begin); end++) {
            tap_of[end] = static_cast<std::int32_t>((pairs.size() + (end - begin)) / 2);
            is_second[end] = (end - begin) % 2 != 0;
        }
        pairs.insert(pairs.end(), plan->elements.begin() + static_cast<std::ptrdiff_t>(begin),
                     plan->elements.begin() + static_cast<std::ptrdiff_t>(end));
        if (pairs.size() % 2) pairs.push_back(-1);
    }
    plan->max_count = 0;
    for (std::int64_t r = 0; r < plan->rows(); r++) {
        std::int32_t *const row = plan->row(r);
        if (row[kTapCount] == 0) continue;
        // If the first tap is the second of a pair, the pair begins one step earlier. Its partner was left out because no
        // position meets it inside x, so what it reads there is zero.
        const auto first = static_cast<std::size_t>(row[kTapFirst]);
        const std::int64_t before = is_second[first] ? 1 : 0, offset = row[kTapOffset] - before * g.offset_step();
        plan->low = std::min(plan->low, offset);
        row[kTapOffset] = static_cast<std::int32_t>(offset);
        row[kTapCount] = static_cast<std::int32_t>((row[kTapCount] + before + 1) / 2);
        row[kTapFirst] = tap_of[first];
        plan->max_count = std::max(plan->max_count, row[kTapCount]);
    }
    plan->elements = std::move(pairs);
    plan->step = 2 * g.offset_step();
    plan->paired = true;
}

bool has_equal_taps(const AxisPlan &plan) {
    const AxisGeometry &g = plan.geometry;
    bool are_equal = g.dilation == 1 && g.kernel % g.stride == 0 && plan.rows() == std::min(g.stride, g.out);
    for (std::int64_t r = 0; are_equal && r < plan.rows(); r++)
        are_equal = plan.row(r)[kTapCount] == g.kernel / g.stride;
    return are_equal;
}

void put_phases_inside(AxisPlan *plan) {
    const std::int64_t stride = plan->geometry.stride, taps = plan->geometry.kernel / stride;
    // The first tap of a phase is its last element, of which this is the first one that a stride has.
    const std::int64_t begin = plan->elements[static_cast<std::size_t>(plan->table[kTapFirst])] % stride;
    plan->elements.clear();
    for (std::int64_t t = 0; t < taps; t++) {
        for (std::int64_t k = 0; k < 2 * stride; k++)
            plan->elements.push_back(static_cast<std::int32_t>((taps - 1 - t) * stride + k % stride));
    }
    for (std::int64_t r = 0; r < plan->rows(); r++) plan->row(r)[kTapFirst] = static_cast<std::int32_t>(begin + r);
    plan->high++; // kernels read a position more than they use
}

} // namespace convtranspose
