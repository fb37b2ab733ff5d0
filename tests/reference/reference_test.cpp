// The tools of the other tests are tested too: a reference that accepts anything would hide every bug.
#include "reference/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "reference/layer.h"
#include "reference/random_problem.h"
#include "reference/tensor.h"

namespace convtranspose::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Float16, KnownValues) {
    EXPECT_EQ(to_f16(0.0), 0x0000);
    EXPECT_EQ(to_f16(-0.0), 0x8000);
    EXPECT_EQ(to_f16(1.0), 0x3c00);
    EXPECT_EQ(to_f16(-2.0), 0xc000);
    EXPECT_EQ(to_f16(65504.0), 0x7bff);
    EXPECT_EQ(to_f16(65519.0), 0x7bff);
    EXPECT_EQ(to_f16(65520.0), 0x7c00); // halfway to 2^16: rounds to even, which is infinity
    EXPECT_EQ(to_f16(1e300), 0x7c00);
    EXPECT_EQ(to_f16(-kInfinity), 0xfc00);
    EXPECT_EQ(to_f16(std::ldexp(1.0, -24)), 0x0001);
    EXPECT_EQ(to_f16(std::ldexp(1.0, -25)), 0x0000); // ties to even
    EXPECT_EQ(to_f16(std::ldexp(3.0, -25)), 0x0002);
    EXPECT_EQ(to_f16(1.0 + std::ldexp(1.0, -11)), 0x3c00);
    EXPECT_EQ(to_f16(1.0 + std::ldexp(3.0, -11)), 0x3c02);
    EXPECT_TRUE(std::isnan(from_f16(to_f16(std::nan("")))));
}

TEST(Bfloat16, KnownValues) {
    EXPECT_EQ(to_bf16(1.0), 0x3f80);
    EXPECT_EQ(to_bf16(-2.0), 0xc000);
    EXPECT_EQ(to_bf16(3.3895313892515355e38), 0x7f7f);
    EXPECT_EQ(to_bf16(3.4e38), 0x7f80);
    EXPECT_EQ(to_bf16(1.0 + std::ldexp(1.0, -8)), 0x3f80); // ties to even
    EXPECT_EQ(to_bf16(1.0 + std::ldexp(3.0, -8)), 0x3f82);
    EXPECT_EQ(to_bf16(std::ldexp(1.0, -133)), 0x0001);
    EXPECT_TRUE(std::isnan(from_bf16(to_bf16(std::nan("")))));
}

TEST(Float16, EveryPatternSurvives) {
    for (unsigned bits = 0; bits <= 0xffff; ++bits) {
        const std::uint16_t pattern = static_cast<std::uint16_t>(bits);
        const double f16 = from_f16(pattern), bf16 = from_bf16(pattern);
        ASSERT_TRUE(std::isnan(f16) || to_f16(f16) == pattern) << pattern;
        ASSERT_TRUE(std::isnan(bf16) || to_bf16(bf16) == pattern) << pattern;
    }
}

TEST(Bfloat16, IsTheUpperHalfOfAFloat) {
    for (unsigned bits = 0; bits <= 0xffff; bits += 7) {
        const double value = from_bf16(static_cast<std::uint16_t>(bits));
        if (std::isnan(value)) continue;
        float single = 0;
        store(CONVT_F32, &single, 0, value);
        std::uint32_t pattern = 0;
        std::memcpy(&pattern, &single, sizeof pattern);
        ASSERT_EQ(pattern, bits << 16);
    }
}

TEST(Random, RepeatsAndDiffersBySeed) {
    const Problem problem = parse_problem("f32 nchw n1 g1 ic2 oc2 i3x3 k2x2 bias");
    EXPECT_TRUE(draw(problem, 1).x == draw(problem, 1).x);
    EXPECT_TRUE(draw(problem, 1).x != draw(problem, 2).x);
    Random random(3);
    for (int i = 0; i < 1000; ++i) {
        const std::int64_t integer = random.integer(-3, 3);
        ASSERT_TRUE(integer >= -3 && integer <= 3);
        const double real = random.uniform(-1, 1);
        ASSERT_TRUE(real >= -1 && real < 1);
    }
}

TEST(Descriptor, RoundTrip) {
    for (const char *line : {
             "f32 nchw n1 g1 ic16 oc8 i5x5 k3x3 s2x2 p1x1_1x1 op1x1 d1x1 bias",
             "f16 nhwc n2 g4 ic8 oc12 i7 k4",
             "bf16 nchw n0 g1 ic3 oc2 i1x2x3 k1x1x2 os9x9x9 auto_SAME_UPPER v11",
             "f64 nhwc n1 g2 ic2 oc2 i4x4 k2x2 s3x1 p0x1_2x0 d2x5 v1 bias",
         }) {
        EXPECT_EQ(describe(parse_problem(line)), line);
    }
}

