// Any number of spatial axes. More than three are a sum of three-axis problems, so their borders are worth a look.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

const std::vector<std::string> kProblems = {
    "f32 nchw n2 ic3 oc4 i7 k3 s2 p1_0 op1 bias",
    "f32 nhwc n2 ic3 oc4 i7 k3 s2 p1_0 op1 bias",
    "f32 nchw n2 ic3 oc4 i4x5 k3x2 s2x3 p1x0_0x1 d1x2 bias",
    "f32 nchw n2 ic3 oc4 i3x4x5 k3x2x4 s2x3x1 p1x0x2_0x1x1 d1x2x1 op1x0x0 bias",
    "f32 nhwc n2 ic3 oc4 i3x4x5 k3x2x4 s2x3x1 p1x0x2_0x1x1 d1x2x1 op1x0x0 bias",
    "f32 nchw n1 ic3 oc4 i2x3x4x3 k2x2x2x2 s2x2x2x2 bias",
    "f32 nhwc n1 ic3 oc4 i2x3x4x3 k2x2x2x2 s2x2x2x2 bias",
    "f32 nchw n2 ic3 oc4 i3x2x3x4 k3x2x1x3 s1x2x1x2 p1x0x0x1_1x1x0x0",
    "f32 nhwc n2 ic3 oc4 i3x2x3x4 k3x2x1x3 s1x2x1x2 p1x0x0x1_1x1x0x0",
    "f32 nchw n1 ic3 oc4 i3x2x2x3 k2x2x3x3 s3x1x2x2 d2x1x1x2 op2x0x1x1 bias", // gaps on the leading axis
    "f32 nchw n1 ic2 oc3 i3x2x2x3 k2x2x2x2 s2x2x1x1 os9x7x2x3 bias",          // more than natural, and less
    "f32 nchw n1 g2 ic4 oc6 i2x2x3x3 k2x2x2x2 s2x1x2x2 auto_SAME_UPPER",
    "f32 nchw n1 g4 ic4 oc4 i2x2x3x9 k2x2x3x4 s1x2x2x2 p0x0x1x1_0x0x1x1",
    "f16 nchw n1 ic3 oc4 i2x2x3x3 k2x2x2x2 s2x2x2x2 bias", // sums must not be rounded to f16 between the parts
    "bf16 nhwc n1 ic3 oc4 i2x2x3x3 k3x2x2x2 s1x2x2x2 bias",
    "f64 nchw n1 ic3 oc4 i2x2x3x3 k3x2x2x2 s1x2x2x2 bias",
    "f32 nchw n1 ic2 oc3 i2x3x2x3x2 k2x2x2x2x2 s2x1x2x1x2 bias",
    "f32 nhwc n2 ic2 oc3 i2x3x2x3x2 k2x3x2x1x2 s2x1x2x1x2 p1x1x0x0x0_0x1x0x0x1",
    "f16 nhwc n1 ic2 oc3 i3x3x2x1x2 k3x3x2x1x2 s1x1x2x1x2 bias",
    "f32 nchw n1 ic2 oc3 i1x2x1x2x1x2 k2x1x2x1x2x1 s2x2x2x2x2x2 bias",
};

class Rank : public testing::TestWithParam<std::string> {};

TEST_P(Rank, Agrees) {
    const Problem problem = parse_problem(GetParam());
    for (const int threads : {1, 3}) {
        Options options{};
        options.threads = threads;
        options.all_threads = 1;
        expect_agreement(problem, 1, Values::uniform, options);
        expect_agreement(problem, 2, Values::integers, options);
    }
}

INSTANTIATE_TEST_SUITE_P(Plan, Rank, testing::ValuesIn(kProblems),
                         [](const testing::TestParamInfo<std::string> &c) { return std::to_string(c.index); });

} // namespace
} // namespace convtranspose::test
