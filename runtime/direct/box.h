// The part of an axis of y that one call of a kernel computes.
#ifndef CONVTRANSPOSE_RUNTIME_DIRECT_BOX_H_
#define CONVTRANSPOSE_RUNTIME_DIRECT_BOX_H_

#include <algorithm>
#include <cstdint>

#include "problem/axis_plan.h"

namespace convtranspose {

// The part of an axis of y that one call computes: residues first..first+count-1 of positions q, all of which exist. An
// axis with built-in stride has all residues, and positions past the end of y that are not stored.
struct Box {
    std::int64_t first = 0, count = 1;
    std::int64_t row = 0; // of the table of taps: of the first residue
    std::int64_t q_begin = 0, q_end = 0;

    bool any() const { return q_begin < q_end; }
};

// A run of the axis, at positions q_begin..q_end-1 as far as it has them.
inline Box box_of(const ResidueRun &run, std::int64_t q_begin, std::int64_t q_end) {
    return {run.first, run.count, run.row, q_begin, std::min(q_end, run.q_extent)};
}

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_DIRECT_BOX_H_