TEST(Descriptor, RoundTripOfRandomProblems) {
    Random random(11);
    for (int i = 0; i < 200; ++i) {
        const Problem problem = random_problem(&random), parsed = parse_problem(describe(problem));
        SCOPED_TRACE(describe(problem));
        EXPECT_EQ(describe(parsed), describe(problem));
        EXPECT_EQ(parsed.x_shape, problem.x_shape);
        EXPECT_EQ(parsed.w_shape, problem.w_shape);
        EXPECT_EQ(parsed.b_shape, problem.b_shape);
        EXPECT_EQ(geometry_of(parsed).y_shape, geometry_of(problem).y_shape);
    }
}

#if GTEST_HAS_EXCEPTIONS
TEST(Descriptor, RejectsWhatItDoesNotKnow) {
    for (const char *line :
         {"f32 nchw i3 k3 wat", "f32 nchw i3", "f32 nchw i3 k3 s", "f32 nchw i3 k3 p1", "f32 nchw i3 k3 s2y",
          "f32 nchw i3x3 k3", "f32 nchw i3 k3 g2 oc3", "f32 nchw i3 k3 n1x2"}) {
        EXPECT_THROW(parse_problem(line), std::invalid_argument) << line;
    }
}
#endif

// By hand: x = (1, 2), w = (1, 10, 100), stride 2:  1*(1, 10, 100) at 0  +  2*(1, 10, 100) at 2.
TEST(Reference, ByHand) {
    const Problem problem = parse_problem("f32 nchw n1 g1 ic1 oc1 i2 k3 s2 bias");
    Inputs inputs = draw(problem, 1);
    inputs.x.set(0, 1), inputs.x.set(1, 2);
    inputs.w.set(0, 1), inputs.w.set(1, 10), inputs.w.set(2, 100);
    inputs.b->set(0, 1000);
    const Expected expected = reference(problem, inputs);
    EXPECT_EQ(expected.shape, (Shape{1, 1, 5}));
    EXPECT_EQ(expected.value, (std::vector<double>{1001, 1010, 1102, 1020, 1200}));
    EXPECT_EQ(expected.tolerance, std::vector<double>(5, 0)); // integers
}

// By hand, channels last: two groups of one channel, the second with two outputs being the weights (3, 5), padding 1.
TEST(Reference, GroupsChannelsLastAndPads) {
    const Problem problem = parse_problem("f64 nhwc n1 g2 ic2 oc4 i2 k2 p1_0");
    Inputs inputs = draw(problem, 1);
    const std::vector<double> x = {1, 10, 2, 20};           // position, channel
    const std::vector<double> w = {1, 2, 3, 4, 5, 6, 7, 8}; // ic, m, k
    for (std::size_t i = 0; i < x.size(); ++i) inputs.x.set(static_cast<std::int64_t>(i), x[i]);
    for (std::size_t i = 0; i < w.size(); ++i) inputs.w.set(static_cast<std::int64_t>(i), w[i]);
    const Expected expected = reference(problem, inputs);
    EXPECT_EQ(expected.shape, (Shape{1, 2, 4}));
    EXPECT_EQ(expected.value, (std::vector<double>{1 * 2 + 2 * 1, 1 * 4 + 2 * 3, 10 * 6 + 20 * 5, 10 * 8 + 20 * 7, //
                                                   2 * 2, 2 * 4, 20 * 6, 20 * 8}));
}

// By hand: dilation and pads of any size, of which the middle of the kernel alone meets x, or every element one of y.
TEST(Reference, DilationsOfAnySize) {
    for (const int bits : {5, 31, 32, 33, 61}) {
        const std::int64_t far = std::int64_t{1} << bits;
        Problem problem = parse_problem("f32 nchw n1 g1 ic1 oc1 i4 k3");
        problem.attributes.dilations = Shape{far};
        problem.attributes.pads = Shape{far, far};
        Inputs inputs = draw(problem, 1);
        for (std::int64_t i = 0; i < 4; ++i) inputs.x.set(i, static_cast<double>(i + 1));
        inputs.w.set(0, 10), inputs.w.set(1, 1), inputs.w.set(2, 100);
        const Expected expected = reference(problem, inputs);
        EXPECT_EQ(expected.shape, (Shape{1, 1, 4}));
        EXPECT_EQ(expected.value, (std::vector<double>{1, 2, 3, 4})) << bits;

        // A stride that is as large: input 1 by element 0 and input 0 by element 2 meet at the first position, none at the next.
        problem.attributes.strides = Shape{far / 4};
        problem.attributes.dilations = Shape{far / 8};
        problem.attributes.pads = Shape{far / 4, far / 2 + far / 4 - 1};
        EXPECT_EQ(reference(problem, inputs).value, (std::vector<double>{2 * 10 + 1 * 100, 0})) << bits;
    }
}

