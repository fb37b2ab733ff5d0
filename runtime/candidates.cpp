#include "candidates.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "division.h"
#include "error.h"
#include "kernel_tables.h"
#include "machine.h"
#include "packed_weights.h"
#include "shape.h"

namespace convtranspose {

namespace {

constexpr double kSecondLevelCache = 512 << 10; // of which a kernel may hope to keep this much
// Bytes of weights that one of 2 MiB keeps. More are not read once more than need be, on any machine.
constexpr double kNearWeights = 0.8 * (2 << 20);
// Of a reduction, by which kernels fetch the lines of a far y (schedules/cpu/channels.cpp). Estimates are of one tap: machine.cpp's
// far_store was fitted when kernels of several fetched none.
double fetching_steps(double vector_bytes) { return vector_bytes < 64 ? 96 : 64; }
// Positions of a tile from which on kernels fetch the next tile's weights, if a group's are 3/2 of the second-level cache that they
// count on, and a tile's half of it (schedules/schedule.h, cpu/next_weights.cpp).
constexpr int kLeastFetching = 6;
double counted_on(double vector_bytes) { return vector_bytes < 64 ? 512 << 10 : 2 << 20; }
// Of short vectors (machine.h), in bytes.
constexpr double kFarWeights = 2 << 20, kLargeX = 256 << 10;

// Apart so far positions of y, channels last, meet in few sets of the first-level cache.
constexpr std::int64_t kFarPositions = 2048;

std::int64_t y_position_bytes(const Geometry &geometry) {
    return geometry.out_channels * static_cast<std::int64_t>(convt_dtype_size(geometry.y_dtype));
}

double parts_of(std::int64_t a, std::int64_t b) {
    const std::int64_t whole = (a + b - 1) / b;
    return static_cast<double>(whole);
}

// Of all residues that have outputs: of a single position in x, or where y is smaller than the stride, not of all elements.
double taps_of(const AxisPlan &a) {
    double taps = 0;
    for (std::int64_t r = 0; r < a.residues; r++) taps += a.table[static_cast<std::size_t>(r * kTapColumns + 1)];
    return taps;
}

// The same, less those that leave x: of all positions on average.
double taps_inside(const AxisPlan &a) {
    const auto positions = static_cast<double>(a.q_extent());
    double inside = 0;
    for (std::int64_t r = 0; r < a.residues; r++) {
        const std::int32_t *const row = a.table.data() + kTapColumns * r;
        for (std::int64_t t = 0; t < row[1]; t++) {
            const std::int64_t offset = row[0] + t * a.step;
            const std::int64_t begin = std::clamp<std::int64_t>(-offset, 0, a.q_extent());
            inside += static_cast<double>(std::clamp(a.geometry.in - offset, begin, a.q_extent()) - begin);
        }
    }
    return positions > 0 ? inside / positions : 0;
}

// What of the layer that is built into the variant differs, or nothing.
Refusal refusal(const BuiltIn &b, const std::array<int, 3> &strides, const CoreProblem &p) {
    if (b.ic && b.ic != p.ic()) return {"built for # input channels per group, of which there are #", b.ic, p.ic()};
    if (b.oc && b.oc != p.oc()) return {"built for # output channels per group, of which there are #", b.oc, p.oc()};
    static constexpr const char *kOuts[3] = {"built for # columns of y, of which there are #",
                                             "built for # rows of y, of which there are #",
                                             "built for # planes of y, of which there are #"};
    static constexpr const char *kCounts[3] = {"built for # taps along w, of which a residue has #",
                                               "built for # taps along h, of which a residue has #",
                                               "built for # taps along d, of which a residue has #"};
    static constexpr const char *kResidues[3] = {"built for # residues of w, of which there are #",
                                                 "built for # residues of h, of which there are #",
                                                 "built for # residues of d, of which there are #"};
    static constexpr const char *kTables[3] = {"built for other taps along w: of residue #, column #",
                                               "built for other taps along h: of residue #, column #",
                                               "built for other taps along d: of residue #, column #"};
    static constexpr const char *kSteps[3] = {"built for taps # columns apart, which are # apart",
                                              "built for taps # rows apart, which are # apart",
                                              "built for taps # planes apart, which are # apart"};
    static constexpr const char *kWhole[3] = {"built for columns of y that are a multiple of #, which # are not",
                                              "built for rows of y that are a multiple of #, which # are not",
                                              "built for planes of y that are a multiple of #, which # are not"};
    for (std::size_t i = 0; i < 3; i++) {
        const BuiltInAxis &a = b.axes[i];
        const AxisPlan &plan = p.plan[i];
        if (a.out && a.out != plan.geometry.out) return {kOuts[i], a.out, plan.geometry.out};
        for (std::int64_t r = 0; a.count && r < plan.residues; r++) {
            const std::int32_t count = plan.table[static_cast<std::size_t>(kTapColumns * r + 1)];
            if (count != a.count) return {kCounts[i], a.count, count};
        }
        if (!a.table) continue;
        if (a.residues != plan.residues || a.residues != plan.geometry.stride) {
            return {kResidues[i], a.residues, std::min(plan.residues, plan.geometry.stride)};
        }
        // Residues that are a dimension of y make two calls where some have a position more than others.
        if (strides[i] == 0 && plan.geometry.out % a.residues != 0) {
            return {kWhole[i], a.residues, plan.geometry.out};
        }
        if (a.step != plan.step) return {kSteps[i], a.step, plan.step};
        for (std::int64_t t = 0; t < kTapColumns * a.residues; t++) {
            if (a.table[t] != plan.table[static_cast<std::size_t>(t)]) {
                return {kTables[i], t / kTapColumns, t % kTapColumns};
            }
        }
    }
    return {};
}

// What stands against the variant, or nothing.
Refusal refusal(const Variant &v, const CoreProblem &p) {
    const AxisPlan &w = p.plan[0], &h = p.plan[1];
    if (is_float(v.arithmetic) == p.geometry.quantized()) {
        return {p.geometry.quantized() ? "computes with floats" : "computes with integers"};
    }
    if (v.dtype != p.y_dtype) return {"computes another type"};
    if (v.arithmetic == Arithmetic::kHalf && !p.sums_in_f16) return {"sums in f16 were not asked for"};
    if (v.arithmetic == Arithmetic::kBf16 && p.weights_at_run_time) return {"weights arrive with each run"};
    if (v.family == Family::kReference) return {};
    if (!p.fits_int32) return {"sums may not fit in 32 bits"};
    if (!p.fits_int8 && v.arithmetic == Arithmetic::kInt8)
        return {"a weight less its zero point does not fit in 8 bits"};
    if (p.ic() == 0 || w.geometry.in == 0 || h.geometry.in == 0 || p.plan[2].geometry.in == 0)
        return {"x has no elements"};
    if (p.may_be_infinite && p.reads_outside()) {
        return {"a weight is inf or NaN, which the zeros around x must not meet"};
    }
    const Store dense = p.geometry.y_channels_last() ? Store::kChannels : Store::kPlanar;
    switch (v.family) {
    case Family::kReference: break;
    case Family::kChannels:
    case Family::kMatrix:
        if (v.store == Store::kChannels && dense != Store::kChannels) return {"y is channels first"};
        if (v.store == Store::kPlanar && dense != Store::kPlanar) return {"y is channels last"};
        if (has_rows_of_channels(v) && p.geometry.layout == CONVT_CHANNELS_LAST) return {"x is channels last"};
        if (v.stride_w == 0 && w.least_q_extent() < v.tile_q) {
            return {"a residue has # columns, the tile #", w.least_q_extent(), v.tile_q};
        }
        break;
    case Family::kWide:
        if (v.store != dense) return {dense == Store::kPlanar ? "y is channels first" : "y is channels last"};
        break;
    case Family::kFew:
        if (dense != Store::kPlanar && p.geometry.out_channels > 1) return {"y is channels last"};
        if (!goes_by_offset(v) && (w.geometry.offset_step != 1 || h.geometry.offset_step != 1))
            return {"dilation does not divide stride"};
        if (v.stride_h != 0 && h.geometry.stride != v.stride_h) return {"stride of h is #", h.geometry.stride};
        break;
    case Family::kDepthwise:
        if (p.ic() != 1) return {"# input channels per group", p.ic()};
        if (v.stride_h != 0 && h.geometry.stride != v.stride_h) return {"stride of h is #", h.geometry.stride};
        if (pairs_taps(v) && w.geometry.stride != p.weight_stride[0]) return {"x has one column, each tap a residue"};
        if (v.store == Store::kChannels) {
            if (p.geometry.layout != CONVT_CHANNELS_LAST || dense != Store::kChannels)
                return {"x or y is channels first"};
            if (p.oc() != 1) return {"# output channels per group", p.oc()};
            if (overlaps_groups(v) && p.geometry.group < packing_of(v).group_tile) {
                return {"# groups, the tile #", p.geometry.group, packing_of(v).group_tile};
            }
            if (w.least_q_extent() < v.tile_q) {
                return {"a residue has # columns, the tile #", w.least_q_extent(), v.tile_q};
            }
        } else if (dense != Store::kPlanar) {
            return {"y is channels last"};
        }
        break;
    }
    if (h.least_q_extent() < v.tile_qh) {
        return {"a residue has # rows, the tile #", h.least_q_extent(), v.tile_qh};
    }
    if (v.stride_w != 0 && w.geometry.stride != v.stride_w) return {"stride of w is #", w.geometry.stride};
    if (v.built_in) return refusal(*v.built_in, {v.stride_w, v.stride_h, 0}, p);
    return {};
}

// Whether the variant fetches the next channels of x ahead of their use (schedules/cpu/wide.cpp).
bool fetches_x_ahead(const Variant &v) {
    constexpr int kVectors = 3;
    return v.isa == Isa::kAvx512 && v.tile_q == kVectors * v.lanes;
}

// Whether the variant reads each element of x for so few products that copying it would take about as long.
bool pays_in_place(const Variant &v, const CoreProblem &p) {
    if (v.family != Family::kWide || v.stride_w != 1 || v.tile_qh != 1) return false;
    const bool one_tap =
        std::all_of(p.plan.begin(), p.plan.end(), [](const AxisPlan &axis) { return axis.elements.size() == 1; });
    if (!one_tap) return false;
    const Machine &m = machine();
    const Geometry &g = p.geometry;
    const auto size = static_cast<std::int64_t>(convt_dtype_size(g.dtype));
    const auto x_bytes = static_cast<double>(std::max(volume(g.x_shape) * size, g.x_part_of_bytes));
    const std::int64_t most = fetches_x_ahead(v)           ? m.tiles_in_place
                              : x_bytes < m.in_place_bytes ? m.near_tiles_in_place
                                                           : 0;
    return parts_of(p.oc(), v.tile_oc) <= static_cast<double>(most);
}

// Whether the variant is to read x where it is, even if that is estimated to be slower.
bool dares_in_place(const Variant &v, const CoreProblem &p) {
    // Positions of which all channels are side by side: measured, copying takes up to a fifth of the time that computing takes.
    if (reads_any_strides(v) && p.geometry.layout == CONVT_CHANNELS_LAST) return true;
    if (pays_in_place(v, p)) return true;
    if (!v.built_in || !v.built_in->x_in_place) return false;
    // For layers of any number of channels, if one tile has them all, so that x is walked once. Measured, 128 to 64 channels of
    // 224x224 take 4 times as long in place, by tiles of two; 24 to 1 of 320x320 half as long.
    return v.built_in->oc > 0 || p.oc() <= v.tile_oc;
}

// Whether rows of y are made up of whole tiles, as a built-in stride reads them.
bool has_whole_tiles(const Variant &v, const CoreProblem &p) {
    return v.stride_w == 0 || p.axes[0].out % (static_cast<std::int64_t>(v.stride_w) * v.tile_q) == 0;
}

// Whether the variant reads x in blocks of channels, all blocks of a position side by side.
bool reads_blocks_of_channels(const Variant &v) {
    return block_of(v) > 1 && (v.family == Family::kChannels || v.family == Family::kMatrix) &&
           !has_rows_of_channels(v);
}

// Whether x is read so few times that copying it first, to where its positions do not collide in the first-level cache, would take
// longer than that saves. Xeon (Granite Rapids), f32: products of 512 channels in place are 1.4 times as fast with one tile of
// output channels, 1.29 with 32, 1.06 with 128, 1.02 with 256 (eight tiles), 0.97 to 1.01 with 512.
bool reads_seldom(const Variant &v, const CoreProblem &p) {
    constexpr double kFewReads = 8;
    return parts_of(p.oc(), v.tile_oc) * taps_of(p.plan[0]) * taps_of(p.plan[1]) * taps_of(p.plan[2]) <= kFewReads;
}

// Whether the variant can read x where it is, but for taps that leave it, and for a last tile at the end of all strips.
bool reads_x_in_place(const Variant &v, const CoreProblem &p) {
    if (block_of(v) > 1) {
        const int loaded = block_of(v) * (kByElement ? 2 : blocks_at_once(v)); // input channels at once
        const bool as_it_is =
            v.arithmetic == Arithmetic::kBf16 || (v.arithmetic == Arithmetic::kInt8 && p.x_dtype == kByteX);
        return as_it_is && reads_blocks_of_channels(v) && p.geometry.layout == CONVT_CHANNELS_LAST &&
               p.ic() % loaded == 0 && has_whole_tiles(v, p);
    }
    if (!is_float(v.arithmetic)) return false;
    if (v.family == Family::kReference) return p.x_dtype == v.dtype;
    if (p.x_dtype != sum_dtype(v)) return false;
    const AxisPlan &w = p.plan[0], &h = p.plan[1];
    const bool channels_last = p.geometry.layout == CONVT_CHANNELS_LAST;
    if (v.family == Family::kDepthwise && v.store == Store::kChannels) {
        return channels_last && (overlaps_groups(v) || p.geometry.group % packing_of(v).group_tile == 0);
    }
    if (channels_last) {
        const std::int64_t column = p.geometry.x_column_bytes;
        const bool collides = in_few_sets(column ? column : p.geometry.in_channels * operand_size(v));
        return reads_any_strides(v) && (!collides || reads_seldom(v, p));
    }
    // Large planes lie pages apart: walking the channels of one position then misses the TLB at every step, while the copy
    // holds all channels of a row together. Measured 1.1 to 3 times faster with the copy from 16 channels on.
    const auto plane = static_cast<double>(w.geometry.in * h.geometry.in * p.plan[2].geometry.in);
    if (!dares_in_place(v, p) && p.ic() >= 16 && plane * static_cast<double>(convt_dtype_size(p.x_dtype)) > 2048)
        return false;
    // A constant stride of h reads for all residues, also for those that are past the last row of y; one of w reads up to
    // whole tiles.
    if (v.stride_h != 0 && p.axes[1].out % v.stride_h != 0) return false;
    return has_whole_tiles(v, p) || (dares_in_place(v, p) && p.strip_axis() == 0);
}

// For a vector of x along w: of rows that lie at cache lines (Core::copied_row), the loads for one offset in each do not cross any.
double cycles_to_cross_lines(const AxisPlan &w) {
    return machine().per_crossing * (1 - 1 / static_cast<double>(std::max<std::int64_t>(w.high - w.low, 1)));
}

// For a vector of x of few output channels that is loaded for the first time, if x is further away than the second-level cache:
// where there is but one row of it, or several planes, each of which is walked anew.
double cycles_from_far(const CoreProblem &p) {
    if (p.plan[1].q_extent() > 1 && p.plan[2].q_extent() == 1) return 0;
    const Geometry &g = p.geometry;
    const double bytes = static_cast<double>(volume(g.x_shape)) * static_cast<double>(convt_dtype_size(g.dtype));
    return bytes >= machine().second_level_cache ? machine().far_x : 0;
}

// They load three shorter ones a cycle.
double cycles_per_load(double bytes) { return bytes < 64 ? 0 : machine().per_load; }

// The same as below for kernels of TapOrder::kByOffset, per image and group: `interleave` cycles to store a vector of sums.
double by_offset(const Variant &v, const CoreProblem &p, double interleave) {
    const AxisPlan &w = p.plan[0], &h = p.plan[1], &d = p.plan[2];
    const double vectors = static_cast<double>(v.tile_q) / v.lanes;
    const double residues_w = static_cast<double>(w.residues), residues_h = static_cast<double>(h.residues);
    const double taps = static_cast<double>(w.elements.size() * h.elements.size());
    const double rows = v.stride_h ? 1 : residues_h; // of residues that are computed one after the other
    const double loads = vectors * static_cast<double>(w.high - w.low) *
                         (v.stride_h ? static_cast<double>(h.high - h.low) : static_cast<double>(h.elements.size()));
    const double accumulators = vectors * v.tile_oc * residues_w * (v.stride_h ? residues_h : 1);
    const double registers = vector_registers(v.isa) - 3;
    const double latency =
        4 * static_cast<double>(w.max_count) * (v.stride_h ? h.max_count : static_cast<double>(h.elements.size()));
    const double rows_of_x = static_cast<double>(h.high - h.low);
    // Only of what is more than half of the first-level cache does it tell.
    const double x_bytes = rows_of_x * static_cast<double>(v.tile_q * p.ic() * operand_size(v));
    const bool waits = v.family == Family::kFew && x_bytes >= 24 << 10;
    // Among so many multiply-adds as of 9x9 most such loads hide: with all of what lines cross, that was estimated 1.4 times as long
    // as by others (Xeon, Emerald Rapids, 16 layers), 4x4 1.0 to 1.4 times.
    const double exposed = taps < 25 ? 1 : 0.35;
    const double crossing =
        waits ? exposed * loads * cycles_to_cross_lines(w) + rows_of_x * vectors * machine().per_far_load : 0;
    const double far = v.family == Family::kFew ? rows_of_x * vectors * cycles_from_far(p) : 0;
    // Loads of x and broadcasts of weights; sums that do not fit into registers are loaded and stored for each input channel.
    // Measured, where taps share loads of x, several tiles of output channels take a little longer than that.
    const double slower = p.oc() > v.tile_oc && w.max_count * h.max_count > 1 ? 1.05 : 1;
    const double step = slower * std::max({taps * v.tile_oc * vectors / 2, loads + taps * v.tile_oc / 2, latency}) +
                        cycles_per_load(static_cast<double>(v.lanes * operand_size(v))) * (loads + taps * v.tile_oc) +
                        crossing + far + rows * std::max(0.0, accumulators - registers) * 2;
    const double ic = parts_of(p.ic(), block_of(v));
    const double tiles =
        parts_of(w.q_extent(), v.tile_q) * static_cast<double>(h.q_extent()) * parts_of(p.oc(), v.tile_oc);
    const double planes = static_cast<double>(d.q_extent());
    // Without masked stores the end of a row that does not fill a tile is stored element by element, each put together from all
    // residues.
    const std::int64_t run = std::int64_t{v.tile_q} * v.stride_w;
    const double ends = static_cast<double>(w.geometry.out % run * h.geometry.out * d.geometry.out * p.oc());
    const bool depthwise = v.family == Family::kDepthwise;
    const bool masked = v.isa == Isa::kAvx512 || (v.isa == Isa::kAvx2 && convt_dtype_size(p.y_dtype) >= 4);
    const double slower_there = p.ic() == 1 ? machine().one_channel : 1;
    return (depthwise && !masked ? 1.2 * std::max(v.stride_w - 2, 0) * ends : 0) +
           slower_there * tiles * planes *
               (static_cast<double>(d.elements.size()) * (ic * step + (depthwise ? 0 : 10 * rows)) +
                static_cast<double>(d.residues) * residues_w * residues_h * vectors * v.tile_oc * interleave);
}

// Whether there is no loop over taps of w and h, as far as every residue has as many.
bool unrolls_taps(const Variant &v) { return v.built_in && v.built_in->axes[0].count && v.built_in->axes[1].count; }

// Times as long as in the midst of a row, for a narrower tile at its end, for which x and weights are read once more. Measured
// (Xeon, Granite Rapids, f32), 50 layers whose wide rows end so take 0.97 of the time of whole tiles in the mean, 0.85 to 1.09,
// and 97 by channels 0.94, 0.73 to 1.07.
constexpr double kWideRowEnd = 1.3;

// Tiles of a row, in cycles: those of the variant, so many, and the one at its end.
struct RowOfTiles {
    double count, tiles, end;
};

// tile: cycles of one tile. narrower: of the end; null: that is as all others.
template<typename Tile>
RowOfTiles row_of_tiles(const Variant &v, const Variant *narrower, std::int64_t columns, const Tile &tile) {
    const std::int64_t whole = columns / v.tile_q;
    const double count = narrower ? static_cast<double>(whole) : parts_of(columns, v.tile_q);
    const double longer = v.family == Family::kChannels ? machine().channels_row_end : kWideRowEnd;
    return {count, count * tile(v), narrower ? longer * tile(*narrower) : 0};
}

// Positions that a tile whose row begins at `first` leaves out for being outside of x, of all taps of w (schedules/cpu/row_ends.h, of
// x86 alone), where that is felt: tiles of fewer than four positions wait for their weights. Channels first gains less.
double left_out(const Variant &v, const AxisPlan &w, std::int64_t first) {
    constexpr int kFelt = 4, kMostTwo = 8; // positions
    if (v.isa > Isa::kAmx || v.store != Store::kChannels || block_of(v) > 1 || v.tile_q < kFelt || unrolls_taps(v))
        return 0;
    const std::int64_t most = v.tile_q <= kMostTwo ? 2 : 1;
    double positions = 0;
    for (std::int64_t r = 0; r < w.residues; r++) {
        const std::int32_t *const row = w.table.data() + kTapColumns * r;
        for (std::int64_t t = 0; t < row[1]; t++) {
            const std::int64_t begin = first + row[0] + t * w.step, left = -begin,
                               right = begin + v.tile_q - w.geometry.in;
            positions += static_cast<double>(std::clamp<std::int64_t>(left > 0 ? left : right, 0, most));
        }
    }
    return positions;
}

// Of all of x. ends_alone: the rest is read where it is.
double cost_of_copy(const Variant &v, const CoreProblem &p, bool ends_alone) {
    const Geometry &g = p.geometry;
    double elements = static_cast<double>(g.batch) * static_cast<double>(g.in_channels);
    for (const AxisPlan &a : p.plan)
        elements *= static_cast<double>(std::max<std::int64_t>(a.q_extent() + a.high - a.low - 1, 1));
    // Transposing by tiles takes 0.4 to 0.5 cycles an element in cache, by single loads or stores 1 to 2 (generators/copy_input).
    const bool tiles = block_of(v) == 1 && std::min(g.in_channels, p.plan[0].geometry.in) >= kCopyTile;
    const double near = copy_order(v, g.layout) != CopyOrder::kTransposed ? 0.4 : tiles ? 0.5 : 1.4;
    const double bytes = elements * static_cast<double>(convt_dtype_size(g.dtype));
    return elements * (bytes >= machine().far_bytes && !ends_alone ? std::max(near, machine().far_copy) : near);
}

// Cycles on one thread by a simple machine: two vector multiply-adds and two loads a cycle, a latency of four. Without those of
// copying x. narrower: what computes the ends of rows; null: the variant.
double cost(const Variant &v, const CoreProblem &p, const Variant *narrower) {
    const Geometry &g = p.geometry;
    const AxisPlan &w = p.plan[0], &h = p.plan[1], &d = p.plan[2];
    double taps = 1, residues = 1;
    for (std::size_t a = 0; a < 3; a++) {
        taps *= skips_outside(v, a) ? taps_inside(p.plan[a]) : taps_of(p.plan[a]);
        residues *= static_cast<double>(p.plan[a].residues);
    }
    // Steps of the reduction. A pair of 16-bit products is added by an instruction of its own without VNNI, on other ports in
    // part.
    if (pairs_taps(v)) taps *= (1 + static_cast<double>(w.residues) / static_cast<double>(w.elements.size())) / 2;
    const auto ic = parts_of(p.ic(), block_of(v));
    // On ARM smlal multiplies half a vector; what is broadcast is an element of a vector that holds two or more (bench/mca).
    double product = 1;
    if (v.arithmetic == Arithmetic::kInt16) product = block_of(v) == 1 ? 2 : v.isa != Isa::kAvx512Vnni ? 1.5 : 1;
    const double loads = kByElement ? 0.5 : 1; // of a broadcast
    const double groups = static_cast<double>(g.group), images = static_cast<double>(g.batch);
    if (v.family == Family::kReference) {
        return images * groups * static_cast<double>(p.oc()) *
               static_cast<double>(w.q_extent() * h.q_extent() * d.q_extent()) * (residues * 10 + taps * (5 + ic * 5));
    }
    const double rows = static_cast<double>(h.q_extent() * d.q_extent());
    const double lanes = v.lanes, size = static_cast<double>(operand_size(v) * block_of(v));
    // One vector of operands by one broadcast is a multiply-add. The vectors come from the second-level cache, at about
    // 32 bytes a cycle; those of one input channel stay in the first.
    const double load = lanes * size / (v.family == Family::kDepthwise ? 64 : 32);
    // Vectors of x along rows cross cache lines.
    const bool crosses = v.family != Family::kChannels;
    const double per_load = cycles_per_load(lanes * size);
    const bool is_of_channels = v.family == Family::kChannels && v.store == Store::kChannels;
    // What an instruction that is no multiply-add takes of their ports. Of weights each line is fetched ahead too, and a loop is
    // four.
    const double per_other = is_of_channels && lanes * size >= 64 && v.tile_oc > v.lanes ? machine().per_other : 0;
    const auto step = [&](double vectors, double broadcasts) {
        const Machine &m = machine();
        const double others = per_other > 0                  ? per_other * (2 * vectors + broadcasts + 4)
                              : crosses && lanes * size < 64 ? m.per_vector_along * vectors
                                                             : per_load * (vectors + broadcasts);
        const double crossing = v.family == Family::kDepthwise ? m.least_per_depthwise_crossing : m.least_per_crossing;
        const double least = crosses ? std::max(4.0, crossing * vectors * lanes * size / 64) : 4;
        return std::max(
                   {product * vectors * broadcasts / 2, (vectors + loads * broadcasts) / 2, vectors * load, least}) +
               others;
    };
    // Storing a vector of sums along a row, of all residues of w: bytes are requantized, and take more shuffles.
    // Few output channels: of eight residues, each vector is made of all of them, by two steps in kernels by offset.
    const double shuffles = v.family != Family::kFew || v.stride_w < 8 || goes_by_offset(v) ? 3 : 16;
    const double interleave = is_float(v.arithmetic) ? shuffles : 3 + 1.5 * v.stride_w;
    const double y_bytes =
        images * static_cast<double>(y_position_bytes(g) * w.geometry.out * h.geometry.out * d.geometry.out);
    double total = 0;
    switch (v.family) {
    case Family::kReference: break;
    case Family::kChannels: {
        const double vectors = v.tile_oc / lanes;
        const double used = static_cast<double>(std::min<std::int64_t>(p.oc(), v.tile_oc));
        const Machine &m = machine();
        const bool stores_far = y_bytes >= 2 * images * m.second_level_cache,
                   fetches_stored = w.max_count * h.max_count * d.max_count == 1 && ic >= fetching_steps(lanes * size);
        // If the weights of all residues that are computed together do not fit there, they come from further away.
        const double panel =
            ic * taps / residues * (v.stride_w ? static_cast<double>(w.residues) : 1) * v.tile_oc * size;
        const double w_bytes = groups * ic * taps * static_cast<double>(p.oc()) * size;
        // Passes over a tile's weights fetch the next one's from further away (schedules/cpu/next_weights.h).
        const bool fetches_next =
            is_float(v.arithmetic) && lanes * size >= 32 && v.tile_q * v.tile_qh >= kLeastFetching &&
            2 * w_bytes >= 3 * counted_on(lanes * size) * groups && 2 * panel <= counted_on(lanes * size);
        const bool is_of_short_vectors = is_float(v.arithmetic) && lanes * size < 64;
        const double x_bytes =
            static_cast<double>(volume(g.x_shape)) / images * static_cast<double>(convt_dtype_size(g.dtype));
        const bool is_of_lines = is_float(v.arithmetic) && lanes * size >= 64;
        const double near_weights = is_of_lines ? m.near_weights : 1, per_row_of_x = is_of_lines ? m.per_row_of_x : 2;
        const auto k_step = [&](const Variant &t) {
            const double positions = static_cast<double>(t.tile_q) * t.tile_qh;
            // Measured with vectors of a cache line on Zen 5, weights of tiles of fewer than eight positions arrive late: 54
            // columns by tiles of 6 take 1.13 times as long as by tiles of 14, though those compute two for nothing.
            double late = lanes * size == 64 && positions < m.narrow_positions ? m.narrow_tiles : 1;
            if (vectors == 3) late *= m.three_vectors;
            // They do where y and all weights fill the second-level cache; a large panel is lost between two tiles where y alone
            // does.
            if (v.store == Store::kChannels) {
                if (w_bytes >= 2 * m.second_level_cache && !fetches_next) late *= m.late_weights;
            } else {
                if (y_bytes + w_bytes >= m.second_level_cache) late = m.late_weights;
                if (y_bytes >= m.second_level_cache && panel >= kSecondLevelCache) late *= m.very_late_weights;
            }
            if (is_of_short_vectors) {
                const double less = std::max(0.0, kLeastFetching - positions);
                late *= 1 + m.per_position_less * less;
                if (less > 0 && w_bytes >= kFarWeights) late *= m.few_of_far;
                if (vectors == 1) late *= m.one_vector;
                if (t.tile_qh > 1 && x_bytes >= kLargeX) late *= m.several_rows;
            }
            return late * std::max({step(vectors, positions),
                                    near_weights * vectors * load * (panel > kSecondLevelCache ? 1.4 : 1) +
                                        per_row_of_x * t.tile_qh,
                                    panel >= 0.9 * m.second_level_cache ? vectors * lanes * size / m.far_weights : 0});
        };
        const auto tile = [&](const Variant &t) {
            const double positions = static_cast<double>(t.tile_q) * t.tile_qh;
            double store = positions * vectors * 4;
            if (!is_float(v.arithmetic)) {
                // Requantization; masked, where the tile is not full, it takes a few times as long.
                const double tiles_of_oc = parts_of(p.oc(), v.tile_oc), partial = p.oc() % v.tile_oc ? 1 : 0;
                store = positions * vectors * (4 + 8 * partial / tiles_of_oc);
            }
            if (is_of_short_vectors && p.oc() % v.lanes != 0)
                store += positions * m.per_masked_store / parts_of(p.oc(), v.tile_oc);
            if (v.store == Store::kPlanar) store = positions * used * (v.stride_w ? 0.7 : 2.5);
            // Groups of less than a cache line come back to each line one after the other.
            if (v.store == Store::kChannels && shares_cache_lines(g)) {
                if (y_position_bytes(g) >= kFarPositions) {
                    store += positions * cycles_to_scatter(g);
                } else if (y_bytes >= m.second_level_cache) {
                    store += positions * m.shared_line;
                }
            }
            // Lines of a far y that are not fetched ahead (schedules/cpu/prefetch.h) arrive later if all are of one row, or few of
            // them are side by side.
            const bool few_lines = t.tile_qh == 1 || vectors < 4;
            if (is_of_channels && few_lines && stores_far && !fetches_stored && ic * taps >= 64 * residues) {
                store += positions * vectors * m.far_store;
            }
            const double once = v.store == Store::kChannels ? 10 : 30;
            return ic * taps * k_step(t) + residues * (once + store) + (unrolls_taps(v) ? 0 : taps * 6);
        };
        const double rows_of = parts_of(h.q_extent(), v.tile_qh) * static_cast<double>(d.q_extent());
        // Of a tile whose row begins there. Of 8x8 images (4x4 stride 2), where it would be 1.067, it is 1.04.
        const auto saved = [&](const Variant &t, double first) {
            const double positions = left_out(t, w, static_cast<std::int64_t>(first) * v.tile_q);
            return positions > 0 ? 0.65 * ic * taps / taps_of(w) * positions * k_step(t) / t.tile_q : 0;
        };
        RowOfTiles row = row_of_tiles(v, narrower, w.q_extent(), tile);
        if (row.count > 0) row.tiles -= saved(v, 0);
        if (row.count > 1) row.tiles -= saved(v, row.count - 1);
        if (narrower) row.end -= saved(*narrower, row.count);
        // Each weight, those of channels that only fill a tile too, is read from further away if there are that many: by the
        // first of the tiles that it is for, and once more by the first at an end of a row.
        const double padded_bytes = parts_of(p.oc(), v.tile_oc) * v.tile_oc * ic * taps * size;
        const bool far = groups * padded_bytes >= 0.8 * m.second_level_cache;
        const double least = far ? padded_bytes / (m.far_weights * images) : 0;
        const auto add = [&](double tiles_of_row, double cycles_of_row) {
            if (tiles_of_row == 0) return;
            const double computing = rows_of * parts_of(p.oc(), v.tile_oc) * cycles_of_row,
                         passes = rows_of * tiles_of_row * images, first = computing / (fetches_next ? 1 : passes);
            total += computing - first + std::max(first, least);
        };
        add(row.count, row.tiles);
        add(narrower ? 1 : 0, row.end);
        break;
    }
    case Family::kMatrix: {
        // Of registers of up to 16 rows and columns: an instruction takes as many cycles as its first operand has rows, a load
        // 8, and instructions on the same sums wait 52 for each other. Rows are positions, of planar y output channels.
        const bool planar = has_rows_of_channels(v);
        const double columns = v.tile_oc / lanes, rows_of = planar ? 16 : std::min(v.tile_q, 16),
                     row_tiles = parts_of(v.tile_q, 16) * v.tile_qh;
        const double tiles = parts_of(w.q_extent(), v.tile_q) * parts_of(h.q_extent(), v.tile_qh) *
                             static_cast<double>(d.q_extent()) * parts_of(p.oc(), v.tile_oc);
        // Of a vector of sums; where not all channels of the last tile exist, masked, which of bytes takes a few times as
        // long.
        const double partial = p.oc() % v.tile_oc && !is_float(v.arithmetic) ? 16 / parts_of(p.oc(), v.tile_oc) : 0,
                     store = 8 + partial;
        // Operands come from the second-level cache.
        const double k_step = std::max({columns * row_tiles * rows_of, 8 * (columns + row_tiles), 52.0,
                                        (16 * columns + rows_of * row_tiles) * 64 / 40});
        total = tiles * (parts_of(p.ic(), std::int64_t{block_of(v)} * blocks_at_once(v)) * taps * k_step +
                         residues * (100 + columns * v.tile_q * v.tile_qh * store) + taps * 15);
        break;
    }
    case Family::kWide:
    case Family::kDepthwise: {
        if (goes_by_offset(v)) {
            total = by_offset(v, p, interleave);
            break;
        }
        if (v.family == Family::kDepthwise && v.store == Store::kChannels) {
            // A load for each multiply-add; y is written to memory that is further away if it does not fit the second-level
            // cache.
            const double vectors = v.tile_oc * static_cast<double>(v.tile_q);
            const double tiles = parts_of(g.group, packing_of(v).group_tile) * parts_of(w.q_extent(), v.tile_q) * rows;
            const double store = y_bytes >= 2 << 20 ? 6 : 4;
            const double each = std::max(v.lanes * size, 32.0) / 64; // of a cache line
            const double each_tap = each < 1 ? 1 : machine().depthwise_taps;
            total = tiles *
                    (each_tap * taps * std::max(vectors * (0.55 + 0.5 * each), 4.0) +
                     residues * (10 + vectors * (1.0 + each * (store - 1)))) /
                    groups;
            break;
        }
        const double vectors = v.tile_q / lanes * v.tile_qh;
        const double rows_of_tiles =
            parts_of(h.q_extent(), v.tile_qh) * static_cast<double>(d.q_extent()) * parts_of(p.oc(), v.tile_oc);
        const double loop = unrolls_taps(v)                  ? 0
                            : v.family == Family::kDepthwise ? 3 // its only input channel makes no loop
                                                             : 6;
        const double store = v.store == Store::kPlanar ? interleave : cycles_to_scatter(g) * lanes; // of a vector
        // Nine channels by three vectors leave two registers. Measured, 0.96 to 1.07 of the speed of eight, which are preferred
        // where both leave about as many channels empty.
        const double crowded = v.tile_oc > vectors && vectors * v.tile_oc + vectors >= 30 ? 1.03 : 1;
        const bool is_wide_of_doubles = v.family == Family::kWide && size == sizeof(double) && taps > 1;
        const double doubles = is_wide_of_doubles ? machine().wide_doubles : 1;
        const auto tile = [&](const Variant &t) {
            const double of_vectors = t.tile_q / lanes * t.tile_qh;
            return ic * taps * crowded * step(of_vectors, v.tile_oc) +
                   residues * (20 + of_vectors * v.tile_oc * store) + taps * loop;
        };
        const RowOfTiles row = row_of_tiles(v, narrower, w.q_extent(), tile);
        total = rows_of_tiles * doubles * (row.tiles + row.end);
        break;
    }
    case Family::kFew: {
        if (goes_by_offset(v)) {
            total = by_offset(v, p, interleave);
            break;
        }
        // Taps, over the residues, that all residues of an axis share, and the rest: a load of x feeds what is shared.
        const double vectors = v.tile_q / lanes;
        const double all_w = static_cast<double>(w.elements.size()), all_h = static_cast<double>(h.elements.size());
        const double shared_w = w.shared_count, shared_h = h.shared_count, stride_w = v.stride_w, stride_h = v.stride_h;
        // (Of a y shorter than the kernel's stride not all residues have taps.)
        const double rest_w = std::max(all_w - shared_w * stride_w, 0.0),
                     rest_h = std::max(all_h - shared_h * stride_h, 0.0);
        // (Of residues of two axes the factor below is enough for what crosses cache lines.)
        const double crossing = v.stride_h > 1 ? 0 : vectors * cycles_to_cross_lines(w);
        const auto load_step = [&](double broadcasts) { // latency of few accumulators included
            return std::max(step(vectors, broadcasts), vectors * load) + crossing;
        };
        const double steps =
            shared_w * shared_h * load_step(stride_w * stride_h * v.tile_oc) +
            rest_w * shared_h * load_step(stride_h * v.tile_oc) + shared_w * rest_h * load_step(stride_w * v.tile_oc) +
            rest_w * rest_h * load_step(v.tile_oc) + static_cast<double>(h.high - h.low) * vectors * cycles_from_far(p);
        const double loops = (shared_w + rest_w) * (shared_h + rest_h) * 30;
        const double tiles = parts_of(w.q_extent(), v.tile_q) * rows * parts_of(p.oc(), v.tile_oc);
        // Measured, residues of two axes take a quarter more than that.
        const double far_rows = v.stride_h > 2 && y_bytes >= machine().second_level_cache ? machine().far_rows : 1;
        total = (v.stride_h > 1 ? 1.25 : 1) * far_rows * tiles *
                (static_cast<double>(d.elements.size()) * (ic * steps + loops) +
                 residues * (10 + vectors * v.tile_oc * interleave));
        break;
    }
    }
    return total * images * groups;
}

} // namespace

std::string to_string(const Refusal &refusal) {
    std::string text;
    std::int64_t number = refusal.first;
    for (const char *c = refusal.text ? refusal.text : ""; *c; c++) {
        if (*c != '#') {
            text += *c;
        } else {
            text += std::to_string(number);
            number = refusal.second;
        }
    }
    return text;
}

bool CoreProblem::reads_outside(std::size_t axis) const {
    const AxisPlan &a = plan[axis];
    if (a.low == a.high) return false;
    if (a.low < 0) return true;
    // The last position differs by residue, so look at each.
    for (std::int64_t r = 0; r < a.residues; r++) {
        const std::int64_t positions = (a.geometry.out - r + a.geometry.stride - 1) / a.geometry.stride;
        const std::int32_t *const row = a.table.data() + kTapColumns * r;
        const std::int64_t offset = row[0], count = row[1];
        if (count && positions - 1 + offset + (count - 1) * a.geometry.offset_step >= a.geometry.in) return true;
    }
    return false;
}

bool CoreProblem::reads_outside() const { return reads_outside(0) || reads_outside(1) || reads_outside(2); }

std::size_t CoreProblem::strip_axis() const { return plan[2].q_extent() > 1 ? 2 : plan[1].q_extent() > 1 ? 1 : 0; }

namespace {

// With one input position the stride matters to nobody. One that no two kernel elements share a residue of makes every
// output position a residue of its own, with one tap or none, so that nothing is computed from the zeros around x.
AxisGeometry single_position(AxisGeometry a) {
    a.stride = a.out + a.pad_begin + (a.kernel - 1) * a.dilation + 1;
    const std::int64_t divisor = std::gcd(a.stride, a.dilation);
    a.kernel_step = -(a.stride / divisor);
    a.offset_step = a.dilation / divisor;
    return a;
}

} // namespace

CoreProblem core_problem(const Geometry &geometry, convt_dtype y_dtype, bool single_positions) {
    CoreProblem p;
    p.geometry = geometry;
    p.x_dtype = geometry.dtype;
    p.y_dtype = y_dtype;
    p.axes.fill(pointwise_axis(1));
    for (std::size_t i = 0; i < geometry.axes.size(); i++) p.axes[i] = geometry.axes[geometry.axes.size() - 1 - i];
    for (std::size_t i = 0; i < 3; i++) {
        p.weight_stride[i] = p.axes[i].stride;
        if (single_positions && p.axes[i].in == 1 && p.axes[i].kernel > 1) p.axes[i] = single_position(p.axes[i]);
        p.plan[i] = plan_axis(p.axes[i], p.weight_stride[i], false);
    }
    return p;
}

namespace {

// Whether taps along some other axis than `but` leave x, other than those that the variant leaves out.
bool leaves_x(const Variant &v, const CoreProblem &p, std::size_t but) {
    bool any = false;
    for (std::size_t a = 0; a < 3; a++) any = any || (a != but && p.reads_outside(a) && !skips_outside(v, a));
    return any;
}
constexpr std::size_t kNoAxis = 3;

// The columns whose tiles read x where it is, as taps leave x along w only: whole tiles, with tiles enough after them that the
// last one, which overlaps the one before it, does not reach back to them.
Columns columns_in_place(const Variant &v, const CoreProblem &p, const NarrowerTiles &narrower) {
    const AxisPlan &w = p.plan[0];
    const std::int64_t tile = v.tile_q;
    Columns c;
    c.begin = ceil_div(std::max<std::int64_t>(-w.low, 0), tile) * tile;
    const auto is_enough = [&](std::int64_t columns) {
        const Variant *const end = narrower.holding(columns % tile);
        return columns >= (columns % tile == 0 ? 0 : end ? end->tile_q : tile);
    };
    // Some residues may have a column more than others.
    c.end = std::clamp<std::int64_t>(w.geometry.in - w.high + 1, 0, w.least_q_extent()) / tile * tile;
    while (c.any() && !(is_enough(w.least_q_extent() - c.end) && is_enough(w.q_extent() - c.end))) c.end -= tile;
    return c.any() ? c : Columns();
}

// Whether the ends of rows are copied alone. Each tile of output channels then reads its weights once more for either end, which
// is for weights that stay in the second-level cache.
bool copies_row_ends(const Variant &v, const CoreProblem &p) {
    const double weights = parts_of(p.oc(), v.tile_oc) * v.tile_oc * static_cast<double>(p.geometry.in_channels) *
                           taps_of(p.plan[0]) * taps_of(p.plan[1]) * taps_of(p.plan[2]) *
                           static_cast<double>(operand_size(v));
    return v.family == Family::kChannels && v.stride_w == 0 && p.geometry.layout == CONVT_CHANNELS_LAST &&
           p.strip_axis() != 0 && !leaves_x(v, p, 0) && weights < kNearWeights;
}

} // namespace

Candidate candidate(const Variant &variant, const CoreProblem &problem) {
    Candidate c;
    c.variant = &variant;
    c.refusal = refusal(variant, problem);
    if (!c.refusal.text) {
        const bool in_place = reads_x_in_place(variant, problem);
        const bool leaves = leaves_x(variant, problem, kNoAxis) || !has_whole_tiles(variant, problem);
        c.copies_x = !in_place || (variant.family != Family::kReference && leaves);
        c.copies_ends = c.copies_x && in_place && dares_in_place(variant, problem) &&
                        !leaves_x(variant, problem, problem.strip_axis());
        const double copying = c.copies_x ? cost_of_copy(variant, problem, c.copies_ends) : 0;
        c.cost = cost(variant, problem, nullptr) + copying;
        const std::int64_t columns = problem.plan[0].q_extent(), rest = columns % variant.tile_q;
        NarrowerTiles tiles;
        if (rest != 0) tiles = narrower_tiles(variant);
        if (const Variant *const narrower = tiles.holding(rest)) {
            const double with = cost(variant, problem, narrower) + copying;
            c.narrower_ends = with < c.cost;
            c.cost = std::min(c.cost, with);
        }
        if (c.copies_x && in_place && copies_row_ends(variant, problem)) {
            c.in_place = columns_in_place(variant, problem, c.narrower_ends ? tiles : NarrowerTiles());
            c.cost -= copying * static_cast<double>(c.in_place.end - c.in_place.begin) / static_cast<double>(columns);
        }
        if (c.copies_ends && pays_in_place(variant, problem)) {
            const double not_copied =
                problem.oc() <= std::int64_t{4} * variant.tile_oc ? machine().not_copied : machine().not_copied_by_more;
            c.cost -= not_copied * static_cast<double>(volume(problem.geometry.x_shape));
        }
    }
    return c;
}

std::vector<Candidate> candidates(const CoreProblem &problem, Isa isa) {
    std::vector<Candidate> list;
    for_each_kernel_table([&](const KernelTable &table) {
        for (std::size_t i = 0; i < table.variant_count; i++) {
            const Variant &v = table.variants[i];
            if (!belongs_to(v, isa)) continue;
            list.push_back(candidate(v, problem));
        }
    });
    return list;
}

double cycles_to_scatter(const Geometry &geometry) {
    auto bytes = static_cast<double>(convt_dtype_size(geometry.y_dtype));
    for (const std::int64_t extent : geometry.y_shape) bytes *= static_cast<double>(extent);
    if (y_position_bytes(geometry) <= 64 || bytes <= kSecondLevelCache) return 1.5;
    return y_position_bytes(geometry) < kFarPositions ? 6 : 40;
}

bool shares_cache_lines(const Geometry &geometry) {
    return geometry.group > 1 && y_position_bytes(geometry) < 64 * geometry.group;
}

double least_cost(const Geometry &geometry, Isa isa) {
    double least = std::numeric_limits<double>::infinity();
    for (const Candidate &c : candidates(core_problem(geometry, geometry.y_dtype, true), isa)) {
        if (!c.refusal.text) least = std::min(least, c.cost);
    }
    return least;
}

CopyOrder copy_order(const Variant &variant, convt_layout layout) {
    const bool blocks_of_channels = reads_blocks_of_channels(variant);
    if (layout == CONVT_CHANNELS_FIRST) return blocks_of_channels ? CopyOrder::kToChannels : CopyOrder::kPlanar;
    const bool keeps_channels = variant.family == Family::kReference || blocks_of_channels ||
                                reads_any_strides(variant) ||
                                (variant.family == Family::kDepthwise && variant.store == Store::kChannels);
    return keeps_channels ? CopyOrder::kChannels : CopyOrder::kTransposed;
}

} // namespace convtranspose
