// How numbers are stored and summed: the piece that the algorithm is parameterised with.
#ifndef CONVTRANSPOSE_GENERATORS_NUMERICS_H_
#define CONVTRANSPOSE_GENERATORS_NUMERICS_H_

#include <Halide.h>

namespace convtranspose {

// x and w are widened to `sum` before they are multiplied, the sum starts from the bias, which is held in `sum`, and the
// result is rounded once, to `y`.
struct Numerics {
    Halide::Type sum;
    Halide::Type y;

    Halide::Expr widen(const Halide::Expr &e) const { return Halide::cast(sum, e); }
    Halide::Expr finish(const Halide::Expr &e) const {
        const Halide::Expr rounded = Halide::cast(y, e);
        if (y.bits() > 16) {
            return rounded;
        }
        // Halide's own rounding of an f32 NaN can end in an infinity (f16) or a zero (bf16).
        const Halide::Expr bits = Halide::reinterpret(Halide::UInt(32), e) & Halide::cast<uint32_t>(0x7fffffff);
        const Halide::Expr nan = Halide::cast<uint16_t>(y.is_bfloat() ? 0x7fc0 : 0x7e00);
        return Halide::reinterpret(y, Halide::select(bits > Halide::cast<uint32_t>(0x7f800000), nan,
                                                     Halide::reinterpret(Halide::UInt(16), rounded)));
    }
};

// The type that products of a float type are summed in: itself from 32 bits on, f32 below (ONNX leaves it open; f16 sums
// lose a thousand terms of equal sign, and every engine we know sums them in f32).
inline Halide::Type sum_type(const Halide::Type &storage) { return storage.bits() < 32 ? Halide::Float(32) : storage; }

} // namespace convtranspose

#endif // CONVTRANSPOSE_GENERATORS_NUMERICS_H_
