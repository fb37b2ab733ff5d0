#include "algorithms/winograd/winograd_axis.h"

#include <array>
#include <iterator>
#include <set>

#include "base/division.h"
#include "problem/axis_plan.h"

namespace convtranspose {

const Products kProducts[kMostTapsOfPhase + 1] = {
    {1, 1, {{1}}, {{0, 0, 0}}, 0},
    {2, 1, {{1}}, {{0, 0, 0}, {1, 0, 0}}, 0},
    {3, 3, {{1, 0}, {1, 1}, {0, -1}}, {{0, 1, -1}, {1, 0, 0}, {1, 1, -1}}, 1},
    {4,
     4,
     {{1, 0, 0}, {0.5, 0.5, 0.5}, {-0.5, 0.5, -0.5}, {0, 0, 1}},
     {{0, 2, -1}, {1, 1, 1}, {1, 1, -1}, {1, 2, -1}},
     1},
};

WinogradAxis::WinogradAxis(const AxisGeometry &geometry)
    : entries(), text(), phases(), tiles(ceil_div(ceil_div(geometry.out, geometry.stride), std::int64_t{2})),
      kernel(geometry.kernel), kernel_step(geometry.kernel_step()), stride(geometry.stride) {
    using Entry = std::array<std::int32_t, kEntryColumns>;
    std::vector<std::vector<Entry>> of_phases;
    std::set<Entry> all;
    // All taps count, whether or not a position meets them inside x, so that the packed weights serve every input size.
    AxisGeometry endless = geometry;
    endless.in = endless.out = std::int64_t{1} << 40;
    const AxisPlan plan = plan_axis(endless, stride, false);
    for (std::int64_t r = 0; r < geometry.stride; r++) {
        const Taps taps = plan.taps_of(r);
        WinogradPhase phase;
        phase.number = r;
        phase.kernel_begin = taps.kernel_begin;
        phase.count = static_cast<int>(std::min<std::int64_t>(taps.count, kMostTapsOfPhase + 1));
        phase.positions = ceil_div(geometry.out - r, geometry.stride); // 0 or less: none
        phases.push_back(phase);
        of_phases.emplace_back();
        for (int k = 0; phase.count <= kMostTapsOfPhase && k < phase.products().count; k++) {
            const std::int32_t *const entry = phase.products().entries[k];
            of_phases.back().push_back(
                {static_cast<std::int32_t>(taps.offset) + entry[kStart], entry[kDistance], entry[kSecond]});
        }
        all.insert(of_phases.back().begin(), of_phases.back().end());
    }
    first = all.empty() ? 0 : (*all.begin())[kStart];
    for (const Entry &entry : all) {
        const std::int32_t start = entry[kStart] - first;
        entries.insert(entries.end(), {start, entry[kDistance], entry[kSecond]});
        text += entry[kDistance] == 0 ? 'X' : entry[kDistance] == 2 ? 'E' : entry[kSecond] < 0 ? 'D' : 'S';
        text += std::to_string(start);
    }
    for (std::size_t r = 0; r < of_phases.size(); r++) {
        for (const Entry &entry : of_phases[r])
            phases[r].entries.push_back(static_cast<std::size_t>(std::distance(all.begin(), all.find(entry))));
    }
}

} // namespace convtranspose
