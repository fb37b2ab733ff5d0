// Layers of more weights than a second-level cache keeps, by every kernel of channels: those fetch the next tile's then, in a copy
// of their loops that no smaller layer takes (schedules/cpu/passes/prefetch_next_weights.h).
#include <cstddef>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

// 3 MiB of weights in a group, or more.
const char *const kProblems[] = {
    "f32 nhwc n1 g1 ic256 oc192 i5x15 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nchw n1 g1 ic256 oc192 i5x15 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nhwc n2 g2 ic512 oc392 i2x6 k4x4 s2x2 p1x1_1x1",
    "f32 nchw n1 g1 ic384 oc260 i37 k16 s8 p4_4 bias",
    "f32 nhwc n1 g1 ic96 oc96 i2x2x16 k5x5x4 s2x1x3 p1x0x2_1x1x0",
    "f64 nhwc n1 g1 ic128 oc200 i6x15 k4x4 s2x2 p1x1_1x1 bias",
    "f64 nchw n1 g1 ic128 oc200 i6x15 k4x4 s2x2 p1x1_1x1",
    "f16 nhwc n1 g1 ic512 oc192 i6x15 k4x4 s2x2 p1x1_1x1 bias",
    "bf16 nchw n1 g1 ic512 oc192 i6x15 k4x4 s2x2 p1x1_1x1 bias",
};

TEST(FarWeights, AreReadRightByEveryKernelOfChannels) {
    std::set<std::string> variants; // of any ISA
    for (std::size_t i = 0; i < convt_variant_count(); i++) {
        const std::string name = convt_variant_name(i);
        if (name.rfind("oc_vectorized_", 0) == 0) variants.insert(name);
    }
    std::size_t isas = 0;
    for (const char *const isa : {"x86_64", "avx2", "avx512"}) {
        std::size_t able = 0;
        for (std::size_t i = 0; i < convt_isa_count(); i++) {
            if (convt_isa_name(i) == std::string(isa) && convt_isa_supported(i)) isas++, able = 1;
        }
        if (!able) continue;
        for (const char *const line : kProblems) {
            const Problem problem = parse_problem(line);
            const Inputs inputs = draw(problem, 5);
            const Expected expected = reference(problem, inputs);
            able = 0;
            for (const std::string &variant : variants) {
                Options options{};
                options.isa = isa;
                options.variant = variant.c_str();
                for (int threads = 1; threads <= 2; threads++) {
                    options.threads = threads;
                    options.all_threads = 1;
                    SCOPED_TRACE(describe(problem, 5, options));
                    Plan plan;
                    const void *const b = inputs.b ? inputs.b->data() : nullptr;
                    const Status status = Plan::create(problem, options, inputs.w.data(), b, &plan);
                    if (status.code() == CONVT_UNSUPPORTED) break;
                    ASSERT_TRUE(status) << status.message();
                    Tensor y(problem.dtype, plan.y_shape());
                    ASSERT_TRUE(plan.run(inputs.x.data(), y.data()));
                    EXPECT_TRUE(agrees(y, expected));
                    able++;
                }
            }
            EXPECT_GT(able, 0U) << line << " on " << isa;
        }
    }
    if (isas == 0) GTEST_SKIP() << "kernels of x86 alone fetch weights";
}

} // namespace
} // namespace convtranspose::test
