#include "direct/strip_tasks.h"

#include <algorithm>

#include "base/division.h"

namespace convtranspose {

namespace {

// With up to this many times the wanted number of tasks, it matters if one thread has one task more than another.
constexpr std::int64_t kMostUneven = 4;

} // namespace

StripTasks::StripTasks(const Blocking &blocking, const Strip &strip, std::int64_t pieces, int threads)
    : blocking_(blocking), strip_(strip) {
    const DirectLayer &layer = blocking.layer;
    const Variant &v = layer.variant;
    const PackedLayout &packed = layer.packed;
    // The strip is divided into about four tasks a thread: by groups, then by tiles of output channels, then by positions along the
    // strip axis; by positions first if all groups of a position are side by side in y.
    const std::int64_t wanted =
        std::max({threads > 1 ? 4 * std::int64_t{threads} : std::int64_t{1}, pieces, std::int64_t{1}});
    group_tiles_ = overlaps_groups(v) ? strip.groups / packed.group_tile : ceil_div(strip.groups, packed.group_tile);
    const std::int64_t positions = strip.q_end - strip.q_begin, tile = blocking.strip_tile,
                       most_q_parts = std::max<std::int64_t>(positions / (2 * tile), 1);
    const bool positions_first = v.family == Family::kDepthwise && v.output_order == OutputOrder::kChannels;
    group_parts_ = std::min(group_tiles_, positions_first ? ceil_div(wanted, most_q_parts) : wanted);
    // The reference takes the channels of one packed tile at a time, however many the tile holds.
    const bool each_tile = v.family == Family::kReference;
    const std::int64_t few_tile_parts = std::min(packed.tiles(), ceil_div(wanted, group_parts_));
    const bool are_uneven = threads > 1 && packed.tiles() % few_tile_parts != 0;
    tile_parts_ = each_tile || (are_uneven && packed.tiles() <= kMostUneven * wanted) ? packed.tiles() : few_tile_parts;
    q_parts_ = std::min(most_q_parts, ceil_div(wanted, channel_parts()));
    // Tasks are in an order by which each thread takes positions whose x it has copied itself; or channels, if by positions one
    // thread would have a tile more.
    by_positions_ = positions_first || ceil_div(positions, tile) % threads == 0;
    for (std::size_t a = 0; a < 3; a++)
        boxes_[a] = layer.whole[a] ? 1 : static_cast<std::int64_t>(layer.axes[a].runs.size());
    // If threads cannot take equally many parts, the phases of h are halved too; each half has weights of its own.
    const bool knows_phases = layer.whole[1] || (v.built_in && v.built_in->axes[1].table);
    halves_ = pieces == 0 && !knows_phases && !each_tile && parts() % threads != 0 && parts() <= kMostUneven * wanted &&
              boxes_[1] == 1 && layer.axes[1].runs.front().count > 1;
    if (halves_) boxes_[1] = 2;
    // Only all boxes of a part together leave no gaps in y.
    boxes_of_task_ = pieces > 0 ? boxes_of_part() : 1;
}

KernelCall StripTasks::part(std::int64_t i) const {
    const PackedLayout &packed = blocking_.layer.packed;
    const std::int64_t channels_part = by_positions_ ? i % channel_parts() : i / q_parts_,
                       positions_part = by_positions_ ? i / channel_parts() : i % q_parts_;
    const std::int64_t tp = channels_part % tile_parts_, gp = channels_part / tile_parts_;
    // Parts end on whole tiles, so that phases with one position less still fill a tile.
    const std::int64_t tiles = (strip_.q_end - strip_.q_begin) / blocking_.strip_tile;
    const auto begin_of = [&](std::int64_t p) { return strip_.q_begin + tiles * p / q_parts_ * blocking_.strip_tile; };
    KernelCall c;
    c.q_begin = begin_of(positions_part);
    c.q_end = positions_part + 1 == q_parts_ ? strip_.q_end : begin_of(positions_part + 1);
    const auto group_begin_of = [&](std::int64_t p) {
        return strip_.first_group + group_tiles_ * p / group_parts_ * packed.group_tile;
    };
    c.group_begin = group_begin_of(gp);
    c.group_end = gp + 1 == group_parts_ ? strip_.first_group + strip_.groups : group_begin_of(gp + 1);
    c.oc_tile_begin = packed.tiles() * tp / tile_parts_;
    c.oc_tile_end = packed.tiles() * (tp + 1) / tile_parts_;
    return c;
}

// Returns box i of an axis of a part.
Box StripTasks::box(const KernelCall &part, std::size_t a, std::int64_t i) const {
    const AxisPlan &axis = blocking_.layer.axes[a];
    const bool strip_axis = a == blocking_.strip_axis;
    const std::int64_t begin = strip_axis ? part.q_begin : 0, end = strip_axis ? part.q_end : axis.q_extent();
    if (blocking_.layer.whole[a]) return Box{0, axis.geometry.stride, 0, begin, end};
    if (a != 1 || !halves_) return box_of(axis.runs[static_cast<std::size_t>(i)], begin, end);
    PhaseRun half = axis.runs.front();
    const std::int64_t first = half.count / 2;
    half.count = i ? half.count - first : first;
    half.first += i ? first : 0;
    half.row += i && half.has_taps ? first : 0;
    return box_of(half, begin, end);
}

} // namespace convtranspose
