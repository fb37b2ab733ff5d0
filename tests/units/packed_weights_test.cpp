// Packed weights stand in the order that packed_weights.h describes, with zeros around them, and come back as they were: for every
// packing that kernels of the table ask for.
#include "runtime/kernels/packed_weights.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "reference/quantized.h"
#include "reference/reference.h"
#include "reference/tensor.h"
#include "runtime/base/shape.h"
#include "runtime/cpu/cpu.h"
#include "runtime/direct/direct_layer.h"
#include "runtime/kernels/kernel_tables.h"
#include "runtime/selection/candidates.h"
#include "variants/problems.h"

namespace convtranspose::test {
namespace {

constexpr std::uint64_t kSeed = 41;
constexpr std::size_t kProblemsEach = 25; // of each packing
constexpr int kBeyond = 0x5a;             // bytes behind what may be written

// A packing of the table, by one of the kernels that ask for it.
struct Packing {
    const Variant *variant;
    convt_dtype dtype; // of x
};

std::vector<Packing> packings_of_the_table(bool of_floats) {
    std::vector<Packing> all;
    for (std::size_t i = 0; i < variant_count(); i++) {
        const Variant &v = variant_at(i);
        if (is_float(v.arithmetic) != of_floats || has_light_weights(v.arithmetic)) continue;
        const convt_dtype dtype = of_floats ? v.dtype : CONVT_U8;
        const bool is_new = std::none_of(all.begin(), all.end(), [&](const Packing &p) {
            return p.dtype == dtype && same_packing(packing_of(*p.variant), packing_of(v)) &&
                   pairs_taps(*p.variant) == pairs_taps(v);
        });
        if (is_new) all.push_back({&v, dtype});
    }
    return all;
}

// An element of the packed weights.
double value_at(const PackedLayout &layout, convt_dtype dtype, const void *packed, std::int64_t i) {
    std::int16_t value = 0;
    switch (layout.arithmetic) {
    case Arithmetic::kFloat: return load(sum_dtype(dtype), packed, i);
    case Arithmetic::kHalf: return load(CONVT_F16, packed, i);
    case Arithmetic::kBf16: return load(CONVT_BF16, packed, i);
    case Arithmetic::kInt8: return load(CONVT_S8, packed, i);
    case Arithmetic::kInt16:
    case Arithmetic::kF16Weights:
    case Arithmetic::kBf16Weights:
    case Arithmetic::kS8Weights: break;
    }
    std::memcpy(&value, static_cast<const char *>(packed) + 2 * i, 2);
    return value;
}

// Dense weights of (C, M/group, K1..Kn).
WeightsView view_of(const Geometry &geometry, const Tensor &w) {
    const Strides strides = dense_strides(geometry.w_shape);
    WeightsView view;
    view.data = w.data();
    view.c = strides[0];
    view.m = strides[1];
    for (std::size_t a = 0; a < geometry.axes.size(); a++) view.k[a] = strides[strides.size() - 1 - a];
    return view;
}

// Calls f(group, output channel, input channel, {w, h, d}) for each packed element in the order of the header: channels of the
// group, kernel elements of the node, -1 where there is none.
template<typename F>
void for_each_packed(const PackedLayout &p, const std::array<AxisPlan, 3> &axes, const F &f) {
    const auto at = [&](std::size_t axis, std::int64_t i) {
        return axes[axis].elements.at(static_cast<std::size_t>(i));
    };
    const auto planes = static_cast<std::int64_t>(axes[2].elements.size()),
               rows = static_cast<std::int64_t>(axes[1].elements.size()),
               columns = static_cast<std::int64_t>(axes[0].elements.size());
    const std::int64_t in_block = p.pairs_taps ? 2 : 1; // taps
    if (p.oc_tile == 0) {
        const std::int64_t groups = (p.group + p.group_tile - 1) / p.group_tile * p.group_tile;
        for (std::int64_t d = 0; d < planes; d++) {
            for (std::int64_t h = 0; h < rows; h++) {
                for (std::int64_t w = 0; w < columns; w += in_block) {
                    for (std::int64_t g = 0; g < groups; g++) {
                        for (std::int64_t i = 0; i < in_block; i++) f(g, 0, 0, {at(0, w + i), at(1, h), at(2, d)});
                    }
                }
            }
        }
        return;
    }
    const std::int64_t at_once = p.block * p.blocks_at_once, tiles = (p.oc + p.oc_tile - 1) / p.oc_tile,
                       blocks = p.pairs_taps ? 1 : (p.ic + at_once - 1) / at_once * p.blocks_at_once;
    // A tile's channels, for one tap and one block.
    const auto tile_of_tap = [&](std::int64_t g, std::int64_t t, std::int64_t block, std::int64_t d, std::int64_t h,
                                 std::int64_t w) {
        for (std::int64_t oc = t * p.oc_tile; oc < (t + 1) * p.oc_tile; oc++) {
            for (std::int64_t i = 0; i < p.block; i++) {
                const std::int64_t ic = p.pairs_taps ? 0 : block * p.block + i, tap = p.pairs_taps ? w * 2 + i : w;
                f(g, oc, ic, {at(0, tap), at(1, h), at(2, d)});
            }
        }
    };
    for (std::int64_t g = 0; g < p.group; g++) {
        for (std::int64_t t = 0; t < tiles; t++) {
            for (std::int64_t d = 0; d < planes; d++) {
                for (std::int64_t outer = 0; outer < (p.taps_inside ? blocks : 1); outer++) {
                    for (std::int64_t h = 0; h < rows; h++) {
                        for (std::int64_t w = 0; w < columns / in_block; w++) {
                            for (std::int64_t inner = 0; inner < (p.taps_inside ? 1 : blocks); inner++) {
                                tile_of_tap(g, t, outer + inner, d, h, w);
                            }
                        }
                    }
                }
            }
        }
    }
}

class PackedWeights : public testing::TestWithParam<Packing> {
  protected:
    // f(layer, problem, geometry) for problems that the kernel can do: none of them is empty.
    template<typename F>
    void for_each_problem(const F &f) const {
        const Variant &v = *GetParam().variant;
        std::size_t done = 0;
        Random random(kSeed);
        for (const convt_layout layout : {CONVT_CHANNELS_FIRST, CONVT_CHANNELS_LAST}) {
            std::size_t of_layout = 0;
            std::vector<Problem> problems = variant_problems(GetParam().dtype, layout);
            for (std::size_t left = problems.size(); left > 0 && of_layout < kProblemsEach; left--) {
                std::swap(problems[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(left) - 1))],
                          problems[left - 1]);
                Problem &problem = problems[left - 1];
                if (is_quantized(problem.dtype)) quantize(&problem, random_quantized_as(problem.dtype, &random));
                const Geometry geometry = geometry_of(problem);
                if (geometry.axes.size() > 3 || geometry.in_channels == 0) continue;
                SpatialProblem spatial = spatial_problem(geometry, v.dtype, true);
                spatial.sums_in_f16 = v.arithmetic == Arithmetic::kHalf;
                const Candidate choice = candidate(v, spatial, profile_of_cpu(v.isa));
                if (choice.unsupported.text) continue;
                SCOPED_TRACE(testing::Message() << describe(problem) << " seed " << kSeed);
                f(DirectLayer(spatial, choice), problem, geometry);
                if (HasFatalFailure()) return;
                of_layout++;
            }
            done += of_layout;
        }
        // Kernels that are built for one layer may take none of these; others pack the same.
        EXPECT_TRUE(done > 0 || v.built_in) << v.name;
    }

