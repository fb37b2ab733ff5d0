// What follows the convolution, applied to pieces of y while they are in the cache.
#ifndef CONVTRANSPOSE_RUNTIME_KERNELS_POST_OPS_H_
#define CONVTRANSPOSE_RUNTIME_KERNELS_POST_OPS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/variant.h"
#include "problem/geometry.h"

namespace convtranspose {

// What a problem's post-ops come to: a kernel and its numbers. Null: there are none.
struct PostOpsCall {
    PostOpsFunction run = nullptr;
    float alpha = 0, beta = 0;
    convt_dtype dtype = CONVT_F32; // of y
};

inline bool has_post_ops(const convt_post_ops &p) { return p.adds_residual || p.activation != CONVT_NO_ACTIVATION; }

// CONVT_UNSUPPORTED if no such kernel is built in for the ISA.
Status find_post_ops(const Geometry &geometry, Isa isa, PostOpsCall *post_ops);

// A box of y, of any number of axes up to eight, innermost first. Strides in elements.
struct PostOpsBox {
    struct Axis {
        std::int64_t extent, y_stride, residual_stride;
    };
    std::array<Axis, 8> axes;
    std::size_t count = 0;

    void add(std::int64_t extent, std::int64_t y_stride, std::int64_t residual_stride) {
        if (extent == 1) return;
        std::size_t at = count++;
        for (; at > 0 && axes[at - 1].y_stride > y_stride; at--) axes[at] = axes[at - 1];
        axes[at] = {extent, y_stride, residual_stride};
    }
};

// residual: null if none is added.
void run_post_ops(const PostOpsCall &post_ops, PostOpsBox box, void *y, const void *residual);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_KERNELS_POST_OPS_H_
