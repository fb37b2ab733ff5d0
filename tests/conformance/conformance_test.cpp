// The cases of cases.json through the public interface, in both layouts.
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "conformance/cases.h"
#include "reference/built_types.h"
#include "reference/descriptor.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

class Conformance : public testing::TestWithParam<Case> {};

TEST_P(Conformance, Case) {
    const Json &c = GetParam().json;
    const Problem first = problem_of(c);
    for (const bool last : {false, true}) {
        SCOPED_TRACE(last ? "channels last" : "channels first");
        const Problem problem = last ? channels_last(first) : first;

        if (expects_error(c)) {
            const Status status = status_of_error(c, problem, Options{});
            EXPECT_NE(status.code(), CONVT_OK);
            EXPECT_NE(status.code(), CONVT_INTERNAL) << status.message();
            EXPECT_NE(status.message(), "");
            continue;
        }

        SCOPED_TRACE(describe(problem));
        Inputs inputs = inputs_of(c, first);
        if (last) inputs.x = channels_last(inputs.x);
        Tensor y;
        const Status status = run(problem, inputs, Options{}, &y);
        ASSERT_TRUE(status) << status.message();
        EXPECT_EQ(y.shape(), y_shape_of(c, last));
        EXPECT_TRUE(agrees(y, reference(problem, inputs)));
    }
}

INSTANTIATE_TEST_SUITE_P(Cases, Conformance, testing::ValuesIn(load_cases()),
                         [](const testing::TestParamInfo<Case> &c) { return c.param.name; });

// Values that are published with the node's documentation: x = 0..8, w = 1, no attributes.
TEST(Published, ConvTranspose) {
    if (!is_built(CONVT_F32)) GTEST_SKIP() << "f32 is not built";
    const Problem problem = parse_problem("f32 nchw n1 g1 ic1 oc2 i3x3 k3x3");
    Inputs inputs = draw(problem, 1);
    fill(Json::parse("{\"arange\": true}"), &inputs.x);
    fill(Json::parse("{\"fill\": 1}"), &inputs.w);
    Tensor y;
    const Status status = run(problem, inputs, Options{}, &y);
    ASSERT_TRUE(status) << status.message();
    const std::vector<double> expected = {0,  1,  3, 3,  2,  3,  8,  15, 12, 7,  9,  21, 36,
                                          27, 15, 9, 20, 33, 24, 13, 6,  13, 21, 15, 8};
    for (std::int64_t i = 0; i < y.size(); ++i) EXPECT_EQ(y.get(i), expected[static_cast<std::size_t>(i) % 25]) << i;
}

// Likewise: strides 3 and 2, pads 1, 2, 1, 2.
TEST(Published, ConvTransposePads) {
    if (!is_built(CONVT_F32)) GTEST_SKIP() << "f32 is not built";
    const Problem problem = parse_problem("f32 nchw n1 g1 ic1 oc2 i3x3 k3x3 s3x2 p1x2_1x2");
    Inputs inputs = draw(problem, 1);
    fill(Json::parse("{\"arange\": true}"), &inputs.x);
    fill(Json::parse("{\"fill\": 1}"), &inputs.w);
    Tensor y;
    const Status status = run(problem, inputs, Options{}, &y);
    ASSERT_TRUE(status) << status.message();
    const std::vector<double> expected = {1, 1, 3, 1, 1, 3, 7, 4, 9, 7, 4, 9, 7, 4, 9, 13, 7, 15, 13, 7, 15};
    ASSERT_EQ(y.shape(), (Shape{1, 2, 7, 3}));
    for (std::int64_t i = 0; i < y.size(); ++i) EXPECT_EQ(y.get(i), expected[static_cast<std::size_t>(i) % 21]) << i;
}

} // namespace
} // namespace convtranspose::test