    // Checks what is packed, over the whole buffer, and that it comes back. sums: of int8, or null.
    static void expect_packed(const DirectLayer &layer, const Geometry &geometry, const Tensor &w,
                              const QuantizationValues *q, const std::vector<unsigned char> &packed, bool sum,
                              const std::vector<std::int32_t> &sums) {
        const PackedLayout &layout = layer.packed;
        const WeightsView view = view_of(geometry, w);
        const convt_dtype dtype = geometry.dtype;
        std::int64_t at = 0, filled = 0, wrong = -1;
        for_each_packed(layout, layer.axes,
                        [&](std::int64_t g, std::int64_t oc, std::int64_t ic, const std::array<std::int32_t, 3> &k) {
                            const bool exists = g < layout.group && oc < layout.oc && ic < layout.ic && k[0] >= 0;
                            double expected = 0;
                            if (exists) {
                                const std::int64_t from = (g * layout.ic + ic) * view.c + oc * view.m +
                                                          k[0] * view.k[0] + k[1] * view.k[1] + k[2] * view.k[2];
                                expected = w.get(from) - (q ? q->w_zero_point_of(g * layout.oc + oc) : 0);
                                filled++;
                            }
                            if (wrong < 0 && value_at(layout, dtype, packed.data(), at) != expected) wrong = at;
                            at++;
                        });
        ASSERT_EQ(wrong, -1) << "the first element that is not what it should be";
        ASSERT_EQ(at, layout.weights());
        ASSERT_EQ(filled, w.size() * (layout.phases_inside ? 2 : 1));
        for (std::size_t i = static_cast<std::size_t>(at) * static_cast<std::size_t>(operand_size(layer.variant));
             i < packed.size(); i++) {
            ASSERT_EQ(packed[i], kBeyond) << "written behind the last";
        }
        if (sum) {
            ASSERT_NO_FATAL_FAILURE(expect_sums(layer, geometry, w, *q, sums));
        }
        Tensor back(w.dtype(), w.shape());
        unpack_weights(layer.packing(), geometry, q, packed.data(), view, back.data());
        ASSERT_TRUE(back == w) << "unpacked, they are others";
    }

