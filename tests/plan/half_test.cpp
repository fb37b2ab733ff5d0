// The 16-bit floats: how sums become them, ties included, and NaNs of every pattern, which must stay NaNs.
#include "runtime/base/half.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/other_layers.h"
#include "reference/descriptor.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

// All numbers between which two neighbours of 16 bits the border lies, and those beside it.
TEST(Half, RoundsAsTheReferenceDoesAroundEveryTie) {
    for (std::uint32_t bits = 0; bits < 0x7f80; ++bits) {
        const auto pattern = static_cast<std::uint16_t>(bits);
        for (const bool is_f16 : {true, false}) {
            if (is_f16 && bits >= 0x7c00) continue;
            const double here = is_f16 ? from_f16(pattern) : from_bf16(pattern);
            // One that the type does not have any more: infinity stands for the power of two after its largest.
            const bool last = bits == (is_f16 ? 0x7bffu : 0x7f7fu);
            const double next = last     ? std::ldexp(1.0, is_f16 ? 16 : 128)
                                : is_f16 ? from_f16(static_cast<std::uint16_t>(bits + 1))
                                         : from_bf16(static_cast<std::uint16_t>(bits + 1));
            const float tie = static_cast<float>((here + next) / 2);
            for (const float magnitude : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, INFINITY)}) {
                for (const float value : {magnitude, -magnitude}) {
                    const double exact = static_cast<double>(value);
                    ASSERT_EQ(is_f16 ? convtranspose::to_f16(value).bits : convtranspose::to_bf16(value).bits,
                              is_f16 ? to_f16(exact) : to_bf16(exact))
                        << value << (is_f16 ? " as f16" : " as bf16");
                }
            }
        }
    }
}

TEST(Half, NaNsStayNaNs) {
    for (const std::uint32_t bits : {0x7f800001u, 0x7f80ffffu, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffffffffu}) {
        const float nan = float_from_bits(bits);
        EXPECT_TRUE(std::isnan(from_f16(convtranspose::to_f16(nan).bits))) << bits;
        EXPECT_TRUE(std::isnan(from_bf16(convtranspose::to_bf16(nan).bits))) << bits;
    }
    for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
        const auto pattern = static_cast<std::uint16_t>(bits);
        ASSERT_EQ(std::isnan(static_cast<float>(F16{pattern})), std::isnan(from_f16(pattern))) << bits;
        ASSERT_EQ(std::isnan(static_cast<float>(Bf16{pattern})), std::isnan(from_bf16(pattern))) << bits;
    }
}

// By kernels of each ISA, and by what adds up and stores the sums of more axes than kernels have.
const std::vector<std::string> kAxes = {"nchw n1 ic2 oc3 i40 k1", "nhwc n1 ic2 oc20 i5x8 k1x1",
                                        "nchw n1 ic2 oc2 i2x4x5 k1x1x1", "nhwc n1 ic2 oc3 i2x2x2x5 k1x1x1x1",
                                        "nchw n1 ic2 oc3 i2x2x2x1x5 k1x1x1x1x1"};

template<typename F>
void for_each_isa(const F &f) {
    for (std::size_t isa = 0; isa < convt_isa_count(); ++isa) {
        if (!convt_isa_supported(isa)) continue;
        Options options{};
        options.isa = convt_isa_name(isa);
        f(options);
    }
}

TEST(Half, SumsThatAreTiesGoToTheEvenNeighbour) {
    for (const convt_dtype dtype : {CONVT_F16, CONVT_BF16}) {
        for (const std::string &line : kAxes) {
            const Problem problem = parse_problem(std::string(convt_dtype_name(dtype)) + " " + line);
            Inputs inputs = draw(problem, 1);
            // 2^significand + 0..39, of which every second lies between two neighbours.
            const double first = dtype == CONVT_F16 ? 2048 : 256;
            const bool last = problem.layout == CONVT_CHANNELS_LAST;
            for (std::int64_t i = 0; i < 40; ++i) {
                inputs.x.set(last ? 2 * i : i, first);
                inputs.x.set(last ? 2 * i + 1 : 40 + i, static_cast<double>(i));
            }
            for (std::int64_t i = 0; i < inputs.w.size(); ++i) inputs.w.set(i, 1);
            const Expected expected = reference(problem, inputs);
            for_each_isa([&](const Options &options) {
                SCOPED_TRACE(describe(problem, 1, options));
                Tensor y, rounded(dtype, expected.shape);
                const Status status = run(problem, inputs, options, &y);
                ASSERT_TRUE(status) << status.message();
                for (std::int64_t i = 0; i < y.size(); ++i) {
                    rounded.set(i, expected.value[static_cast<std::size_t>(i)]);
                    ASSERT_EQ(y.get(i), rounded.get(i)) << "of " << expected.value[static_cast<std::size_t>(i)];
                }
            });
        }
    }
}

