// x and y as crops of larger tensors: nothing around them is read, and nothing around them is written.
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/algorithm_names.h"
#include "plan/crop.h"
#include "reference/descriptor.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

const std::vector<std::string> kProblems = {
    "f32 nchw n2 ic5 oc9 i6x7 k3x3 s2x2 p1x1_1x1 bias",
    "f32 nhwc n2 ic5 oc9 i6x7 k3x3 s2x2 p1x1_1x1 bias",
    "f32 nchw n1 ic16 oc32 i5x4 k4x4 s2x2 p1x1_1x1",
    "f32 nhwc n1 ic16 oc32 i5x4 k4x4 s2x2 p1x1_1x1",
    "f32 nchw n1 ic8 oc8 i5x70 k3x3 s1x1 p1x1_1x1 bias",
    "f32 nchw n1 ic8 oc8 i5x37 k2x2 s2x2 bias",
    "f32 nhwc n1 ic8 oc3 i5x37 k2x2 s2x2",
    "f32 nchw n1 ic12 oc1 i6x20 k9x9 s4x4 p4x4_4x4 op3x3",
    "f32 nhwc n1 ic12 oc1 i6x20 k9x9 s4x4 p4x4_4x4 op3x3",
    "f32 nchw n2 g9 ic9 oc9 i6x33 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nhwc n2 g33 ic33 oc33 i6x5 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nchw n1 g3 ic6 oc9 i6x7 k3x3 s3x2 d2x1",
    "f32 nchw n1 ic4 oc6 i23 k5 s2 p1_2",
    "f32 nhwc n1 ic4 oc6 i23 k5 s2 p1_2",
    "f32 nchw n2 ic3 oc4 i3x4x5 k2x3x3 s2x1x2 bias",
    "f32 nhwc n2 ic3 oc4 i3x4x5 k2x3x3 s2x1x2 bias",
    "f32 nchw n1 ic3 oc2 i3x2x2x3 k2x2x2x2 s2x2x1x1",
    "f32 nhwc n1 ic3 oc2 i3x2x2x3 k2x2x2x2 s2x2x1x1",
    "f16 nchw n1 ic17 oc24 i5x9 k4x4 s2x2 p1x1_1x1 bias",
    "bf16 nhwc n1 ic17 oc24 i5x9 k4x4 s2x2 p1x1_1x1",
    "f64 nchw n1 ic5 oc7 i5x9 k3x3 s2x2 p1x1_1x1 bias",
    "f32 nchw n1 ic3 oc2 i4x4 k3x3 s2x2 os19x14 bias", // rows and columns that no tap reaches
    // Several strips of x channels last: all in place, but for those at the ends, all copied, and with channels that are apart.
    "f32 nhwc n1 ic32 oc32 i100x50 k2x2 s2x2",
    "f32 nhwc n1 ic32 oc32 i7000 k4 s2 p1_1 bias",
    "f32 nhwc n2 ic32 oc32 i60x60 k3x3 s1x1 p1x1_1x1",
    "f32 nhwc n1 ic512 oc20 i12x24 k3x3 s2x2 p1x1_1x1",
    "f32 nhwc n1 g2 ic64 oc48 i20x9x11 k2x2x2 s2x2x2 bias",
};

std::string index_of(const testing::TestParamInfo<std::string> &c) { return std::to_string(c.index); }

