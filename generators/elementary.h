// Sigmoid and tanh of f32 and f64, to a few units in the last place, without calls: polynomials and rational functions of the
// Cephes library (S. L. Moshier, netlib.org/cephes: exp.c, expf.c, tanh.c, tanhf.c). A NaN gives a NaN.
// To be compiled with strict_float: sums are written in the order that they need.
#ifndef CONVTRANSPOSE_GENERATORS_ELEMENTARY_H_
#define CONVTRANSPOSE_GENERATORS_ELEMENTARY_H_

#include <Halide.h>

#include <initializer_list>

namespace convtranspose {

namespace elementary {

// Coefficients from the highest power down.
inline Halide::Expr polynomial(const Halide::Expr &x, std::initializer_list<double> coefficients) {
    Halide::Expr sum;
    for (const double c : coefficients) {
        const Halide::Expr term = Halide::Internal::make_const(x.type(), c);
        sum = sum.defined() ? sum * x + term : term;
    }
    return sum;
}

// exp(x) where 2^n of it is a normal number: the caller keeps x within +-87 (f32) and +-708 (f64).
inline Halide::Expr exp_within(const Halide::Expr &x) {
    using namespace Halide;
    const Type type = x.type();
    const bool wide = type.bits() == 64;
    const auto constant = [&](double value) { return Internal::make_const(type, value); };
    // The low bits of a sum with 1.5 * 2^(bits of the fraction) are the nearest integer to the smaller term.
    const Expr shift = constant(wide ? 6755399441055744.0 : 12582912.0);
    const Expr shifted = x * constant(1.44269504088896340736) + shift;
    const Expr n = shifted - shift;
    // ln 2 in two parts, of which n times the first is exact.
    const Expr high = x - n * constant(wide ? 6.93145751953125E-1 : 0.693359375);
    const Expr r = high - n * constant(wide ? 1.42860682030941723212E-6 : -2.12194440e-4);
    Expr e;
    if (wide) {
        const Expr square = r * r;
        const Expr p = r * polynomial(square, {1.26177193074810590878E-4, 3.02994407707441961300E-2, 1});
        const Expr q = polynomial(square, {3.00198505138664455042E-6, 2.52448340349684104192E-3,
                                           2.27265548208155028766E-1, 2.00000000000000000005E0});
        e = 1 + 2 * (p / (q - p));
    } else {
        e = polynomial(r, {1.9875691500E-4, 1.3981999507E-3, 8.3334519073E-3, 4.1665795894E-2, 1.6666665459E-1,
                           5.0000001201E-1}) *
                (r * r) +
            r + 1;
    }
    const Type bits = UInt(type.bits());
    const Expr bias = Internal::make_const(bits, wide ? 1023 : 127);
    const Expr exponent = reinterpret(bits, shifted) + bias; // whose low bits are n's, which the shift leaves
    return e * reinterpret(type, exponent << Internal::make_const(bits, wide ? 52 : 23));
}

} // namespace elementary

inline Halide::Expr sigmoid(const Halide::Expr &x) {
    using namespace Halide;
    const double most = x.type().bits() == 64 ? 708 : 87;
    const Expr limit = Internal::make_const(x.type(), most);
    // Beyond, it is 1 and all but 0. Compared so, a NaN stays.
    Expr at = select(x > limit, limit, x);
    at = select(at < -limit, -limit, at);
    return select(x < -limit, Internal::make_const(x.type(), 0), 1 / (1 + elementary::exp_within(-at)));
}

inline Halide::Expr tanh_of(const Halide::Expr &x) {
    using namespace Halide;
    const Type type = x.type();
    const bool wide = type.bits() == 64;
    const auto constant = [&](double value) { return Internal::make_const(type, value); };
    const Expr magnitude = select(x < 0, -x, x);
    const Expr limit = constant(22);
    const Expr at = select(magnitude > limit, limit, magnitude); // beyond, it is 1
    const Expr far = 1 - 2 / (elementary::exp_within(at + at) + 1);
    const Expr square = x * x;
    Expr near;
    if (wide) {
        near = x + x * square *
                       (elementary::polynomial(square, {-9.64399179425052238628E-1, -9.92877231001918586564E1,
                                                        -1.61468768441708447952E3}) /
                        elementary::polynomial(
                            square, {1, 1.12811678491632931402E2, 2.23548839060100448583E3, 4.84406305325125486048E3}));
    } else {
        near = x + x * square *
                       elementary::polynomial(square, {-5.70498872745E-3, 2.06390887954E-2, -5.37397155531E-2,
                                                       1.33314422036E-1, -3.33332819422E-1});
    }
    return select(magnitude < constant(0.625), near, select(x < 0, -far, far));
}

} // namespace convtranspose

#endif // CONVTRANSPOSE_GENERATORS_ELEMENTARY_H_
