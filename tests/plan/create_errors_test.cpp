// convt_plan_create and convt_infer_shape refuse what breaks a rule.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/counting_allocator.h"
#include "reference/descriptor.h"
#include "reference/layer.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

const char *const kProblem = "f32 nchw n2 ic3 oc6 i4x5 k3x3 s2x2 bias";

struct Arguments {
    Problem problem = parse_problem(kProblem);
    Inputs inputs = draw(problem, 1);
    ConstTensorView w_view = inputs.w.view(), b_view = inputs.b->view();
    Options options{};
    bool has_w = true, has_b = true;
};

struct Case {
    const char *name;
    std::function<void(Arguments *)> edit;
    convt_status code;
    std::vector<std::string> said;
};

void PrintTo(const Case &c, std::ostream *stream) { *stream << c.name; }

const std::vector<Case> kCases = {
    {"Attribute",
     [](Arguments *a) {
         a->problem.attributes.strides = Shape{2, 0};
     },
     CONVT_INVALID_ARGUMENT,
     {"strides[1] = 0 must be positive"}},
    {"Overflow",
     [](Arguments *a) {
         a->problem.attributes.output_shape = Shape{9, std::int64_t{1} << 40};
     },
     CONVT_OVERFLOW,
     {"output_shape[1] = 1099511627776 exceeds 2147483647"}},
    {"WDtype", [](Arguments *a) { a->w_view.dtype = CONVT_F16; }, CONVT_INVALID_ARGUMENT, {"w", "f16", "f32"}},
    {"BDtype", [](Arguments *a) { a->b_view.dtype = CONVT_F64; }, CONVT_INVALID_ARGUMENT, {"b", "f64", "f32"}},
    {"WShape",
     [](Arguments *a) {
         a->w_view.shape = {3, 6, 3, 4};
     },
     CONVT_INVALID_ARGUMENT,
     {"w", "4", "3"}},
    {"WRank",
     [](Arguments *a) {
         a->w_view.shape = {3, 6, 9};
     },
     CONVT_INVALID_ARGUMENT,
     {"w"}},
    {"BShape", [](Arguments *a) { a->b_view.shape = {7}; }, CONVT_INVALID_ARGUMENT, {"b", "7", "6"}},
    {"WData", [](Arguments *a) { a->w_view.data = nullptr; }, CONVT_INVALID_ARGUMENT, {"w", "data"}},
    {"BData", [](Arguments *a) { a->b_view.data = nullptr; }, CONVT_INVALID_ARGUMENT, {"b", "data"}},
    {"WStrides",
     [](Arguments *a) {
         a->w_view.strides = {108, 18, 3, 1};
     },
     CONVT_INVALID_ARGUMENT,
     {"w", "dense"}},
    {"BStrides", [](Arguments *a) { a->b_view.strides = {2}; }, CONVT_INVALID_ARGUMENT, {"b", "dense"}},
    {"WWithoutB", [](Arguments *a) { a->has_b = false; }, CONVT_INVALID_ARGUMENT, {"b"}},
    {"BWithoutW", [](Arguments *a) { a->has_w = false; }, CONVT_INVALID_ARGUMENT, {"w"}},
    {"BThatTheProblemDoesNotHave", [](Arguments *a) { a->problem.b_shape.reset(); }, CONVT_INVALID_ARGUMENT, {"b"}},
    {"Threads", [](Arguments *a) { a->options.threads = -2; }, CONVT_INVALID_ARGUMENT, {"threads", "-2"}},
    {"AllocateAlone", [](Arguments *a) { a->options.deallocate = nullptr; }, CONVT_INVALID_ARGUMENT, {"deallocate"}},
    {"DeallocateAlone", [](Arguments *a) { a->options.allocate = nullptr; }, CONVT_INVALID_ARGUMENT, {"allocate"}},
    {"UnknownVariant",
     [](Arguments *a) { a->options.variant = "winograd_of_mars"; },
     CONVT_UNSUPPORTED,
     {"winograd_of_mars"}},
    {"EmptyVariant", [](Arguments *a) { a->options.variant = ""; }, CONVT_UNSUPPORTED, {"variant"}},
    {"UnknownIsa", [](Arguments *a) { a->options.isa = "z80"; }, CONVT_UNSUPPORTED, {"z80"}},
    {"EmptyIsa", [](Arguments *a) { a->options.isa = ""; }, CONVT_UNSUPPORTED, {"isa"}},
};

