// Boxes: the parts of y that calls of kernels compute, one axis at a time.
#ifndef CONVTRANSPOSE_RUNTIME_DIRECT_BOX_H_
#define CONVTRANSPOSE_RUNTIME_DIRECT_BOX_H_

#include <algorithm>
#include <cstdint>

#include "problem/axis_plan.h"

namespace convtranspose {

// The part of an axis of y that one call computes: phases first .. first + count - 1 at positions q_begin .. q_end - 1, all of which
// exist in y. An axis with a built-in stride has all phases, and may have positions past the end of y, which are not stored.
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

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_DIRECT_BOX_H_
