#include "tools/compare.h"

#include <algorithm>
#include <cmath>

#include "tools/text.h"

namespace convtranspose::tools {

namespace {

double unit_roundoff(convt_dtype dtype) {
    switch (dtype) {
    case CONVT_F16: return std::ldexp(1.0, -11);
    case CONVT_BF16: return std::ldexp(1.0, -8);
    case CONVT_F32: return std::ldexp(1.0, -24);
    case CONVT_F64: return std::ldexp(1.0, -53);
    case CONVT_U8:
    case CONVT_S8:
    case CONVT_S32: break; // exact
    }
    return 0.0;
}

double smallest_subnormal(convt_dtype dtype) {
    switch (dtype) {
    case CONVT_F16: return std::ldexp(1.0, -24);
    case CONVT_BF16: return std::ldexp(1.0, -133);
    case CONVT_F32: return std::ldexp(1.0, -149);
    case CONVT_F64: return std::ldexp(1.0, -1074);
    case CONVT_U8:
    case CONVT_S8:
    case CONVT_S32: break;
    }
    return 0.0;
}

std::string describe(const Tensor &t) { return std::string(convt_dtype_name(t.dtype)) + " " + to_string(t.shape); }

} // namespace

Comparison compare(const Tensor &y, const Tensor &expected, const Tensor *tolerance, double terms) {
    if (y.dtype != expected.dtype || y.shape != expected.shape) {
        return {false, "is " + describe(y) + ", expected " + describe(expected)};
    }
    if (tolerance && tolerance->shape != expected.shape) {
        return {false, "tolerance is " + describe(*tolerance) + ", expected output is " + describe(expected)};
    }

    const std::size_t count = expected.count();
    const double u = unit_roundoff(y.dtype), u_acc = std::min(u, unit_roundoff(CONVT_F32));
    double largest = 0.0;
    for (std::size_t i = 0; i < count && !tolerance; i++) {
        const double magnitude = std::fabs(expected.at(i));
        if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
    }
    const double everywhere = (terms + 4) * u_acc * largest + 4 * smallest_subnormal(y.dtype);

    std::size_t outside = 0, first_outside = 0;
    double worst = 0.0, allowed_there = 0.0;
    for (std::size_t i = 0; i < count; i++) {
        const double want = expected.at(i), got = y.at(i);
        if (!std::isfinite(want)) {
            if (got == want || (std::isnan(got) && std::isnan(want))) continue;
        } else {
            const double error = std::fabs(got - want);
            const double allowed = tolerance ? tolerance->at(i) : everywhere + 4 * u * std::fabs(want);
            if (error > worst) worst = error, allowed_there = allowed;
            if (error <= allowed) continue;
        }
        if (outside++ == 0) first_outside = i;
    }
    if (outside != 0) {
        return {false, std::to_string(outside) + " of " + std::to_string(count) + " elements outside, first at " +
                           std::to_string(first_outside) + ": " + format("%.9g", y.at(first_outside)) + ", expected " +
                           format("%.9g", expected.at(first_outside))};
    }
    return {true, "max error " + format("%.3g", worst) + (worst > 0 ? format(" of %.3g allowed", allowed_there) : "")};
}

} // namespace convtranspose::tools
