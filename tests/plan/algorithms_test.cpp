// Each way to compute a layer, asked for by name: batches that take several rounds of images, dense and with gaps between the
// images, and memory that all comes from the hooks.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/algorithm_names.h"
#include "plan/counting_allocator.h"
#include "plan/counting_new.h"
#include "plan/crop.h"
#include "reference/descriptor.h"
#include "reference/effort.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

const std::vector<std::string> kAlgorithms = algorithm_names();

// Images of which a few fit near the CPU at a time, numbers of them that rounds divide and do not; what each algorithm is for.
const std::vector<std::string> kBatches = {
    "f32 nchw n18 ic8 oc8 i24x24 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nhwc n18 ic16 oc16 i20x20 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nhwc n7 ic16 oc24 i40x31 k3x3 s1x1 p1x1_1x1",
    "f32 nhwc n70 ic24 oc20 i4x4 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nchw n9 ic40 oc2 i30x28 k7x7 s1x1 p3x3_3x3 bias",
    "f32 nhwc n9 ic20 oc3 i30x28 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nhwc n14 ic32 oc3 i17x17 k8x8 s4x4 p2x2_2x2 bias",
    "f32 nchw n5 ic32 oc1 i300 k64 s16 p24_24",
    "f32 nchw n6 g24 ic24 oc24 i40x40 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nchw n9 ic24 oc20 i16x16 k3x3 s1x1 d12x12 bias",
    "f32 nhwc n9 ic24 oc20 i16x16 k3x3 s1x1 d12x12 bias",
    "f64 nhwc n10 ic16 oc16 i20x20 k4x4 s2x2 p1x1_1x1",
    "f16 nchw n12 ic16 oc6 i20x20 k4x4 s2x2 p1x1_1x1 bias",
    "bf16 nhwc n12 ic16 oc16 i20x20 k3x3 s2x2 p1x1_1x1 op1x1",
    "u8 nhwc n18 ic16 oc16 i20x20 k4x4 s2x2 p1x1_1x1 bias zx128",
    "s8 nchw n6 g24 ic24 oc24 i40x40 k4x4 s2x2 p1x1_1x1 bias zy3",
};

// As a part of larger tensors whose images are further apart than they are long, by `gap` of what axis 1 counts.
Crop with_gaps(convt_dtype dtype, const Shape &shape, std::int64_t gap) {
    Shape none(shape.size(), 0), after(shape.size(), 0);
    after[1] = gap;
    return {dtype, shape, none, after};
}

class Algorithms : public testing::TestWithParam<std::string> {};

TEST_P(Algorithms, BatchesOfSeveralRounds) {
    std::size_t computed = 0;
    for (const std::string &line : kBatches) {
        const Problem problem = parse_problem(line);
        // Integers: sums are exact by every algorithm.
        const Inputs inputs = draw(problem, 1, Values::integers);
        const convt_dtype y_dtype = problem.y_dtype.value_or(problem.dtype);
        Expected expected;
        for (const int threads : {1, 3}) {
            if (kOneIn > 1 && threads == 1) continue;
            Options options{};
            options.threads = threads;
            options.all_threads = 1;
            options.winograd = 1;
            if (!GetParam().empty()) options.variant = GetParam().c_str();
            SCOPED_TRACE(describe(problem, 1, options));
            Plan plan;
            Status status =
                Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
            if (status.code() == CONVT_UNSUPPORTED && options.variant) continue; // not for this layer
            ASSERT_TRUE(status) << status.message();
            ++computed;
            if (expected.shape.empty()) expected = reference(problem, inputs);
            Tensor y(y_dtype, plan.y_shape());
            status = plan.run(inputs.x.data(), y.data());
            ASSERT_TRUE(status) << status.message();
            EXPECT_TRUE(agrees(y, expected));

            Crop x_gaps = with_gaps(problem.dtype, problem.x_shape, 3), y_gaps = with_gaps(y_dtype, plan.y_shape(), 2);
            x_gaps.put(inputs.x);
            status = plan.run(x_gaps.view(), y_gaps.view());
            ASSERT_TRUE(status) << status.message();
            EXPECT_TRUE(agrees(y_gaps.get(), expected)) << "with gaps between images";
            Crop untouched = with_gaps(y_dtype, plan.y_shape(), 2);
            for (Crop *crop : {&y_gaps, &untouched}) crop->put(Tensor(y_dtype, plan.y_shape()));
            EXPECT_TRUE(y_gaps.parent() == untouched.parent()) << "a gap was written";
        }
    }
    EXPECT_GE(computed, 2u) << "too few layers can be computed so";
}

