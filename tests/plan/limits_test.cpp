// Limits, at the limit and one beyond: each message names the value.
#include <cstddef>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "plan/crop.h"
#include "plan/sparse.h"
#include "reference/descriptor.h"
#include "reference/quantized.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1; // elements that a tensor may span

TEST(Limits, Threads) {
    const Problem problem = parse_problem("f32 nchw n1 ic2 oc3 i4 k3");
    Options options{};
    Plan plan;
    options.threads = 4096;
    Status status = Plan::create(problem, options, nullptr, nullptr, &plan);
    ASSERT_TRUE(status) << status.message();
    EXPECT_EQ(plan.threads(), 4096);
    options.threads = 4097;
    status = Plan::create(problem, options, nullptr, nullptr, &plan);
    EXPECT_EQ(status.code(), CONVT_INVALID_ARGUMENT);
    EXPECT_EQ(status.message(), "threads = 4097 must be at most 4096");
    options.threads = -1;
    status = Plan::create(problem, options, nullptr, nullptr, &plan);
    EXPECT_EQ(status.message(), "threads = -1 must not be negative");
}

TEST(Limits, ElementsOfDenseTensors) {
    for (const char *const layout : {"nchw", "nhwc"}) {
        Problem problem = parse_problem("u8 " + std::string(layout) + " n1 ic1 oc1 i7 k1 wu8 yu8");
        const std::size_t axis = problem.layout == CONVT_CHANNELS_LAST ? 1 : 2;
        Plan plan;
        problem.x_shape[axis] = kMost;
        Status status = Plan::create(problem, Options{}, nullptr, nullptr, &plan);
        // With addresses of 32 bits, the workspace does not fit, as x and y would not.
        const bool lacks_memory = sizeof(void *) == 4 && status.code() == CONVT_OUT_OF_MEMORY;
        EXPECT_TRUE(status || lacks_memory) << status.message();
        problem.x_shape[axis] = (kMost + 1) / 2;
        problem.x_shape[0] = 2; // 2^31 in all
        status = Plan::create(problem, Options{}, nullptr, nullptr, &plan);
        EXPECT_EQ(status.code(), CONVT_OVERFLOW);
        EXPECT_EQ(status.message().rfind("x spans 2147483648 elements", 0), 0u) << status.message();
    }
    // The same for y alone, and for w alone.
    Problem problem = parse_problem("u8 nchw n2 ic1 oc1 i3 k1 s1 wu8 yu8");
    problem.attributes.output_shape = Shape{(kMost + 1) / 2};
    Plan plan;
    Status status = Plan::create(problem, Options{}, nullptr, nullptr, &plan);
    EXPECT_EQ(status.message().rfind("y spans 2147483648 elements", 0), 0u) << status.message();
    problem = parse_problem("u8 nchw n1 ic1 oc2 i3 k1 os3 wu8 yu8");
    problem.w_shape[2] = (kMost + 1) / 2;
    status = Plan::create(problem, Options{}, nullptr, nullptr, &plan);
    EXPECT_EQ(status.message().rfind("w spans 2147483648 elements", 0), 0u) << status.message();
}

// Kernels count packed weights, whose tiles of output channels are filled up.
TEST(Limits, PackedWeights) {
    const Problem problem = parse_problem("f32 nchw n1 ic134217728 oc1 i12 k3");
    Plan plan;
    const Status status = Plan::create(problem, Options{}, nullptr, nullptr, &plan);
    ASSERT_TRUE(status) << status.message();
    EXPECT_NE(plan.explain().find("its packed weights have "), std::string::npos) << plan.explain();
}

