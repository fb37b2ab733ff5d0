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

// The traits of kernel_contract/kernel_traits.h.
inline int block_of(const Variant &v) { return block_of(traits_of(v)); }
inline int blocks_at_once(const Variant &v) { return blocks_at_once(v.family); }
inline int block_of_weights(const Variant &v) { return block_of_weights(traits_of(v)); }
inline bool has_rows_of_channels(const Variant &v) { return has_rows_of_channels(traits_of(v)); }
inline bool pairs_taps(const Variant &v) { return pairs_taps(traits_of(v)); }
inline bool has_tap_offset_order(const Variant &v) { return has_tap_offset_order(traits_of(v)); }
inline bool has_taps_inside(const Variant &v) { return has_taps_inside(traits_of(v)); }
inline bool overlaps_groups(const Variant &v) { return overlaps_groups(traits_of(v)); }
inline bool has_vectors_along_w(const Variant &v) { return has_vectors_along_w(traits_of(v)); }
inline bool reads_blocks_of_channels(const Variant &v) { return reads_blocks_of_channels(traits_of(v)); }
inline bool reads_any_strides(const Variant &v) { return reads_any_strides(traits_of(v)); }
inline bool skips_outside(const Variant &v, std::size_t axis) {
    return skips_outside(traits_of(v), static_cast<int>(axis));
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