class Views : public testing::TestWithParam<std::string> {
  protected:
    // before, after: the margin of axis i is entry i, repeating.
    void expect_agreement_of_crops(const Shape &before, const Shape &after) {
        const Problem problem = parse_problem(GetParam());
        const Inputs inputs = draw(problem, 1);
        const auto margin = [](const Shape &pattern, std::size_t rank) {
            Shape margins;
            for (std::size_t axis = 0; axis < rank; ++axis) margins.push_back(pattern[axis % pattern.size()]);
            return margins;
        };
        const std::size_t rank = problem.x_shape.size();
        for (const int threads : {1, 3}) {
            SCOPED_TRACE(threads);
            Options options{};
            options.threads = threads;
            options.all_threads = 1;
            if (threads == 3) options.variant = "direct"; // strips are for kernels of the layer as it is
            Plan plan;
            Status status =
                Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
            ASSERT_TRUE(status) << status.message();

            Crop x(problem.dtype, problem.x_shape, margin(before, rank), margin(after, rank));
            x.put(inputs.x); // NaN around it: whatever reads there shows
            Crop y(problem.dtype, plan.y_shape(), margin(after, rank), margin(before, rank));
            status = plan.run(x.view(), y.view());
            ASSERT_TRUE(status) << status.message();
            const Tensor result = y.get();
            EXPECT_TRUE(agrees(result, reference(problem, inputs)));

            // Put back what stood inside the crop: then all must be as at first.
            y.put(Tensor(problem.dtype, plan.y_shape()));
            Crop untouched(problem.dtype, plan.y_shape(), margin(after, rank), margin(before, rank));
            untouched.put(Tensor(problem.dtype, plan.y_shape()));
            EXPECT_TRUE(y.parent() == untouched.parent()) << "something around y was written";
        }
    }
};

TEST_P(Views, CropsOfLargerTensors) { expect_agreement_of_crops({1, 2, 1, 3}, {1, 1, 2, 2}); }

TEST_P(Views, CropsThatAreHardlyLarger) { expect_agreement_of_crops({0, 0, 0, 0, 0}, {0, 1, 0, 1, 1}); }

// Rows whose distance is much larger than the row.
TEST_P(Views, CropsOfMuchLargerTensors) { expect_agreement_of_crops({0, 1, 2, 40}, {1, 0, 1, 30}); }

// A row of y directly in front of an address that is not aligned to anything but an element.
TEST_P(Views, OddAddresses) { expect_agreement_of_crops({0, 0, 0, 0, 1}, {0, 0, 0, 1, 0}); }

INSTANTIATE_TEST_SUITE_P(Plan, Views, testing::ValuesIn(kProblems), index_of);

// Elements of x may share memory, as windows of a signal do, or lie apart. Every algorithm reads them where they are.
class ViewsOfX : public testing::TestWithParam<std::string> {};

TEST_P(ViewsOfX, MayOverlapAndHaveGaps) {
    const Problem problem = parse_problem(GetParam());
    const Shape &shape = problem.x_shape;
    const std::size_t rank = shape.size();
    Shape windows(rank, 1), apart(rank, 1), mixed(rank, 1);
    for (std::size_t axis = rank - 1; axis-- > 0;) {
        apart[axis] = apart[axis + 1] * (shape[axis + 1] + 2);
        mixed[axis] = static_cast<std::int64_t>(axis % 3) + 1;
    }
    std::vector<std::string> names = algorithm_names();
    names.emplace_back();
    for (const Shape &strides : {windows, mixed, apart}) {
        std::int64_t span = 1;
        for (std::size_t axis = 0; axis < rank; ++axis) span += (shape[axis] - 1) * strides[axis];
        Inputs inputs = draw(problem, 1);
        Tensor parent(problem.dtype, {span}); // all NaN
        for (std::int64_t i = 0; i < inputs.x.size(); ++i) parent.set(place(shape, strides, i), inputs.x.get(i));
        for (std::int64_t i = 0; i < inputs.x.size(); ++i) inputs.x.set(i, parent.get(place(shape, strides, i)));
        const Expected expected = reference(problem, inputs);
        for (const std::string &name : names) {
            for (const int threads : {1, 3}) {
                Options options{};
                options.variant = name.empty() ? nullptr : name.c_str();
                options.winograd = 1;
                options.threads = threads;
                options.all_threads = 1;
                SCOPED_TRACE(describe(problem, 1, options) + ", x of strides " + testing::PrintToString(strides));
                Plan plan;
                Status status =
                    Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
                if (status.code() == CONVT_UNSUPPORTED) continue;
                ASSERT_TRUE(status) << status.message();
                Tensor y(problem.y_dtype.value_or(problem.dtype), plan.y_shape());
                status = plan.run({parent.data(), problem.dtype, shape, strides}, y.view());
                ASSERT_TRUE(status) << status.message();
                EXPECT_TRUE(agrees(y, expected));
            }
        }
    }
}

