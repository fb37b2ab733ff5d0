// The 16-bit floating-point types are held as bits.
#pragma once

#include <cstdint>
#include <cstring>

#include "convtranspose/convtranspose.h"

namespace convtranspose {

inline float float_from_bits(std::uint32_t bits) {
    float f;
    std::memcpy(&f, &bits, sizeof f);
    return f;
}

inline std::uint32_t bits_of(float f) {
    std::uint32_t bits;
    std::memcpy(&bits, &f, sizeof bits);
    return bits;
}

struct Bf16 {
    std::uint16_t bits;
    explicit operator float() const { return float_from_bits(static_cast<std::uint32_t>(bits) << 16); }
};

struct F16 {
    std::uint16_t bits;
    explicit operator float() const {
        const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
        const std::uint32_t magnitude = bits & 0x7fff;
        if (magnitude >= 0x7c00)
            return float_from_bits(sign | 0x7f800000 | (magnitude & 0x3ff) << 13); // infinity or NaN
        // Subnormals are integers in units of 2^-24; normal numbers get another exponent bias.
        if (magnitude < 0x400) return float_from_bits(sign | bits_of(static_cast<float>(magnitude) * 0x1p-24f));
        return float_from_bits(sign | ((magnitude << 13) + ((127 - 15) << 23)));
    }
};

// Rounds to nearest, ties to even; a NaN stays a NaN.
inline Bf16 to_bf16(float f) {
    const std::uint32_t bits = bits_of(f);
    if ((bits & 0x7fffffff) > 0x7f800000) return {static_cast<std::uint16_t>(bits >> 16 | 0x40)};
    return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

inline F16 to_f16(float f) {
    const std::uint32_t bits = bits_of(f), magnitude = bits & 0x7fffffff;
    const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
    if (magnitude > 0x7f800000) return {static_cast<std::uint16_t>(sign | 0x7e00)};
    if (magnitude >= 0x477ff000) return {static_cast<std::uint16_t>(sign | 0x7c00)}; // 65520 and up round to inf
    if (magnitude < 0x38800000) {
        // Below 2^-14: adding 0.5 leaves the rounded value in the low bits, in units of 2^-24.
        const std::uint32_t rounded = bits_of(float_from_bits(magnitude) + 0.5f) - bits_of(0.5f);
        return {static_cast<std::uint16_t>(sign | rounded)};
    }
    return {
        static_cast<std::uint16_t>(sign | ((magnitude - ((127 - 15) << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13))};
}

// Returns an element of any type. Each of these types but s32 and f64 fits in f32.
inline double load_element(convt_dtype dtype, const void *from) {
    switch (dtype) {
    case CONVT_F16: return static_cast<double>(static_cast<float>(*static_cast<const F16 *>(from)));
    case CONVT_BF16: return static_cast<double>(static_cast<float>(*static_cast<const Bf16 *>(from)));
    case CONVT_F32: return static_cast<double>(*static_cast<const float *>(from));
    case CONVT_F64: return *static_cast<const double *>(from);
    case CONVT_U8: return *static_cast<const std::uint8_t *>(from);
    case CONVT_S8: return *static_cast<const std::int8_t *>(from);
    case CONVT_S32: break;
    }
    return *static_cast<const std::int32_t *>(from);
}

// Converts numbers of f16 or bf16 to f32.
inline void widen(convt_dtype from, const void *numbers, std::size_t count, float *to) {
    const auto *const f16 = static_cast<const F16 *>(numbers);
    const auto *const bf16 = static_cast<const Bf16 *>(numbers);
    for (std::size_t i = 0; i < count; i++)
        to[i] = from == CONVT_F16 ? static_cast<float>(f16[i]) : static_cast<float>(bf16[i]);
}

// Rounds a number to a type of floats and stores it.
inline void store_element(convt_dtype dtype, double value, void *to) {
    switch (dtype) {
    case CONVT_F16: *static_cast<F16 *>(to) = to_f16(static_cast<float>(value)); break;
    case CONVT_BF16: *static_cast<Bf16 *>(to) = to_bf16(static_cast<float>(value)); break;
    case CONVT_F32: *static_cast<float *>(to) = static_cast<float>(value); break;
    case CONVT_F64: *static_cast<double *>(to) = value; break;
    case CONVT_U8: // integers are requantized
    case CONVT_S8:
    case CONVT_S32: break;
    }
}

} // namespace convtranspose
