// An axis plan describes one spatial axis to the kernels: it has a table of taps, and says how far they read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernel_contract/table_columns.h"
#include "problem/geometry.h"

namespace convtranspose {

// These are the taps of one phase of one axis. Output positions o = stride*q + phase meet the kernel elements
// kernel_begin + t*kernel_step(), t = 0..count-1, and read x at q + offset + t*offset_step(); outside of x a tap contributes
// nothing. Taps that no output position meets inside x are left out, so count may be 0. Input positions rise with t, so
// kernel_step() < 0 < offset_step() (both are of AxisGeometry).
struct Taps {
    std::int64_t kernel_begin = 0, offset = 0, count = 0;
};

// A class of taps is a range of packed kernel elements, first .. first + count - 1. Several phases may have the same class.
struct TapClass {
    std::int32_t first = 0, count = 0;
};

// A PhaseRun is a range of neighbouring phases, first .. first + count - 1, that have equally many positions, q_extent.
// Their rows follow each other in the table, beginning with row `row`.
struct PhaseRun {
    std::int64_t first = 0, count = 0, row = 0, q_extent = 0;
    bool has_taps = true; // false: no phase of the run has a tap
};

// Its low and high change with pair_taps() and put_phases_inside(), its max_count with the first.
struct AxisPlan : TapRange {
    AxisGeometry geometry;
    std::int64_t phases = 0; // the number that kernels compute; at most this many have outputs
    // The table has rows of TapColumn (kernel_contract/table_columns.h). It omits taps that no
    // output position meets inside x, so offset lies between -q_extent() and geometry.in. A row without taps may serve many
    // phases.
    std::vector<std::int32_t> table;
    std::vector<PhaseRun> runs;         // all phases that have outputs, in rising order
    std::vector<TapClass> classes;      // indexed by the last column of the table
    std::vector<std::int32_t> elements; // packed kernel axis: the element of w at each place
    std::int64_t step = 1;              // distance between the input positions of consecutive taps
    bool paired = false;                // true after pair_taps()
    double taps = 0;                    // total over all phases
    double taps_inside = 0;             // the same, counting a tap by the share of positions where it reads inside x

    std::int64_t q_extent() const { return (geometry.out + geometry.stride - 1) / geometry.stride; }
    // Returns the least number of positions that a phase with outputs has.
    std::int64_t least_q_extent() const { return std::max<std::int64_t>(geometry.out / geometry.stride, 1); }
    std::int64_t rows() const { return static_cast<std::int64_t>(table.size()) / kTapColumns; }
    const std::int32_t *row(std::int64_t r) const { return table.data() + kTapColumns * r; }
    std::int32_t *row(std::int64_t r) { return table.data() + kTapColumns * r; }
    Taps taps_of(std::int64_t phase) const; // before pair_taps() and put_phases_inside()
    std::int64_t element_count() const { return static_cast<std::int64_t>(elements.size()); }
    bool has_row_for_each() const { return rows() == phases; } // true: phase r has row r
    std::vector<std::int32_t> row_for_each() const;            // the table with a row for each phase that has outputs
    bool fits_kernels() const; // true if every position that a kernel computes with fits in 32 bits

    // Calls f(run, phase, row) for every phase that has outputs and taps.
    template<typename F>
    void for_each_with_taps(const F &f) const {
        for (const PhaseRun &run : runs) {
            for (std::int64_t i = 0; run.has_taps && i < run.count; i++) {
                const std::int32_t *const taps_of_phase = row(run.row + i);
                if (taps_of_phase[kTapCount]) f(run, run.first + i, taps_of_phase);
            }
        }
    }
};

// The part of an axis of y that one call computes: phases first .. first + count - 1 at positions q_begin .. q_end - 1, all of
// which exist in y. An axis with a built-in stride has all phases, and may have positions past the end of y, which are not stored.
struct Box {
    std::int64_t first = 0, count = 1;
    std::int64_t row = 0; // of the tap table, for the first phase
    std::int64_t q_begin = 0, q_end = 0;

    bool any() const { return q_begin < q_end; }
};

// Returns the box of a run of phases at positions q_begin .. q_end - 1, as far as the run has them.
inline Box box_of(const PhaseRun &run, std::int64_t q_begin, std::int64_t q_end) {
    return {run.first, run.count, run.row, q_begin, std::min(q_end, run.q_extent)};
}

// Plans one axis. Time and memory are proportional to the kernel, and to the phases only as far as those have taps.
// weight_stride: the layer's stride, which orders the packed elements, so that packed weights serve every input size.
// all_phases: the kernel, which has a constant stride, visits all phases whether or not they have outputs.
AxisPlan plan_axis(const AxisGeometry &geometry, std::int64_t weight_stride, bool all_phases);

// Joins taps 2t and 2t + 1 of each phase into one tap that reads two positions, geometry.offset_step apart. elements then
// holds two entries for each tap, the second -1 where no tap is left to join. The weights must be ordered by the axis's own
// stride.
void pair_taps(AxisPlan *plan);

// Reorders the packed elements for vectors of phases: for each tap, those of all phases stand side by side, twice, so that
// neighbouring phases have neighbours whatever the pads are. Each phase then reads a position more. has_equal_taps() must be true.
void put_phases_inside(AxisPlan *plan);
// Returns true if there is no dilation, and each phase has a row in the table, and as many taps as any other.
bool has_equal_taps(const AxisPlan &plan);

} // namespace convtranspose
