// Taps against the definition: input i and kernel element k meet at output i * stride + k * dilation - pad_begin.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "geometry/axes.h"
#include "reference/tensor.h"
#include "runtime/problem/axis_plan.h"
#include "runtime/problem/geometry.h"

namespace convtranspose {
namespace {

using test::by_definition;
using test::describe;
using test::make_axis;
using test::Meeting;
using test::Random;

std::vector<Meeting> by_taps(const AxisGeometry &axis) {
    std::vector<Meeting> meetings;
    const AxisPlan plan = plan_axis(axis, axis.stride, false);
    for (std::int64_t o = 0; o < axis.out; ++o) {
        const Taps taps = plan.taps_of(o % axis.stride);
        for (std::int64_t t = 0; t < taps.count; ++t) {
            const std::int64_t i = o / axis.stride + taps.offset + t * axis.offset_step();
            if (i >= 0 && i < axis.in) meetings.emplace_back(o, i, taps.kernel_begin + t * axis.kernel_step());
        }
    }
    std::sort(meetings.begin(), meetings.end());
    return meetings;
}

// Every kernel element that meets a phase inside x at some position, with its input offset, by trying all of them.
std::vector<std::pair<std::int64_t, std::int64_t>> taps_by_trying(const AxisGeometry &axis, std::int64_t phase) {
    std::vector<std::pair<std::int64_t, std::int64_t>> taps;
    for (std::int64_t k = axis.kernel - 1; k >= 0; --k) { // rising input position
        const std::int64_t distance = phase + axis.pad_begin - k * axis.dilation;
        if (distance % axis.stride != 0) continue;
        const std::int64_t offset = distance / axis.stride, last = (axis.out - 1 - phase) / axis.stride;
        const bool is_met = phase < axis.out && offset < axis.in && last + offset >= 0;
        if (is_met) taps.emplace_back(k, offset);
    }
    return taps;
}

void expect_right(const AxisGeometry &axis) {
    SCOPED_TRACE(describe(axis));
    ASSERT_EQ(by_taps(axis), by_definition(axis));
    const AxisPlan plan = plan_axis(axis, axis.stride, false);
    for (std::int64_t phase = 0; phase < axis.stride; ++phase) {
        const Taps taps = plan.taps_of(phase);
        std::vector<std::pair<std::int64_t, std::int64_t>> listed;
        for (std::int64_t t = 0; t < taps.count; ++t) {
            listed.emplace_back(taps.kernel_begin + t * axis.kernel_step(), taps.offset + t * axis.offset_step());
        }
        ASSERT_EQ(listed, taps_by_trying(axis, phase)) << "phase " << phase;
    }
}

TEST(Taps, ByHand) {
    // 4-tap kernel, stride 2, pad 1: outputs 2q and 2q + 1 have two taps each.
    const AxisGeometry axis = make_axis(5, 10, 4, 2, 1, 1);
    const AxisPlan plan = plan_axis(axis, axis.stride, false);
    const Taps even = plan.taps_of(0), odd = plan.taps_of(1);
    EXPECT_EQ(even.kernel_begin, 3);
    EXPECT_EQ(even.offset, -1);
    EXPECT_EQ(even.count, 2);
    EXPECT_EQ(odd.kernel_begin, 2);
    EXPECT_EQ(odd.offset, 0);
    EXPECT_EQ(odd.count, 2);
    EXPECT_EQ(axis.kernel_step(), -2);
    EXPECT_EQ(axis.offset_step(), 1);
}

TEST(Taps, PhaseWithoutAny) {
    const AxisPlan plan = plan_axis(make_axis(5, 17, 2, 4, 1, 0), 4, false); // the stride is above the kernel
    EXPECT_EQ(plan.taps_of(0).count, 1);
    EXPECT_EQ(plan.taps_of(1).count, 1);
    EXPECT_EQ(plan.taps_of(2).count, 0);
    EXPECT_EQ(plan.taps_of(3).count, 0);
    EXPECT_EQ(plan_axis(make_axis(5, 17, 3, 4, 2, 0), 4, false).taps_of(1).count, 0); // gcd(stride, dilation) = 2
}

TEST(Taps, SmallAxesExhaustively) {
    for (std::int64_t kernel = 1; kernel <= 5; ++kernel) {
        for (std::int64_t stride = 1; stride <= 6; ++stride) {
            for (std::int64_t dilation = 1; dilation <= 6; ++dilation) {
                for (std::int64_t pad = -7; pad <= 13; ++pad) { // algorithms make negative ones
                    for (const std::int64_t in : {0, 1, 2, 5})
                        expect_right(make_axis(in, 19, kernel, stride, dilation, pad));
                    if (HasFatalFailure()) return;
                }
            }
        }
    }
}

TEST(Taps, RandomAxes) {
    Random random(20);
    for (int i = 0; i < 3000; ++i) {
        const std::int64_t common = random.pick<std::int64_t>({1, 1, 2, 3, 12}); // at least this in common
        expect_right(make_axis(random.integer(0, 30), random.integer(1, 90), random.integer(1, 25),
                               common * random.integer(1, 12), common * random.integer(1, 12),
                               random.integer(-60, 300)));
        if (HasFatalFailure()) return;
    }
}

// Where trying all phases would take forever: each kernel element meets one phase, and all are found by it.
void expect_right_at_kernel_elements(const AxisGeometry &axis) {
    SCOPED_TRACE(describe(axis));
    const AxisPlan plan = plan_axis(axis, axis.stride, false);
    for (std::int64_t k = 0; k < axis.kernel; ++k) {
        const std::int64_t rest = (k * axis.dilation - axis.pad_begin) % axis.stride;
        const std::int64_t phase = rest < 0 ? rest + axis.stride : rest;
        const Taps taps = plan.taps_of(phase);
        std::vector<std::pair<std::int64_t, std::int64_t>> listed;
        for (std::int64_t t = 0; t < taps.count; ++t) {
            listed.emplace_back(taps.kernel_begin + t * axis.kernel_step(), taps.offset + t * axis.offset_step());
        }
        ASSERT_EQ(listed, taps_by_trying(axis, phase)) << "phase " << phase;
    }
}

TEST(Taps, HugeAxes) {
    expect_right_at_kernel_elements(make_axis(3, 1000, 7, 1000000007, 998244353, 5));
    expect_right_at_kernel_elements(make_axis(3, 1000, 9, 1000000007, 1000000007, 1000000011));
    expect_right_at_kernel_elements(make_axis(3, 1000, 5, 3 * 715827883LL, 2 * 715827883LL, 1LL << 40));
    expect_right_at_kernel_elements(make_axis(1, 1000, 9, (1LL << 57) - 13, (1LL << 57) - 1, (1LL << 60) + 17));
    expect_right_at_kernel_elements(make_axis(1, 1, 1, (1LL << 61) - 1, (1LL << 61) - 1, 0));
    Random random(21);
    for (int i = 0; i < 2000; ++i) {
        const std::int64_t scale = std::int64_t{1} << random.integer(20, 57);
        expect_right_at_kernel_elements(make_axis(2, 10, random.integer(1, 8), random.integer(1, scale),
                                                  random.integer(1, scale), random.integer(0, scale)));
        if (HasFatalFailure()) return;
    }
}

} // namespace
} // namespace convtranspose