    // [tap d][tap h][tap w][biases()], each over the input channels.
    static void expect_sums(const DirectLayer &layer, const Geometry &geometry, const Tensor &w,
                            const QuantizationValues &q, const std::vector<std::int32_t> &sums) {
        const PackedLayout &p = layer.packed;
        const WeightsView view = view_of(geometry, w);
        const std::int64_t per_group = p.biases() / p.groups();
        std::size_t at = 0;
        for (const std::int32_t d : layer.axes[2].elements) {
            for (const std::int32_t h : layer.axes[1].elements) {
                for (const std::int32_t v : layer.axes[0].elements) {
                    for (std::int64_t i = 0; i < p.biases(); i++) {
                        const std::int64_t g = i / per_group, oc = i % per_group;
                        double sum = 0;
                        for (std::int64_t ic = 0; ic < p.ic && g < p.group && oc < p.oc; ic++) {
                            sum += w.get((g * p.ic + ic) * view.c + oc * view.m + d * view.k[2] + h * view.k[1] +
                                         v * view.k[0]) -
                                   q.w_zero_point_of(g * p.oc + oc);
                        }
                        ASSERT_EQ(sums.at(at++), sum) << "bias " << i;
                    }
                }
            }
        }
        ASSERT_EQ(at, sums.size());
    }
};

class PackedFloats : public PackedWeights {};
class PackedIntegers : public PackedWeights {};

// Not zero, so that what is left out is seen.
Tensor weights_without_zeros(const Geometry &geometry, Random *random) {
    Tensor w(geometry.w_dtype, geometry.w_shape);
    for (std::int64_t i = 0; i < w.size(); i++) {
        w.set(i, random->uniform(0.5, 2) * (random->integer(0, 1) ? 1 : -1));
    }
    return w;
}

