#include "core_problem.h"

#include <cstddef>
#include <numeric>

namespace convtranspose {

bool CoreProblem::reads_outside(std::size_t axis) const {
    const AxisPlan &a = plan[axis];
    if (a.low == a.high) return false;
    if (a.low < 0) return true;
    // The last position differs by residue, so look at each.
    for (std::int64_t r = 0; r < a.residues; r++) {
        const std::int64_t positions = (a.geometry.out - r + a.geometry.stride - 1) / a.geometry.stride;
        const std::int32_t *const row = a.table.data() + kTapColumns * r;
        const std::int64_t offset = row[0], count = row[1];
        if (count && positions - 1 + offset + (count - 1) * a.geometry.offset_step >= a.geometry.in) return true;
    }
    return false;
}

bool CoreProblem::reads_outside() const { return reads_outside(0) || reads_outside(1) || reads_outside(2); }

std::size_t CoreProblem::strip_axis() const { return plan[2].q_extent() > 1 ? 2 : plan[1].q_extent() > 1 ? 1 : 0; }

namespace {

// With one input position the stride matters to nobody. One that no two kernel elements share a residue of makes every
// output position a residue of its own, with one tap or none, so that nothing is computed from the zeros around x.
AxisGeometry single_position(AxisGeometry a) {
    a.stride = a.out + a.pad_begin + (a.kernel - 1) * a.dilation + 1;
    const std::int64_t divisor = std::gcd(a.stride, a.dilation);
    a.kernel_step = -(a.stride / divisor);
    a.offset_step = a.dilation / divisor;
    return a;
}

} // namespace

CoreProblem core_problem(const Geometry &geometry, convt_dtype y_dtype, bool single_positions) {
    CoreProblem p;
    p.geometry = geometry;
    p.x_dtype = geometry.dtype;
    p.y_dtype = y_dtype;
    p.axes.fill(pointwise_axis(1));
    for (std::size_t i = 0; i < geometry.axes.size(); i++) p.axes[i] = geometry.axes[geometry.axes.size() - 1 - i];
    for (std::size_t i = 0; i < 3; i++) {
        p.weight_stride[i] = p.axes[i].stride;
        if (single_positions && p.axes[i].in == 1 && p.axes[i].kernel > 1) p.axes[i] = single_position(p.axes[i]);
        p.plan[i] = plan_axis(p.axes[i], p.weight_stride[i], false);
    }
    return p;
}

} // namespace convtranspose
