// Every kernel for a device, forced by name, on problems that it can do, compared with the reference; and what is chosen by
// default. Where there is no such device the tests skip, and say why.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "gpu/device.h"
#include "gpu/device_reference.h"
#include "reference/descriptor.h"
#include "reference/quantized.h"
#include "reference/random_problem.h"
#include "reference/reference.h"
#include "runtime/gpu/device_table.h"
#include "variants/problems.h"

namespace convtranspose::test {
namespace {

struct Row {
    std::string kind;
    const DeviceVariant *variant;
};

void PrintTo(const Row &row, std::ostream *stream) { *stream << row.variant->name << " for " << row.kind; }

// combines: those that follow the others, or the others.
std::vector<Row> rows_of_the_tables(bool combines) {
    std::vector<Row> rows;
    for (const DeviceTable *table : {&convt_opencl_kernels, &convt_cuda_kernels}) {
        for (std::size_t i = 0; i < table->variant_count; ++i) {
            const bool is_one = table->variants[i].call == DeviceCall::kCombine;
            if (is_one == combines) rows.push_back({table->kind, &table->variants[i]});
        }
    }
    return rows;
}

// One in so many of the problems of the table of kernels for the CPU, beside the first few that a row can do.
constexpr std::size_t kOneIn = 23, kAtLeast = 6;

class DeviceVariants : public testing::TestWithParam<Row> {};

TEST_P(DeviceVariants, Agree) {
    const DeviceVariant &v = *GetParam().variant;
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam().kind);
    std::size_t done = 0, index = 0;
    Random random(static_cast<std::uint64_t>(v.tile_oc) * 100 + static_cast<std::uint64_t>(v.y_dtype));
    for (const convt_layout layout : {CONVT_CHANNELS_FIRST, CONVT_CHANNELS_LAST}) {
        for (Problem &problem : variant_problems(v.x_dtype, layout)) {
            ++index;
            const std::uint64_t seed = index;
            if (!is_float(v.arithmetic)) {
                problem.dtype = random.pick<convt_dtype>({CONVT_U8, CONVT_S8});
                QuantizedAs as = random_quantized_as(problem.dtype, &random);
                if (v.y_dtype == CONVT_F32) as.y = CONVT_F32;
                quantize(&problem, as);
            }
            if (done >= kAtLeast && index % kOneIn != 0) continue;
            Options options = on_device(GetParam().kind);
            options.variant = v.name;
            SCOPED_TRACE(describe(problem, seed, options));
            Inputs inputs = draw(problem, seed, seed % 2 ? Values::uniform : Values::integers);
            spoil_bias(problem, seed, &inputs);
            Plan plan;
            Status status =
                Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
            if (status.code() == CONVT_UNSUPPORTED) {
                EXPECT_NE(status.message(), "");
                continue;
            }
            ASSERT_TRUE(status) << status.message();
            const std::string chosen = plan.variant();
            ASSERT_EQ(chosen.substr(0, chosen.find(':')), v.name); // with its sums in any number of parts
            ASSERT_EQ(plan.device(), GetParam().kind);
            Tensor y(problem.y_dtype.value_or(problem.dtype), plan.y_shape()), again = y;
            status = plan.run(inputs.x.data(), y.data());
            ASSERT_TRUE(status) << status.message();
            ASSERT_TRUE(agrees(y, device_reference(problem, inputs)));
            status = plan.run(inputs.x.data(), again.data());
            ASSERT_TRUE(status) << status.message();
            ASSERT_TRUE(again == y) << "a second run gives other bits";
            ++done;
        }
    }
    EXPECT_GE(done, kAtLeast) << "can do too few of the problems";
    RecordProperty("problems", static_cast<int>(done));
}

INSTANTIATE_TEST_SUITE_P(Table, DeviceVariants, testing::ValuesIn(rows_of_the_tables(false)),
                         [](const testing::TestParamInfo<Row> &c) {
                             return c.param.kind + "_" + c.param.variant->name;
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceVariants);

class DeviceCombines : public testing::TestWithParam<Row> {};

// After a convolution of its type, or after one whose sums are in parts of another.
TEST_P(DeviceCombines, Agree) {
    const DeviceVariant &v = *GetParam().variant;
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam().kind);
    const std::string dtype = convt_dtype_name(v.y_dtype);
    const bool in_parts = v.x_dtype != v.y_dtype;
    Problem problem = parse_problem(dtype + (in_parts ? " nchw n1 ic600 oc20 i3x3 k3x3 s2x2 p1x1_1x1 bias"
                                                      : " nhwc n2 ic5 oc6 i3x5 k4x4 s2x2 p1x1_1x1 bias"));
    const Inputs inputs = draw(problem, 41);
    Expected y_expected = device_reference(problem, inputs);
    for (double &value : y_expected.value) value = std::max(value, 0.0);
    problem.post_ops.activation = CONVT_RELU;
    const std::string variant = "tiled_" + dtype + "_parts_64x64";
    Options options = on_device(GetParam().kind);
    if (in_parts) options.variant = variant.c_str();
    Plan plan;
    Status status = Plan::create(problem, options, inputs.w.data(), inputs.b->data(), &plan);
    ASSERT_TRUE(status) << status.message();
    ASSERT_NE(plan.explain().find("; then " + std::string(v.name) + "\n"), std::string::npos) << plan.explain();
    Tensor y(v.y_dtype, plan.y_shape());
    status = plan.run(inputs.x.data(), y.data());
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(agrees(y, y_expected));
}

INSTANTIATE_TEST_SUITE_P(Table, DeviceCombines, testing::ValuesIn(rows_of_the_tables(true)),
                         [](const testing::TestParamInfo<Row> &c) {
                             return c.param.kind + "_" + c.param.variant->name;
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceCombines);

} // namespace
} // namespace convtranspose::test
