// The algorithm makes no scheduling call, and neither schedules nor lowering passes change what it computes.
#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <Halide.h>
#include <gtest/gtest.h>

#include "algorithm/numbered_layer.h"
#include "kernel_contract/kernel_traits.h"
#include "schedules/gpu/gpu.h"
#include "schedules/schedule.h"

namespace convtranspose {

namespace {

using Halide::Internal::Definition;
using Halide::Internal::Function;

constexpr int kKernel = 5, kMostTaps = 3; // of each axis

// The algorithm for a family, on inputs of its own.
struct Built {
    Halide::ImageParam x, w, bias;
    std::array<Halide::ImageParam, 3> taps;
    ConvTranspose c;

    InputNames names() const { return {x.name(), w.name(), {taps[0].name(), taps[1].name(), taps[2].name()}}; }
};

Built build(int oc_tile, int stride_w, int stride_h, const ScheduleFamily &family) {
    const bool matrices = blocks_at_once(family.family) > 1; // of blocks of two channels
    const int first = matrices ? 1 : 0;
    const Halide::Type type = matrices ? Halide::BFloat(16) : Halide::Float(32);
    Built b;
    b.x = Halide::ImageParam(type, 6 + first, "x");
    b.w = Halide::ImageParam(type, 7 + first, "w");
    b.bias = Halide::ImageParam(Halide::Float(32), 2, "bias");
    ConvTransposeInputs in;
    in.block = 1 + first;
    in.bias_last = family.bias_last;
    in.x = b.x;
    in.w = b.w;
    in.bias = b.bias;
    const int strides[3] = {stride_w, stride_h, 0};
    const char *const names[3] = {"taps_w", "taps_h", "taps_d"};
    for (int a = 0; a < 3; a++) {
        b.taps[a] = Halide::ImageParam(Halide::Int(32), 2, names[a]);
        Axis &axis = in.axes[a];
        axis.taps = b.taps[a];
        axis.step = 1;
        axis.max_count = kMostTaps;
        axis.kernel = kKernel;
        axis.x_min = b.x.dim(first + a).min();
        axis.x_extent = b.x.dim(first + a).extent();
        axis.outside = family.outside;
        axis.stride = strides[a];
        axis.order = a < 2 ? family.tap_order : TapOrder::kPerPhase;
        axis.shared_first = 0;
        axis.shared_count = 1;
    }
    in.ic_extent = b.x.dim(first + 3).extent() / blocks_at_once(family.family) * blocks_at_once(family.family);
    in.oc_tile = oc_tile;
    in.numerics.sum = in.numerics.y = Halide::Float(32);
    b.c = conv_transpose(in);
    return b;
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

// The algorithm for GPUs; blocks are of integers.
using test::Choices;
const Choices kNumbered[] = {{Positions::kInPhase, Outside::kZero, 1, 1},
                             {Positions::kInPhase, Outside::kZero, 4, 2},
                             {Positions::kOutputs, Outside::kSkipped, 1, 1}};

TEST(Purity, TheAlgorithmHasNoSchedule) {
    std::vector<ConvTranspose> all;
    for (const ScheduleFamily *family : {&kReference, &kOcVectorized, &kAmx, &kSmallOc}) {
        all.push_back(build(4, 2, 2, *family).c);
    }
    for (const Choices &choices : kNumbered) all.push_back(test::make_numbered(choices).c);
    for (const ConvTranspose &c : all) {
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

// Halide's scheduling directives, and what leads to them. Promises about buffers, dim(...).set_..., are none: callers must keep
// them, whatever the schedule.
const char *const kSchedulingCalls =
    "add_custom_lowering_pass|align_bounds|align_extent|align_storage|allow_race_conditions|always_partition(_all)?|"
    "async|"
    "atomic|bound|bound_extent|bound_storage|compute_at|compute_inline|compute_root|compute_with|copy_to_device|"
    "copy_to_host|eager_inline|fold_storage|fuse|gpu|gpu_[a-z_]+|hexagon|hoist_storage(_root)?|in|memoize|"
    "never_partition(_all)?|parallel|partition|prefetch|rename|reorder|reorder_storage|rfactor|ring_buffer|serial|"
    "set_estimates?|specialize(_fail)?|split|store_at|store_in|store_root|tile|unroll|unscheduled|update|vectorize";

// "file:line: call" for each scheduling call in a text, outside of comments of a line.
std::vector<std::string> scheduling_calls(const std::string &file, std::istream &text) {
    const std::regex call(std::string("(\\.|->)\\s*(") + kSchedulingCalls + ")\\s*\\(");
    std::vector<std::string> found;
    std::string line;
    for (int number = 1; std::getline(text, line); number++) {
        line.erase(std::min(line.find("//"), line.size()));
        for (std::sregex_iterator at(line.begin(), line.end(), call), end; at != end; ++at) {
            found.push_back(file + ":" + std::to_string(number) + ": " + at->str(2));
        }
    }
    return found;
}

TEST(Purity, TheAlgorithmsTextHasNoSchedulingCall) {
    int files = 0;
    for (const auto &entry : std::filesystem::directory_iterator(CONVTRANSPOSE_GENERATORS_DIR)) {
        const std::string extension = entry.path().extension().string();
        if (extension != ".cpp" && extension != ".h") continue;
        std::ifstream text(entry.path());
        ASSERT_TRUE(text) << entry.path();
        files++;
        for (const std::string &call : scheduling_calls("generators/" + entry.path().filename().string(), text)) {
            ADD_FAILURE() << call << " is a scheduling call, which belongs to schedules/";
        }
    }
    EXPECT_GE(files, 18);
}

TEST(Purity, SchedulingCallsAreFound) {
    std::istringstream text("f(x) = g(x).y; // f.unroll(x)\n"
                            "f.compute_root().split(x, x, xi, 8)\n"
                            "    .vectorize(xi);\n"
                            "number->set_estimate(1); a.dim(0).set_bounds(0, 8);\n"
                            "in.get(); bound(x); s.substr(1); f.in()(x);\n");
    const std::vector<std::string> expected = {"a.cpp:2: compute_root", "a.cpp:2: split", "a.cpp:3: vectorize",
                                               "a.cpp:4: set_estimate", "a.cpp:5: in"};
    EXPECT_EQ(scheduling_calls("a.cpp", text), expected);
}

TEST(Purity, SchedulesChangeNoDefinition) {
    struct Case {
        const ScheduleFamily *family;
        OutputOrder output_order;
        int stride_w, stride_h;
        Tile tile;
    };
    const Case cases[] = {
        {&kReference, OutputOrder::kChannels, 0, 0, {1, 1, 1, 1, false, false, false, false, {}}},
        {&kOcVectorized, OutputOrder::kChannels, 0, 0, {16, 4, 1, 8, false, false, false, false, {}}},
        {&kOcVectorized, OutputOrder::kPlanar, 2, 0, {16, 4, 2, 8, false, false, false, false, {}}},
        {&kAmx, OutputOrder::kChannels, 0, 0, {32, 16, 2, 16, true, true, false, false, {}}},
        {&kAmx, OutputOrder::kPlanar, 2, 0, {32, 32, 1, 16, true, true, false, false, {}}},
        {&kOwVectorized, OutputOrder::kPlanar, 2, 0, {4, 16, 1, 8, false, false, false, false, {}}},
        {&kSmallOc, OutputOrder::kPlanar, 2, 2, {1, 16, 1, 8, false, false, false, false, {}}},
        {&kDepthwise, OutputOrder::kPlanar, 2, 0, {1, 16, 1, 8, false, false, false, false, {}}},
        {&kDepthwise, OutputOrder::kChannels, 0, 0, {1, 4, 1, 8, false, false, false, false, {}}},
        {&kOcVectorized, OutputOrder::kChannels, 0, 0, {16, 4, 1, 8, false, false, true, false, {}}},
        {&kOwVectorized, OutputOrder::kPlanar, 2, 0, {4, 16, 1, 8, false, false, true, false, {}}},
        {&kOwVectorized, OutputOrder::kPlanar, 2, 0, {3, 16, 1, 8, false, false, true, false, {}}},
        {&kSmallOc, OutputOrder::kPlanar, 2, 2, {1, 16, 1, 8, false, false, true, false, {}}},
        {&kOwVectorized, OutputOrder::kPlanar, 3, 0, {4, 16, 1, 8, false, true, false, false, {}}},
        {&kSmallOc, OutputOrder::kPlanar, 2, 2, {1, 16, 1, 8, false, true, false, false, {}}},
    };
    for (const Case &a : cases) {
        const ConvTranspose c = build(a.tile.oc, a.stride_w, a.stride_h, *a.family).c;
        const std::string before = definitions(c);
        a.family->schedule(c, a.tile, a.output_order);
        EXPECT_EQ(definitions(c), before) << family_name(a.family->family);
    }
}

TEST(Purity, SchedulesOfGpusChangeNoDefinition) {
    for (const Choices &choices : kNumbered) {
        for (const auto &[name, schedule] : phase_schedules()) {
            if (name == "small_oc" && choices.block > 1) continue; // it has no blocks
            const test::NumberedKernel kernel = test::make_numbered(choices);
            const std::string before = definitions(kernel.c);
            if (choices.positions == Positions::kOutputs) {
                schedule_each(kernel.c);
            } else {
                schedule(Halide::Pipeline(kernel.c.y), kernel.c, kernel.tile);
            }
            EXPECT_EQ(definitions(kernel.c), before);
        }
    }
}

// One text multiplies x and w.
TEST(Purity, TheSumOfProductsIsDefinedOnce) {
    int sums = 0;
    for (const auto &file : std::filesystem::directory_iterator(CONVTRANSPOSE_GENERATORS_DIR)) {
        std::ifstream stream(file.path());
        for (std::string line; std::getline(stream, line);) {
            sums += line.find("widen(") != std::string::npos && line.find(" * ") != std::string::npos;
        }
    }
    EXPECT_EQ(sums, 1);
}

// A layer of two groups, whose tiles are not whole: all extents are those of one group, image and phase.
struct Layer {
    static constexpr int kIc = 7, kOc = 19, kColumns = 13, kRows = 5, kGroups = 2, kAround = 64; // kAround: of memory
    // Phase 0 reads one position before its own and that, phase 1 its own and the next: both leave x. Offset, count, first, class.
    static constexpr int kTaps[2][kTapColumns] = {{-1, 2, 0, 0}, {0, 2, 2, 0}};

    Halide::Buffer<float> x{kColumns + 2 * kAround, kRows + 2, 1, kIc, kGroups, 1};
    Halide::Buffer<float> w, bias;
    std::array<Halide::Buffer<int>, 3> taps;

    Layer(int oc_tile, int stride_w) {
        const int tiles = (kOc + oc_tile - 1) / oc_tile;
        w = Halide::Buffer<float>(oc_tile, kIc, kKernel, kKernel, kKernel, tiles, kGroups);
        bias = Halide::Buffer<float>(tiles * oc_tile, kGroups);
        int count = 0;
        for (Halide::Buffer<float> *const b : {&x, &w, &bias}) {
            b->for_each_value([&](float &value) { value = static_cast<float>(count++ * 7 % 11 - 5); });
        }
        // Zeros around x, which then is the part of the memory that kernels are told of.
        x.set_min(-kAround, -1);
        x.for_each_element([&](int i, int h, int d, int c, int g, int n) {
            if (i < 0 || i >= kColumns || h < 0 || h >= kRows) x(i, h, d, c, g, n) = 0;
        });
        x.crop(0, 0, kColumns);
        for (std::size_t a = 0; a < 3; a++) {
            const int phases = a == 2 ? 1 : a == 0 && stride_w > 0 ? stride_w : 2;
            taps[a] = Halide::Buffer<int>(kTapColumns, phases);
            taps[a].transpose(0, 1); // (phase, column), columns side by side
            for (int r = 0; r < phases; r++) {
                for (int column = 0; column < kTapColumns; column++) taps[a](r, column) = kTaps[r][column];
            }
            if (a == 2) taps[a](0, kTapOffset) = 0, taps[a](0, kTapCount) = 1;
        }
    }
};

// Bounds and strides as kernels have them (generators/conv_transpose_generator.cpp).
void set_strides(Built *b, int oc_tile, bool any_strides_of_x) {
    b->x.dim(0).set_stride(any_strides_of_x ? Halide::Expr() : Halide::Expr(1));
    for (int i = 0; i < b->w.dimensions(); i++) b->w.dim(i).set_min(0);
    b->w.dim(0).set_extent(oc_tile);
    b->w.dim(1).set_stride(oc_tile);
    b->bias.dim(0).set_min(0);
    for (Halide::ImageParam &taps : b->taps) {
        taps.dim(0).set_min(0).set_stride(kTapColumns);
        taps.dim(1).set_min(0).set_stride(1);
    }
    for (int i = 0; i < b->c.y.dimensions(); i++) b->c.y.output_buffer().dim(i).set_min(0);
}

TEST(Purity, PassesChangeNoSum) {
    const Halide::Target host = Halide::get_jit_target_from_environment();
    if (host.arch != Halide::Target::X86) GTEST_SKIP() << "kernels of x86 alone have passes";
    // As in kernels; x is readable where it is said to end.
    const Halide::Target target =
        host.with_feature(Halide::Target::NoBoundsQuery).with_feature(Halide::Target::NoAsserts);
    struct Case {
        const ScheduleFamily *family;
        OutputOrder output_order;
        int stride_w;
        bool any_strides_of_x;
        Tile tile;
        std::size_t passes;
    };
    const Case cases[] = {
        {&kOcVectorized, OutputOrder::kChannels, 0, true, {16, 4, 1, 8, false, false, false, true, {}}, 4},
        {&kOcVectorized, OutputOrder::kChannels, 0, true, {16, 8, 1, 8, false, false, false, true, {}}, 5},
        {&kOcVectorized, OutputOrder::kChannels, 0, false, {16, 8, 1, 8, false, false, false, true, {}}, 5},
        {&kOcVectorized, OutputOrder::kChannels, 0, true, {16, 6, 2, 8, false, false, false, true, {}}, 4},
        {&kOcVectorized, OutputOrder::kPlanar, 2, false, {16, 8, 1, 8, false, false, false, true, {}}, 4},
        {&kOwVectorized, OutputOrder::kPlanar, 1, false, {4, 24, 1, 8, true, true, false, true, {}}, 1},
    };
    for (const Case &a : cases) {
        SCOPED_TRACE(testing::Message() << family_name(a.family->family) << " " << a.tile.oc << "x" << a.tile.q << "x"
                                        << a.tile.qh);
        Layer layer(a.tile.oc, a.stride_w);
        std::vector<int> shape = {Layer::kOc};
        if (a.stride_w > 0) {
            shape.push_back(a.stride_w * Layer::kColumns);
        } else {
            shape.insert(shape.end(), {Layer::kColumns, 2});
        }
        shape.insert(shape.end(), {Layer::kRows, 2, 1, 1, Layer::kGroups, 1});
        std::array<Halide::Buffer<float>, 2> results;
        for (const bool passes : {false, true}) {
            Built b = build(a.tile.oc, a.stride_w, 0, *a.family);
            set_strides(&b, a.tile.oc, a.any_strides_of_x);
            const std::string before = definitions(b.c);
            a.family->schedule(b.c, a.tile, a.output_order);
            Halide::Pipeline pipeline(b.c.y);
            if (passes) {
                LoweringPasses all = a.family->lowering_passes(b.c, a.tile, a.output_order, b.names());
                EXPECT_EQ(all.size(), a.passes);
                for (auto &pass : all) pipeline.add_custom_lowering_pass(pass.release());
            }
            b.x.set(layer.x);
            b.w.set(layer.w);
            b.bias.set(layer.bias);
            for (std::size_t t = 0; t < 3; t++) b.taps[t].set(layer.taps[t]);
            results[passes] = pipeline.realize(shape, target);
            EXPECT_EQ(definitions(b.c), before);
        }
        float most = 0;
        for (int i = 0; i < static_cast<int>(results[0].number_of_elements()); i++) {
            most = std::max(most, results[0].data()[i]);
            ASSERT_EQ(results[0].data()[i], results[1].data()[i]) << i;
        }
        EXPECT_GT(most, 0) << "nothing is summed";
    }
}

} // namespace

} // namespace convtranspose