class CreateErrors : public testing::TestWithParam<Case> {};

TEST_P(CreateErrors, NameTheValue) {
    Arguments a;
    CountingAllocator allocator;
    a.options = allocator.options();
    GetParam().edit(&a);
    const detail::ProblemView problem(a.problem);
    const detail::OptionsView options(a.options);
    const convt_tensor w = detail::view(a.w_view), b = detail::view(a.b_view);
    convt_plan *plan = nullptr;
    const convt_status code =
        convt_plan_create(&problem, a.has_w ? &w : nullptr, a.has_b ? &b : nullptr, &options, &plan);
    EXPECT_EQ(code, GetParam().code);
    EXPECT_EQ(plan, nullptr);
    const std::string message = convt_last_error();
    for (const std::string &part : GetParam().said) {
        EXPECT_NE(message.find(part), std::string::npos) << "\"" << part << "\" in \"" << message << "\"";
    }
    EXPECT_EQ(allocator.live_blocks(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Plan, CreateErrors, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case> &c) { return std::string(c.param.name); });

TEST(CreateErrorCases, StartFromArgumentsThatAreRight) {
    const Arguments a;
    const detail::ProblemView problem(a.problem);
    const detail::OptionsView options(a.options);
    const convt_tensor w = detail::view(a.w_view), b = detail::view(a.b_view);
    convt_plan *plan = nullptr;
    EXPECT_EQ(convt_plan_create(&problem, &w, &b, &options, &plan), CONVT_OK) << convt_last_error();
    EXPECT_NE(plan, nullptr);
    convt_plan_destroy(plan);
}

TEST(CreateErrorCases, NullPointers) {
    const Arguments a;
    const detail::ProblemView problem(a.problem);
    const convt_tensor w = detail::view(a.w_view), b = detail::view(a.b_view);
    convt_plan *plan = nullptr;
    EXPECT_EQ(convt_plan_create(nullptr, &w, &b, nullptr, &plan), CONVT_INVALID_ARGUMENT);
    EXPECT_EQ(plan, nullptr);
    EXPECT_EQ(convt_plan_create(&problem, &w, &b, nullptr, nullptr), CONVT_INVALID_ARGUMENT);
    convt_tensor no_shape = w;
    no_shape.shape = nullptr;
    EXPECT_EQ(convt_plan_create(&problem, &no_shape, &b, nullptr, &plan), CONVT_INVALID_ARGUMENT);
    EXPECT_NE(std::string(convt_last_error()).find('w'), std::string::npos) << convt_last_error();
    convt_plan_destroy(nullptr);
}

// The size is refused before anything is read, which these lists do not have.
TEST(CreateErrorCases, SizesOfListsThatCannotBe) {
    const Problem problem = parse_problem("u8 nchw n2 ic3 oc6 i4x5 k3x3 s2x2 bias wu8 yu8");
    for (const std::size_t size : {std::size_t{1000000}, SIZE_MAX / 8, SIZE_MAX / 4 + 1, SIZE_MAX}) {
        SCOPED_TRACE(size);
        const auto expect_refused = [&](const char *what, const std::function<void(detail::ProblemView *)> &edit) {
            detail::ProblemView c(problem);
            edit(&c);
            convt_plan *plan = nullptr;
            const convt_status status = convt_plan_create(&c, nullptr, nullptr, nullptr, &plan);
            EXPECT_TRUE(status == CONVT_INVALID_ARGUMENT || status == CONVT_OVERFLOW) << what;
            const std::string said = what + (" has " + std::to_string(size)) + " elements";
            EXPECT_EQ(std::string(convt_last_error()).find(said), 0u) << convt_last_error();
        };
        expect_refused("w_shape", [&](detail::ProblemView *c) { c->w_shape.size = size; });
        expect_refused("b_shape", [&](detail::ProblemView *c) { c->b_shape.size = size; });
        expect_refused("strides", [&](detail::ProblemView *c) { c->own_attributes.strides.size = size; });
        expect_refused("w_scale", [&](detail::ProblemView *c) { c->own_quantization.w_scale_size = size; });
        expect_refused("w_zero_point", [&](detail::ProblemView *c) { c->own_quantization.w_zero_point_size = size; });
        // A tensor may have any number of axes, so that fewer would be read.
        if (size > INT32_MAX) expect_refused("x_shape", [&](detail::ProblemView *c) { c->x_shape.size = size; });
    }
}

// A variant that cannot do the problem says why. Which ones cannot is theirs to say, but some must be able to.
TEST(CreateErrorCases, AVariantThatCannotSaysWhy) {
    const Problem problem = parse_problem("f64 nchw n1 g1 ic3 oc2 i5x4x3x2 k3x3x3x3 s5x3x5x3 d2x3x2x2");
    const Inputs inputs = draw(problem, 2);
    std::size_t able = 0;
    for (std::size_t i = 0; i < convt_variant_count(); ++i) {
        SCOPED_TRACE(convt_variant_name(i));
        Options options{};
        options.variant = convt_variant_name(i);
        Plan plan;
        const Status status = Plan::create(problem, options, inputs.w.data(), nullptr, &plan);
        if (status) {
            ++able;
            EXPECT_EQ(plan.variant(), options.variant);
            continue;
        }
        EXPECT_EQ(status.code(), CONVT_UNSUPPORTED);
        EXPECT_NE(status.message().find(options.variant), std::string::npos) << status.message();
        EXPECT_GT(status.message().size(), std::string(options.variant).size() + 8) << status.message();
    }
    EXPECT_GT(able, 0u);
}

TEST(InferShape, EqualsThePlan) {
    for (const char *line : {kProblem, "f32 nhwc n2 g3 ic3 oc6 i4x5x2 k3x3x1 s2x2x3", "bf16 nchw n0 i7 k3 p1_1"}) {
        const Problem problem = parse_problem(line);
        Shape y_shape;
        const Status status = infer_shape(problem, &y_shape);
        ASSERT_TRUE(status) << status.message();
        EXPECT_EQ(y_shape, layer_of(problem).y_shape);
    }
}

TEST(InferShape, WritesNoMoreThanThereIsRoomFor) {
    const Problem problem = parse_problem(kProblem);
    const detail::ProblemView c(problem);
    std::vector<std::int64_t> y_shape(4, -1);
    std::size_t rank = 0;
    EXPECT_EQ(convt_infer_shape(&c, y_shape.data(), 2, &rank), CONVT_OK);
    EXPECT_EQ(rank, 4u);
    EXPECT_EQ(y_shape, (std::vector<std::int64_t>{2, 6, -1, -1}));
    EXPECT_EQ(convt_infer_shape(&c, nullptr, 0, &rank), CONVT_OK);
    EXPECT_EQ(rank, 4u);
}

TEST(InferShape, Errors) {
    Problem problem = parse_problem(kProblem);
    Shape y_shape = {5};
    problem.attributes.group = 0;
    const Status status = infer_shape(problem, &y_shape);
    EXPECT_EQ(status.code(), CONVT_INVALID_ARGUMENT);
    EXPECT_EQ(status.message(), "group = 0 must be positive");
    EXPECT_EQ(y_shape, (Shape{5}));
    std::size_t rank = 7;
    EXPECT_EQ(convt_infer_shape(nullptr, nullptr, 0, &rank), CONVT_INVALID_ARGUMENT);
    EXPECT_EQ(rank, 7u);
}

} // namespace
} // namespace convtranspose::test
