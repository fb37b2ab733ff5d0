// The ways in which a kernel reads x: in place, or from a copy of it or of parts of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/cost_profile.h"
#include "kernels/kernel_tables.h"
#include "kernels/variant.h"
#include "problem/spatial_problem.h"

namespace convtranspose {

// A range of positions q along w: begin .. end - 1.
struct Columns {
    std::int64_t begin = 0, end = 0;
    bool any() const { return begin < end; }
};

// Returns whether neighbouring positions that are `bytes` apart share one or two sets of a first-level cache. A tile of them does not
// stay there from one input channel to the next.
inline bool in_few_sets(std::int64_t bytes) { return bytes % 2048 == 0; }

// Returns whether rows of y are whole tiles, or need not be: kernels with a built-in stride of w read x for whole tiles only.
bool has_whole_tiles(const Variant &v, const SpatialProblem &p);

// Returns whether the variant multiplies each element of x so few times that copying x would take about as long as that.
bool prefers_in_place(const Variant &v, const SpatialProblem &p, const CostProfile &profile);

// Returns whether the variant is to read x in place wherever it can, even if a copy is estimated to be faster.
bool forces_in_place(const Variant &v, const SpatialProblem &p, const CostProfile &profile);

// Returns whether the variant can read x in place, apart from taps that leave x and a last tile that reaches past its end.
bool reads_x_in_place(const Variant &v, const SpatialProblem &p, const CostProfile &profile);

constexpr std::size_t kNoAxis = 3;
// Returns whether taps along an axis other than `but` (kNoAxis: any axis) leave x and the variant does not skip them there.
bool leaves_x(const Variant &v, const SpatialProblem &p, std::size_t but);

// Returns the columns whose tiles read x in place if taps leave x along w only. They are whole tiles, and enough columns follow that
// the last tile of a row, which overlaps the one before it, does not reach back to them.
Columns columns_in_place(const Variant &v, const SpatialProblem &p, const NarrowerTiles &narrower);

// Returns whether only the ends of the rows of x are copied. Each tile of output channels then reads its weights once more for either
// end, which pays only if they stay in the second-level cache.
bool packs_row_edges(const Variant &v, const SpatialProblem &p, const CostProfile &profile);

} // namespace convtranspose