TEST(Layer, SizesThatLeave64BitsAreRefused) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    Problem problem = parse_problem("f32 nchw n1 g1 ic1 oc1 i3 k3 p0_0 s1 d1");
    Layer layer;
    std::string reason;
    EXPECT_TRUE(derive(problem, &layer, &reason)) << reason;
    for (Ints *list : {&problem.attributes.strides, &problem.attributes.dilations}) {
        for (const std::int64_t value : {kMost, kMost / 2 + 1, std::int64_t{0}, std::int64_t{-1}}) {
            const Ints before = *list;
            *list = Shape{value};
            EXPECT_FALSE(derive(problem, &layer, &reason)) << value;
            *list = before;
        }
    }
    problem.attributes.pads = Shape{kMost, kMost};
    EXPECT_FALSE(derive(problem, &layer, &reason));
    problem.attributes.pads = std::nullopt;
    problem.attributes.output_shape = Shape{std::numeric_limits<std::int64_t>::min()};
    EXPECT_FALSE(derive(problem, &layer, &reason));
}

TEST(Reference, ComparisonNoticesWhatIsWrong) {
    for (const convt_dtype dtype : {CONVT_F16, CONVT_BF16, CONVT_F32, CONVT_F64}) {
        SCOPED_TRACE(convt_dtype_name(dtype));
        Problem problem = parse_problem("f32 nchw n1 g1 ic3 oc2 i4x4 k3x3 s2x2 bias");
        problem.dtype = dtype;
        const Expected expected = reference(problem, draw(problem, 5));
        Tensor y(dtype, expected.shape);
        EXPECT_FALSE(agrees(y, expected)) << "nothing was written";
        for (std::int64_t i = 0; i < y.size(); ++i) {
            y.set(i, static_cast<double>(expected.value[static_cast<std::size_t>(i)]));
        }
        EXPECT_TRUE(agrees(y, expected));

        const double right = y.get(7);
        for (const double wrong : {right * 1.04 + 0.01, kInfinity, std::nan(""), 0.0}) {
            y.set(7, wrong);
            EXPECT_FALSE(agrees(y, expected)) << wrong << " instead of " << right;
        }
        y.set(7, right);
        EXPECT_TRUE(agrees(y, expected));

        Tensor reshaped(dtype, {y.size()});
        EXPECT_FALSE(agrees(reshaped, expected));
    }
}

TEST(Reference, InfinitiesAndNansMustBeInPlace) {
    const Problem problem = parse_problem("f32 nchw n1 g1 ic1 oc1 i3 k1");
    Inputs inputs = draw(problem, 5);
    inputs.w.set(0, 1);
    inputs.x.set(0, kInfinity), inputs.x.set(1, std::nan("")), inputs.x.set(2, 3);
    const Expected expected = reference(problem, inputs);
    Tensor y = inputs.x;
    EXPECT_TRUE(agrees(y, expected));
    y.set(0, -kInfinity);
    EXPECT_FALSE(agrees(y, expected));
    y.set(0, std::nan(""));
    EXPECT_FALSE(agrees(y, expected));
    y = inputs.x;
    y.set(1, kInfinity);
    EXPECT_FALSE(agrees(y, expected));
    y = inputs.x;
    y.set(2, std::nan(""));
    EXPECT_FALSE(agrees(y, expected));
}

TEST(Reference, ToleranceIsNearTheRoundingOfTheType) {
    const Problem f32 = parse_problem("f32 nchw n1 g1 ic4 oc1 i3 k3"),
                  f64 = parse_problem("f64 nchw n1 g1 ic4 oc1 i3 k3");
    const Problem bf16 = parse_problem("bf16 nchw n1 g1 ic4 oc1 i3 k3");
    const auto widest = [](const Problem &problem) {
        double most = 0;
        for (const double tolerance : reference(problem, draw(problem, 9)).tolerance) most = std::max(most, tolerance);
        return most;
    };
    EXPECT_LT(widest(f32), 1e-4L);
    EXPECT_GT(widest(f32), 1e-8L);
    EXPECT_LT(widest(f64), 1e-13L);
    EXPECT_LT(widest(bf16), 0.2L);
    EXPECT_GT(widest(bf16), 1e-3L);
}

} // namespace
} // namespace convtranspose::test