TEST_P(PackedFloats, StandInOrderAndComeBack) {
    Random random(kSeed);
    for_each_problem([&](const DirectLayer &layer, const Problem &, const Geometry &geometry) {
        const PackedLayout &layout = layer.packed;
        Tensor w = weights_without_zeros(geometry, &random), bias(geometry.dtype, {geometry.out_channels});
        for (std::int64_t i = 0; i < bias.size(); i++) bias.set(i, random.uniform(0.5, 2));
        const auto bytes =
            static_cast<std::size_t>(layout.weights()) * static_cast<std::size_t>(operand_size(layer.variant));
        const convt_dtype bias_dtype = layout.arithmetic == Arithmetic::kHalf ? CONVT_F16 : sum_dtype(geometry.dtype);
        std::vector<unsigned char> packed(bytes + 64, kBeyond);
        Tensor packed_bias(bias_dtype, {layout.biases()});
        const auto pack = [&](const void *b) {
            return pack_weights(layer.packing(), geometry, nullptr, view_of(geometry, w), b, packed.data(),
                                packed_bias.data());
        };
        ASSERT_TRUE(pack(bias.data()));
        ASSERT_NO_FATAL_FAILURE(expect_packed(layer, geometry, w, nullptr, packed, false, {}));
        const std::int64_t per_group = layout.biases() / layout.groups();
        ASSERT_GE(per_group, layout.oc);
        ASSERT_GE(layout.groups(), layout.group);
        for (std::int64_t i = 0; i < layout.biases(); i++) {
            const std::int64_t g = i / per_group, oc = i % per_group;
            const bool exists = g < layout.group && oc < layout.oc;
            ASSERT_EQ(packed_bias.get(i), exists ? bias.get(g * layout.oc + oc) : 0) << "bias " << i;
        }
        ASSERT_TRUE(pack(nullptr)); // no bias
        for (std::int64_t i = 0; i < layout.biases(); i++) ASSERT_EQ(packed_bias.get(i), 0) << "bias " << i;

        // A single one that is not finite is seen, and kept.
        for (const double value : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
            const std::int64_t i = random.integer(0, w.size() - 1);
            const double was = w.get(i);
            w.set(i, value);
            ASSERT_FALSE(pack(nullptr)) << value << " is weight " << i;
            Tensor back(w.dtype(), w.shape());
            unpack_weights(layer.packing(), geometry, nullptr, packed.data(), view_of(geometry, w), back.data());
            ASSERT_TRUE(value == back.get(i) || (value != value && back.get(i) != back.get(i)));
            w.set(i, was);
        }
    });
}

TEST_P(PackedIntegers, StandInOrderAndComeBack) {
    Random random(kSeed);
    for_each_problem([&](const DirectLayer &layer, const Problem &problem, const Geometry &geometry) {
        const PackedLayout &layout = layer.packed;
        QuantizationValues q;
        q.w_scale = problem.quantization->w_scale;
        q.w_zero_point = problem.quantization->w_zero_point;
        Tensor w(geometry.w_dtype, geometry.w_shape);
        const std::int64_t least = geometry.w_dtype == CONVT_S8 ? -128 : 0, volume = geometry.kernel_volume();
        for (std::int64_t i = 0; i < w.size(); i++) {
            const std::int64_t m = i / volume % layout.oc + i / volume / layout.oc / layout.ic * layout.oc;
            const std::int64_t zero = q.w_zero_point_of(m);
            std::int64_t value = zero; // less the zero point it is in -128..127, and not 0
            while (value == zero) {
                value = random.integer(std::max(least, zero - 128), std::min(least + 255, zero + 127));
            }
            w.set(i, static_cast<double>(value));
        }
        const bool sum = layout.arithmetic == Arithmetic::kInt8;
        std::vector<unsigned char> packed(
            static_cast<std::size_t>(layout.weights()) * static_cast<std::size_t>(operand_size(layer.variant)) + 64,
            kBeyond);
        std::vector<std::int32_t> sums(sum ? static_cast<std::size_t>(layout.taps_volume() * layout.biases()) : 0, -1);
        pack_weights(layer.packing(), geometry, &q, view_of(geometry, w), nullptr, packed.data(), sums.data());
        ASSERT_NO_FATAL_FAILURE(expect_packed(layer, geometry, w, &q, packed, sum, sums));
    });
}

std::string name_of(const testing::TestParamInfo<Packing> &c) {
    return std::string(isa_name(c.param.variant->isa)) + "_" + c.param.variant->name;
}

INSTANTIATE_TEST_SUITE_P(Table, PackedFloats, testing::ValuesIn(packings_of_the_table(true)), name_of);
INSTANTIATE_TEST_SUITE_P(Table, PackedIntegers, testing::ValuesIn(packings_of_the_table(false)), name_of);

} // namespace
} // namespace convtranspose::test