// Memory that grows with weights or tensors comes from the hooks. Lists of candidates come from operator new.
TEST_P(Algorithms, NothingLargeComesFromOperatorNew) {
    constexpr std::size_t kLarge = 256 << 10; // all of these weights are larger
    std::size_t computed = 0;
    for (const char *const line :
         {"f32 nchw n3 ic192 oc128 i9x9 k4x4 s2x2 p1x1_1x1 bias", "f32 nhwc n3 ic192 oc128 i9x9 k4x4 s2x2 p1x1_1x1",
          "f32 nchw n3 ic1280 oc4 i9x9 k4x4 s2x2 p1x1_1x1 bias", "f32 nchw n3 g512 ic512 oc512 i9x9 k16x16 s2x2",
          "f64 nhwc n3 ic96 oc64 i9x9 k4x4 s2x2 p1x1_1x1", "f32 nhwc n3 ic96 oc96 i16x16 k3x3 s1x1 d12x12 bias",
          "bf16 nhwc n3 ic192 oc128 i9x9 k4x4 s2x2 p1x1_1x1",
          "u8 nhwc n3 ic192 oc128 i9x9 k4x4 s2x2 p1x1_1x1 bias zx128", "s8 nchw n3 ic96 oc64 i8x8 k8x8 s2x2 zw3"}) {
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 1);
        CountingAllocator allocator;
        Options options = allocator.options();
        options.threads = 3;
        options.all_threads = 1;
        options.winograd = 1;
        if (!GetParam().empty()) options.variant = GetParam().c_str();
        SCOPED_TRACE(describe(problem, 1, options));
        const void *const b = inputs.b ? inputs.b->data() : nullptr;
        Plan plan, reshaped;
        forget_largest_new();
        Status status = Plan::create(problem, options, inputs.w.data(), b, &plan);
        if (status.code() == CONVT_UNSUPPORTED && options.variant) continue; // not for this layer
        ASSERT_TRUE(status) << status.message();
        const std::size_t largest_of_planning = largest_new();
        ++computed;
        Tensor y(problem.y_dtype.value_or(problem.dtype), plan.y_shape());
        Shape other = problem.x_shape;
        other[0] += 1;
        forget_largest_new();
        ASSERT_TRUE(plan.run(inputs.x.data(), y.data()));
        ASSERT_TRUE(plan.reshape(other, &reshaped));
        EXPECT_LE(largest_of_planning, kLarge) << "bytes in one piece, when planning";
        EXPECT_LE(largest_new(), kLarge) << "bytes in one piece, when running or reshaping";
        EXPECT_GT(allocator.live_bytes(), kLarge) << "the packed weights, at least";
    }
    EXPECT_GE(computed, 1u) << "none of these layers can be computed so";
}

// Small layers, of which each algorithm can compute some.
const std::vector<std::string> kSmall = {
    "f32 nchw n2 ic8 oc8 i6x7 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nhwc n3 ic16 oc3 i6x9 k3x3 s1x1 p1x1_1x1 bias",
    "f32 nhwc n2 ic8 oc24 i7x7 k4x4 s4x4",
    "f32 nhwc n2 ic20 oc17 i7x5 k3x3 s1x1 p1x1_1x1 bias",
    "f32 nchw n2 ic40 oc2 i9x9 k7x7 s1x1 p3x3_3x3 bias",
    "f32 nchw n1 ic12 oc1 i40 k16 s4 p6_6",
    "f32 nchw n1 g6 ic12 oc6 i6x6 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nchw n1 ic24 oc20 i16x16 k3x3 s1x1 d12x12 bias",
    "f64 nhwc n2 ic8 oc8 i6x6 k4x4 s2x2 p1x1_1x1",
    "bf16 nhwc n2 ic8 oc8 i6x6 k3x3 s2x2 p1x1_1x1 op1x1",
    "u8 nhwc n2 ic16 oc16 i6x6 k4x4 s2x2 p1x1_1x1 bias zx128",
};

