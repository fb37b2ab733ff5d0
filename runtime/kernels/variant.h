// Facts about kernels that follow from their rows in the table.
#pragma once

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
inline bool has_vectors_of_phases(const Variant &v) { return has_vectors_of_phases(traits_of(v)); }
inline bool reads_blocks_of_channels(const Variant &v) { return reads_blocks_of_channels(traits_of(v)); }
inline bool reads_any_strides(const Variant &v) { return reads_any_strides(traits_of(v)); }
inline bool skips_positions(const Variant &v) { return skips_positions(traits_of(v)); }
inline bool skips_outside(const Variant &v, std::size_t axis) {
    return skips_outside(traits_of(v), static_cast<int>(axis));
}

// Returns whether the variant computes f32 for a y of 16 bits, to which its results are rounded afterwards.
inline bool rounds_y(const Variant &v, convt_dtype y_dtype) {
    return (y_dtype == CONVT_F16 || y_dtype == CONVT_BF16) && v.dtype == CONVT_F32 &&
           v.arithmetic == Arithmetic::kFloat && v.family != Family::kReference;
}

// Positions of a tile along an axis: w, h or d.
inline int tile_along(const Variant &v, std::size_t axis) { return axis == 0 ? v.tile_q : axis == 1 ? v.tile_qh : 1; }

// Bytes of an element of the copy of x, and of packed weights that are not light. sum: the type of sums of floats.
inline std::int64_t operand_size(Arithmetic arithmetic, convt_dtype sum) {
    if (arithmetic == Arithmetic::kBf16) return 2;
    if (is_float(arithmetic)) return static_cast<std::int64_t>(convt_dtype_size(sum));
    return arithmetic == Arithmetic::kInt8 ? 1 : 2;
}
inline std::int64_t operand_size(const Variant &v) { return operand_size(v.arithmetic, sum_dtype(v)); }

// The type of light weights that kernels read, or f32.
inline convt_dtype light_dtype(Arithmetic arithmetic) {
    if (!has_light_weights(arithmetic)) return CONVT_F32;
    return arithmetic == Arithmetic::kF16Weights    ? CONVT_F16
           : arithmetic == Arithmetic::kBf16Weights ? CONVT_BF16
                                                    : CONVT_S8;
}

// Bytes of an element of the packed weights.
inline std::int64_t weight_size(const Variant &v) {
    const convt_dtype light = light_dtype(v.arithmetic);
    return light == CONVT_F32 ? operand_size(v) : static_cast<std::int64_t>(convt_dtype_size(light));
}

// True if variants of `own` can be used where `isa` is asked for. ISAs that add dot products or f16 arithmetic have variants of
// their own for what gains by them, and the rest is that of the ISA that they add to.
constexpr bool belongs_to(Isa own, bool of_floats, Isa isa) {
    if (own == isa) return true;
    if (isa == Isa::kNeonDotprod && own == Isa::kNeonFp16) return true; // CPUs with dot products have f16 too
    if (isa == Isa::kAvx512Vnni && !of_floats) return false;            // it has integer variants for all
    const Isa other = facts_of(isa).adds_to;
    return other != isa && belongs_to(own, of_floats, other);
}
inline bool belongs_to(const Variant &v, Isa isa) { return belongs_to(v.isa, is_float(v.arithmetic), isa); }

// The ISA whose kernels of floats, other than variants, serve another: those have no use for dot products, and compute in f32.
constexpr Isa isa_of_floats(Isa isa) {
    while (facts_of(isa).adds_to != isa) isa = facts_of(isa).adds_to;
    return isa;
}

// True if kernels of the ISA compute with vectors of f16.
inline bool vectors_have_f16(Isa isa) { return isa == Isa::kNeonFp16 || isa == Isa::kNeonDotprod; }

} // namespace convtranspose
