// The numerics that the algorithm is parameterised with: how numbers are stored, multiplied and summed.
#ifndef CONVTRANSPOSE_GENERATORS_NUMERICS_H_
#define CONVTRANSPOSE_GENERATORS_NUMERICS_H_

#include <functional>
#include <map>
#include <string>

#include <Halide.h>

#include "kernel_contract/kernel_traits.h"
#include "kernel_contract/table_columns.h"

namespace convtranspose {

// The values of a generator's parameter, by their names.
template<typename E, std::size_t count>
std::map<std::string, E> by_name(const Named<E> (&all)[count]) {
    std::map<std::string, E> values;
    for (const Named<E> &one : all) {
        values[one.name] = one.value;
    }
    return values;
}

// True of the targets that stand for AVX2 with dot products of bytes (CpuOfFunction in main.cpp). CPUs with more of AVX-512 have
// those dot products too.
inline bool takes_avx_vnni(const Halide::Target &target) {
    using Halide::Target;
    return target.has_feature(Target::AVXVNNI) && !target.has_feature(Target::AVX512_Zen5) &&
           !target.has_feature(Target::AVX512_SapphireRapids);
}

// The ISA of a target, as far as kernels differ by it.
inline Isa isa_of(const Halide::Target &target) {
    using Halide::Target;
    if (target.arch == Target::ARM) {
        if (target.bits == 32) return Isa::kNeon32;
        return target.has_feature(Target::ARMDotProd) ? Isa::kNeonDotprod
               : target.has_feature(Target::ARMFp16)  ? Isa::kNeonFp16
                                                      : Isa::kNeon;
    }
    if (target.arch == Target::WebAssembly) return Isa::kWasmSimd128;
    return target.has_feature(Target::AVX512_SapphireRapids) ? Isa::kAmx
           : takes_avx_vnni(target)                          ? Isa::kAvxVnni
           : target.has_feature(Target::AVX512_Zen4)         ? Isa::kAvx512Vnni
           : target.has_feature(Target::AVX512)              ? Isa::kAvx512
           : target.has_feature(Target::AVX2)                ? Isa::kAvx2
                                                             : Isa::kX86_64;
}

// x of kInt8.
inline Halide::Type byte_x_type(const Halide::Target &target) {
    return byte_x_is_signed(isa_of(target)) ? Halide::Int(8) : Halide::UInt(8);
}

// A float, rounded to a type of as many bits or fewer.
inline Halide::Expr round_to(const Halide::Type &type, const Halide::Expr &e) {
    if (type.bits() > 16 || type == e.type()) {
        return Halide::cast(type, e);
    }
    const Halide::Expr rounded = Halide::cast(type, e);
    // Halide's own rounding of an f32 NaN can end in an infinity (f16) or a zero (bf16).
    const Halide::Expr bits = Halide::reinterpret(Halide::UInt(32), e) & Halide::cast<uint32_t>(0x7fffffff);
    const Halide::Expr nan = Halide::cast<uint16_t>(type.is_bfloat() ? 0x7fc0 : 0x7e00);
    return Halide::reinterpret(type, Halide::select(bits > Halide::cast<uint32_t>(0x7f800000), nan,
                                                    Halide::reinterpret(Halide::UInt(16), rounded)));
}

// A NaN is neither less nor more, and stays, where comparisons are strict.
inline Halide::Expr clip(const Halide::Expr &e, const Halide::Expr &least, const Halide::Expr &most) {
    const Halide::Expr above = Halide::select(e < least, least, e);
    return Halide::select(above > most, most, above);
}

// x and w are widened to `sum` before they are multiplied, the sum starts from the bias, which is held in `sum`, and the
// result is rounded once, to `y`. Integer sums are exact.
struct Numerics {
    Arithmetic arithmetic = Arithmetic::kFloat;
    Halide::Type sum;
    Halide::Type y;
    Halide::Func factors;      // (oc, FactorColumn, g), f32; for integer sums only, as are
    Halide::Expr y_zero_point; // int32
    Halide::Expr y_min, y_max; // f32
    // The stored form of a result in floats; unless it is given, that is the result rounded to `y`.
    std::function<Halide::Expr(const Halide::Expr &)> stored = nullptr;
    bool narrows_first = false; // y_zero_point is added to bytes, instead of to 32 bits that are then narrowed

    Halide::Expr widen(const Halide::Expr &e) const { return Halide::cast(sum, e); }

    // Integer sums end as, by the type of y,
    //     f32: sum * factor(oc) + addend(oc), clamped
    //     s32: the sum itself
    //     f64: the sum itself, which 32 bits may not hold
    //     u8:  round(sum * factor(oc)), ties to even, clamped, plus y_zero_point. The product is rounded to f32 first. As the
    //          bounds are those of y's type or activation less y_zero_point, the low eight bits serve u8 and s8 alike.
    Halide::Expr finish(const Halide::Expr &e, const Halide::Expr &oc, const Halide::Expr &g) const {
        if (is_float(arithmetic)) {
            return stored ? stored(e) : round_to(y, e);
        }
        if (y == Halide::Int(32) || y == Halide::Float(64)) {
            return Halide::cast(y, e);
        }
        const Halide::Expr product = Halide::cast<float>(e) * factors(oc, kFactor, g);
        if (y.is_float()) {
            return Halide::strict_float(clip(product + factors(oc, kAddend, g), y_min, y_max));
        }
        // Numbers from 2^23 to 2^24 are whole: adding 1.5 * 2^23 rounds, ties to even, and leaves the result in the low bits.
        const Halide::Expr whole = Halide::clamp(product, y_min, y_max) + 12582912.0f;
        const Halide::Expr result = Halide::reinterpret<int32_t>(whole);
        return narrows_first ? Halide::cast(y, result) + Halide::cast(y, y_zero_point)
                             : Halide::cast(y, result + y_zero_point);
    }
};

// The type that products of a float type are summed in: itself from 32 bits on, f32 below (ONNX leaves it open; f16 sums
// lose a thousand terms of equal sign, and every engine we know sums them in f32).
inline Halide::Type sum_type(const Halide::Type &storage) { return storage.bits() < 32 ? Halide::Float(32) : storage; }

} // namespace convtranspose

#endif // CONVTRANSPOSE_GENERATORS_NUMERICS_H_
