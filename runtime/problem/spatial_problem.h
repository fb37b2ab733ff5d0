// This is a layer as kernels see it: up to three spatial axes, their phases and taps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "problem/axis_plan.h"
#include "problem/geometry.h"
#include "problem/quantization.h"

namespace convtranspose {

// The problem has up to three spatial axes, in the order w, h, d. Missing axes have extent 1.
struct SpatialProblem {
    Geometry geometry;
    convt_dtype y_dtype;                       // of y or of the sums; u8 stands for any 8-bit y
    std::array<std::int64_t, 3> weight_stride; // the layer's strides, which order packed weights; plans may have others
    std::array<AxisPlan, 3> plan;              // all phases that have outputs
    std::array<bool, 3> taps_leave_x;          // true for an axis along which a tap of some output leaves x
    bool sums_in_f16 = false;                  // on request
    bool weights_at_run_time = false;
    bool may_be_infinite = false; // the weights hold an infinity or a NaN
    WeightFacts facts;            // of quantized weights, as far as they are known

    std::int64_t ic() const { return geometry.in_channels_per_group(); }
    std::int64_t oc() const { return geometry.out_channels_per_group(); }
    bool reads_outside() const;     // true if a tap of some output leaves x
    std::size_t strip_axis() const; // the outermost axis with an extent; strips of x are copied and computed along it
};

// y_dtype: of y, or of the sums. single_positions: axes along which x has one position get the stride out (single_position() in the
// source says why).
SpatialProblem spatial_problem(const Geometry &geometry, convt_dtype y_dtype, bool single_positions);

} // namespace convtranspose
