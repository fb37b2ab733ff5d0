// Post-ops are the operations that follow the convolution. They are applied to pieces of y while these are in the cache.
#ifndef CONVTRANSPOSE_RUNTIME_KERNELS_POST_OPS_H_
#define CONVTRANSPOSE_RUNTIME_KERNELS_POST_OPS_H_

#include "base/joint_box.h"
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

// Applies the post-ops to a box of y and the residual. residual: null if none is added.
void run_post_ops(const PostOpsCall &post_ops, JointBox box, void *y, const void *residual);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_KERNELS_POST_OPS_H_
