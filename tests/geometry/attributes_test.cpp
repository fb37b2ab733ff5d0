// From attributes to output extents and pads: one case per rule, with the numbers worked out by hand.
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "reference/layer.h"
#include "reference/random_problem.h"
#include "runtime/problem/geometry.h"

namespace convtranspose {
namespace {

struct Case {
    const char *name;
    const char *problem; // axes are independent of each other: most cases have one
    Shape out, pad_begin, pad_end;
};

void PrintTo(const Case &c, std::ostream *stream) { *stream << c.problem; }

const std::vector<Case> kCases = {
    // natural = stride * (in - 1) + output_padding + (kernel - 1) * dilation + 1
    {"Defaults", "f32 nchw i3 k3", {5}, {0}, {0}},
    {"Stride", "f32 nchw i3 k3 s2", {7}, {0}, {0}},
    {"Dilation", "f32 nchw i3 k3 d4", {11}, {0}, {0}},
    {"StrideAboveKernel", "f32 nchw i3 k1 s4", {9}, {0}, {0}},
    {"OutputPadding", "f32 nchw i3 k3 s2 op1", {8}, {0}, {0}},
    {"OutputPaddingBelowDilationOnly", "f32 nchw i3 k2 s1 d3 op2", {8}, {0}, {0}},
    {"Pads", "f32 nchw i3 k3 s2 p1_1", {5}, {1}, {1}},
    {"PadsAsymmetric", "f32 nchw i3 k3 s2 p2_0", {5}, {2}, {0}},
    {"PadsAboveKernel", "f32 nchw i9 k2 s2 p7_8", {3}, {7}, {8}},
    {"PadsWithOutputPadding", "f32 nchw i3 k3 s2 p1_1 op1", {6}, {1}, {1}},
    {"PadsWithAutoPadNotset", "f32 nchw i3 k3 s2 p1_1 auto_NOTSET", {5}, {1}, {1}},
    {"EmptyInput", "f32 nchw i0 k3", {2}, {0}, {0}},
    {"EmptyInputStride", "f32 nchw i0 k5 s3", {2}, {0}, {0}},
    {"Valid", "f32 nchw i3 k3 s2 auto_VALID", {7}, {0}, {0}},
    // SAME: out = in * stride, the odd one at the end for UPPER, at the beginning for LOWER
    {"SameUpperEven", "f32 nchw i4 k4 s2 auto_SAME_UPPER", {8}, {1}, {1}},
    {"SameUpperOdd", "f32 nchw i4 k3 s2 auto_SAME_UPPER", {8}, {0}, {1}},
    {"SameLowerOdd", "f32 nchw i4 k3 s2 auto_SAME_LOWER", {8}, {1}, {0}},
    {"SameUpperOddVersion1", "f32 nchw i4 k3 s2 auto_SAME_UPPER v1", {8}, {0}, {1}},
    {"SameLowerOddVersion11", "f32 nchw i4 k3 s2 auto_SAME_LOWER v11", {8}, {1}, {0}},
    {"SameDilation", "f32 nchw i4 k3 s1 d2 auto_SAME_UPPER", {4}, {2}, {2}},
    {"SameOutputPaddingOnlyAddsPadding", "f32 nchw i4 k5 s2 op1 auto_SAME_LOWER", {8}, {2}, {2}},
    {"SameKernelBelowStrideKeepsNatural", "f32 nchw i4 k1 s3 auto_SAME_UPPER", {10}, {0}, {0}},
    // output_shape: what natural exceeds it by is padding, the odd one at the beginning unless SAME_UPPER
    {"OutputShapeExact", "f32 nchw i4 k3 s2 os9", {9}, {0}, {0}},
    {"OutputShapeEven", "f32 nchw i4 k3 s2 os7", {7}, {1}, {1}},
    {"OutputShapeOdd", "f32 nchw i4 k3 s2 os8", {8}, {1}, {0}},
    {"OutputShapeOddVersion1", "f32 nchw i4 k3 s2 os8 v1", {8}, {1}, {0}},
    {"OutputShapeOddUpper", "f32 nchw i4 k3 s2 os8 auto_SAME_UPPER", {8}, {0}, {1}},
    {"OutputShapeOddLower", "f32 nchw i4 k3 s2 os8 auto_SAME_LOWER", {8}, {1}, {0}},
    {"OutputShapeOddValid", "f32 nchw i4 k3 s2 os8 auto_VALID", {8}, {1}, {0}},
    {"OutputShapeReplacesPads", "f32 nchw i4 k3 s2 os7 p0_2", {7}, {1}, {1}},
    {"OutputShapeBelowInput", "f32 nchw i6 k3 os3", {3}, {3}, {2}},
    {"OutputShapeExcessAtEnd", "f32 nchw i4 k3 s2 os12", {12}, {0}, {-3}},
    {"OutputShapeExcessAtEndUpper", "f32 nchw i4 k3 s2 os12 auto_SAME_UPPER", {12}, {0}, {-3}},
    {"OutputShapeWithOutputPadding", "f32 nchw i4 k3 s2 op1 os8", {8}, {1}, {1}},
    {"OutputShapeOfEmptyInput", "f32 nchw i0 k2 s5 os3", {3}, {0}, {-6}},
    {"OutputShapeWithBatchAndChannels", "f32 nchw i4 k3 s2 os1x1x8", {8}, {1}, {0}},
    {"OutputShapeBatchAndChannelsAreIgnored", "f32 nchw i4 k3 s2 os7x5x8", {8}, {1}, {0}},
    // several axes
    {"AxesApart", "f32 nchw i3x4 k3x2 s2x3 p1x0_0x1 op0x1 d1x2", {6, 12}, {1, 0}, {0, 1}},
    {"AxesApartChannelsLast", "f32 nhwc i3x4 k3x2 s2x3 p1x0_0x1 op0x1 d1x2", {6, 12}, {1, 0}, {0, 1}},
    {"ThreeAxes", "f32 nchw i3x4x5 k3x3x3 s1x2x3 auto_SAME_UPPER", {3, 8, 15}, {1, 0, 0}, {1, 1, 0}},
    {"FiveAxes", "f32 nhwc i1x2x3x4x5 k5x4x3x2x1", {5, 5, 5, 5, 5}, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}},
};

class Attributes : public testing::TestWithParam<Case> {};

TEST_P(Attributes, Resolve) {
    const Case &c = GetParam();
    const Problem problem = test::parse_problem(c.problem);
    Geometry geometry;
    const Status status = resolve(detail::view(problem), &geometry);
    ASSERT_TRUE(status) << status.message();
    Shape out, pad_begin, pad_end;
    for (const AxisGeometry &axis : geometry.axes) {
        out.push_back(axis.out);
        pad_begin.push_back(axis.pad_begin);
        pad_end.push_back(axis.pad_end());
    }
    EXPECT_EQ(out, c.out);
    EXPECT_EQ(pad_begin, c.pad_begin);
    EXPECT_EQ(pad_end, c.pad_end);

    // The tests' own reading, which every y is compared by.
    Shape derived_out, derived_pad_begin;
    for (const test::Axis &axis : test::layer_of(problem).axes) {
        derived_out.push_back(axis.out);
        derived_pad_begin.push_back(axis.pad_begin);
    }
    EXPECT_EQ(derived_out, c.out);
    EXPECT_EQ(derived_pad_begin, c.pad_begin);
}

INSTANTIATE_TEST_SUITE_P(Geometry, Attributes, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case> &c) { return std::string(c.param.name); });

