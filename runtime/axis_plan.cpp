#include "axis_plan.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

namespace convtranspose {

AxisPlan plan_axis(const AxisGeometry &geometry, std::int64_t weight_stride, bool all_residues) {
    AxisPlan p;
    p.geometry = geometry;
    p.step = geometry.offset_step;
    p.residues = all_residues ? geometry.stride : std::min(geometry.stride, geometry.out);
    // Elements that meet the same residue stand together, in the order of their taps. Which residue that is depends on
    // the pads, the order does not.
    const auto kernel = static_cast<std::size_t>(geometry.kernel);
    p.elements.resize(kernel);
    std::iota(p.elements.begin(), p.elements.end(), std::int64_t{0});
    std::sort(p.elements.begin(), p.elements.end(), [&](std::int64_t a, std::int64_t b) {
        const std::int64_t class_a = a * geometry.dilation % weight_stride,
                           class_b = b * geometry.dilation % weight_stride;
        return class_a != class_b ? class_a < class_b : a > b;
    });
    std::vector<std::int32_t> position(kernel);
    for (std::size_t i = 0; i < kernel; i++)
        position[static_cast<std::size_t>(p.elements[i])] = static_cast<std::int32_t>(i);

    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> classes;
    p.table.reserve(static_cast<std::size_t>(kTapColumns * p.residues));
    std::int64_t shared_begin = INT64_MIN, shared_end = INT64_MAX;
    for (std::int64_t r = 0; r < p.residues; r++) {
        const Taps taps = taps_of(geometry, r);
        const std::int64_t offset = taps.count ? taps.offset : 0;
        const TapClass own{taps.count ? position[static_cast<std::size_t>(taps.kernel_begin)] : 0,
                           static_cast<std::int32_t>(taps.count)};
        const auto [found, is_new] =
            classes.try_emplace({own.first, own.count}, static_cast<std::int32_t>(p.classes.size()));
        if (is_new) p.classes.push_back(own);
        p.table.insert(p.table.end(), {static_cast<std::int32_t>(offset), own.count, own.first, found->second});
        if (taps.count) {
            const std::int64_t end = offset + (taps.count - 1) * geometry.offset_step + 1;
            p.low = p.max_count ? std::min(p.low, offset) : offset;
            p.high = p.max_count ? std::max(p.high, end) : end;
        }
        p.max_count = std::max(p.max_count, static_cast<std::int32_t>(taps.count));
        shared_begin = std::max(shared_begin, offset);
        shared_end = std::min(shared_end, offset + taps.count);
    }
    if (geometry.offset_step == 1 && shared_begin < shared_end) {
        p.shared_first = static_cast<std::int32_t>(shared_begin);
        p.shared_count = static_cast<std::int32_t>(shared_end - shared_begin);
    }
    return p;
}

void pair_taps(AxisPlan *plan) {
    const AxisGeometry &g = plan->geometry;
    std::vector<std::int64_t> pairs;
    std::vector<std::int32_t> tap_of(
        plan->elements.size()); // the new tap that an element at a place of the old order is in
    for (std::size_t begin = 0, end = 0; begin < plan->elements.size(); begin = end) {
        const auto meets = [&](std::size_t i) { return plan->elements[i] * g.dilation % g.stride; };
        for (end = begin; end < plan->elements.size() && meets(end) == meets(begin); end++) {
            tap_of[end] = static_cast<std::int32_t>((pairs.size() + (end - begin)) / 2);
        }
        pairs.insert(pairs.end(), plan->elements.begin() + static_cast<std::ptrdiff_t>(begin),
                     plan->elements.begin() + static_cast<std::ptrdiff_t>(end));
        if (pairs.size() % 2) pairs.push_back(-1);
    }
    for (std::int64_t r = 0; r < plan->residues; r++) {
        std::int32_t *const row = plan->table.data() + kTapColumns * r;
        if (row[1] == 0) continue;
        row[1] = (row[1] + 1) / 2;
        row[2] = tap_of[static_cast<std::size_t>(row[2])];
    }
    plan->elements = std::move(pairs);
    plan->max_count = (plan->max_count + 1) / 2;
    plan->step *= 2;
    plan->paired = true;
}

} // namespace convtranspose
