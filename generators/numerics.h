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
    Halide::Expr finish(const Halide::Expr &e) const { return Halide::cast(y, e); }
};

// The type that products of a float type are summed in: itself from 32 bits on, f32 below (ONNX leaves it open; f16 sums
// lose a thousand terms of equal sign, and every engine we know sums them in f32).
inline Halide::Type sum_type(const Halide::Type &storage) {
    return storage.bits() < 32 ? Halide::Float(32) : storage;
}

}  // namespace convtranspose

#endif  // CONVTRANSPOSE_GENERATORS_NUMERICS_H_
