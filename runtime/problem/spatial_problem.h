// A layer as kernels see it: up to three spatial axes, their residues and taps.
#ifndef CONVTRANSPOSE_RUNTIME_PROBLEM_SPATIAL_PROBLEM_H_
#define CONVTRANSPOSE_RUNTIME_PROBLEM_SPATIAL_PROBLEM_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "problem/axis_plan.h"
#include "problem/geometry.h"

namespace convtranspose {

// A problem of up to three spatial axes, w, h, d; those it lacks have extent 1.
struct SpatialProblem {
    Geometry geometry;
    convt_dtype x_dtype, y_dtype;              // y_dtype: of y, or that of the sums; u8 for any 8-bit y
    std::array<AxisGeometry, 3> axes;          // w, h, d
    std::array<std::int64_t, 3> weight_stride; // of the node, by which weights are packed; axes may have another
    std::array<AxisPlan, 3> plan;              // residues that have outputs
    bool sums_in_f16 = false;                  // asked for
    bool weights_at_run_time = false;
    bool may_be_infinite = false;             // weights known to hold an inf or a NaN
    bool fits_int8 = true, fits_int32 = true; // WeightFacts, as far as they are known

    std::int64_t ic() const { return geometry.in_channels_per_group(); }
    std::int64_t oc() const { return geometry.out_channels_per_group(); }
    bool reads_outside() const;                 // whether a tap of some output leaves x
    bool reads_outside(std::size_t axis) const; // along that one
    std::size_t strip_axis() const; // along which x is copied and computed in strips: the outermost that has an extent
};

// single_positions: whether axes on which x has one position are made residues only (see the source).
SpatialProblem spatial_problem(const Geometry &geometry, convt_dtype y_dtype, bool single_positions);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_PROBLEM_SPATIAL_PROBLEM_H_
