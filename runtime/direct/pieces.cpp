#include "direct/pieces.h"

#include <algorithm>
#include <utility>

#include "base/allocator.h"
#include "base/division.h"
#include "direct/copy_box.h"
#include "kernels/halide_buffer.h"

namespace convtranspose {

// Plans memory for a piece of y for each thread that has a task, and finds the kernel that rounds it.
Pieces::Pieces(const Blocking &blocking, int threads) : blocking_(blocking), layer_(blocking.layer) {
    if (!rounds_y(layer_.variant, layer_.problem.y_dtype)) return;
    if (layer_.packed.tiles() == 0) return; // y has no channels, so no run computes anything
    rounder_ = find_rounder(layer_.variant.isa, CopyOrder::kPlanar, layer_.problem.y_dtype);
    std::int64_t most = 0, most_tasks = 0;
    // The last images and groups may be fewer than the others. Their strips are divided otherwise, and not always into smaller
    // parts.
    const std::int64_t group_parts = blocking.group_parts(), last_images = (blocking.batch() - 1) / blocking.images;
    for (const std::int64_t of_images : {std::int64_t{0}, last_images}) {
        for (const std::int64_t of_groups : {std::int64_t{0}, group_parts - 1}) {
            for (std::int64_t i = 0; i < blocking.strips; i++) {
                const Strip s = blocking.strip((of_images * group_parts + of_groups) * blocking.strips + i);
                const StripTasks tasks(blocking, s, least_of(s), blocking.workers > 1 ? 1 : threads);
                most_tasks = std::max(most_tasks, tasks.count());
                for (std::int64_t k = 0; k < tasks.parts(); k++)
                    most = std::max(most, dense_bytes(part_of_y(s, tasks.part(k))));
            }
        }
    }
    bytes_ = round_up(most);
    count_ = blocking.workers > 1 ? blocking.workers : static_cast<int>(std::min<std::int64_t>(threads, most_tasks));
}

std::int64_t Pieces::least_of(const Strip &s) const {
    const std::int64_t end = s.first_group + s.groups;
    const KernelCall all = {s.q_begin, s.q_end, {}, 0, layer_.packed.tiles(), s.first_group, end};
    return std::max<std::int64_t>(ceil_div(dense_bytes(part_of_y(s, all)), kPieceBytes), 1);
}

PartOfY Pieces::part_of_y(const Strip &s, const KernelCall &c) const {
    const PackedLayout &packed = layer_.packed;
    const std::int64_t channel = c.group_begin * packed.oc + c.oc_begin(packed);
    PartOfY part = {s.first_image, s.images, channel, c.groups(), c.oc(packed), {}, {}};
    for (std::size_t a = 0; a < 3; a++) {
        const AxisGeometry &axis = layer_.axes[a].geometry;
        const bool strip_axis = a == blocking_.strip_axis;
        part.begin[a] = strip_axis ? c.q_begin * axis.stride : 0;
        part.extent[a] = (strip_axis ? std::min(c.q_end * axis.stride, axis.out) : axis.out) - part.begin[a];
    }
    return part;
}

// Returns the strides of a dense copy of the part, in the order in which the variant writes y. Groups are as far apart as in y.
TensorStrides Pieces::dense_strides_of(const PartOfY &part) const {
    const std::int64_t channels = (part.groups - 1) * layer_.packed.oc + part.oc;
    TensorStrides s;
    std::int64_t next = 1;
    const auto take = [&](std::int64_t extent) { return std::exchange(next, next * extent); };
    if (layer_.variant.output_order == OutputOrder::kChannels) s.c = take(channels);
    for (std::size_t a = 0; a < 3; a++) s.axes[a] = take(part.extent[a]);
    if (layer_.variant.output_order == OutputOrder::kPlanar) s.c = take(channels);
    s.n = next;
    return s;
}

std::int64_t Pieces::dense_bytes(const PartOfY &part) const {
    return capped_product({part.images, dense_strides_of(part).n, size_of(layer_.variant.dtype)});
}

// Returns the part in two tensors of these strides.
JointBox Pieces::joint_box(const PartOfY &part, const TensorStrides &first, const TensorStrides &second) const {
    JointBox box;
    box.add(part.images, first.n, second.n);
    box.add(part.groups, layer_.packed.oc * first.c, layer_.packed.oc * second.c);
    box.add(part.oc, first.c, second.c);
    for (std::size_t a = 0; a < 3; a++) box.add(part.extent[a], first.axes[a], second.axes[a]);
    return box;
}

DirectOperands Pieces::in_memory(const PartOfY &part, const DirectOperands &o, char *memory) const {
    DirectOperands piece = o;
    piece.y = memory;
    piece.y_strides = dense_strides_of(part);
    piece.y_begin = part.offset(piece.y_strides);
    return piece;
}

void Pieces::round(const PartOfY &part, const DirectOperands &from, const DirectOperands &to) const {
    const JointBox joint = joint_box(part, from.y_strides, to.y_strides).joined();
    CopyBox box; // dense along the copy kernel's w
    for (std::size_t i = 0; i < joint.count; i++)
        box.axes[1 + i] = {joint.axes[i].extent, joint.axes[i].first, joint.axes[i].second};
    const halide_type_t type = type_of(layer_.problem.y_dtype);
    run_copy(rounder_, box, {from.y, type_of(layer_.variant.dtype)},
             {element_at(to.y, part.offset(to.y_strides), type.bytes()), type}, {}, Parallel());
}

void Pieces::finish(const PartOfY &part, const DirectOperands &o) const {
    const TensorStrides &y = o.y_strides, &r = o.residual ? o.residual_strides : o.y_strides;
    const std::int64_t size = size_of(o.post_ops->dtype);
    run_post_ops(*o.post_ops, joint_box(part, y, r), element_at(o.y, part.offset(y), size),
                 o.residual ? element_at(o.residual, part.offset(r), size) : nullptr);
}

} // namespace convtranspose
