// Terms that the estimates of all families share (cost.h).
#pragma once

#include <cstdint>

#include "base/division.h"
#include "base/shape.h"
#include "cost/cost.h"
#include "cpu/cost_profile.h"
#include "kernels/variant.h"
#include "problem/spatial_problem.h"

namespace convtranspose {

// Positions of y, channels last, that are this many bytes apart or more fall into few sets of the first-level cache.
constexpr std::int64_t kFarPositions = 2048;

// The terms of one variant for one layer: counts of work, and cycles for each unit of it.
struct CostTerms {
    CostTerms(const Variant &variant, const SpatialProblem &problem, const CostProfile &profile, CostPart last);

    const Variant &v;
    const SpatialProblem &p;
    const CostProfile &m;
    const Geometry &g;
    const AxisPlan &w, &h, &d;
    const CostPart last; // parts behind it count as nothing

    double taps = 1, phases = 1; // products over the axes; taps are summed over the phases
    double skipped = 0;          // taps that a loop passes over, as no element of x is there; over all phases
    double ic = 0;               // steps of the reduction for each tap
    double groups = 0, images = 0, rows = 0; // rows of positions q
    double lanes = 0, size = 0,
           w_size = 0;                  // elements (or blocks) in a vector of operands; bytes of one, and of a weight
    double y_bytes = 0;                 // of all images and groups
    double product = 1, broadcast = 1;  // in multiply-adds; in loads
    double load = 0;                    // cycles to load a vector of operands
    double per_load = 0, per_other = 0; // extra cycles of a load; of an instruction that is no multiply-add
    double interleave = 0;              // cycles to store a vector of sums along a row
    bool is_of_channels = false;        // y is channels last, and vectors are of output channels
    bool crosses = false;               // vectors of x cross cache lines

    // Returns the cycles of one step, an input channel (or block) and a tap: `vectors` of operands times `broadcasts`.
    double step(double vectors, double broadcasts) const;

    // Returns cycles that belong to a part.
    double of(CostPart part, double cycles) const { return part <= last ? cycles : 0; }
    // Returns the cycles of steps, of which only multiply-adds count if loads do not.
    double of_steps(double multiply_adds, double all) const { return CostPart::kLoads <= last ? all : multiply_adds; }

    // Returns whether so many bytes do not fit in the second-level cache.
    bool is_far(double bytes) const { return bytes >= m.far_from; }

    double cycles_to_cross_lines() const;
    double cycles_from_far() const;
    double cycles_to_store_ends() const;

    // These return the cycles for one image and one group.
    double cost_of_group(const Variant *narrower) const; // by the variant's family
    double cost_of_reference() const;
    double cost_of_amx() const;
    double cost_of_rows(const Variant *narrower) const; // vectors along w
    double cost_of_depthwise_channels() const;
    double cost_of_vectors_of_phases() const;
    double cost_of_small_oc() const;
    double cost_of_tap_offset_order() const;
};

// The tiles of a row: their number and their cycles, without the narrower tile at the end of the row; and the cycles of that one.
struct RowOfTiles {
    double count, tiles, end;
};

// tile(variant): cycles of one tile. narrower: the variant of the tile at the end of a row; null: that tile is like all others.
// longer: slowdown of a narrower tile, for which x and weights are read once more.
template<typename Tile>
RowOfTiles row_of_tiles(const Variant &v, const Variant *narrower, std::int64_t columns, double longer,
                        const Tile &tile) {
    const std::int64_t whole = columns / v.tile_q;
    const double count = narrower ? real(whole) : parts_of(columns, v.tile_q);
    return {count, count * tile(v), narrower ? longer * tile(*narrower) : 0};
}

// Returns whether the kernel has no loop over the taps of w and h, because it is built for a count of them on both axes.
inline bool unrolls_taps(const Variant &v) {
    return v.built_in && v.built_in->axes[0].count && v.built_in->axes[1].count;
}

inline std::int64_t y_position_bytes(const Geometry &geometry) {
    return geometry.out_channels * size_of(geometry.y_dtype);
}

// Returns the cycles for one image and one group.
double cost_of_oc_vectorized(const CostTerms &terms, const Variant *narrower);

} // namespace convtranspose
