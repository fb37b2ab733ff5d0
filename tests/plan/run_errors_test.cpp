// convt_plan_run refuses tensors that do not fit, with a message that names the tensor and the value, and leaves y as it was.
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "reference/layer.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

// The arguments of a run, all right at first: x (2, 3, 4, 5), w (3, 6, 3, 3), b (6), y (2, 6, 9, 11).
struct Arguments {
    explicit Arguments(const Problem &problem) : inputs(draw(problem, 1)), y(problem.dtype, layer_of(problem).y_shape) {
        for (std::int64_t i = 0; i < y.size(); ++i) y.set(i, -77);
        x_view = inputs.x.view();
        w_view = inputs.w.view();
        b_view = inputs.b->view();
        y_view = y.view();
    }

    Inputs inputs;
    Tensor y;
    ConstTensorView x_view, w_view, b_view, y_view;
    bool has_x = true, has_w = true, has_b = true, has_y = true, has_plan = true;
    void *workspace = nullptr;
};

struct Case {
    const char *name;
    std::function<void(Arguments *)> edit;
    std::vector<std::string> said; // what the message must hold
};

void PrintTo(const Case &c, std::ostream *stream) { *stream << c.name; }

alignas(64) unsigned char g_odd_workspace[128];

const std::vector<Case> kCases = {
    {"NoPlan", [](Arguments *a) { a->has_plan = false; }, {"plan"}},
    {"NoX", [](Arguments *a) { a->has_x = false; }, {"x"}},
    {"NoY", [](Arguments *a) { a->has_y = false; }, {"y"}},
    {"XData", [](Arguments *a) { a->x_view.data = nullptr; }, {"x", "data"}},
    {"YData", [](Arguments *a) { a->y_view.data = nullptr; }, {"y", "data"}},
    {"XDtype", [](Arguments *a) { a->x_view.dtype = CONVT_F64; }, {"x", "f64", "f32"}},
    {"YDtype", [](Arguments *a) { a->y_view.dtype = CONVT_BF16; }, {"y", "bf16", "f32"}},
    {"XRank",
     [](Arguments *a) {
         a->x_view.shape = {2, 3, 4};
     },
     {"x"}},
    {"YRank",
     [](Arguments *a) {
         a->y_view.shape = {2, 6, 9, 11, 1};
     },
     {"y"}},
    {"XShape",
     [](Arguments *a) {
         a->x_view.shape = {2, 3, 7, 5};
     },
     {"x", "7", "4"}},
    {"XBatch",
     [](Arguments *a) {
         a->x_view.shape = {1, 3, 4, 5};
     },
     {"x", "1", "2"}},
    {"YShape",
     [](Arguments *a) {
         a->y_view.shape = {2, 6, 9, 12};
     },
     {"y", "12", "11"}},
    // strides
    {"XLastStride",
     [](Arguments *a) {
         a->x_view.strides = {240, 80, 20, 2};
     },
     {"x", "2", "1"}},
    {"YLastStride",
     [](Arguments *a) {
         a->y_view.strides = {1320, 220, 22, 2};
     },
     {"y", "2", "1"}},
    {"XStrideZero",
     [](Arguments *a) {
         a->x_view.strides = {60, 0, 5, 1};
     },
     {"x", "0"}},
    {"XStrideNegative",
     [](Arguments *a) {
         a->x_view.strides = {60, 20, -5, 1};
     },
     {"x", "-5"}},
    {"YStrideNegative",
     [](Arguments *a) {
         a->y_view.strides = {-594, 99, 11, 1};
     },
     {"y", "-594"}},
    {"YRowsOverlap",
     [](Arguments *a) {
         a->y_view.strides = {594, 99, 10, 1};
     },
     {"y", "10"}},
    {"YChannelsOverlap",
     [](Arguments *a) {
         a->y_view.strides = {594, 98, 11, 1};
     },
     {"y", "98"}},
    {"YBatchesOverlap",
     [](Arguments *a) {
         a->y_view.strides = {99, 99, 11, 1};
     },
     {"y", "99"}},
    // Images in the gaps between channels: nothing overlaps, but that is more than the rule allows.
    {"YBatchesBetweenChannels",
     [](Arguments *a) {
         a->y_view.strides = {297, 198, 11, 1};
     },
     {"y stride[0] = 297 must be at least 1089", "smaller strides"}},
    // weights and bias
    {"NoW", [](Arguments *a) { a->has_w = false; }, {"w"}},
    {"NoB", [](Arguments *a) { a->has_b = false; }, {"b"}},
    {"WData", [](Arguments *a) { a->w_view.data = nullptr; }, {"w", "data"}},
    {"BData", [](Arguments *a) { a->b_view.data = nullptr; }, {"b", "data"}},
    {"WDtype", [](Arguments *a) { a->w_view.dtype = CONVT_F16; }, {"w", "f16", "f32"}},
    {"BDtype", [](Arguments *a) { a->b_view.dtype = CONVT_F64; }, {"b", "f64", "f32"}},
    {"WShape",
     [](Arguments *a) {
         a->w_view.shape = {3, 6, 3, 4};
     },
     {"w", "4", "3"}},
    {"WRank",
     [](Arguments *a) {
         a->w_view.shape = {3, 6, 9};
     },
     {"w"}},
    {"BShape", [](Arguments *a) { a->b_view.shape = {7}; }, {"b", "7", "6"}},
    {"BRank",
     [](Arguments *a) {
         a->b_view.shape = {6, 1};
     },
     {"b"}},
    {"WStrides",
     [](Arguments *a) {
         a->w_view.strides = {108, 18, 3, 1};
     },
     {"w", "dense"}},
    {"BStrides", [](Arguments *a) { a->b_view.strides = {2}; }, {"b", "dense"}},
    // memory
    {"XInDeviceMemory", [](Arguments *a) { a->x_view.memory = CONVT_DEVICE_MEMORY; }, {"x", "device memory", "CPU"}},
    {"YInDeviceMemory", [](Arguments *a) { a->y_view.memory = CONVT_DEVICE_MEMORY; }, {"y", "device memory", "CPU"}},
    // the rest
    {"WorkspaceAlignment", [](Arguments *a) { a->workspace = g_odd_workspace + 4; }, {"workspace", "64"}},
};

