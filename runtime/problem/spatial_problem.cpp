#include "problem/spatial_problem.h"

#include <cstddef>

namespace convtranspose {

bool SpatialProblem::reads_outside() const { return taps_leave_x[0] || taps_leave_x[1] || taps_leave_x[2]; }

std::size_t SpatialProblem::strip_axis() const { return plan[2].q_extent() > 1 ? 2 : plan[1].q_extent() > 1 ? 1 : 0; }

namespace {

bool a_tap_leaves_x(const AxisPlan &a) {
    if (a.low == a.high) return false;
    if (a.low < 0) return true;
    bool leaves = false;
    a.for_each_with_taps([&](const PhaseRun &run, std::int64_t, const std::int32_t *row) {
        leaves = leaves || run.q_extent - 1 + row[kTapOffset] + (row[kTapCount] - 1) * a.step >= a.geometry.in;
    });
    return leaves;
}

// If x has one position along an axis, any stride gives the same result. With a stride as long as y, every output position is a
// phase of its own with at most one tap, so that no multiplication reads the zeros around x.
AxisGeometry single_position(AxisGeometry a) {
    a.stride = a.out;
    return a;
}

} // namespace

SpatialProblem spatial_problem(const Geometry &geometry, convt_dtype y_dtype, bool single_positions) {
    SpatialProblem p;
    p.geometry = geometry;
    p.y_dtype = y_dtype == CONVT_S8 ? CONVT_U8 : y_dtype;
    const std::size_t axes = geometry.axes.size();
    for (std::size_t i = 0; i < 3; i++) {
        AxisGeometry axis = i < axes ? geometry.axes[axes - 1 - i] : pointwise_axis(1);
        p.weight_stride[i] = axis.stride;
        if (single_positions && axis.in == 1 && axis.kernel > 1) axis = single_position(axis);
        p.plan[i] = plan_axis(axis, p.weight_stride[i], false);
        p.taps_leave_x[i] = a_tap_leaves_x(p.plan[i]);
    }
    return p;
}

} // namespace convtranspose
