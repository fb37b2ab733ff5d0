// Every rule, broken once: the code, and a message that names the value and the rule.
#include <cstdint>
#include <cstring>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "runtime/problem/geometry.h"

namespace convtranspose {
namespace {

// All cases start from this valid problem: x (1, 4, 5, 6), w (4, 3, 3, 2).
const char *const kValid = "f32 nchw n1 g1 ic4 oc3 i5x6 k3x2 s2x2";

struct Case {
    const char *name;
    std::function<void(Problem *)> edit;
    convt_status code;
    std::string message;
};

void PrintTo(const Case &c, std::ostream *stream) { *stream << c.message; }

const std::int64_t kHuge = std::int64_t{1} << 62;
const std::int64_t kMost = 9223372036854775807;

const std::vector<Case> kCases = {
    // types and versions
    {"Opset", [](Problem *p) { p->opset = 0; }, CONVT_INVALID_ARGUMENT, "opset = 0 must be at least 1"},
    {"Dtype", [](Problem *p) { p->dtype = static_cast<convt_dtype>(7); }, CONVT_INVALID_ARGUMENT,
     "dtype = s32 is not one of f16, bf16, f32, f64, u8, s8"},
    {"DtypeZero", [](Problem *p) { p->dtype = static_cast<convt_dtype>(0); }, CONVT_INVALID_ARGUMENT,
     "dtype = 0 is not one of f16, bf16, f32, f64, u8, s8"},
    // shapes
    {"XRank",
     [](Problem *p) {
         p->x_shape = {4, 4};
     },
     CONVT_INVALID_ARGUMENT, "x_shape has 2 elements, needs at least 3 (N, C and a spatial axis)"},
    {"XRankZero", [](Problem *p) { p->x_shape = {}; }, CONVT_INVALID_ARGUMENT,
     "x_shape has 0 elements, needs at least 3 (N, C and a spatial axis)"},
    {"WRank",
     [](Problem *p) {
         p->w_shape = {4, 3, 3};
     },
     CONVT_INVALID_ARGUMENT, "w_shape has 3 elements, needs 4 (the rank of x)"},
    {"XNegative",
     [](Problem *p) {
         p->x_shape = {1, 4, -5, 6};
     },
     CONVT_INVALID_ARGUMENT, "x_shape[2] = -5 must not be negative"},
    {"BatchNegative",
     [](Problem *p) {
         p->x_shape = {-1, 4, 5, 6};
     },
     CONVT_INVALID_ARGUMENT, "x_shape[0] = -1 must not be negative"},
    {"WNegative",
     [](Problem *p) {
         p->w_shape = {4, -3, 3, 2};
     },
     CONVT_INVALID_ARGUMENT, "w_shape[1] = -3 must not be negative"},
    {"KernelZero",
     [](Problem *p) {
         p->w_shape = {4, 3, 3, 0};
     },
     CONVT_INVALID_ARGUMENT, "w_shape[3] = 0 (kernel extent) must be positive"},
    // channels
    {"GroupZero", [](Problem *p) { p->attributes.group = 0; }, CONVT_INVALID_ARGUMENT, "group = 0 must be positive"},
    {"GroupNegative", [](Problem *p) { p->attributes.group = -2; }, CONVT_INVALID_ARGUMENT,
     "group = -2 must be positive"},
    {"GroupDivides", [](Problem *p) { p->attributes.group = 3; }, CONVT_INVALID_ARGUMENT,
     "x_shape[1] = 4 (input channels) is not divisible by group = 3"},
    {"GroupDividesChannelsLast",
     [](Problem *p) {
         p->layout = CONVT_CHANNELS_LAST;
         p->x_shape = {1, 5, 6, 4};
         p->attributes.group = 3;
     },
     CONVT_INVALID_ARGUMENT, "x_shape[3] = 4 (input channels) is not divisible by group = 3"},
    {"WChannels",
     [](Problem *p) {
         p->w_shape = {5, 3, 3, 2};
     },
     CONVT_INVALID_ARGUMENT, "w_shape[0] = 5 does not match x_shape[1] = 4 (input channels)"},
    {"WChannelsChannelsLast", [](Problem *p) { p->layout = CONVT_CHANNELS_LAST; }, CONVT_INVALID_ARGUMENT,
     "w_shape[0] = 4 does not match x_shape[3] = 6 (input channels)"},
    {"BiasSize", [](Problem *p) { p->b_shape = Shape{4}; }, CONVT_INVALID_ARGUMENT,
     "b_shape = (4) must be (3), the output channels w_shape[1] * group"},
    {"BiasRank",
     [](Problem *p) {
         p->b_shape = Shape{3, 1};
     },
     CONVT_INVALID_ARGUMENT, "b_shape = (3, 1) must be (3), the output channels w_shape[1] * group"},
    {"BiasScalar", [](Problem *p) { p->b_shape = Shape{}; }, CONVT_INVALID_ARGUMENT,
     "b_shape = () must be (3), the output channels w_shape[1] * group"},
    // lists
    {"KernelShapeSize", [](Problem *p) { p->attributes.kernel_shape = Shape{3}; }, CONVT_INVALID_ARGUMENT,
     "kernel_shape has 1 elements, needs 2 (one per spatial axis)"},
    {"KernelShapeValue",
     [](Problem *p) {
         p->attributes.kernel_shape = Shape{3, 5};
     },
     CONVT_INVALID_ARGUMENT, "kernel_shape[1] = 5 does not match w_shape[3] = 2"},
    {"StridesSize", [](Problem *p) { p->attributes.strides = Shape{2}; }, CONVT_INVALID_ARGUMENT,
     "strides has 1 elements, needs 2 (one per spatial axis)"},
    {"StridesEmpty", [](Problem *p) { p->attributes.strides = Shape{}; }, CONVT_INVALID_ARGUMENT,
     "strides has 0 elements, needs 2 (one per spatial axis)"},
    {"StridesZero",
     [](Problem *p) {
         p->attributes.strides = Shape{2, 0};
     },
     CONVT_INVALID_ARGUMENT, "strides[1] = 0 must be positive"},
    {"DilationsSize",
     [](Problem *p) {
         p->attributes.dilations = Shape{2, 1, 1};
     },
     CONVT_INVALID_ARGUMENT, "dilations has 3 elements, needs 2 (one per spatial axis)"},
    {"DilationsNegative",
     [](Problem *p) {
         p->attributes.dilations = Shape{-1, 1};
     },
     CONVT_INVALID_ARGUMENT, "dilations[0] = -1 must be positive"},
    {"OutputPaddingSize", [](Problem *p) { p->attributes.output_padding = Shape{1}; }, CONVT_INVALID_ARGUMENT,
     "output_padding has 1 elements, needs 2 (one per spatial axis)"},
    {"OutputPaddingNegative",
     [](Problem *p) {
         p->attributes.output_padding = Shape{-1, 0};
     },
     CONVT_INVALID_ARGUMENT, "output_padding[0] = -1 must not be negative"},
    {"OutputPaddingLimit",
     [](Problem *p) {
         p->attributes.output_padding = Shape{1, 2};
     },
     CONVT_INVALID_ARGUMENT, "output_padding[1] = 2 must be less than max(stride, dilation) = 2"},
    {"OutputPaddingLimitVersion1",
     [](Problem *p) {
         p->opset = 1;
         p->attributes.output_padding = Shape{2, 0};
     },
     CONVT_INVALID_ARGUMENT, "output_padding[0] = 2 must be less than max(stride, dilation) = 2"},
    {"OutputPaddingLimitDilation",
     [](Problem *p) {
         p->attributes.dilations = Shape{1, 5};
         p->attributes.output_padding = Shape{0, 6};
     },
     CONVT_INVALID_ARGUMENT, "output_padding[1] = 6 must be less than max(stride, dilation) = 5"},
    {"PadsSize",
     [](Problem *p) {
         p->attributes.pads = Shape{1, 1, 1};
     },
     CONVT_INVALID_ARGUMENT, "pads has 3 elements, needs 4 (two per spatial axis)"},
    {"PadsNegative",
     [](Problem *p) {
         p->attributes.pads = Shape{0, 0, 0, -1};
     },
     CONVT_INVALID_ARGUMENT, "pads[3] = -1 must not be negative"},
    {"AutoPad", [](Problem *p) { p->attributes.auto_pad = "same_upper"; }, CONVT_INVALID_ARGUMENT,
     "auto_pad = \"same_upper\" is not one of NOTSET, SAME_UPPER, SAME_LOWER, VALID"},
    {"AutoPadEmpty", [](Problem *p) { p->attributes.auto_pad = ""; }, CONVT_INVALID_ARGUMENT,
     "auto_pad = \"\" is not one of NOTSET, SAME_UPPER, SAME_LOWER, VALID"},
    {"PadsWithAutoPad",
     [](Problem *p) {
         p->attributes.pads = Shape{0, 0, 0, 0};
         p->attributes.auto_pad = "VALID";
     },
     CONVT_INVALID_ARGUMENT, "pads cannot be given together with auto_pad = \"VALID\""},
    {"OutputShapeSize", [](Problem *p) { p->attributes.output_shape = Shape{8}; }, CONVT_INVALID_ARGUMENT,
     "output_shape has 1 elements, needs 2 (one per spatial axis) or 4 (N and C in front)"},
    {"OutputShapeZero",
     [](Problem *p) {
         p->attributes.output_shape = Shape{0, 6};
     },
     CONVT_INVALID_ARGUMENT, "output_shape[0] = 0 must be positive"},
    {"OutputShapeNegativeWithBatchAndChannels",
     [](Problem *p) {
         p->attributes.output_shape = Shape{1, 3, 8, -6};
     },
     CONVT_INVALID_ARGUMENT, "output_shape[3] = -6 must be positive"},
    // sizes
    {"OutputZero",
     [](Problem *p) {
         p->attributes.pads = Shape{6, 0, 5, 0};
     },
     CONVT_INVALID_ARGUMENT,
     "the output size of spatial axis 0 is 0 = 11 - 6 - 5 (natural size less pads), must be positive"},
    {"OutputNegative",
     [](Problem *p) {
         p->attributes.pads = Shape{0, 9, 0, 9};
     },
     CONVT_INVALID_ARGUMENT,
     "the output size of spatial axis 1 is -6 = 12 - 9 - 9 (natural size less pads), must be positive"},
    {"OutputOfEmptyInput",
     [](Problem *p) {
         p->x_shape = {1, 4, 5, 0};
         p->attributes.strides = Shape{1, 4};
     },
     CONVT_INVALID_ARGUMENT,
     "the output size of spatial axis 1 is -2 = -2 - 0 - 0 (natural size less pads), must be positive"},
    {"OutputOfEmptyInputSame",
     [](Problem *p) {
         p->x_shape = {1, 4, 0, 6};
         p->attributes.auto_pad = "SAME_UPPER";
     },
     CONVT_INVALID_ARGUMENT,
     "the output size of spatial axis 0 is 0 = 1 - 0 - 1 (natural size less pads), must be positive"},
    // what does not fit
    {"XExtent",
     [](Problem *p) {
         p->x_shape = {1, 4, 2147483648, 6};
     },
     CONVT_OVERFLOW, "x_shape[2] = 2147483648 exceeds 2147483647"},
    {"WExtent",
     [](Problem *p) {
         p->w_shape = {4, 3, 3, kHuge};
     },
     CONVT_OVERFLOW, "w_shape[3] = 4611686018427387904 exceeds 2147483647"},
    {"XBytes",
     [](Problem *p) {
         p->x_shape = {2147483647, 4, 2147483647, 1};
     },
     CONVT_OVERFLOW, "x of shape (2147483647, 4, 2147483647, 1) and type f32 does not fit in 2^63 - 1 bytes"},
    {"WBytes",
     [](Problem *p) {
         p->w_shape = {4, 2147483647, 2147483647, 1};
     },
     CONVT_OVERFLOW, "w of shape (4, 2147483647, 2147483647, 1) and type f32 does not fit in 2^63 - 1 bytes"},
    {"YBytes",
     [](Problem *p) {
         p->attributes.output_shape = Shape{2147483647, 2147483647};
     },
     CONVT_OVERFLOW, "y of shape (1, 3, 2147483647, 2147483647) and type f32 does not fit in 2^63 - 1 bytes"},
    {"OutputChannels",
     [](Problem *p) {
         p->x_shape = {1, 65536, 1, 1};
         p->w_shape = {65536, 65536, 1, 1};
         p->attributes.group = 65536;
     },
     CONVT_OVERFLOW, "output channels w_shape[1] * group = 65536 * 65536 exceed 2147483647"},
    {"OutputChannelsOfNoInputChannels",
     [](Problem *p) {
         p->x_shape = {1, 0, 5, 6};
         p->w_shape = {0, 3, 3, 2};
         p->attributes.group = kHuge;
     },
     CONVT_OVERFLOW, "output channels w_shape[1] * group = 3 * 4611686018427387904 exceed 2147483647"},
    {"OutputExtent",
     [](Problem *p) {
         p->attributes.strides = Shape{2, 1000000000};
     },
     CONVT_OVERFLOW, "the output size of spatial axis 1 is 5000000002, exceeds 2147483647"},
    {"OutputShapeExtent",
     [](Problem *p) {
         p->attributes.output_shape = Shape{9, 2147483648};
     },
     CONVT_OVERFLOW, "output_shape[1] = 2147483648 exceeds 2147483647"},
    {"StridesValue",
     [](Problem *p) {
         p->attributes.strides = Shape{kHuge, 1};
     },
     CONVT_OVERFLOW, "strides[0] = 4611686018427387904 does not fit: must be less than 2^61"},
    {"DilationsValue",
     [](Problem *p) {
         p->attributes.dilations = Shape{1, kMost};
     },
     CONVT_OVERFLOW, "dilations[1] = 9223372036854775807 does not fit: must be less than 2^61"},
    {"PadsValue",
     [](Problem *p) {
         p->attributes.pads = Shape{0, 0, kMost, 0};
     },
     CONVT_OVERFLOW, "pads[2] = 9223372036854775807 does not fit: must be less than 2^61"},
    {"OutputPaddingValue",
     [](Problem *p) {
         p->attributes.output_padding = Shape{kMost, 0};
     },
     CONVT_OVERFLOW, "output_padding[0] = 9223372036854775807 does not fit: must be less than 2^61"},
    {"NaturalOfStride",
     [](Problem *p) {
         p->attributes.strides = Shape{1, kHuge / 4};
     },
     CONVT_OVERFLOW,
     "the output size of spatial axis 1 does not fit: strides[1] = 1152921504606846976 * (6 - 1) + output_padding[1] = "
     "0"
     " + (2 - 1) * dilations[1] = 1 + 1 must be less than 2^61"},
    {"NaturalOfDilation",
     [](Problem *p) {
         p->attributes.dilations = Shape{kHuge / 4, 1};
     },
     CONVT_OVERFLOW,
     "the output size of spatial axis 0 does not fit: strides[0] = 2 * (5 - 1) + output_padding[0] = 0"
     " + (3 - 1) * dilations[0] = 1152921504606846976 + 1 must be less than 2^61"},
    {"NaturalOfTheSum",
     [](Problem *p) {
         p->x_shape = {1, 4, 2, 6};
         p->w_shape = {4, 3, 2, 2};
         p->attributes.strides = Shape{kHuge / 4, 1};
         p->attributes.dilations = Shape{kHuge / 4, 1};
     },
     CONVT_OVERFLOW,
     "the output size of spatial axis 0 does not fit: strides[0] = 1152921504606846976 * (2 - 1) + output_padding[0] = "
     "0"
     " + (2 - 1) * dilations[0] = 1152921504606846976 + 1 must be less than 2^61"},
};

class Errors : public testing::TestWithParam<Case> {};

TEST_P(Errors, Resolve) {
    Problem problem = test::parse_problem(kValid);
    GetParam().edit(&problem);
    Geometry geometry;
    geometry.batch = 77;
    const Status status = resolve(detail::view(problem), &geometry);
    EXPECT_EQ(status.code(), GetParam().code);
    EXPECT_EQ(status.message(), GetParam().message);
    EXPECT_EQ(geometry.batch, 77) << "geometry must stay as it is";
}

INSTANTIATE_TEST_SUITE_P(Geometry, Errors, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case> &c) { return std::string(c.param.name); });

TEST(ErrorCases, StartFromAValidProblem) {
    Geometry geometry;
    const Status status = resolve(detail::view(test::parse_problem(kValid)), &geometry);
    EXPECT_TRUE(status) << status.message();
}

// In C an enumeration may hold any int.
TEST(ErrorCases, UnknownEnumerators) {
    const Problem problem = test::parse_problem(kValid);
    const int unknown = 1000;
    Geometry geometry;
    const detail::ProblemView valid(problem);
    convt_problem c = valid;
    std::memcpy(&c.layout, &unknown, sizeof unknown);
    EXPECT_EQ(resolve(c, &geometry).message(), "layout = 1000 is neither channels first nor channels last");
    c = valid;
    std::memcpy(&c.dtype, &unknown, sizeof unknown);
    EXPECT_EQ(resolve(c, &geometry).message(), "dtype = 1000 is not one of f16, bf16, f32, f64, u8, s8");
}

TEST(ErrorCases, MissingShapes) {
    const Problem problem = test::parse_problem(kValid);
    Geometry geometry;
    const detail::ProblemView valid(problem);
    convt_problem c = valid;
    c.x_shape = {nullptr, 4};
    EXPECT_EQ(resolve(c, &geometry).message(), "x_shape is missing");
    c = valid;
    c.w_shape = {nullptr, 4};
    EXPECT_EQ(resolve(c, &geometry).message(), "w_shape is missing");
    EXPECT_EQ(resolve(c, &geometry).code(), CONVT_INVALID_ARGUMENT);
}

} // namespace
} // namespace convtranspose
