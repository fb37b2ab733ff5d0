// Post-ops are the operations that follow the convolution. They are applied to pieces of y while these are in the cache.
#ifndef CONVTRANSPOSE_RUNTIME_KERNELS_POST_OPS_H_
#define CONVTRANSPOSE_RUNTIME_KERNELS_POST_OPS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/variant.h"
#include "problem/geometry.h"

namespace convtranspose {

// A call holds the kernel and the numbers for the post-ops of a problem. run is null if there are none.
struct PostOpsCall {
    PostOpsFunction run = nullptr;
    float alpha = 0, beta = 0;
    convt_dtype dtype = CONVT_F32; // type of y
};

inline bool has_post_ops(const PostOps &p) { return p.adds_residual || p.activation != CONVT_NO_ACTIVATION; }

// Returns CONVT_UNSUPPORTED if no kernel for the post-ops is built in for the ISA.
Status find_post_ops(const Geometry &geometry, Isa isa, PostOpsCall *post_ops);

// A box of y has up to eight axes, innermost first. Strides are in elements.
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

// Applies the post-ops to a box of y. residual: null if none is added.
void run_post_ops(const PostOpsCall &post_ops, PostOpsBox box, void *y, const void *residual);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_KERNELS_POST_OPS_H_
