// What the kernels need to know of one spatial axis: a table of its taps, and how far they read.
#ifndef CONVTRANSPOSE_RUNTIME_AXIS_PLAN_H_
#define CONVTRANSPOSE_RUNTIME_AXIS_PLAN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "geometry.h"

namespace convtranspose {

// Columns of the table of taps (generators/conv_transpose.h).
constexpr std::int64_t kTapColumns = 4;

// A set of taps that residues have: packed kernel elements first .. first + count - 1.
struct TapClass {
    std::int32_t first = 0, count = 0;
};

struct AxisPlan {
    AxisGeometry geometry;
    std::int64_t residues = 0;       // rows of the table; at most this many residues have outputs
    std::vector<std::int32_t> table; // residues rows of kTapColumns: offset, count, first packed kernel element, class
    std::vector<TapClass> classes;   // what the classes of the table are
    std::vector<std::int64_t> elements; // packed kernel axis: which element of w stands where
    std::int32_t max_count = 0;
    std::int64_t step = 1;                           // between the input positions of consecutive taps
    bool paired = false;                             // see pair_taps()
    std::int32_t shared_first = 0, shared_count = 0; // offsets that every residue has a tap for; offset_step == 1 only

    std::int64_t low = 0,
                 high = 0; // position q of any residue reads q + low .. q + high - 1; low = high: no taps at all

    std::int64_t q_extent() const { return (geometry.out + geometry.stride - 1) / geometry.stride; }
    // Of the residue with the fewest positions, of those that have any.
    std::int64_t least_q_extent() const { return std::max<std::int64_t>(geometry.out / geometry.stride, 1); }
};

// weight_stride: by whose residues the elements are ordered; that of the node, so that packed weights serve every input size.
// all_residues: the kernel walks all residues whether or not they have outputs (a constant stride).
AxisPlan plan_axis(const AxisGeometry &geometry, std::int64_t weight_stride, bool all_residues);

// Makes taps 2t and 2t + 1 of each residue one, that reads a pair of positions geometry.offset_step apart. elements then holds
// two for each tap, -1 where a residue has no other left. Only for weights ordered by the axis's own stride.
void pair_taps(AxisPlan *plan);

// Of all residues that have outputs: of a single position in x, or where y is smaller than the stride, not of all elements.
inline double tap_count(const AxisPlan &a) {
    double taps = 0;
    for (std::int64_t r = 0; r < a.residues; r++) taps += a.table[static_cast<std::size_t>(r * kTapColumns + 1)];
    return taps;
}

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_AXIS_PLAN_H_