// Creates, runs dense tensors and some with gaps, and reshapes. Whatever fails must be the memory, and must leave y as it was.
Status live(const Problem &problem, const Inputs &inputs, const Options &options, const Expected &expected) {
    Plan plan, reshaped;
    Status status = Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
    if (!status) return status;
    const Tensor zeros(expected.dtype, expected.shape);
    Tensor y = zeros;
    status = plan.run(inputs.x.data(), y.data());
    EXPECT_TRUE(status ? agrees(y, expected) : testing::AssertionResult(y == zeros)) << "dense";
    if (!status) return status;
    Crop gaps = with_gaps(expected.dtype, expected.shape, 2);
    gaps.put(zeros);
    status = plan.run(inputs.x.view(), gaps.view());
    EXPECT_TRUE(status ? agrees(gaps.get(), expected) : testing::AssertionResult(gaps.get() == zeros)) << "with gaps";
    if (!status) return status;
    Shape other = problem.x_shape;
    other[0] += 1;
    return plan.reshape(other, &reshaped);
}

TEST_P(Algorithms, AnyAllocationMayFail) {
    std::size_t computed = 0;
    for (const std::string &line : kSmall) {
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 1, Values::integers);
        const Expected expected = reference(problem, inputs);
        CountingAllocator allocator;
        Options options = allocator.options();
        options.threads = 3;
        options.all_threads = 1;
        options.winograd = 1;
        if (!GetParam().empty()) options.variant = GetParam().c_str();
        SCOPED_TRACE(describe(problem, 1, options));
        Status status = live(problem, inputs, options, expected);
        if (status.code() == CONVT_UNSUPPORTED && options.variant) continue; // not for this layer
        ASSERT_TRUE(status) << status.message();
        ++computed;
        for (std::size_t i = 0;; ++i) { // of the hooks
            ASSERT_LT(i, 1000u);
            SCOPED_TRACE(i);
            allocator.fail_at(i);
            status = live(problem, inputs, options, expected);
            ASSERT_EQ(allocator.live_blocks(), 0u);
            if (!allocator.failed()) break;
            ASSERT_EQ(status.code(), CONVT_OUT_OF_MEMORY) << status.message();
        }
        allocator.stop_failing();
        ASSERT_TRUE(status) << status.message();
    }
    EXPECT_GE(computed, 1u) << "none of these layers can be computed so";
}

