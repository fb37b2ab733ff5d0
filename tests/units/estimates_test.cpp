// Estimates count what kernels do besides multiplying.
#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "reference/reference.h"
#include "runtime/cost/cost.h"
#include "runtime/cpu/cpu.h"
#include "runtime/kernels/kernel_tables.h"
#include "runtime/selection/candidates.h"

namespace convtranspose::test {
namespace {

// At most two of the 512 rows of the kernel meet x at any row of y. A loop passes over the others.
TEST(Estimates, CountTapsThatArePassedOver) {
    const Geometry geometry = geometry_of(parse_problem("f32 nhwc n1 ic1 oc8 i2x8 k512x1 s1x1"));
    const SpatialProblem problem = spatial_problem(geometry, CONVT_F32, true);
    std::size_t loops = 0;
    for (std::size_t i = 0; i < variant_count(); i++) {
        const Variant &v = variant_at(i);
        CostProfile profile = profile_of_cpu(isa_of_floats(v.isa)), forgetful = profile;
        forgetful.per_skipped_tap = 0;
        const Candidate counted = candidate(v, problem, profile), forgotten = candidate(v, problem, forgetful);
        if (counted.unsupported.text || v.family == Family::kReference) continue;
        if (!skips_outside(v, 1)) {
            EXPECT_EQ(counted.cost, forgotten.cost) << v.name;
            continue;
        }
        loops++;
        const int rows = 513, tiles_of_row = (8 + v.tile_q - 1) / v.tile_q;
        const double tiles = rows * tiles_of_row;
        EXPECT_GE(counted.cost, forgotten.cost + (510 - 1) * profile.per_skipped_tap * tiles / 2) << v.name;
    }
    EXPECT_GT(loops, 0u);
}

// Every family, in both layouts, with what parts depend on: phases, tails, groups, far weights, taps that leave x.
const char *const kLayers[] = {"f32 nchw n1 ic32 oc40 i9x14 k4x4 s2x2 p1x1_1x1",
                               "f32 nhwc n2 ic32 oc40 i9x14 k4x4 s2x2 p1x1_1x1",
                               "f32 nhwc n1 ic1024 oc512 i5x5 k3x3 s1x1 p1x1_1x1",
                               "f32 nchw n1 ic16 oc1 i40x40 k8x8 s4x4 p2x2_2x2",
                               "f32 nhwc n1 g48 ic48 oc48 i20x31 k3x3 s2x2 p1x1_1x1",
                               "f32 nchw n1 g48 ic48 oc48 i20x31 k3x3 s2x2 p1x1_1x1",
                               "f64 nchw n1 ic5 oc7 i3x4x5 k3x3x3 s2x2x2",
                               "bf16 nhwc n1 ic64 oc64 i12x12 k4x4 s2x2 p1x1_1x1",
                               "f16 nchw n1 ic8 oc3 i300 k16 s8 p4_4",
                               "u8 nhwc n1 ic64 oc60 i9x14 k4x4 s2x2 p1x1_1x1"};

TEST(Estimates, AddUpTheirParts) {
    std::set<std::pair<Family, bool>> seen; // families, and whether x is copied
    for (const char *const line : kLayers) {
        const Geometry geometry = geometry_of(parse_problem(line));
        const SpatialProblem problem =
            spatial_problem(geometry, geometry.quantized() ? CONVT_U8 : geometry.y_dtype, true);
        for (std::size_t i = 0; i < variant_count(); i++) {
            const Variant &v = variant_at(i);
            const CostProfile &profile = profile_of_cpu(isa_of_floats(v.isa));
            const Candidate c = candidate(v, problem, profile);
            if (c.unsupported.text) continue;
            SCOPED_TRACE(std::string(line) + ": " + v.name);
            seen.emplace(v.family, c.reads_x != ReadsX::kInPlace);
            const auto parts = parts_of_cost(c, problem, profile);
            EXPECT_NEAR(std::accumulate(parts.begin(), parts.end(), 0.0), c.cost, 1e-9 * c.cost);
            EXPECT_GT(parts[0], 0) << "multiply-adds";
            EXPECT_GE(parts[1], -1e-9 * c.cost) << "loads";
            EXPECT_GE(parts[2], 0) << "tiles";
            EXPECT_GT(parts[3], 0) << "stores";
            EXPECT_LE(parts[4], std::max(c.copying, 0.0) + 1e-9 * c.cost) << "copying x";
        }
    }
    EXPECT_GE(seen.size(), is_x86(variant_at(0).isa) ? 9u : 8u);
}

// Channels that are 16 KiB apart share few sets of the caches: what a tile reads of 256 of them is gone before the next tile.
TEST(ReadsX, FromACopyWhereChannelsPushEachOtherOut) {
    std::size_t kernels = 0;
    for (std::size_t i = 0; i < variant_count(); i++) {
        const Variant &v = variant_at(i);
        if (v.family != Family::kOwVectorized || v.output_order != OutputOrder::kPlanar || v.stride_w != 1 ||
            v.tile_qh != 1 || v.dtype != CONVT_F32 || v.built_in)
            continue;
        CostProfile profile = profile_of_cpu(isa_of_floats(v.isa));
        profile.tiles_in_place = profile.near_tiles_in_place = 32;
        profile.in_place_bytes = profile.in_place_once_bytes = 1e9;
        profile.second_level_cache = 1 << 20;
        const auto reads = [&](const std::string &channels, const std::string &positions) {
            const std::string line = "f32 nchw n1 ic256 oc" + channels + " i" + positions + " k1 s1";
            const Candidate c =
                candidate(v, spatial_problem(geometry_of(parse_problem(line)), CONVT_F32, true), profile);
            EXPECT_FALSE(c.unsupported.text) << v.name;
            return c.reads_x;
        };
        const std::string tile = std::to_string(v.tile_oc), tiles = std::to_string(4 * v.tile_oc);
        kernels++;
        EXPECT_NE(reads(tile, "4096"), ReadsX::kCopy) << v.name;
        EXPECT_NE(reads(tiles, "4112"), ReadsX::kCopy) << v.name;
        EXPECT_EQ(reads(tiles, "4096"), ReadsX::kCopy) << v.name;
        profile.second_level_cache = 8 << 20;
        EXPECT_NE(reads(tiles, "4096"), ReadsX::kCopy) << v.name;
    }
    EXPECT_GT(kernels, 0u);
}

TEST(Estimates, ChooseTheNumberOfThreadsThatTakesTheLeast) {
    CostProfile profile = profile_of_cpu(Isa::kX86_64);
    for (const double per_thread : {1.0, 250.0, 9e3, 1e9}) {
        profile.per_thread = per_thread;
        EXPECT_EQ(threads_worth(-1, 3, profile), 1);
        EXPECT_EQ(threads_worth(0, 3, profile), 1);
        for (double cycles = 1.1; cycles < 1e12; cycles *= 1.7) {
            const auto time = [&](int n) { return cycles / n + (n - 1) * per_thread; };
            for (const int allowed : {1, 2, 3, 64, 4096}) {
                const int n = threads_worth(cycles, allowed, profile);
                ASSERT_GE(n, 1);
                ASSERT_LE(n, allowed);
                // One thread less takes no less time, nor does one more.
                EXPECT_LE(time(n), time(std::max(n - 1, 1))) << cycles << " cycles, " << allowed << " allowed";
                EXPECT_LE(time(n), time(std::min(n + 1, allowed))) << cycles << " cycles, " << allowed << " allowed";
            }
        }
    }
    profile.per_thread = 0;
    EXPECT_EQ(threads_worth(0, 3, profile), 3);
}

} // namespace
} // namespace convtranspose::test
