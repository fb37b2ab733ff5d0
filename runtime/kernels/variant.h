// Facts about kernels that follow from their rows in the table.
#ifndef CONVTRANSPOSE_RUNTIME_KERNELS_VARIANT_H_
#define CONVTRANSPOSE_RUNTIME_KERNELS_VARIANT_H_

#include <cstddef>
#include <cstdint>

#include "convtranspose/convtranspose.h"
#include "kernel_contract/kernel_table.h"

namespace convtranspose {

// The variants of both.
inline std::size_t variant_count() { return convt_float_kernels.variant_count + convt_quantized_kernels.variant_count; }
inline const Variant &variant_at(std::size_t i) {
    const std::size_t floats = convt_float_kernels.variant_count;
    return i < floats ? convt_float_kernels.variants[i] : convt_quantized_kernels.variants[i - floats];
}

inline convt_dtype sum_dtype(convt_dtype dtype) { return dtype == CONVT_F64 ? CONVT_F64 : CONVT_F32; }
inline convt_dtype sum_dtype(const Variant &v) { // of floats
    return v.arithmetic == Arithmetic::kHalf ? CONVT_F16 : sum_dtype(v.dtype);
}

// Input channels that lie side by side for instructions that multiply and add several at once; taps, if pairs_taps().
inline int block_of(const Variant &v) {
    if (v.family == Family::kReference) return 1;
    switch (v.arithmetic) {
    case Arithmetic::kFloat:
    case Arithmetic::kHalf: break;
    case Arithmetic::kBf16: return 2;
    case Arithmetic::kInt8: return 4;
    case Arithmetic::kInt16: return kInt16Block;
    }
    return 1;
}

// Blocks of input channels are padded to a multiple of so many, which one instruction of AMX multiplies.
inline int blocks_at_once(const Variant &v) { return v.family == Family::kMatrix ? 16 : 1; }

// Whether the rows of what that instruction multiplies are output channels, not positions (schedules/cpu/amx.cpp): its
// blocks of weights are all that it multiplies at once.
inline bool has_rows_of_channels(const Variant &v) { return v.family == Family::kMatrix && v.store == Store::kPlanar; }

// Whether a block is two neighbouring taps along w, and the two positions of x that they read: with one input channel per
// group there is nothing else to pair.
inline bool pairs_taps(const Variant &v) {
    return v.family == Family::kDepthwise && v.arithmetic == Arithmetic::kInt16 && kInt16Block == 2;
}

// Whether the sum runs over input offsets (generators/conv_transpose.h: TapOrder::kByOffset).
inline bool goes_by_offset(const Variant &v) {
    const bool planar = v.family == Family::kFew || (v.family == Family::kDepthwise && v.store == Store::kPlanar);
    return planar && v.built_in && v.built_in->axes[0].table && v.built_in->axes[1].table;
}

// Whether the taps of an input channel are packed side by side: kernels that unroll all of w and h read them at constant
// distances from one address, which with the channels of a tap side by side would be one for each tap, most of them on the stack.
inline bool has_taps_inside(const Variant &v) { return v.family == Family::kFew && goes_by_offset(v); }

// Whether vectors along the groups never go past the last one: its tile overlaps the one before it (schedules/cpu/depthwise.cpp).
inline bool overlaps_groups(const Variant &v) {
    const bool masked_stores = v.isa == Isa::kAvx512 || v.isa == Isa::kAvx512Vnni;
    return v.family == Family::kDepthwise && v.store == Store::kChannels && v.tile_q > 1 && !masked_stores;
}

// Whether it loads x by vectors of neighbours in a row.
inline bool has_vectors_along_w(const Variant &v) {
    return v.family == Family::kWide || v.family == Family::kFew ||
           (v.family == Family::kDepthwise && v.store == Store::kPlanar);
}

// Whether the variant reads x whatever its strides are, as it broadcasts every element (generators/conv_transpose_generator.cpp).
inline bool reads_any_strides(const Variant &v) {
    return v.isa == Isa::kAvx512 && v.family == Family::kChannels && v.store == Store::kChannels &&
           is_float(v.arithmetic) && v.stride_w == 0;
}

// Whether the variant leaves out the taps of an axis that leave x, whatever is there.
inline bool skips_outside(const Variant &v, std::size_t axis) {
    const bool loops = (v.family == Family::kChannels || v.family == Family::kWide) && is_float(v.arithmetic);
    const bool knows_counts = v.built_in && (v.built_in->axes[axis].table || v.built_in->axes[axis].count);
    return loops && !knows_counts && (axis == 2 || (axis == 1 && v.tile_qh == 1));
}

// Whether the variant reads x in blocks of channels, all blocks of a position side by side.
inline bool reads_blocks_of_channels(const Variant &v) {
    return block_of(v) > 1 && (v.family == Family::kChannels || v.family == Family::kMatrix) &&
           !has_rows_of_channels(v);
}

// Bytes of an element of the packed weights, and of the copy of x.
inline std::int64_t operand_size(const Variant &v) {
    if (v.arithmetic == Arithmetic::kBf16) return 2;
    if (is_float(v.arithmetic)) return static_cast<std::int64_t>(convt_dtype_size(sum_dtype(v)));
    return v.arithmetic == Arithmetic::kInt8 ? 1 : 2;
}

// Whether the variant can be used where `isa` is asked for. ISAs that add dot products or f16 arithmetic have variants of
// their own for what gains by them, and the rest is that of the ISA that they add to.
inline bool belongs_to(const Variant &v, Isa isa) {
    if (v.isa == isa) return true;
    if (isa == Isa::kAmx) return belongs_to(v, Isa::kAvx512Vnni);
    if (isa == Isa::kAvx512Vnni) return v.isa == Isa::kAvx512 && v.arithmetic == Arithmetic::kFloat;
    if (isa == Isa::kNeonDotprod && v.isa == Isa::kNeonFp16) return true;
    return (isa == Isa::kNeonDotprod || isa == Isa::kNeonFp16) && v.isa == Isa::kNeon;
}

// The ISA whose kernels of floats, other than variants, serve another: those have no use for dot products, and compute in f32.
inline Isa isa_of_floats(Isa isa) {
    if (isa == Isa::kAvx512Vnni || isa == Isa::kAmx) return Isa::kAvx512;
    return isa == Isa::kNeonDotprod || isa == Isa::kNeonFp16 ? Isa::kNeon : isa;
}

// Whether kernels of the ISA compute with vectors of f16.
inline bool vectors_have_f16(Isa isa) { return isa == Isa::kNeonFp16 || isa == Isa::kNeonDotprod; }

inline int vector_registers(Isa isa) {
    switch (isa) {
    case Isa::kAvx512:
    case Isa::kAvx512Vnni:
    case Isa::kAmx:
    case Isa::kNeon:
    case Isa::kNeonFp16:
    case Isa::kNeonDotprod: return 32;
    case Isa::kX86_64:
    case Isa::kAvx2:
    case Isa::kNeon32:
    case Isa::kWasmSimd128: break;
    }
    return 16;
}

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_KERNELS_VARIANT_H_