const std::vector<std::string> kOthers = {"f32 nchw n2 ic32 oc2 i6x9 k7x7 s1x1 p3x3_3x3 bias",
                                          "f32 nhwc n2 ic32 oc2 i6x9 k7x7 s1x1 p3x3_3x3 bias",
                                          "f32 nhwc n2 ic16 oc2 i8x8 k4x4 s2x2 p1x1_1x1 bias",
                                          "f32 nhwc n3 ic16 oc12 i5x4 k3x3 s1x1 p1x1_1x1",
                                          "f32 nhwc n4 ic16 oc12 i1x1 k4x4 s1x1",
                                          "f32 nchw n1 ic32 oc32 i9x10 k3x3 s1x1 p1x1_1x1 bias",
                                          "f32 nchw n2 ic24 oc20 i16x16 k3x3 s1x1 d12x12 bias",
                                          "f32 nchw n1 ic6 oc5 i6x7 k1x1 s2x2 bias",
                                          "u8 nchw n2 ic6 oc5 i6x7 k3x3 s2x2 p1x1_1x1 bias ws8 yu8",
                                          "u8 nhwc n2 ic6 oc5 i6x7 k3x3 s2x2 p1x1_1x1 bias ws8 yu8",
                                          "s8 nhwc n1 g9 ic9 oc9 i6x7 k3x3 s1x1 p1x1_1x1 bias ws8 ys8"};

INSTANTIATE_TEST_SUITE_P(Plan, ViewsOfX, testing::ValuesIn(kProblems), index_of);
INSTANTIATE_TEST_SUITE_P(Others, ViewsOfX, testing::ValuesIn(kOthers), index_of);

// The stride of an axis of extent 1 is never used, so it may be anything.
TEST(ViewStrides, OfExtentOneMayBeAnything) {
    const Problem problem = parse_problem("f32 nchw n1 ic4 oc6 i1x5 k1x3 s1x2");
    const Inputs inputs = draw(problem, 2);
    Plan plan;
    ASSERT_TRUE(Plan::create(problem, Options{}, inputs.w.data(), nullptr, &plan));
    const std::int64_t out = plan.y_shape()[3];
    for (const std::int64_t odd : {std::int64_t{0}, std::int64_t{-7}, std::numeric_limits<std::int64_t>::max(),
                                   std::numeric_limits<std::int64_t>::min()}) {
        SCOPED_TRACE(odd);
        Tensor y(problem.dtype, plan.y_shape());
        ConstTensorView x_view = inputs.x.view();
        TensorView y_view = y.view();
        x_view.strides = {odd, 5, odd, 1};
        y_view.strides = {odd, out, odd, 1};
        const Status status = plan.run(x_view, y_view);
        ASSERT_TRUE(status) << status.message();
        EXPECT_TRUE(agrees(y, reference(problem, inputs)));
    }
}

TEST(ViewStrides, AreAsManyAsExtents) {
    const Problem problem = parse_problem("f32 nchw n1 ic4 oc6 i1x5 k1x3 s1x2");
    const Inputs inputs = draw(problem, 2);
    Plan plan;
    ASSERT_TRUE(Plan::create(problem, Options{}, inputs.w.data(), nullptr, &plan));
    Tensor y(problem.dtype, plan.y_shape());
    ConstTensorView x = inputs.x.view();
    x.strides = {20};
    EXPECT_EQ(plan.run(x, y.view()).message(), "x has rank 0, needs 4");
    x.strides = {20, 5, 5, 1, 1};
    EXPECT_EQ(plan.run(x, y.view()).message(), "x has rank 0, needs 4");
    x.shape = {1, 4, 1, 5, 1};
    x.strides = {20, 5, 5, 1};
    EXPECT_EQ(plan.run(x, y.view()).message(), "x has rank 0, needs 4");
}

} // namespace
} // namespace convtranspose::test
