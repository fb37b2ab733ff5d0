// Arithmetic on sizes, against its definitions.
#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

#include "runtime/base/division.h"

namespace convtranspose::test {
namespace {

TEST(Division, FindsTheNearestDivisors) {
    for (std::int64_t n = 1; n <= 60; ++n) {
        for (std::int64_t bound = -1; bound <= n + 2; ++bound) {
            std::int64_t from = n, up_to = 1;
            for (std::int64_t d = n; d >= 1; --d) {
                if (n % d == 0 && d >= bound) from = d;
            }
            for (std::int64_t d = 1; d <= n; ++d) {
                if (n % d == 0 && d <= bound) up_to = d;
            }
            EXPECT_EQ(divisor_from(n, bound), from) << n << " from " << bound;
            EXPECT_EQ(divisor_up_to(n, bound), up_to) << n << " up to " << bound;
        }
    }
}

// In as many steps as the square root of n.
TEST(Division, FindsDivisorsOfLargePrimes) {
    constexpr std::int64_t kPrime = (std::int64_t{1} << 31) - 1;
    EXPECT_EQ(divisor_from(kPrime, 2), kPrime);
    EXPECT_EQ(divisor_up_to(kPrime, kPrime - 1), 1);
    EXPECT_EQ(divisor_up_to(2 * kPrime, kPrime + 5), kPrime);
}

TEST(Division, RoundsDownAndUp) {
    for (std::int64_t a = -9; a <= 9; ++a) {
        for (std::int64_t b = 1; b <= 4; ++b) {
            EXPECT_LE(floor_div(a, b) * b, a);
            EXPECT_GT(floor_div(a, b) * b, a - b);
            EXPECT_GE(ceil_div(a, b) * b, a);
            EXPECT_LT(ceil_div(a, b) * b, a + b);
        }
    }
}

TEST(Division, StripsAreEvenAndEqual) {
    for (std::int64_t length = 1; length <= 40; ++length) {
        for (std::int64_t pairs = 0; pairs <= 12; ++pairs) {
            for (const std::int64_t unit : {1, 2}) {
                const EqualParts strips = even_strips(length, pairs, unit);
                const std::int64_t most = std::clamp<std::int64_t>(2 * pairs, 1, length);
                EXPECT_EQ(strips.length % unit, 0);
                EXPECT_GE(strips.length * most, length);
                EXPECT_LT((strips.length - unit) * most, length);
                EXPECT_GE(strips.length * strips.count, length);
                EXPECT_LT(strips.length * (strips.count - 1), length);
            }
        }
    }
    EXPECT_EQ(even_strips(9, 0).count, 1); // no pairs: one strip
    EXPECT_EQ(even_strips(7, 2).length, 2);
    EXPECT_EQ(even_strips(10, 2, 2).length, 4);
}

TEST(Division, ProductsAreCapped) {
    EXPECT_EQ(capped_product({}), 1);
    EXPECT_EQ(capped_product({3, 4, 5}), 60);
    EXPECT_EQ(capped_product({kHuge, 2}), kHuge);
    EXPECT_EQ(capped_product({INT64_MAX, INT64_MAX, INT64_MAX}), kHuge);
    EXPECT_EQ(capped_product({INT64_MAX, INT64_MAX, 0}), 0);
    EXPECT_EQ(capped_product({kHuge - 1, 1}), kHuge - 1);
}

} // namespace
} // namespace convtranspose::test