// The layers are at the limits of each algorithm, on either side; weights are constant.
TEST(AlgorithmLimits, AreSaid) {
    struct Case {
        const char *algorithm, *line, *said; // said: null if the algorithm takes the layer
    };
    const char *const narrow = "too many output channels to be worth it";
    const Case cases[] = {
        {"phases_as_channels", "f32 nchw n1 ic4 oc16 i8 k2 s2", nullptr},
        {"phases_as_channels", "f32 nchw n1 ic4 oc17 i8 k2 s2", narrow},
        {"phases_as_channels", "f32 nchw n1 ic4 oc17 i8 k31 s31", narrow},
        {"phases_as_channels", "f32 nchw n1 ic4 oc256 i8 k32 s32", nullptr},
        {"phases_as_channels", "f32 nchw n1 ic4 oc257 i8 k32 s32", narrow},
        {"phases_as_channels", "f32 nchw n1 g2 ic4 oc18 i8 k32 s32", narrow},
        {"phases_as_channels", "u8 nchw n1 ic4 oc17 i8 k8 s8 ws8 yu8", narrow},
        {"phases_as_channels", "u8 nchw n1 g2 ic4 oc256 i8 k9 s9 ws8 yu8", nullptr},
        {"phases_as_channels", "u8 nchw n1 ic4 oc257 i8 k9 s9 ws8 yu8", narrow},
        {"phases_as_channels", "f32 nhwc n1 ic4 oc64 i8 k2 s2", nullptr},
        {"phases_as_channels", "f32 nhwc n1 ic4 oc65 i8 k2 s2", narrow},
        {"phases_as_channels", "f32 nchw n1 ic4 oc4 i8 k3 s1", "the stride along the last axis is 1"},
        {"phases_as_channels", "f32 nchw n1 ic4 oc4 i8 k3 s2 d2", "the last axis is dilated"},
        {"phases_as_channels", "f32 nchw n1 ic4 oc4 i8 k2 s3", "the kernel is shorter than the stride"},
        {"phases_as_channels", "f32 nhwc n1 g2 ic4 oc4 i8 k2 s2", "groups, and channels last"},
        {"phases_as_channels", "f32 nchw n1 ic4 oc4 i2x2x2x8 k2x2x2x2 s2x2x2x2", "more than three spatial axes"},
        {"phases_as_channels", "f32 nchw n0 ic4 oc4 i8 k2 s2", "x or y has no elements"},
        {"depth_to_space", "f32 nchw n1 g2 ic4 oc32 i4x4 k2x2 s2x2", nullptr},
        {"depth_to_space", "f32 nchw n1 g2 ic4 oc34 i4x4 k2x2 s2x2", narrow},
        {"depth_to_space", "f32 nchw n1 ic4 oc64 i4x4 k1x1 s2x2", nullptr},
        {"depth_to_space", "u8 nchw n1 ic4 oc4 i4x4 k1x1 s2x2 ws8 yu8", "phases without taps, and sums of integers"},
        {"depth_to_space", "f32 nchw n1 ic4 oc4 i4x4 k3x3 s1x1", "all strides are 1"},
        {"depth_to_space", "f32 nchw n1 ic1 oc1 i2x1025 k1048576x1 s1048576x1 p1048575x0_1048575x0",
         "what is rearranged has more elements than kernels count"},
        {"depth_to_space", "f32 nchw n1 ic4 oc4 i2x2x2x8 k2x2x2x2 s2x2x2x2", "more than three spatial axes"},
        {"batch_as_width", "f32 nhwc n1 ic4 oc4 i8x4 k2x2 s2x2", nullptr},
        {"batch_as_width", "f32 nhwc n1 ic4 oc4 i8x5 k2x2 s2x2", "a single image of many columns"},
        {"batch_as_width", "f32 nchw n4 ic4 oc4 i8x4 k2x2 s2x2", "channels are not last"},
        {"batch_as_width", "f32 nhwc n4 ic4 oc4 i2x8x4 k2x2x2 s2x2x2", "more than two spatial axes"},
        {"batch_as_width", "u8 nhwc n4 ic4 oc4 i8x4 k2x2 s2x2 ws8 yu8", "it is not for sums of integers"},
        {"layout_transpose", "f16 nchw n1 ic4 oc4 i8x4 k2x2 s2x2", nullptr},
        {"layout_transpose", "u8 nchw n1 ic4 oc4 i8x4 k2x2 s2x2 ws8 yu8", "it is not for sums of integers"},
        {"col2im", "f32 nchw n1 ic4 oc4 i8x4 k1x1 s1x1", "it is a matrix product as it is"},
        {"col2im", "f32 nchw n1 ic4 oc4 i8x4 k1x1 s1x2", nullptr},
        {"output_parts", "f32 nchw n1 ic4 oc4 i2 k2 s1 d10 p3_3",
         "no cuts of y spare enough multiply-adds"}, // y is the bias
        {"winograd", "f32 nhwc n1 g2 ic32 oc32 i8x8 k3x3 s1x1", "it has groups"},
        {"winograd", "f32 nchw n1 ic32 oc32 i8x8 k3x3 s1x1", "channels are not last"},
        {"winograd", "f32 nhwc n1 ic32 oc32 i8x8 k3x3 s1x1 d2x1",
         "it is dilated, or the kernel is shorter than the stride"},
        {"winograd", "f32 nhwc n1 ic32 oc32 i8x8 k5x3 s1x1",
         "a phase has no taps or more than three, or all have one, or there are too many"},
    };
    for (const Case &c : cases) {
        const Problem problem = parse_problem(c.line);
        const Inputs inputs = draw(problem, 1);
        Options options{};
        options.winograd = 1;
        options.variant = c.algorithm;
        SCOPED_TRACE(describe(problem, 1, options));
        Plan plan;
        const Status status = Plan::create(problem, options, inputs.w.data(), nullptr, &plan);
        EXPECT_EQ(status.message(), c.said ? std::string(c.algorithm) + " cannot compute this problem: " + c.said : "");
    }
}

std::vector<std::string> names() {
    std::vector<std::string> all = kAlgorithms;
    all.emplace_back(); // what is chosen
    return all;
}

INSTANTIATE_TEST_SUITE_P(Plan, Algorithms, testing::ValuesIn(names()),
                         [](const testing::TestParamInfo<std::string> &c) {
                             return c.param.empty() ? std::string("chosen") : c.param;
                         });

} // namespace
} // namespace convtranspose::test
