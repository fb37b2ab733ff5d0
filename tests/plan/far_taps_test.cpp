// Attributes of any size, where x and y are small: taps that never meet x, and sizes that overflow if somebody multiplies them.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/algorithm_names.h"
#include "plan/other_layers.h"
#include "reference/descriptor.h"
#include "reference/effort.h"
#include "reference/quantized.h"
#include "reference/reference.h"
#include "runtime/problem/axis_plan.h"

#if defined(__linux__) && defined(__LP64__)
#include <sys/mman.h>
#endif

namespace convtranspose::test {
namespace {

Problem line_of(const Shape &x, const Shape &w) {
    Problem p;
    p.x_shape = x;
    p.w_shape = w;
    return p;
}

// Where only the middle one of three taps meets x: y is x.
TEST(FarTaps, TheMiddleOneAlone) {
    for (const int bits : {27, 30, 31, 32, 33, 40, 59}) {
        const std::int64_t far = std::int64_t{1} << bits;
        Problem p = line_of({1, 1, 4}, {1, 1, 3});
        p.attributes.dilations = {{far}};
        p.attributes.pads = {{far, far}};
        SCOPED_TRACE(describe(p));
        const std::vector<float> x = {1, 2, 3, 4}, w = {10, 1, 100};
        std::vector<float> y(4);
        Plan plan;
        Status status = Plan::create(p, Options{}, w.data(), nullptr, &plan);
        ASSERT_TRUE(status) << status.message();
        EXPECT_LE(plan.workspace_bytes(), 4096U);
        status = plan.run(x.data(), y.data());
        ASSERT_TRUE(status) << status.message();
        EXPECT_EQ(y, x);
    }
}

// Strides of which one position is in y: products of them with channels and strides of y do not fit in 64 bits.
TEST(FarStrides, AreTakenOrRefusedByEachAlgorithm) {
    std::size_t computed = 0;
    for (const std::int64_t stride : {std::int64_t{1} << 31, (std::int64_t{1} << 32) + 1, std::int64_t{1} << 58,
                                      (std::int64_t{1} << 60) - 1, (std::int64_t{1} << 61) - 1}) {
        for (const char *const line :
             {"f32 nhwc n1 ic5 oc8 i1x3 k2x3", "f32 nchw n1 ic5 oc8 i1x3 k2x3", "f32 nhwc n2 ic16 oc3 i3x1 k2x3",
              "f32 nchw n2 ic16 oc1 i1 k3", "f64 nhwc n1 ic20 oc17 i1x1 k3x3", "u8 nhwc n1 ic5 oc9 i1x1 k2x3 bias"}) {
            Problem problem = parse_problem(line);
            problem.attributes.strides = Shape(problem.x_shape.size() - 2, stride);
            for (std::size_t a = 0; a < problem.attributes.strides->size(); ++a) {
                const std::size_t axis = a + (problem.layout == CONVT_CHANNELS_LAST ? 1 : 2);
                if (problem.x_shape[axis] > 1) (*problem.attributes.strides)[a] = 2;
            }
            const Inputs inputs = draw(problem, 1, Values::integers);
            std::vector<std::string> names = algorithm_names();
            names.emplace_back();
            for (const std::string &name : names) {
                Options options{};
                options.winograd = 1;
                options.variant = name.empty() ? nullptr : name.c_str();
                SCOPED_TRACE(describe(problem, 1, options));
                Tensor y;
                const Status status = run(problem, inputs, options, &y);
                if (status.code() == CONVT_UNSUPPORTED && !name.empty()) continue;
                ASSERT_TRUE(status) << status.message();
                EXPECT_TRUE(agrees(y, reference(problem, inputs)));
                ++computed;
            }
        }
    }
    EXPECT_GE(computed, 40u);
}

// Long rows of x of which y needs none, as it lies between the two places of each kernel element.
TEST(FarTaps, RowsOfXThatMeetNoOutput) {
    for (const char *const line : {"f32 nchw n1 g1 ic1 oc4 i2x3000 k2x30 s1x1 d1000x1 p500x0_501x0 bias",
                                   "f32 nhwc n1 g1 ic1 oc4 i2x3000 k2x30 s1x1 d1000x1 p500x0_501x0 bias",
                                   "f64 nchw n2 g1 ic1 oc2 i2x3000 k2x30 s1000x1 d1x1 p500x0_501x0",
                                   "f32 nhwc n1 g1 ic2 oc9 i2x1500 k1x30 s1000x1 d1x1 p500x0_500x0"}) {
        expect_agreement(parse_problem(line), 3);
    }
}

// One axis of any attributes, with a y of at most 12 that one tap meets at least.
void draw_axis(Random *random, std::int64_t *in, std::int64_t *kernel, Attributes *a) {
    const auto any = [&] {
        const std::int64_t small = random->integer(1, 6),
                           large = static_cast<std::int64_t>(random->bits() >> random->integer(3, 40));
        return random->integer(0, 2) ? small : std::max<std::int64_t>(large, 1);
    };
    *in = random->integer(1, 6);
    *kernel = random->integer(1, 4);
    const std::int64_t limit = (std::int64_t{1} << 60) / 8;
    const std::int64_t stride = std::min(any(), limit), dilation = std::min(any(), limit);
    const std::int64_t last = stride * (*in - 1) + dilation * (*kernel - 1);
    const std::int64_t meets = stride * random->integer(0, *in - 1) + dilation * random->integer(0, *kernel - 1);
    const std::int64_t begin = std::max<std::int64_t>(meets - random->integer(0, 5), 0);
    const std::int64_t out = std::min(last + 1 - begin, meets - begin + random->integer(1, 6));
    a->strides->push_back(stride);
    a->dilations->push_back(dilation);
    a->pads->push_back(begin);
    a->output_padding->push_back(last + 1 - begin - out); // is moved to where pads at the end stand
}

Problem draw_problem(Random *random) {
    Problem p;
    const std::int64_t axes = random->integer(1, kOneIn > 1 ? 2 : 4);
    Attributes a;
    a.strides = a.dilations = a.pads = a.output_padding = Shape();
    Shape in, kernel;
    for (std::int64_t i = 0; i < axes; i++) {
        in.push_back(0);
        kernel.push_back(0);
        draw_axis(random, &in.back(), &kernel.back(), &a);
    }
    a.pads->insert(a.pads->end(), a.output_padding->begin(), a.output_padding->end());
    a.output_padding.reset();
    a.group = random->integer(1, 2);
    p.attributes = a;
    const std::int64_t channels = a.group * random->integer(1, 9), of_group = random->integer(1, 9);
    p.dtype = random->pick<convt_dtype>({CONVT_F32, CONVT_F32, CONVT_F64, CONVT_F16, CONVT_U8});
    p.layout = random->integer(0, 1) ? CONVT_CHANNELS_LAST : CONVT_CHANNELS_FIRST;
    p.x_shape = {random->integer(1, 2)};
    if (p.layout == CONVT_CHANNELS_FIRST) p.x_shape.push_back(channels);
    p.x_shape.insert(p.x_shape.end(), in.begin(), in.end());
    if (p.layout == CONVT_CHANNELS_LAST) p.x_shape.push_back(channels);
    p.w_shape = {channels, of_group};
    p.w_shape.insert(p.w_shape.end(), kernel.begin(), kernel.end());
    return p;
}

TEST(FarTaps, RandomAttributesOfAnySize) {
    Random random(20261);
    for (int i = 0; i < 600 / kOneIn; i++) {
        Problem p = draw_problem(&random);
        if (p.dtype == CONVT_U8) quantize(&p, random_quantized_as(p.dtype, &random));
        const std::uint64_t seed = random.bits() % 1000;
        Options options{};
        options.threads = static_cast<int>(random.integer(1, 3));
        options.all_threads = 1;
        SCOPED_TRACE(describe(p, seed, options));
        const Inputs inputs = draw(p, seed);
        Plan plan;
        Status status = Plan::create(p, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
        ASSERT_TRUE(status) << status.message();
        EXPECT_LE(plan.workspace_bytes(), std::size_t{1} << 22);
        Tensor y(is_quantized(p.dtype) ? p.y_dtype.value_or(p.dtype) : p.dtype, plan.y_shape());
        status = plan.run(inputs.x.data(), y.data());
        ASSERT_TRUE(status) << status.message();
        ASSERT_TRUE(agrees(y, is_quantized(p.dtype) ? quantized_reference(p, inputs) : reference(p, inputs)));
    }
}

// The same by each kernel that is built in.
TEST(FarTaps, ByEveryKernel) {
    for (const char *const line :
         {"f32 nchw n1 g1 ic8 oc16 i6x20 k3x3 s1x1 p4294967296x4294967296_4294967296x4294967296 "
          "d4294967296x4294967296 bias",
          "f32 nhwc n1 g1 ic8 oc16 i6x20 k3x3 s2x1 p2147483648x1073741824_2147483649x1073741824 "
          "d2147483648x1073741824 bias",
          "f32 nhwc n1 g8 ic8 oc8 i6x20 k3x3 s1x1 p4294967296x4294967296_4294967296x4294967296 "
          "d4294967296x4294967296 bias"}) {
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 5);
        const Expected expected = reference(problem, inputs);
        std::set<std::string> variants; // of any ISA
        for (std::size_t i = 0; i < convt_variant_count(); i += kOneIn) {
            const std::string name = convt_variant_name(i);
            if (name.find("_f32_") != std::string::npos) variants.insert(name);
        }
        for (std::size_t isa = 0; isa < convt_isa_count(); isa++) {
            if (!convt_isa_supported(isa)) continue;
            int able = 0;
            for (const std::string &variant : variants) {
                Options options{};
                options.variant = variant.c_str();
                options.isa = convt_isa_name(isa);
                Plan plan;
                if (!Plan::create(problem, options, inputs.w.data(), inputs.b->data(), &plan)) continue;
                SCOPED_TRACE(describe(problem, 5, options));
                EXPECT_LE(plan.workspace_bytes(), std::size_t{1} << 20);
                Tensor y(problem.dtype, plan.y_shape());
                const Status status = plan.run(inputs.x.data(), y.data());
                ASSERT_TRUE(status) << status.message();
                EXPECT_TRUE(agrees(y, expected));
                able++;
            }
            EXPECT_GT(able, 0) << line << " on " << convt_isa_name(isa);
        }
    }
}

// Rows of x as far apart as 32 bits allow: what a thread reads begins where its part of y does.
TEST(FarTaps, FarRowsOfX) {
#if defined(__linux__) && defined(__LP64__)
    constexpr std::int64_t kRow = 429496729, kRows = 5, kRowElements = 320;
    const Problem problem = parse_problem("f32 nchw n1 g1 ic16 oc64 i5x20 k4x1 s1x1");
    const std::size_t bytes = static_cast<std::size_t>((kRows - 1) * kRow + kRowElements) * sizeof(float);
    void *const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    auto *const x = static_cast<float *>(memory);
    for (std::int64_t r = 0; r < kRows; r++) std::fill_n(x + r * kRow, kRowElements, 1.0F);
    const std::vector<float> w(4096, 1.0F); // 16 by 64 channels, 4 elements
    for (std::size_t isa = 0; isa < convt_isa_count(); isa++) {
        if (!convt_isa_supported(isa)) continue;
        for (const int threads : {1, 2, 3}) {
            Options options{};
            options.threads = threads;
            options.all_threads = 1;
            options.isa = convt_isa_name(isa);
            SCOPED_TRACE(describe(problem, 0, options));
            Plan plan;
            ASSERT_TRUE(Plan::create(problem, options, w.data(), nullptr, &plan));
            Tensor y(problem.dtype, plan.y_shape());
            const Status status =
                plan.run(ConstTensorView(x, problem.dtype, problem.x_shape, {1, 20, kRow, 1}), y.view());
            ASSERT_TRUE(status) << status.message();
            const std::vector<double> rows = {16, 32, 48, 64, 64, 48, 32, 16};
            for (std::int64_t i = 0; i < y.size(); i++)
                ASSERT_EQ(y.get(i), rows[static_cast<std::size_t>(i / 20 % 8)]) << i;
        }
    }
    munmap(memory, bytes);
#else
    GTEST_SKIP() << "memory that is only reserved: 64-bit Linux alone";
#endif
}

// A table of taps has rows for phases that have taps, not for each of a stride.
TEST(FarTaps, TablesOfLongStrides) {
    AxisGeometry axis;
    axis.in = 3;
    axis.kernel = 2;
    axis.stride = 100000000;
    axis.dilation = 3;
    axis.out = 2 * axis.stride + 4;
    const AxisPlan plan = plan_axis(axis, axis.stride, false);
    EXPECT_LT(plan.rows(), 5000);
    EXPECT_EQ(plan.taps, 2);
    std::int64_t phases = 0;
    for (const PhaseRun &run : plan.runs) {
        EXPECT_EQ(run.first, phases);
        phases += run.count;
        EXPECT_EQ(run.q_extent, run.first < 4 ? 3 : 2);
    }
    EXPECT_EQ(phases, axis.stride);
    std::vector<std::int64_t> with_taps;
    plan.for_each_with_taps([&](const PhaseRun &, std::int64_t phase, const std::int32_t *row) {
        with_taps.push_back(phase);
        EXPECT_EQ(row[0], 0);
        EXPECT_EQ(row[1], 1);
    });
    EXPECT_EQ(with_taps, (std::vector<std::int64_t>{0, 3}));
}

TEST(FarTaps, LongStridesAgree) {
    for (const char *const line :
         {"f32 nchw n1 g1 ic2 oc3 i3 k2 s50000 d3 bias", "f32 nhwc n2 g1 ic2 oc3 i2 k5 s20011 d4001",
          "f64 nchw n1 g1 ic2 oc2 i2x3 k2x3 s5003x2 bias", "f32 nhwc n1 g4 ic4 oc4 i3 k3 s9001 bias"}) {
        expect_agreement(parse_problem(line), 7);
    }
    const Problem problem = parse_problem("u8 nhwc n1 g1 ic4 oc3 i3 k2 s9001 d7 bias zx7 zw0 zy3");
    const Inputs inputs = draw(problem, 5);
    Tensor y;
    ASSERT_TRUE(run(problem, inputs, Options{}, &y));
    EXPECT_TRUE(agrees(y, quantized_reference(problem, inputs)));
}

} // namespace
} // namespace convtranspose::test
