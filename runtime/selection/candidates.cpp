// Lists the candidates, and decides how each reads x. The figures behind these rules: docs/measurements/2026-11-26-estimates.md.
#include "selection/candidates.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/division.h"
#include "base/shape.h"
#include "kernel_contract/fetching.h"
#include "kernels/kernel_tables.h"

namespace convtranspose {

namespace {

constexpr std::size_t kNoAxis = 3;

double taps_of_all_axes(const SpatialProblem &p) { return p.plan[0].taps * p.plan[1].taps * p.plan[2].taps; }

// Returns whether x is read so few times that it does not pay to copy it first to where its positions do not collide in the
// first-level cache.
bool reads_seldom(const Variant &v, const SpatialProblem &p) {
    constexpr double kFewReads = 8;
    return parts_of(p.oc(), v.tile_oc) * taps_of_all_axes(p) <= kFewReads;
}

// Returns whether rows of y are whole tiles, or need not be: kernels with a built-in stride of w read x for whole tiles only.
bool has_whole_tiles(const Variant &v, const SpatialProblem &p) {
    return v.stride_w == 0 || p.plan[0].geometry.out % (static_cast<std::int64_t>(v.stride_w) * v.tile_q) == 0;
}

// Returns the bytes of x, or of the tensor that it is a part of.
std::int64_t whole_x_bytes(const Geometry &g) {
    return std::max<std::int64_t>(volume(g.x_shape) * size_of(g.dtype), g.x_part_of_bytes);
}

// Returns whether what a tile reads of a planar x, a piece of a row of each input channel, stays in the second-level cache for the
// next tile of output channels. Where channels are a multiple of a large power of two apart, the pieces share few of its sets.
bool keeps_x_near(const Variant &v, const SpatialProblem &p, const CostProfile &profile) {
    constexpr std::int64_t kLargestWay = 128 << 10; // sets repeat after so many bytes, or fewer
    const Geometry &g = p.geometry;
    const std::int64_t channels = g.batch * g.in_channels, apart = channels ? whole_x_bytes(g) / channels : 0,
                       in_sets = std::min(apart & -apart, kLargestWay), piece = v.tile_q * size_of(g.dtype);
    return real(p.ic()) * real(std::max(in_sets, piece)) < profile.second_level_cache;
}

// Returns whether the variant multiplies each element of x so few times that copying x would take about as long as that.
bool prefers_in_place(const Variant &v, const SpatialProblem &p, const CostProfile &profile) {
    if (v.family != Family::kOwVectorized || v.stride_w != 1 || v.tile_qh != 1) return false;
    const bool one_tap =
        std::all_of(p.plan.begin(), p.plan.end(), [](const AxisPlan &axis) { return axis.elements.size() == 1; });
    if (!one_tap) return false;
    const auto tiles = parts_of(p.oc(), v.tile_oc);
    const double bytes = tiles > 1 ? profile.in_place_bytes : profile.in_place_once_bytes;
    const double most = fetches_x_ahead(has_masked_stores(v.isa), v.tile_q, v.lanes) ? profile.tiles_in_place
                        : real(whole_x_bytes(p.geometry)) < bytes                    ? profile.near_tiles_in_place
                                                                                     : 0;
    return tiles <= most && (tiles <= 1 || keeps_x_near(v, p, profile));
}

// Returns whether the variant is to read x in place wherever it can, even if a copy is estimated to be faster.
bool forces_in_place(const Variant &v, const SpatialProblem &p, const CostProfile &profile) {
    // The kernel can read the channels of a position side by side, as they are; a copy would take a good part of the time of
    // computing.
    if (reads_any_strides(v) && p.geometry.layout == CONVT_CHANNELS_LAST) return true;
    if (prefers_in_place(v, p, profile)) return true;
    if (!v.built_in || !v.built_in->x_in_place) return false;
    // A kernel for any number of output channels reads x in place only if one of its tiles has them all, so that x is walked once.
    return v.built_in->oc > 0 || p.oc() <= v.tile_oc;
}

// Returns whether the variant can read x in place, apart from taps that leave x and a last tile that reaches past its end.
bool reads_x_in_place(const Variant &v, const SpatialProblem &p, const CostProfile &profile) {
    if (block_of(v) > 1) {
        const int loaded =
            block_of(v) * (multiplies_by_element(v.isa) ? 2 : blocks_at_once(v)); // input channels a load
        const bool as_it_is =
            v.arithmetic == Arithmetic::kBf16 || (v.arithmetic == Arithmetic::kInt8 && p.geometry.dtype == kByteX);
        return as_it_is && reads_blocks_of_channels(v) && p.geometry.layout == CONVT_CHANNELS_LAST &&
               p.ic() % loaded == 0 && has_whole_tiles(v, p);
    }
    if (!is_float(v.arithmetic) || has_vectors_of_phases(v)) return false; // the latter read past the end of a row
    if (v.family == Family::kReference) return p.geometry.dtype == v.dtype;
    if (p.geometry.dtype != sum_dtype(v)) return false;
    const AxisPlan &w = p.plan[0], &h = p.plan[1];
    const bool channels_last = p.geometry.layout == CONVT_CHANNELS_LAST;
    if (v.family == Family::kDepthwise && v.output_order == OutputOrder::kChannels) {
        return channels_last && (overlaps_groups(v) || p.geometry.group % packing_of(v).group_tile == 0);
    }
    if (channels_last) {
        const std::int64_t column = p.geometry.x_column_bytes;
        const bool collides = in_few_sets(column ? column : p.geometry.in_channels * operand_size(v));
        return reads_any_strides(v) && (!collides || reads_seldom(v, p));
    }
    // Large planes lie pages apart, so walking the channels of one position misses the TLB at every step. The copy holds all
    // channels of a row together.
    const std::int64_t size = size_of(p.geometry.dtype);
    const std::int64_t plane = capped_product({w.geometry.in, h.geometry.in, p.plan[2].geometry.in, size});
    if (!forces_in_place(v, p, profile) && p.ic() >= 16 && plane > 2048) return false;
    // Kernels with a built-in stride of h read x for all phases, also for those past the last row of y. Those with a built-in
    // stride of w read x for whole tiles.
    if (v.stride_h != 0 && p.plan[1].geometry.out % v.stride_h != 0) return false;
    return has_whole_tiles(v, p) || (forces_in_place(v, p, profile) && p.strip_axis() == 0);
}

// Returns whether taps along an axis other than `but` (kNoAxis: any axis) leave x and the variant does not skip them there.
bool leaves_x(const Variant &v, const SpatialProblem &p, std::size_t but) {
    bool any = false;
    for (std::size_t a = 0; a < 3; a++) any = any || (a != but && p.taps_leave_x[a] && !skips_outside(v, a));
    return any;
}

// Returns whether only the ends of the rows of x are copied. Each tile of output channels then reads its weights once more for
// either end, which pays only if they stay in the second-level cache.
bool packs_row_edges(const Variant &v, const SpatialProblem &p, const CostProfile &profile) {
    const bool may = v.family == Family::kOcVectorized && v.stride_w == 0 && p.geometry.layout == CONVT_CHANNELS_LAST &&
                     p.strip_axis() != 0 && !leaves_x(v, p, 0);
    if (!may) return false;
    const double weights = parts_of(p.oc(), v.tile_oc) * v.tile_oc * real(p.geometry.in_channels) *
                           taps_of_all_axes(p) * real(operand_size(v));
    return weights < profile.edge_weights;
}

// Returns how the variant reads x: in place wherever it can, unless a copy is faster. kCopyOfRowEnds holds if columns_in_place()
// has any.
ReadsX way_to_read(const Variant &v, const SpatialProblem &p, const CostProfile &profile) {
    if (!reads_x_in_place(v, p, profile)) return ReadsX::kCopy;
    if (v.family == Family::kReference || (!leaves_x(v, p, kNoAxis) && has_whole_tiles(v, p))) return ReadsX::kInPlace;
    if (forces_in_place(v, p, profile) && !leaves_x(v, p, p.strip_axis())) return ReadsX::kCopyOfEdgeStrips;
    return packs_row_edges(v, p, profile) ? ReadsX::kCopyOfRowEnds : ReadsX::kCopy;
}

// Returns the cycles that reading x in place spares besides those of a copy.
double cycles_saved_in_place(const Variant &v, const SpatialProblem &p, const CostProfile &profile) {
    if (!prefers_in_place(v, p, profile)) return 0;
    const double each = p.oc() <= std::int64_t{4} * v.tile_oc ? profile.not_copied : profile.not_copied_by_more;
    return each * real(volume(p.geometry.x_shape));
}

// Returns the cycles that the candidate copies x for.
double cycles_to_copy_x(const Candidate &c, const SpatialProblem &problem, const CostProfile &profile) {
    if (c.reads_x == ReadsX::kInPlace) return 0;
    const double all = cost_of_copy(*c.variant, problem, profile, c.reads_x == ReadsX::kCopyOfEdgeStrips);
    const std::int64_t columns = problem.plan[0].q_extent();
    return all - all * real(c.in_place.end - c.in_place.begin) / real(columns);
}

} // namespace

Columns columns_in_place(const Variant &v, const SpatialProblem &p, const NarrowerTiles &narrower) {
    const AxisPlan &w = p.plan[0];
    const std::int64_t tile = v.tile_q;
    Columns c;
    c.begin = ceil_div(std::max<std::int64_t>(-w.low, 0), tile) * tile;
    const auto is_enough = [&](std::int64_t columns) {
        const Variant *const end = narrower.holding(columns % tile);
        return columns >= (columns % tile == 0 ? 0 : end ? end->tile_q : tile);
    };
    // Some phases may have a column more than others, so both counts must leave enough.
    c.end = std::clamp<std::int64_t>(w.geometry.in - w.high + 1, 0, w.least_q_extent()) / tile * tile;
    while (c.any() && !(is_enough(w.least_q_extent() - c.end) && is_enough(w.q_extent() - c.end))) c.end -= tile;
    return c.any() ? c : Columns();
}

Candidate candidate(const Variant &variant, const SpatialProblem &problem, const CostProfile &profile) {
    Candidate c;
    c.variant = &variant;
    c.unsupported = unsupported_reason(variant, problem);
    if (c.unsupported.text) return c;
    double computing = cost(variant, problem, profile, nullptr);
    const std::int64_t rest = problem.plan[0].q_extent() % variant.tile_q;
    NarrowerTiles tiles;
    if (rest != 0) tiles = narrower_tiles(variant);
    if (const Variant *const narrower = tiles.holding(rest)) {
        const double with = cost(variant, problem, profile, narrower);
        c.narrower_ends = with < computing;
        computing = std::min(computing, with);
    }
    c.reads_x = way_to_read(variant, problem, profile);
    if (c.reads_x == ReadsX::kCopyOfRowEnds) {
        c.in_place = columns_in_place(variant, problem, c.narrower_ends ? tiles : NarrowerTiles());
        if (!c.in_place.any()) c.reads_x = ReadsX::kCopy;
    }
    c.copying = cycles_to_copy_x(c, problem, profile);
    c.rounding = rounds_y(variant, problem.y_dtype) ? cost_of_rounding(problem, profile) : 0;
    const double saved = c.reads_x == ReadsX::kCopyOfEdgeStrips ? cycles_saved_in_place(variant, problem, profile) : 0;
    c.cost = computing + c.copying + c.rounding - saved;
    return c;
}

std::array<double, kCostParts + 2> parts_of_cost(const Candidate &candidate, const SpatialProblem &problem,
                                                 const CostProfile &profile) {
    const Variant &v = *candidate.variant;
    NarrowerTiles tiles;
    if (candidate.narrower_ends) tiles = narrower_tiles(v);
    const Variant *const narrower = tiles.holding(problem.plan[0].q_extent() % v.tile_q);
    std::array<double, kCostParts + 2> parts = {};
    double before = 0;
    for (std::size_t i = 0; i < kCostParts; i++) {
        const double all = cost(v, problem, profile, narrower, static_cast<CostPart>(i));
        parts[i] = all - before;
        before = all;
    }
    parts[kCostParts] = candidate.cost - before - candidate.rounding;
    parts[kCostParts + 1] = candidate.rounding;
    return parts;
}

std::vector<Candidate> candidates(const SpatialProblem &problem, Isa isa, const CostProfile &profile,
                                  const char *only) {
    std::vector<Candidate> list;
    for_each_variant(isa, [&](const Variant &v) {
        if (!only || std::strcmp(v.name, only) == 0) list.push_back(candidate(v, problem, profile));
    });
    return list;
}

double least_cost(const Geometry &geometry, Isa isa, const CostProfile &profile, const WeightFacts &facts) {
    SpatialProblem problem = spatial_problem(geometry, geometry.y_dtype, true);
    problem.facts = facts;
    double least = std::numeric_limits<double>::infinity();
    for_each_variant(isa, [&](const Variant &v) {
        const Candidate c = candidate(v, problem, profile);
        if (!c.unsupported.text) least = std::min(least, c.cost);
    });
    return least;
}

} // namespace convtranspose