// Whatever the attributes are, what the library makes of them is what the tests' own reading does, up to the library's limits.
TEST(Resolve, AgreesWithTheReferenceOnAnyAttributes) {
    test::Random random(1);
    int valid = 0;
    for (int i = 0; i < 20000; ++i) {
        const Problem problem = test::any_problem(&random);
        SCOPED_TRACE(test::describe(problem));
        Geometry geometry;
        const Status status = resolve(detail::view(problem), &geometry);
        test::Layer layer;
        std::string reason;
        if (!test::derive(problem, &layer, &reason)) {
            ASSERT_FALSE(status) << reason;
            continue;
        }
        if (status.code() == CONVT_OVERFLOW) continue; // the limits of errors_test.cpp
        ASSERT_TRUE(status) << status.message();
        ASSERT_EQ(geometry.y_shape, layer.y_shape);
        for (std::size_t axis = 0; axis < layer.axes.size(); ++axis) {
            ASSERT_EQ(geometry.axes[axis].out, layer.axes[axis].out);
            ASSERT_EQ(geometry.axes[axis].pad_begin, layer.axes[axis].pad_begin);
        }
        ++valid;
    }
    EXPECT_GT(valid, 4000);
}

TEST(Resolve, FillsEverything) {
    const Problem problem = test::parse_problem("bf16 nchw n5 g2 ic6 oc8 i3x4 k3x2 s6x3 d4x2 op5x0 bias");
    Geometry geometry;
    const Status status = resolve(detail::view(problem), &geometry);
    ASSERT_TRUE(status) << status.message();
    EXPECT_EQ(geometry.dtype, CONVT_BF16);
    EXPECT_EQ(geometry.layout, CONVT_CHANNELS_FIRST);
    EXPECT_TRUE(geometry.has_bias);
    EXPECT_EQ(geometry.batch, 5);
    EXPECT_EQ(geometry.in_channels, 6);
    EXPECT_EQ(geometry.out_channels, 8);
    EXPECT_EQ(geometry.group, 2);
    EXPECT_EQ(geometry.in_channels_per_group(), 3);
    EXPECT_EQ(geometry.out_channels_per_group(), 4);
    EXPECT_EQ(geometry.x_shape, (Shape{5, 6, 3, 4}));
    EXPECT_EQ(geometry.w_shape, (Shape{6, 4, 3, 2}));
    EXPECT_EQ(geometry.y_shape, (Shape{5, 8, 26, 12}));
    const AxisGeometry &axis = geometry.axes.at(0);
    EXPECT_EQ(axis.in, 3);
    EXPECT_EQ(axis.kernel, 3);
    EXPECT_EQ(axis.stride, 6);
    EXPECT_EQ(axis.dilation, 4);
    EXPECT_EQ(axis.output_padding, 5);
    EXPECT_EQ(axis.kernel_step(), -3);
    EXPECT_EQ(axis.offset_step(), 2);
}

