// The algorithm makes no scheduling call, and schedules change no definition.
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <Halide.h>
#include <gtest/gtest.h>

#include "schedule.h"

namespace convtranspose {

namespace {

using Halide::Internal::Definition;
using Halide::Internal::Function;

ConvTranspose build(int oc_tile, int stride_w, int stride_h, const ScheduleFamily &family) {
    const bool matrices = family.blocks_at_once > 1; // of blocks of two channels
    const int first = matrices ? 1 : 0;
    const Halide::Type type = matrices ? Halide::BFloat(16) : Halide::Float(32);
    Halide::ImageParam x(type, 6 + first, "x"), w(type, 7 + first, "w"), bias(Halide::Float(32), 2, "bias");
    ConvTransposeInputs in;
    in.block = 1 + first;
    in.bias_last = family.bias_last;
    in.x = x;
    in.w = w;
    in.bias = bias;
    const int strides[3] = {stride_w, stride_h, 0};
    for (int a = 0; a < 3; a++) {
        Halide::ImageParam taps(Halide::Int(32), 2, "taps");
        Axis &axis = in.axes[a];
        axis.taps = taps;
        axis.step = 1;
        axis.max_count = 3;
        axis.kernel = 5;
        axis.x_min = x.dim(first + a).min();
        axis.x_extent = x.dim(first + a).extent();
        axis.outside = family.outside;
        axis.stride = strides[a];
        axis.order = a < 2 ? family.tap_order : TapOrder::kPerResidue;
        axis.shared_first = 0;
        axis.shared_count = 1;
    }
    in.ic_extent = x.dim(first + 3).extent() / family.blocks_at_once * family.blocks_at_once;
    in.oc_tile = oc_tile;
    in.numerics.sum = in.numerics.y = Halide::Float(32);
    return conv_transpose(in);
}

std::string definitions(const ConvTranspose &c) {
    std::ostringstream out;
    const std::map<std::string, Function> environment = Halide::Internal::find_transitive_calls(c.y.function());
    for (const auto &[name, f] : environment) {
        if (name.find("wrapper") != std::string::npos) continue; // sum.in(): the same values under another name
        const auto print = [&](const Definition &d) {
            for (const Halide::Expr &e : d.args()) out << e << " ";
            for (const Halide::Expr &e : d.values()) out << "= " << e << "\n";
        };
        out << name << "\n";
        if (f.has_pure_definition()) print(f.definition());
        for (const Definition &d : f.updates()) print(d);
    }
    return out.str();
}

TEST(Purity, TheAlgorithmHasNoSchedule) {
    for (const ScheduleFamily *family : {&kReference, &kChannels, &kMatrix, &kFew}) {
        const ConvTranspose c = build(4, 2, 2, *family);
        for (const auto &[name, f] : Halide::Internal::find_transitive_calls(c.y.function())) {
            for (Halide::LoopLevel level : {f.schedule().compute_level(), f.schedule().store_level()}) {
                level.lock(); // only then it may be asked
                EXPECT_TRUE(level.is_inlined()) << name;
            }
            EXPECT_TRUE(f.schedule().bounds().empty()) << name;
            EXPECT_TRUE(f.schedule().wrappers().empty()) << name;
            const auto plain = [&name = name](const Definition &d) {
                EXPECT_TRUE(d.schedule().splits().empty()) << name;
                for (const auto &dim : d.schedule().dims())
                    EXPECT_EQ(dim.for_type, Halide::Internal::ForType::Serial) << name;
            };
            if (f.has_pure_definition()) plain(f.definition());
            for (const Definition &d : f.updates()) plain(d);
        }
    }
}

TEST(Purity, TheAlgorithmsTextHasNoSchedulingCall) {
    for (const char *file : {"conv_transpose.h", "conv_transpose.cpp", "numerics.h"}) {
        std::ifstream stream(std::string(CONVTRANSPOSE_GENERATORS_DIR) + "/" + file);
        ASSERT_TRUE(stream) << file;
        const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
        for (const char *call :
             {"vectorize", "unroll",   "parallel",   "split(",        "tile(",  "fuse(",        "reorder",
              "compute_",  "store_at", "store_root", "store_in",      "bound(", "bound_extent", ".in(",
              "rfactor",   "prefetch", "gpu_",       "hoist_storage", "async(", "specialize"}) {
            EXPECT_EQ(text.find(call), std::string::npos) << file << " calls " << call;
        }
    }
}

TEST(Purity, SchedulesChangeNoDefinition) {
    struct Case {
        const ScheduleFamily *family;
        Store store;
        int stride_w, stride_h;
        Tile tile;
    };
    const Case cases[] = {
        {&kReference, Store::kChannels, 0, 0, {1, 1, 1, 1, false, false, false, false, {}}},
        {&kChannels, Store::kChannels, 0, 0, {16, 4, 1, 8, false, false, false, false, {}}},
        {&kChannels, Store::kPlanar, 2, 0, {16, 4, 2, 8, false, false, false, false, {}}},
        {&kMatrix, Store::kChannels, 0, 0, {32, 16, 2, 16, true, true, false, false, {}}},
        {&kMatrix, Store::kPlanar, 2, 0, {32, 32, 1, 16, true, true, false, false, {}}},
        {&kWide, Store::kPlanar, 2, 0, {4, 16, 1, 8, false, false, false, false, {}}},
        {&kFew, Store::kPlanar, 2, 2, {1, 16, 1, 8, false, false, false, false, {}}},
        {&kDepthwise, Store::kPlanar, 2, 0, {1, 16, 1, 8, false, false, false, false, {}}},
        {&kDepthwise, Store::kChannels, 0, 0, {1, 4, 1, 8, false, false, false, false, {}}},
        {&kChannels, Store::kChannels, 0, 0, {16, 4, 1, 8, false, false, true, false, {}}},
        {&kWide, Store::kPlanar, 2, 0, {4, 16, 1, 8, false, false, true, false, {}}},
        {&kWide, Store::kPlanar, 2, 0, {3, 16, 1, 8, false, false, true, false, {}}},
        {&kFew, Store::kPlanar, 2, 2, {1, 16, 1, 8, false, false, true, false, {}}},
        {&kWide, Store::kPlanar, 3, 0, {4, 16, 1, 8, false, true, false, false, {}}},
        {&kFew, Store::kPlanar, 2, 2, {1, 16, 1, 8, false, true, false, false, {}}},
    };
    for (const Case &a : cases) {
        const ConvTranspose c = build(a.tile.oc, a.stride_w, a.stride_h, *a.family);
        const std::string before = definitions(c);
        a.family->schedule(c, a.tile, a.store);
        EXPECT_EQ(definitions(c), before) << a.family->name;
    }
}

} // namespace

} // namespace convtranspose
