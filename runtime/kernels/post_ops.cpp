#include "kernels/post_ops.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "kernels/halide_buffer.h"

namespace convtranspose {

Status find_post_ops(const Geometry &geometry, Isa isa, PostOpsCall *post_ops) {
    const PostOps &p = geometry.post_ops;
    *post_ops = PostOpsCall();
    if (!has_post_ops(p)) return Status();
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    PostKernel kernel = PostKernel::kClip;
    float alpha = p.alpha, beta = p.beta;
    switch (p.activation) {
    case CONVT_NO_ACTIVATION:
        alpha = -kInfinity;
        beta = kInfinity;
        break;
    case CONVT_RELU:
        alpha = 0;
        beta = kInfinity;
        break;
    case CONVT_CLIP: break;
    case CONVT_LEAKY_RELU: kernel = PostKernel::kLeakyRelu; break;
    case CONVT_SIGMOID: kernel = PostKernel::kSigmoid; break;
    case CONVT_TANH: kernel = PostKernel::kTanh; break;
    }
    const KernelTable &table = convt_float_kernels;
    const PostOpsVariant *const end = table.post_ops + table.post_ops_count;
    const PostOpsVariant *const found = std::find_if(table.post_ops, end, [&](const PostOpsVariant &v) {
        return v.isa == isa_of_floats(isa) && v.dtype == geometry.y_dtype && v.kernel == kernel &&
               v.adds_residual == (p.adds_residual != 0);
    });
    if (found == end) {
        return unsupported("no post-ops of ", isa_name(isa_of_floats(isa)), " for ", convt_dtype_name(geometry.y_dtype),
                           " are built in: they belong to ConvTranspose::float");
    }
    *post_ops = {found->run, alpha, beta, geometry.y_dtype};
    return Status();
}

void run_post_ops(const PostOpsCall &post_ops, const JointBox &joint, void *y, const void *residual) {
    const auto is_empty = [](const JointBox::Axis &axis) { return axis.extent == 0; };
    if (std::any_of(joint.axes.begin(), joint.axes.begin() + joint.count, is_empty)) return;
    JointBox box = joint.joined();
    if (box.count == 1) box.axes[box.count++] = {1, 0, 0};
    const std::int64_t size = size_of(post_ops.dtype);
    const halide_type_t type = type_of(post_ops.dtype);
    std::int64_t calls = 1;
    for (std::size_t i = 2; i < box.count; i++) calls *= box.axes[i].extent;
    for (std::int64_t call = 0; call < calls; call++) {
        std::int64_t y_offset = 0, residual_offset = 0, rest = call;
        for (std::size_t i = 2; i < box.count; rest /= box.axes[i++].extent) {
            y_offset += rest % box.axes[i].extent * box.axes[i].first;
            residual_offset += rest % box.axes[i].extent * box.axes[i].second;
        }
        Buffer<2> out(element_at(y, y_offset, size), type);
        Buffer<2> added(residual ? element_at(residual, residual_offset, size) : nullptr, type);
        for (const JointBox::Axis &axis : {box.axes[0], box.axes[1]}) {
            out.add(axis.extent, axis.first);
            added.add(axis.extent, axis.second);
        }
        post_ops.run(&out.raw, residual ? &added.raw : &out.raw, post_ops.alpha, post_ops.beta, &out.raw);
    }
}

} // namespace convtranspose
