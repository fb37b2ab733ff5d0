// Post-ops are the operations that follow the convolution. They are applied to pieces of y while these are in the cache.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/variant.h"
#include "problem/geometry.h"

namespace convtranspose {

// A joint box is a box of elements in two tensors that have other strides, as one is copied to the other or added to it. Its axes
// are innermost first; a tensor in memory has fewer than 64 of more than one element. Strides are in elements.
struct JointBox {
    struct Axis {
        std::int64_t extent, first, second; // first, second: its strides in both tensors
    };
    std::array<Axis, 64> axes;
    std::size_t count = 0;

    // Adds an axis, in the order of strides of the first tensor.
    void add(std::int64_t extent, std::int64_t first, std::int64_t second) {
        if (extent == 1) return;
        std::size_t at = count++;
        for (; at > 0 && axes[at - 1].first > first; at--) axes[at] = axes[at - 1];
        axes[at] = {extent, first, second};
    }

    // Returns the box with axes joined that continue where the axis inside them ends. Its innermost axis is dense.
    JointBox joined() const {
        JointBox box;
        box.axes[box.count++] = {1, 1, 1};
        for (std::size_t i = 0; i < count; i++) {
            Axis &inner = box.axes[box.count - 1];
            const Axis &axis = axes[i];
            if (axis.first == inner.first * inner.extent && axis.second == inner.second * inner.extent) {
                inner.extent *= axis.extent;
            } else {
                box.axes[box.count++] = axis;
            }
        }
        return box;
    }
};

// A call holds the kernel and the numbers for the post-ops of a problem. run is null if there are none.
struct PostOpsCall {
    PostOpsFunction run = nullptr;
    float alpha = 0, beta = 0;
    convt_dtype dtype = CONVT_F32; // type of y
};

inline bool has_post_ops(const PostOps &p) { return p.adds_residual || p.activation != CONVT_NO_ACTIVATION; }

// Returns CONVT_UNSUPPORTED if no kernel for the post-ops is built in for the ISA.
Status find_post_ops(const Geometry &geometry, Isa isa, PostOpsCall *post_ops);

// Applies the post-ops to a box of y and the residual. residual: null if none is added.
void run_post_ops(const PostOpsCall &post_ops, const JointBox &joint, void *y, const void *residual);

} // namespace convtranspose
