// What the kernels need to know of one spatial axis: a table of its taps, and how far they read.
#ifndef CONVTRANSPOSE_RUNTIME_PROBLEM_AXIS_PLAN_H_
#define CONVTRANSPOSE_RUNTIME_PROBLEM_AXIS_PLAN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "problem/geometry.h"

namespace convtranspose {

// Columns of the table of taps (generators/conv_transpose.h).
constexpr std::int64_t kTapColumns = 4;

// A set of taps that residues have: packed kernel elements first .. first + count - 1.
struct TapClass {
    std::int32_t first = 0, count = 0;
};

// Neighbouring residues, first .. first + count - 1, with equally many positions, q_extent. Their rows stand one after the other
// in the table, from `row` on.
struct ResidueRun {
    std::int64_t first = 0, count = 0, row = 0, q_extent = 0;
    bool has_taps = true; // false: no residue of the run has any
};

struct AxisPlan {
    AxisGeometry geometry;
    std::int64_t residues = 0; // that kernels compute; at most this many have outputs
    // Rows of kTapColumns: offset, count, first packed kernel element, class. Taps that no output position meets inside x are
    // left out, so offset lies between -q_extent() and geometry.in. Rows of residues without taps stand for many such residues.
    std::vector<std::int32_t> table;
    std::vector<ResidueRun> runs;       // all residues that have outputs, in rising order
    std::vector<TapClass> classes;      // what the classes of the table are
    std::vector<std::int32_t> elements; // packed kernel axis: which element of w stands where
    std::int32_t max_count = 0;
    std::int64_t step = 1;                           // between the input positions of consecutive taps
    bool paired = false;                             // see pair_taps()
    std::int32_t shared_first = 0, shared_count = 0; // offsets that every residue has a tap for; offset_step == 1 only
    double taps = 0;                                 // of all residues
    double taps_inside = 0;                          // the same without those that leave x, on the average of positions

    std::int64_t low = 0,
                 high = 0; // position q of any residue reads q + low .. q + high - 1; low = high: no taps at all

    std::int64_t q_extent() const { return (geometry.out + geometry.stride - 1) / geometry.stride; }
    // Of the residue with the fewest positions, of those that have any.
    std::int64_t least_q_extent() const { return std::max<std::int64_t>(geometry.out / geometry.stride, 1); }
    std::int64_t rows() const { return static_cast<std::int64_t>(table.size()) / kTapColumns; }
    bool has_row_for_each() const { return rows() == residues; } // residue r then has row r
    std::vector<std::int32_t> row_for_each() const; // the table with a row for each residue that has outputs
    bool fits_kernels() const; // whether every position that a kernel computes with fits in 32 bits

    // f(run, residue, row) for every residue that has outputs and taps.
    template<typename F>
    void for_each_with_taps(const F &f) const {
        for (const ResidueRun &run : runs) {
            for (std::int64_t i = 0; run.has_taps && i < run.count; i++) {
                const std::int32_t *const row = table.data() + kTapColumns * (run.row + i);
                if (row[1]) f(run, run.first + i, row);
            }
        }
    }
};

// weight_stride: by whose residues the elements are ordered; that of the node, so that packed weights serve every input size.
// all_residues: the kernel walks all residues whether or not they have outputs (a constant stride).
// Takes time and memory in proportion to the kernel, and to the residues only as far as those have taps.
AxisPlan plan_axis(const AxisGeometry &geometry, std::int64_t weight_stride, bool all_residues);

// Makes taps 2t and 2t + 1 of each residue one, that reads a pair of positions geometry.offset_step apart. elements then holds
// two for each tap, -1 where a residue has no other left. Only for weights ordered by the axis's own stride.
void pair_taps(AxisPlan *plan);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_PROBLEM_AXIS_PLAN_H_
