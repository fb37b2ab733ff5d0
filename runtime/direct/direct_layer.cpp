#include "direct/direct_layer.h"

#include "base/allocator.h"
#include "base/division.h"
#include "kernel_contract/fetching.h"
#include "kernels/halide_buffer.h"

namespace convtranspose {

OperandTypes operand_types(const Variant &v) {
    const halide_type_t s32(halide_type_int, 32), s16(halide_type_int, 16), sum = type_of(sum_dtype(v));
    if (v.arithmetic == Arithmetic::kBf16) return {type_of(CONVT_BF16), type_of(CONVT_BF16), type_of(CONVT_F32)};
    if (v.arithmetic == Arithmetic::kInt8) return {type_of(CONVT_S8), type_of(kByteX), s32};
    if (v.arithmetic == Arithmetic::kInt16) return {s16, s16, s32};
    return {has_light_weights(v.arithmetic) ? type_of(light_dtype(v.arithmetic)) : sum, sum, sum};
}

DirectLayer::DirectLayer(const SpatialProblem &of, const Candidate &choice, const PackedLayout *packed_as)
    : variant(*choice.variant), problem(of), whole{variant.stride_w != 0, variant.stride_h != 0, false},
      packed(packed_as ? *packed_as : packing_of(variant)), reads_x(choice.reads_x), in_place(choice.in_place),
      copy_order(convtranspose::copy_order(variant, of.geometry.layout)) {
    for (std::size_t a = 0; a < 3; a++) {
        axes[a] = whole[a] ? plan_axis(of.plan[a].geometry, of.weight_stride[a], true) : of.plan[a];
        if (a == 0 && pairs_taps(variant)) pair_taps(&axes[a]);
        if (a == 0 && has_vectors_of_phases(variant)) put_phases_inside(&axes[a]);
        packed.taps[a] = axes[a].element_count() / (axes[a].paired ? 2 : 1);
    }
    packed.group = of.geometry.group;
    packed.ic = of.ic();
    packed.oc = of.oc();
    if (choice.narrower_ends) narrower = narrower_tiles(variant);
}

std::uint64_t DirectLayer::weight_bytes() const {
    std::int64_t elements = packed.weights();
    if (multiplies_by_element(variant.isa))
        elements += packed.block * packed.tile_channels(); // kernels may load a channel more
    return round_up(elements * weight_size(variant));
}

// Channels include those that fill up blocks and vectors. Vectors along groups are never taken apart.
std::int64_t DirectLayer::copied_column(std::int64_t groups) const {
    const std::int64_t padding = packed.groups() - packed.group,
                       channels = (groups + padding) * packed.blocks() * packed.block, size = operand_size(variant);
    const bool apart = (reads_any_strides(variant) || variant.family == Family::kAmx) && copies_channels_inside() &&
                       in_few_sets(channels * size);
    return apart ? channels + kCacheLine / size : channels;
}

// Rows that are loaded by vectors begin at multiples of a vector, so that the loads of one tap do not cross cache lines, and lie an
// odd number of vectors apart, as an even number would bring the channels of a position into a part of the sets of the first-level
// cache. Narrow rows, which the gaps would dominate, have none. Gaps are filled like the surroundings of x, because tiles read them
// and leftover memory may hold subnormal numbers, which some cores multiply slowly.
std::int64_t DirectLayer::copied_row(std::int64_t columns) const {
    if (copies_channels_inside() || !has_vectors_along_w(variant)) return columns;
    const std::int64_t row = (ceil_div(columns, std::int64_t{variant.lanes}) | 1) * variant.lanes;
    return 2 * row <= 3 * columns ? row : columns;
}

} // namespace convtranspose
