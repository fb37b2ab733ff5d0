// The facts about a kernel that its generator builds by and the runtime calls it by. Each follows from what the row of the kernel
// in the table says.
#ifndef CONVTRANSPOSE_KERNEL_CONTRACT_KERNEL_TRAITS_H_
#define CONVTRANSPOSE_KERNEL_CONTRACT_KERNEL_TRAITS_H_

#include "kernel_contract/kernel_types.h"

namespace convtranspose {

constexpr bool is_x86(Isa isa) {
    return isa == Isa::kX86_64 || isa == Isa::kAvx2 || isa == Isa::kAvxVnni || isa == Isa::kAvx512 ||
           isa == Isa::kAvx512Vnni || isa == Isa::kAmx;
}
constexpr bool is_arm64(Isa isa) { return isa == Isa::kNeon || isa == Isa::kNeonFp16 || isa == Isa::kNeonDotprod; }
constexpr bool is_arm(Isa isa) { return is_arm64(isa) || isa == Isa::kNeon32; }

// True if the ISA stores a part of a vector of any type at once.
constexpr bool has_masked_stores(Isa isa) { return isa == Isa::kAvx512 || isa == Isa::kAvx512Vnni || isa == Isa::kAmx; }

// True if the ISA stores a part of a vector of elements of so many bytes at once.
constexpr bool has_masked_stores(Isa isa, int bytes) {
    return has_masked_stores(isa) || ((isa == Isa::kAvx2 || isa == Isa::kAvxVnni) && bytes >= 4);
}

// True if x of kInt8 is s8, else u8.
constexpr bool byte_x_is_signed(Isa isa) { return is_arm(isa); }

// The number of input channels that kInt16 multiplies at a time.
constexpr int int16_block(Isa isa) { return is_arm(isa) ? 1 : 2; }

// True if kernels multiply vectors by elements of vectors. With an odd number of input channels, or blocks of them, they may then
// load the weights of one more, and kInt8 the x.
constexpr bool multiplies_by_element(Isa isa) { return is_arm64(isa); }

// A kernel, as far as the traits depend on it.
struct KernelTraits {
    Isa isa = Isa::kX86_64;
    Family family = Family::kReference;
    OutputOrder output_order = OutputOrder::kChannels;
    Arithmetic arithmetic = Arithmetic::kFloat;
    int stride_w = 0; // 0: not built in
    int tile_q = 1, tile_qh = 1;
    // For w, h and d: the taps are built in; the number of taps that every phase has is, by itself or with them.
    bool knows_taps[3] = {false, false, false}, knows_counts[3] = {false, false, false};
};

// The number of input channels that lie side by side, for instructions that multiply and add several at once; of taps, if
// pairs_taps().
constexpr int block_of(const KernelTraits &k) {
    if (k.family == Family::kReference) return 1;
    switch (k.arithmetic) {
    case Arithmetic::kFloat:
    case Arithmetic::kHalf:
    case Arithmetic::kF16Weights:
    case Arithmetic::kBf16Weights:
    case Arithmetic::kS8Weights: break;
    case Arithmetic::kBf16: return 2;
    case Arithmetic::kInt8: return 4;
    case Arithmetic::kInt16: return int16_block(k.isa);
    }
    return 1;
}

// The most rows, and columns of 4 bytes, of a tile register of AMX.
inline constexpr int kAmxRows = 16;

// Blocks of input channels are padded to a multiple of this number, which one instruction of AMX multiplies.
constexpr int blocks_at_once(Family family) { return family == Family::kAmx ? kAmxRows : 1; }

// True if the rows that such an instruction multiplies are output channels, not positions. A block of weights then holds all that
// the instruction multiplies at once.
constexpr bool has_rows_of_channels(const KernelTraits &k) {
    return k.family == Family::kAmx && k.output_order == OutputOrder::kPlanar;
}

constexpr int block_of_weights(const KernelTraits &k) {
    return block_of(k) * (has_rows_of_channels(k) ? blocks_at_once(k.family) : 1);
}

// True if a block is two neighbouring taps along w, and the two positions of x that they read: with one input channel per group
// there is nothing else to pair.
constexpr bool pairs_taps(const KernelTraits &k) {
    return k.family == Family::kDepthwise && k.arithmetic == Arithmetic::kInt16 && int16_block(k.isa) == 2;
}

// True if vectors are of neighbouring phases of w, at one position, for strides that are at least as long. The weights of neighbouring
// phases for a tap are packed side by side then (runtime/problem/axis_plan.h: put_phases_inside()).
constexpr bool has_vectors_of_phases(const KernelTraits &k) {
    return k.family == Family::kDepthwise && k.output_order == OutputOrder::kPlanar && k.stride_w == 0;
}

// True if the kernel may go by offset: its accumulators are phases beside each other.
constexpr bool holds_phases(const KernelTraits &k) {
    return k.family == Family::kSmallOc ||
           (k.family == Family::kDepthwise && k.output_order == OutputOrder::kPlanar && !has_vectors_of_phases(k));
}

// True if the sum runs over input offsets, each with the phases that have a tap for it.
constexpr bool has_tap_offset_order(const KernelTraits &k) {
    return holds_phases(k) && k.knows_taps[0] && k.knows_taps[1];
}

// True if the taps of an input channel are packed side by side: kernels that unroll all of w and h then read them at constant
// distances from one address. With the channels of a tap side by side each tap would have an address, most of them on the stack.
constexpr bool has_taps_inside(const KernelTraits &k) {
    return k.family == Family::kSmallOc && has_tap_offset_order(k);
}

// True if vectors along the groups never go past the last one: the last tile overlaps the one before it, as to store a part of a
// vector would be slow. The tile of one position is for any number of groups.
constexpr bool overlaps_groups(bool masked_stores, int tile_q) { return !masked_stores && tile_q > 1; }
constexpr bool overlaps_groups(const KernelTraits &k) {
    return k.family == Family::kDepthwise && k.output_order == OutputOrder::kChannels &&
           overlaps_groups(has_masked_stores(k.isa), k.tile_q);
}

// True if the kernel loads x by vectors of neighbours in a row.
constexpr bool has_vectors_along_w(const KernelTraits &k) {
    return k.family == Family::kOwVectorized || k.family == Family::kSmallOc ||
           (k.family == Family::kDepthwise && k.output_order == OutputOrder::kPlanar && !has_vectors_of_phases(k));
}

// True if the kernel reads x in blocks of channels, all blocks of a position side by side.
constexpr bool reads_blocks_of_channels(const KernelTraits &k) {
    return block_of(k) > 1 && (k.family == Family::kOcVectorized || k.family == Family::kAmx) &&
           !has_rows_of_channels(k);
}

// True if the kernel reads x whatever its strides are, as it broadcasts every element. On other ISAs sums would be spilled while
// addresses are computed, as nothing there makes the addresses of a row from one pointer (schedules/cpu/passes/row_base_pointers.h).
constexpr bool reads_any_strides(const KernelTraits &k) {
    return k.family == Family::kOcVectorized && k.output_order == OutputOrder::kChannels && is_float(k.arithmetic) &&
           block_of(k) == 1 && k.stride_w == 0 && (has_masked_stores(k.isa) || k.isa == Isa::kAvx2);
}

// True if the kernel leaves out the taps of an axis that leave x, as zeros there would be multiplied for nothing: at the loop over
// such taps, so where all positions of a tile read there or none. Sums of integers count on zero points there.
constexpr bool skips_outside(const KernelTraits &k, int axis) {
    const bool loops = (k.family == Family::kOcVectorized || k.family == Family::kOwVectorized) &&
                       is_float(k.arithmetic) && block_of(k) == 1;
    return loops && !k.knows_counts[axis] && (axis == 2 || (axis == 1 && k.tile_qh == 1));
}

// True if the kernel leaves out the positions at the ends of a tile's row that a tap reads outside of x, unless its loops over taps
// or input channels are unrolled (schedules/cpu/passes/skip_padding.h). The caller must have zeros there all the same.
constexpr bool skips_positions(bool x86, int block, int tile_q) { return x86 && block == 1 && tile_q > 1; }
constexpr bool skips_positions(const KernelTraits &k) {
    return k.family == Family::kOcVectorized && skips_positions(is_x86(k.isa), block_of(k), k.tile_q);
}

} // namespace convtranspose

#endif // CONVTRANSPOSE_KERNEL_CONTRACT_KERNEL_TRAITS_H_
