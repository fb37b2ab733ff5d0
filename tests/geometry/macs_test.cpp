// Multiply-adds of the definition: pairs of input and kernel element that land inside of the output.
#include <cstdint>

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "reference/random_problem.h"
#include "reference/reference.h"
#include "runtime/problem/geometry.h"

namespace convtranspose {
namespace {

double macs_of(const char *problem) { return count_macs(test::geometry_of(test::parse_problem(problem))); }

TEST(Macs, ByHand) {
    EXPECT_EQ(macs_of("f32 nchw n1 ic1 oc1 i5 k3"), 15);
    EXPECT_EQ(macs_of("f32 nchw n2 ic4 oc3 i5 k3"), 2 * 4 * 3 * 15);
    EXPECT_EQ(macs_of("f32 nchw n1 g4 ic8 oc12 i5 k3"), 8 * 3 * 15);
    EXPECT_EQ(macs_of("f32 nhwc n1 ic8 oc12 i5x2 k3x4"), 8 * 12 * 15 * 8);
    EXPECT_EQ(macs_of("f32 nchw i5 k3 p1_1"), 13); // one product cropped on either side
    EXPECT_EQ(macs_of("f32 nchw i5 k3 s2 p1_0"), 14);
    EXPECT_EQ(macs_of("f32 nchw i5 k3 os99"), 15);
    EXPECT_EQ(macs_of("f32 nchw i0 k3"), 0);
    EXPECT_EQ(macs_of("f32 nchw n0 i5 k3"), 0);
    EXPECT_EQ(macs_of("f32 nchw ic0 i5 k3"), 0);
    EXPECT_EQ(macs_of("f32 nchw oc0 i5 k3"), 0);
}

TEST(Macs, RandomProblems) {
    test::Random random(30);
    for (int i = 0; i < 500; ++i) {
        const Problem problem = test::random_problem(&random);
        SCOPED_TRACE(test::describe(problem));
        const Geometry geometry = test::geometry_of(problem);
        std::int64_t expected = geometry.batch * geometry.in_channels * geometry.out_channels_per_group();
        for (const AxisGeometry &axis : geometry.axes) {
            std::int64_t pairs = 0;
            for (std::int64_t in = 0; in < axis.in; ++in) {
                for (std::int64_t k = 0; k < axis.kernel; ++k) {
                    const std::int64_t o = in * axis.stride + k * axis.dilation - axis.pad_begin;
                    pairs += o >= 0 && o < axis.out;
                }
            }
            expected *= pairs;
        }
        ASSERT_EQ(count_macs(geometry), static_cast<double>(expected));
    }
}

// No loop runs over what is large here; the products exceed 2^63.
TEST(Macs, HugeExtents) {
    EXPECT_EQ(macs_of("f32 nchw i2147483647x268435456 k1x1"), 2147483647.0 * 268435456.0);
    EXPECT_EQ(macs_of("f32 nchw i2147483646 k2 p1_0"), 2 * 2147483646.0 - 1);
    EXPECT_EQ(macs_of("f32 nchw i2 k2147483646"), 2 * 2147483646.0);
    EXPECT_EQ(macs_of("f32 nchw oc65536 ic65536 i2147483647 k3 p1_1"), (3 * 2147483647.0 - 2) * 65536 * 65536);
    EXPECT_EQ(macs_of("f32 nchw n0 i1000000000 k1000000000"), 0);
}

} // namespace
} // namespace convtranspose