// The first tap reads two positions behind the end of y's.
TEST(Limits, PositionsOfX) {
    const Problem problem = parse_problem("u8 nchw n1 ic1 oc1 i4 k2 d2147483645 p2_0 wu8 yu8");
    for (const std::string variant : {"", "direct"}) {
        Options options{};
        options.variant = variant.empty() ? nullptr : variant.c_str();
        Plan plan;
        const Status status = Plan::create(problem, options, nullptr, nullptr, &plan);
        EXPECT_EQ(status.code(), CONVT_OVERFLOW);
        const std::string message = status.message(),
                          begin = variant.empty() ? "variant " : "direct cannot compute this problem: variant ";
        EXPECT_EQ(message.rfind(begin, 0), 0u) << message;
        EXPECT_NE(message.find(": positions of x reach up to 2147483649; a kernel counts up to 2147483647"),
                  std::string::npos)
            << message;
    }
}

#if defined(__linux__) && defined(__LP64__)

// Strides of a dense tensor, but for one axis, by which it spans so many elements, or as nearly as its positions allow.
Shape spanning(const Shape &shape, std::size_t axis, std::int64_t elements) {
    Shape strides(shape.size(), 1);
    for (std::size_t i = shape.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * shape[i + 1];
    std::int64_t others = 0; // index of the last element at position 0 of the axis
    for (std::size_t i = 0; i < shape.size(); ++i) others += i == axis ? 0 : (shape[i] - 1) * strides[i];
    strides[axis] = (elements - 1 - others) / (shape[axis] - 1);
    return strides;
}

// x and y span as much as they may, once along each axis but the last; one more is refused.
void expect_agreement_at_the_limit(const Problem &problem, const Options &options) {
    SCOPED_TRACE(describe(problem, 1, options));
    const Inputs inputs = draw(problem, 1);
    Plan plan;
    Status status = Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
    ASSERT_TRUE(status) << status.message();
    const Expected expected = reference(problem, inputs);
    const convt_dtype y_dtype = expected.dtype;
    const std::size_t x_size = convt_dtype_size(problem.dtype), y_size = convt_dtype_size(y_dtype);
    const Shape &x_shape = problem.x_shape, &y_shape = expected.shape;
    for (std::size_t axis = 0; axis + 1 < x_shape.size(); ++axis) {
        const bool of_x = x_shape[axis] > 1, of_y = y_shape[axis] > 1;
        if (!of_x && !of_y) continue;
        SCOPED_TRACE(axis);
        ConstTensorView x = inputs.x.view();
        Tensor dense(y_dtype, y_shape);
        TensorView y = dense.view();
        const Sparse x_memory(of_x ? static_cast<std::size_t>(kMost + 1) * x_size : 1),
            y_memory(of_y ? static_cast<std::size_t>(kMost + 1) * y_size : 1);
        if (!x_memory.data() || !y_memory.data()) GTEST_SKIP() << "there is no room for sparse memory";
        if (of_x) {
            x.strides = spanning(x_shape, axis, kMost);
            x.data = x_memory.data();
            for (std::int64_t i = 0; i < inputs.x.size(); ++i) {
                store(problem.dtype, x_memory.data(), place(x_shape, x.strides, i), inputs.x.get(i));
            }
        }
        if (of_y) {
            y.strides = spanning(y_shape, axis, kMost);
            y.data = y_memory.data();
        }
        status = plan.run(x, y);
        ASSERT_TRUE(status) << status.message();
        for (std::int64_t i = 0; of_y && i < dense.size(); ++i) {
            dense.set(i, load(y_dtype, y_memory.data(), place(y_shape, y.strides, i)));
        }
        EXPECT_TRUE(agrees(dense, expected));

        for (Shape *strides : {of_x ? &x.strides : nullptr, of_y ? &y.strides : nullptr}) {
            if (!strides) continue;
            (*strides)[axis] += 1;
            status = plan.run(x, y);
            EXPECT_EQ(status.code(), CONVT_OVERFLOW);
            const std::string said = std::string(strides == &x.strides ? "x" : "y") + " spans 21474836";
            EXPECT_EQ(status.message().rfind(said, 0), 0u) << status.message();
            (*strides)[axis] -= 1;
        }
    }
}

const char *const kSpread[] = {
    "f32 nchw n2 ic2 oc2 i2x9 k2x3 s1x2 p1x0_0x0 bias", // two rows of x and of y
    "f32 nhwc n2 ic6 oc5 i2x9 k2x3 s1x2 p1x0_0x0 bias", //
    "u8 nchw n2 ic2 oc2 i2x9 k2x3 s1x2 p1x0_0x0 ws8 yu8 zx3",
    "u8 nhwc n2 ic6 oc5 i2x9 k2x3 s1x2 p1x0_0x0 ws8 yu8 zx3",
    "f64 nchw n2 ic2 oc2 i2x2x5 k2x2x2 s1x1x2 p1x1x0_0x0x0",
    "f32 nchw n1 ic3 oc2 i6x9 k3x3 s1x1 p1x1_1x1 bias", // parts that threads take lie 2^32 elements and more from each other
    "f32 nchw n1 ic16 oc64 i5x20 k4x1 s1x1",
    "f32 nhwc n5 ic2 oc6 i6x9 k3x3 s2x2 p1x1_1x1",
    "u8 nhwc n1 ic2 oc6 i6x9 k3x3 s1x1 p1x1_1x1 ws8 yu8 zx3",
};

TEST(Limits, SpansOfStridedTensors) {
    for (const char *const line : kSpread) {
        const Problem problem = parse_problem(line);
        for (std::size_t isa = 0; isa < convt_isa_count(); ++isa) {
            if (!convt_isa_supported(isa)) continue;
            Options options{};
            options.isa = convt_isa_name(isa);
            for (const int threads : {1, 3}) {
                options.threads = threads;
                expect_agreement_at_the_limit(problem, options);
            }
        }
    }
}

#endif

// Elements of two tensors, or of two images, between each other: nothing overlaps, so all is allowed.
TEST(Limits, TensorsThatInterleave) {
    const Problem problem = parse_problem("f32 nchw n2 ic3 oc4 i5x6 k3x3 s1x1 p1x1_1x1 bias");
    const Inputs inputs = draw(problem, 3);
    const Expected expected = reference(problem, inputs);
    for (const int threads : {1, 3}) {
        Options options{};
        options.threads = threads;
        Plan plan;
        Status status = Plan::create(problem, options, inputs.w.data(), inputs.b->data(), &plan);
        ASSERT_TRUE(status) << status.message();
        // Rows of x and of y in turn; of y, the rows of both images, then the channels.
        Tensor memory(CONVT_F32, {480});
        const Shape x_strides = {240, 60, 12, 1}, y_strides = {6, 60, 12, 1};
        Tensor y_memory(CONVT_F32, {240});
        for (std::int64_t i = 0; i < inputs.x.size(); ++i) {
            memory.set(place(problem.x_shape, x_strides, i), inputs.x.get(i));
        }
        Tensor dense(CONVT_F32, expected.shape);
        status = plan.run(ConstTensorView(memory.data(), CONVT_F32, problem.x_shape, x_strides),
                          TensorView{y_memory.data(), CONVT_F32, expected.shape, y_strides});
        ASSERT_TRUE(status) << status.message();
        for (std::int64_t i = 0; i < dense.size(); ++i) dense.set(i, y_memory.get(place(dense.shape(), y_strides, i)));
        EXPECT_TRUE(agrees(dense, expected)) << "images of y between each other";

        // y in the gaps between the rows of x.
        const Shape shared = {240, 60, 12, 1};
        TensorView y{static_cast<float *>(memory.data()) + 6, CONVT_F32, expected.shape, shared};
        status = plan.run(ConstTensorView(memory.data(), CONVT_F32, problem.x_shape, x_strides), y);
        ASSERT_TRUE(status) << status.message();
        for (std::int64_t i = 0; i < dense.size(); ++i) dense.set(i, memory.get(6 + place(dense.shape(), shared, i)));
        EXPECT_TRUE(agrees(dense, expected)) << "y between the rows of x";
        for (std::int64_t i = 0; i < inputs.x.size(); ++i) {
            ASSERT_EQ(memory.get(place(problem.x_shape, x_strides, i)), inputs.x.get(i)) << "x was written";
        }
    }
}

} // namespace
} // namespace convtranspose::test