TEST(Resolve, ChannelsLast) {
    const Problem problem = test::parse_problem("f16 nhwc n5 g2 ic6 oc8 i3x4 k3x2");
    Geometry geometry;
    ASSERT_TRUE(resolve(detail::view(problem), &geometry));
    EXPECT_EQ(geometry.layout, CONVT_CHANNELS_LAST);
    EXPECT_FALSE(geometry.has_bias);
    EXPECT_EQ(geometry.in_channels, 6);
    EXPECT_EQ(geometry.out_channels, 8);
    EXPECT_EQ(geometry.x_shape, (Shape{5, 3, 4, 6}));
    EXPECT_EQ(geometry.w_shape, (Shape{6, 4, 3, 2}));
    EXPECT_EQ(geometry.y_shape, (Shape{5, 5, 5, 8}));
}

TEST(Resolve, KernelShapeThatMatchesChangesNothing) {
    Problem problem = test::parse_problem("f32 nchw i3x4 k3x2");
    problem.attributes.kernel_shape = Shape{3, 2};
    Geometry geometry;
    ASSERT_TRUE(resolve(detail::view(problem), &geometry));
    EXPECT_EQ(geometry.y_shape, (Shape{1, 1, 5, 5}));
}

TEST(Resolve, EmptyOutputShapeIsNotGiven) {
    Problem problem = test::parse_problem("f32 nchw i3 k3 p1_1");
    problem.attributes.output_shape = Shape{};
    Geometry geometry;
    ASSERT_TRUE(resolve(detail::view(problem), &geometry));
    EXPECT_EQ(geometry.y_shape, (Shape{1, 1, 3}));
}

TEST(Resolve, EmptyBatchAndChannels) {
    Geometry geometry;
    ASSERT_TRUE(resolve(detail::view(test::parse_problem("f32 nchw n0 ic0 oc0 i3 k3 bias")), &geometry));
    EXPECT_EQ(geometry.y_shape, (Shape{0, 0, 5}));
    ASSERT_TRUE(resolve(detail::view(test::parse_problem("f32 nchw n1 g3 ic0 oc6 i3 k3")), &geometry));
    EXPECT_EQ(geometry.y_shape, (Shape{1, 6, 5}));
}

// Sizes that only just fit are fine: nothing is computed with them that overflows.
TEST(Resolve, LargestSizes) {
    Problem problem = test::parse_problem("f16 nchw i2147483647 k1");
    Geometry geometry;
    Status status = resolve(detail::view(problem), &geometry);
    ASSERT_TRUE(status) << status.message();
    EXPECT_EQ(geometry.axes[0].out, 2147483647);

    problem = test::parse_problem("f32 nchw i1 k1 s2305843009213693951 d2305843009213693951"); // 2^61 - 1
    status = resolve(detail::view(problem), &geometry);
    ASSERT_TRUE(status) << status.message();
    EXPECT_EQ(geometry.axes[0].out, 1);

    // A natural size of 2^60 + 1, of which 7 is left.
    problem = test::parse_problem("f32 nchw i2 k1 s1152921504606846976 p1152921504606846970_0");
    status = resolve(detail::view(problem), &geometry);
    ASSERT_TRUE(status) << status.message();
    EXPECT_EQ(geometry.axes[0].out, 7);
}

} // namespace
} // namespace convtranspose
