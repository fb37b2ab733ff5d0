// This is arithmetic on sizes: division that rounds down or up, by a positive divisor, and products that do not overflow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

namespace convtranspose {

inline std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
// Returns what floor_div() leaves, 0 to b - 1.
inline std::int64_t floor_mod(std::int64_t a, std::int64_t b) { return a - floor_div(a, b) * b; }
inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return -floor_div(-a, b); }
// Returns a number as a double, for estimates.
template<typename Integer>
double real(Integer number) {
    return static_cast<double>(number);
}
// Returns ceil_div() as a double.
inline double parts_of(std::int64_t a, std::int64_t b) { return real(ceil_div(a, b)); }

// Kernels index a tensor with 32 bits, gaps between its elements included.
constexpr std::int64_t kMostElements = (std::int64_t{1} << 31) - 1;

// Returns the product of sizes that are not negative, or kHuge, which no memory holds, if the product is at least that. The sum
// of two such products does not overflow.
constexpr std::int64_t kHuge = std::int64_t{1} << 60;
inline std::int64_t capped_product(std::initializer_list<std::int64_t> sizes) {
    std::int64_t product = 1;
    for (const std::int64_t size : sizes) {
        if (size == 0) return 0;
        if (product < kHuge && (__builtin_mul_overflow(product, size, &product) || product > kHuge)) product = kHuge;
    }
    return product;
}

// Returns the least divisor of n, a positive number, that is at least `least`; n if none is.
inline std::int64_t divisor_from(std::int64_t n, std::int64_t least) {
    std::int64_t found = n;
    for (std::int64_t d = 1; d <= n / d; d++) {
        if (n % d != 0) continue;
        if (d >= least) return d;
        if (n / d >= least) found = n / d;
    }
    return found;
}
// Returns the greatest divisor of n, a positive number, that is at most `most`; 1 if none is.
inline std::int64_t divisor_up_to(std::int64_t n, std::int64_t most) {
    return most >= n ? n : most < 1 ? 1 : n / divisor_from(n, ceil_div(n, most));
}

// Equal parts of a length that is positive, but for the last, which may be shorter.
struct EqualParts {
    std::int64_t length, count;
};

// Cuts a length into strips, twice `pairs` of them, or fewer if lengths are rounded up, which they are to multiples of a unit. An
// even number suits two threads; it must not depend on how many there are, as other strips may round differently.
inline EqualParts even_strips(std::int64_t length, std::int64_t pairs, std::int64_t unit = 1) {
    const std::int64_t least = ceil_div(length, std::clamp<std::int64_t>(2 * pairs, 1, length)),
                       strip = ceil_div(least, unit) * unit;
    return {strip, ceil_div(length, strip)};
}

} // namespace convtranspose
