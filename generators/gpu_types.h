// The form in which GPUs keep 16-bit floats, and their conversion.
#ifndef CONVTRANSPOSE_GENERATORS_GPU_TYPES_H_
#define CONVTRANSPOSE_GENERATORS_GPU_TYPES_H_

#include <Halide.h>

#include "kernel_contract/device_types.h"
#include "numerics.h"

namespace convtranspose {

namespace gpu_types {

inline Halide::Expr bits(uint32_t value) { return Halide::cast<uint32_t>(Halide::Expr(value)); }

inline Halide::Expr from_bf16(const Halide::Expr &stored) {
    return Halide::reinterpret<float>(Halide::cast<uint32_t>(stored) << 16);
}

inline Halide::Expr from_f16(const Halide::Expr &stored) {
    using namespace Halide;
    const Expr all = cast<uint32_t>(stored), fraction = all & bits(0x3ff), exponent = (all >> 10) & bits(0x1f);
    const Expr sign = (all & bits(0x8000)) << 16;
    const Expr top = select(exponent == 31, bits(0x7f800000), (exponent + 112) << 23);
    const Expr small = reinterpret<uint32_t>(cast<float>(cast<int>(fraction)) * 5.9604644775390625e-8f); // 2^-24
    return reinterpret<float>(sign | select(exponent == 0, small, top | (fraction << 13)));
}

// To the nearest, ties to even; a NaN stays one.
inline Halide::Expr to_bf16(const Halide::Expr &value) {
    using namespace Halide;
    const Expr all = reinterpret<uint32_t>(value), odd = (all >> 16) & bits(1);
    const Expr is_nan = (all & bits(0x7fffffff)) > bits(0x7f800000);
    return cast<uint16_t>(select(is_nan, bits(0x7fc0), (all + bits(0x7fff) + odd) >> 16));
}

// Likewise.
inline Halide::Expr to_f16(const Halide::Expr &value) {
    using namespace Halide;
    const Expr all = reinterpret<uint32_t>(value), magnitude = all & bits(0x7fffffff),
               odd = (magnitude >> 13) & bits(1);
    const Expr normal = ((magnitude + bits(0xfff) + odd) >> 13) - bits(112 << 10);
    // Added to 0.5 its last bit is f16's least number, so that the sum is rounded there.
    const Expr small = reinterpret<uint32_t>(reinterpret<float>(magnitude) + 0.5f) - bits(0x3f000000);
    const Expr large = select(magnitude > bits(0x7f800000), bits(0x7e00), bits(0x7c00));
    const Expr result = select(magnitude >= bits(0x47800000), large, magnitude < bits(0x38800000), small, normal);
    return cast<uint16_t>(((all >> 16) & bits(0x8000)) | result);
}

} // namespace gpu_types

// Elements of a tensor in memory, which may be kept as their bits (kernel_contract/device_types.h).
struct Storage {
    Halide::Type type;
    bool as_bits = false;

    Storage() = default;
    Storage(const Halide::Type &t, const Halide::Target &target)
        : type(t), as_bits(t.is_bfloat() ||
                           (t == Halide::Float(16) &&
                            keeps_f16_as_bits(target.has_feature(Halide::Target::OpenCL) ? "opencl" : "cuda"))) {}

    Halide::Type stored() const { return as_bits ? Halide::UInt(16) : type; }
    Halide::Expr load(const Halide::Expr &e) const {
        return !as_bits ? e : type.is_bfloat() ? gpu_types::from_bf16(e) : gpu_types::from_f16(e);
    }
    Halide::Expr store(const Halide::Expr &e) const { // of a float
        return !as_bits ? round_to(type, e) : type.is_bfloat() ? gpu_types::to_bf16(e) : gpu_types::to_f16(e);
    }
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_GENERATORS_GPU_TYPES_H_
