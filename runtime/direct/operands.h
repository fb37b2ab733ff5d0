// The tensors and other operands of a run of a direct plan.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/shape.h"
#include "kernels/post_ops.h"
#include "problem/geometry.h"
#include "problem/quantization.h"

namespace convtranspose {

// Strides of x or y in the caller's memory, in elements. Strides of dimensions of extent 1 are not used.
struct TensorStrides {
    std::int64_t n = 0, c = 0;
    std::array<std::int64_t, 3> axes = {0, 0, 0}; // w, h, d
};

// Takes strides in the order of the layout; of more than three axes it takes the last three.
inline TensorStrides tensor_strides(const Geometry &geometry, const Strides &strides) {
    TensorStrides s;
    const DimensionOrder at = dimension_order(geometry.layout, strides.size());
    s.n = strides.front();
    s.c = strides[at.channel];
    for (std::size_t a = 0; a < std::min(geometry.axes.size(), s.axes.size()); a++)
        s.axes[a] = strides[at.last_axis - a];
    return s;
}

struct DirectOperands {
    const void *x = nullptr;
    TensorStrides x_strides;
    const void *packed = nullptr;   // made by DirectPlan::pack()
    const void *epilogue = nullptr; // made by DirectPlan::prepare(); quantized only
    ByteX byte_x;                   // quantized only
    OutputRange range;              // quantized only
    void *y = nullptr;
    TensorStrides y_strides;
    std::int64_t y_begin = 0;              // the element of y that is at `y`
    const PostOpsCall *post_ops = nullptr; // null: none
    const void *residual = nullptr;        // y's type and shape; null: none
    TensorStrides residual_strides;
    void *workspace = nullptr; // DirectPlan::workspace_bytes() bytes aligned to 64
};

} // namespace convtranspose
