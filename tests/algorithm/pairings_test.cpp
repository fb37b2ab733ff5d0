// Any schedule goes with the algorithm, and so does none: each is compiled here and compared with the definition.
#include <cstdint>
#include <iostream>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "algorithm/jit_kernel.h"
#include "reference/descriptor.h"
#include "reference/quantized.h"
#include "reference/reference.h"
#include "runtime/base/allocator.h"
#include "runtime/base/shape.h"
#include "runtime/cpu/cpu.h"
#include "runtime/direct/direct_plan.h"

namespace convtranspose::test {

namespace {

TensorStrides core_strides(const Shape &shape, convt_layout layout) {
    const Strides strides = dense_strides(shape);
    const bool last = layout == CONVT_CHANNELS_LAST;
    TensorStrides s;
    s.n = strides[0];
    s.c = last ? strides.back() : strides[1];
    for (std::size_t a = 0; a + 2 < shape.size(); a++) s.axes[a] = strides[strides.size() - (last ? 2 : 1) - a];
    return s;
}

// Runs the compiled kernel on a problem as the dispatcher would, with its strips, boxes and packed weights.
Tensor run_kernel(const Variant &variant, const Problem &problem, const Inputs &inputs) {
    const Geometry geometry = geometry_of(problem);
    const SpatialProblem core_of = spatial_problem(geometry, variant.dtype, false);
    Candidate choice;
    choice.variant = &variant;
    if (variant.family != Family::kReference || geometry.quantized()) choice.reads_x = ReadsX::kCopy;
    const DirectPlan direct(core_of, choice, profile_of_cpu(variant.isa), 1);
    const Allocator allocator;
    const Block packed(allocator, direct.packed_bytes()), workspace(allocator, direct.workspace_bytes());
    WeightsView w;
    w.data = inputs.w.data();
    const Strides strides = dense_strides(geometry.w_shape);
    w.c = strides[0];
    w.m = strides[1];
    for (std::size_t a = 0; a + 2 < strides.size(); a++) w.k[a] = strides[strides.size() - 1 - a];
    const void *const b = inputs.b ? inputs.b->data() : nullptr;
    const Block epilogue(allocator, direct.epilogue_bytes());
    DirectOperands operands;
    operands.x = inputs.x.data();
    operands.x_strides = core_strides(geometry.x_shape, geometry.layout);
    operands.packed = packed.data();
    if (geometry.quantized()) {
        QuantizationValues q;
        EXPECT_TRUE(read_quantization(detail::view(*problem.quantization), geometry, &q));
        direct.pack(w, &q, nullptr, packed.data());
        direct.prepare(q, packed.data(), b, epilogue.data());
        operands.epilogue = epilogue.data();
        operands.byte_x = byte_x(q, geometry);
        operands.range = output_range(q, geometry);
    } else {
        direct.pack(w, nullptr, b, packed.data());
    }
    Tensor y(geometry.y_dtype, geometry.y_shape);
    operands.y = y.data();
    operands.y_strides = core_strides(geometry.y_shape, geometry.layout);
    operands.workspace = workspace.data();
    direct.run(operands, Parallel{});
    return y;
}

struct Pairing {
    const char *name;
    JitKernel kernel; // tile_oc or tile_q count vectors where the family's vectors run along them
    std::vector<std::string> problems;
};

void PrintTo(const Pairing &pairing, std::ostream *out) { *out << pairing.name; }

const std::string kAnyStride[] = {
    "nchw n2 ic5 oc9 i7x11 k4x4 s2x2 p1x1_1x1 bias",
    "nhwc n1 ic4 oc37 i6x9 k3x3 s2x3 p1x0_1x2 op1x1",
    "nchw n1 g2 ic6 oc10 i4x5x13 k2x3x3 s1x2x2 d1x2x3 bias",
    "nhwc n1 ic3 oc5 i30 k5 s3 p1_2",
    "nchw n1 ic3 oc4 i5x12 k2x2 s3x3 d2x1",
};

std::vector<std::string> of_layout(const std::string &layout) {
    std::vector<std::string> list;
    for (const std::string &line : kAnyStride) {
        if (line.compare(0, layout.size(), layout) == 0) list.push_back(line);
    }
    return list;
}

std::vector<Pairing> pairings() {
    const std::vector<std::string> any(std::begin(kAnyStride), std::end(kAnyStride));
    const std::vector<std::string> two_by_two = {"nchw n1 ic5 oc2 i4x21 k4x4 s2x2 p1x1_1x1 bias",
                                                 "nchw n2 ic3 oc1 i5x9 k9x9 s2x2 p4x4_4x4 op1x1",
                                                 "nchw n1 ic4 oc3 i6x33 k3x3 s2x2 p1x1_1x1"};
    const std::vector<std::string> depthwise = {"nchw n1 g6 ic6 oc6 i5x9 k4x4 s2x2 p1x1_1x1 bias",
                                                "nchw n2 g3 ic3 oc9 i4x35 k3x3 s2x2 p1x1_1x1"};
    // Without masked stores, that is in shorter vectors, a last tile overlaps the one before it: there is one.
    constexpr int kLanesOfLine = 16;
    const std::vector<std::string> depthwise_long = {"nchw n1 g3 ic3 oc3 i3x37 k4x32 s2x16 p1x8_1x8 bias",
                                                     "nchw n2 g2 ic2 oc4 i40 k64 s64 p5_20"};
    const std::vector<std::string> depthwise_last = {"nhwc n1 g21 ic21 oc21 i5x9 k4x4 s2x2 p1x1_1x1 bias",
                                                     lanes_of(CONVT_F32) >= kLanesOfLine
                                                         ? "nhwc n2 g5 ic5 oc5 i4x8 k3x3 s3x1 p1x1_1x1"
                                                         : "nhwc n2 g19 ic19 oc19 i4x8 k3x3 s3x1 p1x1_1x1"};
    static const std::vector<Pairing> all = {
        {"Unscheduled", {"unscheduled", Family::kReference, OutputOrder::kChannels, 0, 0, 1, 1, 1}, any},
        {"UnscheduledSharedTaps",
         {"unscheduledshared", Family::kSmallOc, OutputOrder::kPlanar, 2, 2, 1, 1, 1},
         two_by_two},
        {"Reference", {"reference", Family::kReference, OutputOrder::kChannels, 0, 0, 1, 1, 1}, any},
        {"ChannelsLast",
         {"oc_vectorized", Family::kOcVectorized, OutputOrder::kChannels, 0, 0, 2, 3, 1},
         of_layout("nhwc")},
        {"ChannelsPlanar",
         {"oc_vectorized", Family::kOcVectorized, OutputOrder::kPlanar, 0, 0, 1, 4, 2},
         of_layout("nchw")},
        {"ChannelsPlanarBuiltInStride",
         {"oc_vectorized", Family::kOcVectorized, OutputOrder::kPlanar, 2, 0, 1, 4, 1},
         two_by_two},
        {"Wide", {"ow_vectorized", Family::kOwVectorized, OutputOrder::kPlanar, 2, 0, 3, 1, 2}, two_by_two},
        {"Few", {"small_oc", Family::kSmallOc, OutputOrder::kPlanar, 2, 2, 1, 2, 1}, two_by_two},
        {"DepthwisePlanar", {"depthwise", Family::kDepthwise, OutputOrder::kPlanar, 2, 0, 1, 1, 1}, depthwise},
        {"DepthwisePhases", {"depthwise", Family::kDepthwise, OutputOrder::kPlanar, 0, 0, 1, 1, 1}, depthwise_long},
        {"DepthwiseChannels", {"depthwise", Family::kDepthwise, OutputOrder::kChannels, 0, 0, 1, 2, 1}, depthwise_last},
    };
    return all;
}

class Pairings : public ::testing::TestWithParam<Pairing> {};

TEST_P(Pairings, AgreeWithTheDefinition) {
    for (const convt_dtype dtype : {CONVT_F32, CONVT_F64, CONVT_F16, CONVT_BF16}) {
        JitKernel kernel = GetParam().kernel;
        if (kernel.family == Family::kOcVectorized) {
            kernel.tile_oc *= lanes_of(dtype);
        } else if (kernel.family != Family::kReference && kernel.output_order == OutputOrder::kPlanar) {
            kernel.tile_q *= lanes_of(dtype);
        }
        const Variant variant = compile(kernel, dtype);
        std::uint64_t seed = 1;
        for (const std::string &line : GetParam().problems) {
            const Problem problem = parse_problem(std::string(convt_dtype_name(dtype)) + " " + line);
            SCOPED_TRACE(describe(problem, ++seed, Options{}));
            const Inputs inputs = draw(problem, seed);
            EXPECT_TRUE(agrees(run_kernel(variant, problem, inputs), reference(problem, inputs)));
        }
    }
}

// The same of integers, of 8-bit and of f32 results.
TEST_P(Pairings, AgreeWithTheDefinitionOfQuantized) {
    for (const Arithmetic arithmetic : {Arithmetic::kInt8, Arithmetic::kInt16}) {
        for (const convt_dtype y : {CONVT_U8, CONVT_F32}) {
            JitKernel kernel = GetParam().kernel;
            // Kernels that sum in 64 bits and depthwise ones have no 8-bit kind, nor has shared taps without a schedule. Vectors of
            // phases are of floats alone.
            const bool unblocked = kernel.family == Family::kReference || kernel.family == Family::kDepthwise;
            if ((unblocked && arithmetic == Arithmetic::kInt8) ||
                GetParam().name == std::string("UnscheduledSharedTaps") ||
                GetParam().name == std::string("DepthwisePhases")) {
                continue;
            }
            if (arithmetic == Arithmetic::kInt8 && !isa_supported(Isa::kAvx512Vnni)) {
                std::cout << "8-bit operands skipped: they are copied by kernels that this CPU does not run\n";
                continue;
            }
            kernel.arithmetic = arithmetic;
            if (kernel.family == Family::kOcVectorized) {
                kernel.tile_oc *= lanes_of(y);
            } else if (kernel.family != Family::kReference && kernel.output_order == OutputOrder::kPlanar) {
                kernel.tile_q *= lanes_of(y);
            }
            const Variant variant = compile(kernel, y);
            std::uint64_t seed = 1;
            for (const std::string &line : GetParam().problems) {
                Problem problem = parse_problem("u8 " + line);
                Random random(++seed);
                QuantizedAs as = random_quantized_as(problem.dtype, &random);
                as.w = CONVT_S8;
                as.w_zero_point = arithmetic == Arithmetic::kInt8 ? 0 : as.w_zero_point % 100;
                as.per_channel = false;
                if (y == CONVT_F32) as.y = y;
                quantize(&problem, as);
                SCOPED_TRACE(describe(problem, seed, Options{}));
                const Inputs inputs = draw(problem, seed);
                EXPECT_TRUE(agrees(run_kernel(variant, problem, inputs), reference(problem, inputs)));
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Algorithm, Pairings, ::testing::ValuesIn(pairings()),
                         [](const auto &pairing) { return std::string(pairing.param.name); });

} // namespace

} // namespace convtranspose::test