Status run_with(const Problem &problem, Arguments *a, bool constant_weights) {
    Plan plan;
    Status status = Plan::create(problem, Options{}, constant_weights ? a->inputs.w.data() : nullptr,
                                 constant_weights ? a->inputs.b->data() : nullptr, &plan);
    if (!status) return status;
    const convt_tensor x = detail::view(a->x_view), w = detail::view(a->w_view), b = detail::view(a->b_view);
    const convt_tensor y = detail::view(a->y_view);
    return Status::from(convt_plan_run(a->has_plan ? plan.get() : nullptr, a->has_x ? &x : nullptr,
                                       a->has_w ? &w : nullptr, a->has_b ? &b : nullptr, a->has_y ? &y : nullptr,
                                       a->workspace));
}

class RunErrors : public testing::TestWithParam<Case> {
  protected:
    const Problem problem = parse_problem("f32 nchw n2 ic3 oc6 i4x5 k3x3 s2x2 bias");
};

TEST_P(RunErrors, NameTheTensorAndTheValue) {
    Arguments arguments(problem);
    GetParam().edit(&arguments);
    const Tensor before = arguments.y;
    const Status status = run_with(problem, &arguments, false);
    EXPECT_EQ(status.code(), CONVT_INVALID_ARGUMENT);
    for (const std::string &part : GetParam().said) {
        EXPECT_NE(status.message().find(part), std::string::npos)
            << "\"" << part << "\" in \"" << status.message() << "\"";
    }
    EXPECT_TRUE(arguments.y == before) << "y must stay untouched";
}

INSTANTIATE_TEST_SUITE_P(Plan, RunErrors, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case> &c) { return std::string(c.param.name); });

TEST(RunErrorCases, StartFromARunThatIsRight) {
    const Problem problem = parse_problem("f32 nchw n2 ic3 oc6 i4x5 k3x3 s2x2 bias");
    Arguments arguments(problem);
    const Status status = run_with(problem, &arguments, false);
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(agrees(arguments.y, reference(problem, arguments.inputs)));
}

TEST(RunErrorCases, WeightsTwice) {
    const Problem problem = parse_problem("f32 nchw n2 ic3 oc6 i4x5 k3x3 s2x2 bias");
    for (const bool has_w : {false, true}) {
        Arguments arguments(problem);
        arguments.has_w = has_w;
        arguments.has_b = !has_w;
        const Tensor before = arguments.y;
        const Status status = run_with(problem, &arguments, true);
        EXPECT_EQ(status.code(), CONVT_INVALID_ARGUMENT) << (has_w ? "w" : "b");
        EXPECT_NE(status.message().find(has_w ? "w" : "b"), std::string::npos) << status.message();
        EXPECT_TRUE(arguments.y == before);
    }
}

TEST(RunErrorCases, BiasThatTheProblemDoesNotHave) {
    const Problem with_bias = parse_problem("f32 nchw n2 ic3 oc6 i4x5 k3x3 s2x2 bias");
    Problem problem = with_bias;
    problem.b_shape.reset();
    Arguments arguments(with_bias);
    const Status status = run_with(problem, &arguments, false);
    EXPECT_EQ(status.code(), CONVT_INVALID_ARGUMENT);
    EXPECT_NE(status.message().find('b'), std::string::npos) << status.message();
}

// Strides so large that the last element has no address.
TEST(RunErrorCases, StridesThatDoNotFit) {
    const Problem problem = parse_problem("f32 nchw n2 ic3 oc6 i4x5 k3x3 s2x2 bias");
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    for (const bool of_x : {false, true}) {
        Arguments edited(problem);
        (of_x ? edited.x_view : edited.y_view).strides = of_x ? Shape{most, 20, 5, 1} : Shape{most, 99, 11, 1};
        const Tensor before = edited.y;
        const Status status = run_with(problem, &edited, false);
        EXPECT_FALSE(status) << "no memory is that large";
        EXPECT_NE(status.message(), "");
        EXPECT_TRUE(edited.y == before);
    }
}

} // namespace
} // namespace convtranspose::test