TEST(Half, NaNsOfEveryPatternReachWhatTheyMust) {
    for (const convt_dtype dtype : {CONVT_F16, CONVT_BF16}) {
        const int infinity = dtype == CONVT_F16 ? 0x7c00 : 0x7f80;
        for (const std::string &line : kAxes) {
            const Problem problem = parse_problem(std::string(convt_dtype_name(dtype)) + " " + line);
            for (const int bits : {infinity + 1, 0x7fff, 0x8000 + infinity + 1, 0xffff, infinity + 0x20}) {
                for (const bool in_w : {false, true}) {
                    Inputs inputs = draw(problem, 2);
                    const auto pattern = static_cast<std::uint16_t>(bits);
                    Tensor &tensor = in_w ? inputs.w : inputs.x;
                    std::memcpy(static_cast<char *>(tensor.data()) + tensor.size() / 2 * 2, &pattern, sizeof pattern);
                    const Expected expected = reference(problem, inputs);
                    for_each_isa([&](const Options &options) {
                        SCOPED_TRACE(describe(problem, 2, options) + ", " + std::to_string(bits));
                        Tensor y;
                        const Status status = run(problem, inputs, options, &y);
                        ASSERT_TRUE(status) << status.message();
                        EXPECT_TRUE(agrees(y, expected));
                    });
                }
            }
        }
    }
}

// Kernels of f32 compute layers of 16 bits in pieces of y, which are rounded: several images, groups, channels, strips and phases
// without taps, more than one piece of each.
const std::vector<std::string> kPieces = {
    "f16 nchw n3 g1 ic3 oc40 i9x50 k3x3 s2x2 p1x1_1x1 bias",
    "bf16 nhwc n1 g1 ic3 oc72 i31x17 k3x3 s2x2 p1x1_1x1 op1x1 bias",
    "f16 nhwc n1 g37 ic37 oc37 i30x33 k4x4 s2x2 p1x1_1x1 bias",
    "bf16 nchw n1 g5 ic5 oc15 i21x33 k2x3 s3x4 bias",
    "f16 nchw n1 g3 ic9 oc6 i5x9x31 k3x3x3 s2x2x2 p1x1x1_1x1x1",
    "f16 nhwc n1 g1 ic3 oc200 i180 k8 s4 p2_2 bias",
    "bf16 nchw n1 g1 ic2 oc40 i450 k16 s8 p3_9 op5 bias",
    "f16 nhwc n1 g2 ic4 oc6 i80x70 k4x4 s2x2 p1x1_1x1 bias",
};

Options by_a_kernel(int threads = 1) { return by_algorithm("direct", threads); }

TEST(Pieces, AreExplained) {
    int of_f32 = 0;
    for (const std::string &line : kPieces) {
        const Problem problem = parse_problem(line);
        const Plan plan = plan_of(problem, draw(problem, 3), by_a_kernel());
        const bool is_of_f32 = plan.variant().find("_f32") != std::string::npos;
        EXPECT_EQ(plan.explain().find("y is computed in f32") != std::string::npos, is_of_f32) << plan.explain();
        of_f32 += is_of_f32;
    }
    EXPECT_GT(of_f32, 0);
}

TEST(Pieces, AgreeOnAllIsas) { expect_agreement_on_all_isas(kPieces, by_a_kernel()); }

TEST(Pieces, AreRoundedIntoCropsBeforePostOps) {
    expect_agreement_of_crops(kPieces, by_a_kernel());
    expect_agreement_of_crops(kPieces, by_a_kernel(3));
}

TEST(Pieces, OfOtherSizesOfX) {
    expect_agreement_when_reshaped({kPieces[0], kPieces[2], kPieces[5]}, SpatialAxis::kLast, {1, 2, 77}, by_a_kernel());
}

} // namespace
} // namespace convtranspose::test
