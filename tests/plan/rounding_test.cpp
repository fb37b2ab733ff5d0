// The calling thread's floating-point mode: how it rounds changes no result, and what it takes for zero all threads do.
#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "reference/quantized.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

#ifndef __wasm__ // which has one mode

const std::vector<std::string> kProblems = {
    "u8 nhwc n1 g1 ic33 oc40 i9x11 k4x4 s2x2 p1x1_1x1 bias", // 8-bit y
    "s8 nchw n2 g1 ic17 oc3 i6x20 k3x3 s2x2 bias",
    "u8 nchw n1 g9 ic9 oc9 i8x30 k4x4 s2x2 p1x1_1x1",
    "u8 nchw n1 g1 ic5 oc6 i2x3x4x5 k2x2x2x3 s2x1x2x2 bias", // four axes
    "f32 nchw n1 g1 ic40 oc24 i9x17 k3x3 s2x2 p1x1_1x1 bias",
    "f32 nhwc n1 g1 ic12 oc5 i30x40 k4x4 s2x2 p1x1_1x1 bias",
    "f16 nhwc n1 g1 ic20 oc24 i9x12 k3x3 s1x1 p1x1_1x1 bias",
    "bf16 nchw n1 g7 ic7 oc7 i9x33 k4x4 s2x2 p1x1_1x1",
    "f64 nchw n1 g1 ic12 oc3 i9x33 k4x4 s2x2 p1x1_1x1 bias",
};

// The thread's own mode again when it ends.
class Rounding {
  public:
    explicit Rounding(int mode) : before_(std::fegetround()) { std::fesetround(mode); }
    ~Rounding() { std::fesetround(before_); }
    Rounding(const Rounding &) = delete;
    Rounding &operator=(const Rounding &) = delete;

  private:
    int before_;
};

// Plans and runs, by so many threads.
void compute(const Problem &problem, const Inputs &inputs, const Options &options, Tensor *y) {
    Plan plan;
    Status status = Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
    ASSERT_TRUE(status) << status.message();
    *y = Tensor(problem.y_dtype.value_or(problem.dtype), plan.y_shape());
    status = plan.run(inputs.x.data(), y->data());
    ASSERT_TRUE(status) << status.message();
}

class RoundingMode : public testing::TestWithParam<int> {};

// First on two threads, so that a pool that does not exist yet is made in the mode.
TEST_P(RoundingMode, ChangesNoResult) {
    for (const std::string &line : kProblems) {
        Problem problem = parse_problem(line);
        for (const convt_dtype y_dtype : {CONVT_U8, CONVT_F32}) {
            if (is_quantized(problem.dtype)) {
                QuantizedAs as;
                as.x_zero_point = problem.dtype == CONVT_U8 ? 120 : 3;
                as.y = y_dtype;
                as.y_zero_point = y_dtype == CONVT_F32 ? 0 : 100;
                as.per_channel = true;
                quantize(&problem, as);
            } else if (y_dtype != CONVT_F32) {
                continue;
            }
            const Inputs inputs = draw(problem, 11);
            for (std::size_t i = 0; i < convt_isa_count(); ++i) {
                if (convt_isa_supported(i) == 0) continue;
                for (const int threads : {2, 1}) {
                    Options options{};
                    options.isa = convt_isa_name(i);
                    options.threads = threads;
                    options.all_threads = 1;
                    SCOPED_TRACE(describe(problem, 11, options));
                    Tensor odd, even;
                    {
                        const Rounding rounding(GetParam());
                        compute(problem, inputs, options, &odd);
                        EXPECT_EQ(std::fegetround(), GetParam()) << "the caller's mode is not given back";
                    }
                    compute(problem, inputs, options, &even);
                    if (HasFatalFailure()) return;
                    ASSERT_TRUE(odd == even);
                }
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Modes, RoundingMode, testing::Values(FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO),
                         [](const testing::TestParamInfo<int> &c) {
                             return std::string(c.param == FE_UPWARD     ? "Upward"
                                                : c.param == FE_DOWNWARD ? "Downward"
                                                                         : "TowardZero");
                         });

#if defined(__x86_64__) && defined(__GNUC__)

// Sums of subnormal numbers, half of them by another thread than the one that takes such for zero.
TEST(SubnormalNumbers, CountTheSameOnAllThreads) {
    constexpr unsigned int kFlushing = 1U << 15 | 1U << 6; // of results, of operands
    const Problem problem = parse_problem("f32 nhwc n1 g1 ic16 oc16 i40x40 k3x3 s2x2 p1x1_1x1");
    Inputs inputs = draw(problem, 5);
    for (std::int64_t i = 0; i < inputs.x.size(); ++i) inputs.x.set(i, 1e-40);
    for (const bool flushing : {true, false}) {
        Tensor one, two;
        const unsigned int before = __builtin_ia32_stmxcsr();
        __builtin_ia32_ldmxcsr(flushing ? before | kFlushing : before & ~kFlushing);
        Options options{};
        options.threads = 1;
        compute(problem, inputs, options, &one);
        options.threads = 2;
        options.all_threads = 1;
        compute(problem, inputs, options, &two);
        __builtin_ia32_ldmxcsr(before);
        if (HasFatalFailure()) return;
        EXPECT_TRUE(one == two);
        double most = 0;
        for (std::int64_t i = 0; i < one.size(); ++i) most = std::max(most, std::abs(one.get(i)));
        EXPECT_EQ(most == 0, flushing);
    }
}

#endif

#endif

} // namespace
} // namespace convtranspose::test
