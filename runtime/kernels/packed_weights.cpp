#include "kernels/packed_weights.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/half.h"

namespace convtranspose {

namespace {

constexpr std::int64_t kTakenApartBytes = 16 << 10;

// This is the type to compute with. F16 and Bf16 only store numbers: their zero has no bit set, and f32 shows whether they are
// finite.
template<typename Sum>
using Computed = std::conditional_t<std::is_same_v<Sum, F16> || std::is_same_v<Sum, Bf16>, float, Sum>;

// Checks for infinities and NaNs: x * 0 is NaN for those and 0 for all others. There are several sums, so that none waits for
// another.
template<typename Sum>
class FiniteCheck {
  public:
    void add(const Sum *values, std::int64_t count) {
        std::int64_t i = 0;
        for (; i + kSums <= count; i += kSums) {
            for (std::int64_t k = 0; k < kSums; k++) sums_[k] += static_cast<Computed<Sum>>(values[i + k]) * 0;
        }
        for (; i < count; i++) sums_[0] += static_cast<Computed<Sum>>(values[i]) * 0;
    }
    bool finite() const {
        return std::all_of(sums_, sums_ + kSums, [](Computed<Sum> sum) { return sum == 0; });
    }

  private:
    static constexpr std::int64_t kSums = 16;
    Computed<Sum> sums_[kSums] = {};
};

// The places of an element of the kernel, in elements: among those of a pair of channels, -1 if it only fills up a pair of taps,
// and among the packed ones of an input channel. tap: the number of its tap.
struct ElementPlace {
    std::int64_t from, to, tap;
};

// Returns a function that calls f(place) for the places of all elements, in packed order. They are computed, not listed, because
// runs pack weights too, and allocate nothing.
auto places_of(const Packing &packing, const WeightsView &view) {
    return [&axes = packing.axes, k = view.k, tap_stride = packing.layout.tap_stride(),
            plane_stride = packing.layout.plane_stride(), last = packing.layout.pairs_taps ? std::int64_t{1} : 0](
               const auto &f) { // last: 1 if two elements are a tap
        const std::int64_t of_w = axes[0].element_count(), of_h = axes[1].element_count(),
                           of_d = axes[2].element_count();
        const std::int32_t *const w = axes[0].elements.data(), *const h = axes[1].elements.data(),
                                  *const d = axes[2].elements.data();
        std::int64_t tap = 0;
        for (std::int64_t id = 0; id < of_d; id++) {
            std::int64_t to = id * plane_stride;
            for (std::int64_t ih = 0; ih < of_h; ih++) {
                const std::int64_t from = d[id] * k[2] + h[ih] * k[1];
                for (std::int64_t iw = 0; iw < of_w; iw++) {
                    const std::int64_t second = iw & last; // 1: of a pair
                    f(ElementPlace{w[iw] < 0 ? -1 : from + w[iw] * k[0], to + second, tap});
                    if (second != last) continue;
                    tap++;
                    to += tap_stride;
                }
            }
        }
    };
}

// The tiles of output channels. If oc_tile = 0, a tile is all groups, each of one channel. stride: between channels of w. filled:
// how many channels the tiles of a group have; what is left of the last one are zeros.
struct Tiles {
    std::int64_t groups, length, filled, stride;

    Tiles(const PackedLayout &p, const WeightsView &w)
        : groups(p.oc_tile ? p.group : 1), length(p.oc_tile ? p.oc_tile : p.groups()),
          filled(p.oc_tile ? p.oc : p.group), stride(p.oc_tile ? w.m : w.c) {}
};

// Sets to[i * kBlock] = convert(from[i * stride], i) for i < filled, then zeros up to `tile`.
template<int kBlock, typename Stored, typename Operand, typename Convert>
void gather(const Stored *from, std::int64_t stride, std::int64_t filled, std::int64_t tile, const Convert &convert,
            Operand *to) {
    std::int64_t i = 0;
    for (; i + 4 <= filled; i += 4, from += 4 * stride) { // all loads come first: stores might change what they read
        const Stored a = from[0], b = from[stride], c = from[2 * stride], d = from[3 * stride];
        to[i * kBlock] = convert(a, i);
        to[(i + 1) * kBlock] = convert(b, i + 1);
        to[(i + 2) * kBlock] = convert(c, i + 2);
        to[(i + 3) * kBlock] = convert(d, i + 3);
    }
    for (; i < filled; i++, from += stride) to[i * kBlock] = convert(*from, i);
    for (; i < tile; i++) to[i * kBlock] = Operand();
}

// Converts a weight to the operand of a kernel.
template<typename Operand>
struct PlainConversion {
    template<typename Stored>
    Operand operator()(Stored weight, std::int64_t /*output channel*/) const {
        return static_cast<Operand>(weight);
    }
};

// Packs floats. kBlock is layout.block.
template<typename Stored, int kBlock = 1, typename Operand, typename Sum, typename Convert = PlainConversion<Operand>>
bool pack(const Packing &packing, const WeightsView &w, const void *bias, Operand *w_out, Sum *bias_out,
          const Convert &convert = {}) {
    const PackedLayout &p = packing.layout;
    const auto *from = static_cast<const Stored *>(w.data);
    const Tiles tiles(p, w);
    const std::int64_t tile = tiles.length;
    const std::int64_t block_stride = p.block_stride(); // oc_tile = 0 has one input channel
    const std::int64_t tile_stride = p.tile_stride(), group_stride = p.group_stride();
    const std::int64_t all_ic = p.blocks() * kBlock; // with the zeros that fill up blocks
    const std::int64_t taps_of_plane = p.taps[0] * p.taps[1], in_channels = p.ic, c_stride = w.c,
                       m_stride = tiles.stride;
    const auto for_each_place = places_of(packing, w);
    // So many input channels are packed at a time that they stay in the first-level cache: all taps of a pair of channels share
    // cache lines, but the channels of a tap are written side by side.
    const std::int64_t bytes = tile * p.taps_volume() * static_cast<std::int64_t>(sizeof(Stored));
    const std::int64_t at_a_time =
        std::max<std::int64_t>(kTakenApartBytes / std::max<std::int64_t>(bytes, 1) / kBlock * kBlock, kBlock);
    FiniteCheck<Operand> check;
    for (std::int64_t g = 0; g < tiles.groups; g++) {
        for (std::int64_t t = 0; t < p.tiles(); t++) {
            Operand *const to_tile = w_out + g * group_stride + t * tile_stride;
            const std::int64_t filled = std::min(tile, tiles.filled - t * tile);
            const auto convert_at = [&, first = g * p.oc + t * tile](Stored weight, std::int64_t i) {
                return convert(weight, first + i);
            };
            for (std::int64_t begin = 0; begin < all_ic; begin += at_a_time) {
                const std::int64_t count = std::min(at_a_time, all_ic - begin);
                const Stored *const channels = from + (g * p.ic + begin) * w.c + t * tile * tiles.stride;
                Operand *const to_channels = to_tile + begin / kBlock * block_stride;
                const bool by_tap = !p.taps_inside;
                for_each_place([=, &check](const ElementPlace &e) {
                    Operand *const to_tap = to_channels + e.to;
                    for (std::int64_t ic = 0; ic < count; ic++) {
                        const std::int64_t there = begin + ic < in_channels ? filled : 0;
                        gather<kBlock>(channels + ic * c_stride + e.from, m_stride, there, tile, convert_at,
                                       to_tap + ic / kBlock * block_stride + ic % kBlock);
                    }
                    if (by_tap) check.add(to_tap, count * tile);
                });
                for (std::int64_t d = 0; p.taps_inside && d < p.taps[2]; d++)
                    check.add(to_channels + d * p.plane_stride(), taps_of_plane * count * tile);
            }
        }
    }
    const auto *const b = static_cast<const Stored *>(bias);
    for (std::int64_t i = 0; i < p.biases(); i++) {
        const std::int64_t m = p.channel_of_bias(i);
        bias_out[i] = b && m >= 0 ? static_cast<Sum>(b[m]) : Sum();
    }
    return check.finite();
}

template<typename Packed>
void pack_integers(const Packing &packing, const Geometry &geometry, const QuantizationValues &q, const WeightsView &w,
                   Packed *w_out, std::int32_t *sums) {
    const PackedLayout &p = packing.layout;
    const auto *const from = static_cast<const std::uint8_t *>(w.data);
    // An s8 becomes a u8, whose zero point is 128 more.
    const std::int32_t flip = geometry.w_dtype == CONVT_S8 ? 0x80 : 0, middle = flip ? 128 : 0;
    const Tiles tiles(p, w);
    const std::int64_t tile = tiles.length, taps = p.taps_volume();
    const std::int64_t channels = p.pairs_taps ? 1 : p.blocks() * p.block; // with the zeros that fill up blocks
    const std::int64_t biases = p.biases(), per_group = biases / tiles.groups;
    const auto for_each_place = places_of(packing, w);
    const bool has_zeros = q.w_zero_point.size() > 1; // one for each output channel
    for (std::int64_t g = 0; g < tiles.groups; g++) {
        for (std::int64_t t = 0; t < p.tiles(); t++) {
            Packed *const to_tile = w_out + g * p.group_stride() + t * p.tile_stride();
            const std::int64_t filled = std::min(tile, tiles.filled - t * tile);
            const std::int32_t *const zeros = q.w_zero_point.data() + (has_zeros ? g * p.oc + t * tile : 0);
            std::int32_t *const tile_sums = sums ? sums + g * per_group + t * tile : nullptr;
            for (std::int64_t k = 0; sums && k < taps; k++) std::fill_n(tile_sums + k * biases, tile, 0);
            for (std::int64_t ic = 0; ic < channels; ic++) {
                const std::uint8_t *const pair = from + (g * p.ic + ic) * w.c + t * tile * tiles.stride;
                Packed *const to_channel = to_tile + p.place_of(ic);
                for_each_place([&](const ElementPlace &e) {
                    const std::int64_t there = ic < p.ic && e.from >= 0 ? filled : 0;
                    Packed *const to = to_channel + e.to;
                    std::int32_t *const sum = sums ? tile_sums + e.tap * biases : nullptr;
                    const std::int64_t block = p.block,
                                       m_stride = tiles.stride; // stores might change what they are read from
                    for (std::int64_t i = 0; i < there; i++) {
                        const std::int32_t value =
                            (pair[e.from + i * m_stride] ^ flip) - zeros[has_zeros ? i : 0] - middle;
                        to[i * block] = static_cast<Packed>(value);
                        if (sum) sum[i] += value;
                    }
                    for (std::int64_t i = there; i < tile; i++) to[i * block] = 0;
                });
            }
        }
    }
}

// Packs weights of f32 as the type of light weights, which holds them exactly.
bool pack_light(const Packing &packing, const LightWeights &light, const WeightsView &w, const void *bias, void *w_out,
                float *bias_out) {
    if (light.dtype == CONVT_F16) {
        const auto convert = [](float weight, std::int64_t) { return to_f16(weight); };
        return pack<float>(packing, w, bias, static_cast<F16 *>(w_out), bias_out, convert);
    }
    if (light.dtype == CONVT_BF16) {
        const auto convert = [](float weight, std::int64_t) { return to_bf16(weight); };
        return pack<float>(packing, w, bias, static_cast<Bf16 *>(w_out), bias_out, convert);
    }
    const PackedLayout &p = packing.layout;
    for (std::int64_t i = 0; i < p.biases(); i++) {
        const std::int64_t m = p.channel_of_bias(i);
        bias_out[p.biases() + i] = m >= 0 ? light.scale_of(m) : 0;
    }
    const auto convert = [&](float weight, std::int64_t m) {
        return static_cast<std::int8_t>(std::lrint(weight / light.scale_of(m)));
    };
    return pack<float>(packing, w, bias, static_cast<std::int8_t *>(w_out), bias_out, convert);
}

} // namespace

PackedLayout packing_of(const Variant &v) {
    PackedLayout packing;
    const bool dense_groups = v.family == Family::kDepthwise && v.output_order == OutputOrder::kChannels;
    packing.arithmetic = v.arithmetic;
    packing.block = block_of_weights(v);
    packing.blocks_at_once = has_rows_of_channels(v) ? 1 : blocks_at_once(v);
    packing.pairs_taps = pairs_taps(v);
    packing.taps_inside = has_taps_inside(v);
    packing.phases_inside = has_vectors_of_phases(v);
    packing.oc_tile = dense_groups ? 0 : v.tile_oc;
    packing.group_tile = dense_groups ? static_cast<std::int64_t>(v.tile_oc) * v.lanes : 1;
    return packing;
}

bool same_packing(const PackedLayout &a, const PackedLayout &b) {
    return a.arithmetic == b.arithmetic && a.block == b.block && a.blocks_at_once == b.blocks_at_once &&
           a.pairs_taps == b.pairs_taps && a.taps_inside == b.taps_inside && a.phases_inside == b.phases_inside &&
           a.oc_tile == b.oc_tile && a.group_tile == b.group_tile;
}

bool pack_weights(const Packing &packing, const Geometry &geometry, const QuantizationValues *q, const WeightsView &w,
                  const void *bias, void *w_out, void *more) {
    const PackedLayout &layout = packing.layout;
    if (q) {
        if (layout.arithmetic == Arithmetic::kInt8) {
            auto *const sums = static_cast<std::int32_t *>(more);
            pack_integers(packing, geometry, *q, w, static_cast<std::int8_t *>(w_out), sums);
        } else {
            pack_integers(packing, geometry, *q, w, static_cast<std::int16_t *>(w_out), nullptr);
        }
        return true;
    }
    auto *const w_f32 = static_cast<float *>(w_out), *const bias_f32 = static_cast<float *>(more);
    if (has_light_weights(layout.arithmetic)) return pack_light(packing, geometry.light, w, bias, w_out, bias_f32);
    if (layout.arithmetic == Arithmetic::kHalf)
        return pack<F16>(packing, w, bias, static_cast<F16 *>(w_out), static_cast<F16 *>(more));
    if (layout.arithmetic == Arithmetic::kBf16) {
        const auto pack_bf16 = layout.block == 2 ? pack<Bf16, 2, Bf16, float> : pack<Bf16, 32, Bf16, float>;
        return pack_bf16(packing, w, bias, static_cast<Bf16 *>(w_out), bias_f32, {});
    }
    if (geometry.dtype == CONVT_F16) return pack<F16>(packing, w, bias, w_f32, bias_f32);
    if (geometry.dtype == CONVT_BF16) return pack<Bf16>(packing, w, bias, w_f32, bias_f32);
    if (geometry.dtype == CONVT_F32) return pack<float>(packing, w, bias, w_f32, bias_f32);
    return pack<double>(packing, w, bias, static_cast<double *>(w_out), static_cast<double *>(more));
}

void unpack_weights(const Packing &packing, const Geometry &geometry, const QuantizationValues *q, const void *packed,
                    const WeightsView &w, void *w_out) {
    const PackedLayout &p = packing.layout;
    const convt_dtype dtype = geometry.dtype;
    const std::int64_t tile = p.tile_channels();
    const auto for_each_place = places_of(packing, w);
    const convt_dtype stored = has_light_weights(p.arithmetic)     ? light_dtype(p.arithmetic)
                               : p.arithmetic == Arithmetic::kHalf ? CONVT_F16
                               : p.arithmetic == Arithmetic::kBf16 ? CONVT_BF16
                                                                   : sum_dtype(dtype); // of floats
    const auto unpack = [&](std::int64_t from, std::int64_t to, std::int64_t m) {
        if (is_float(p.arithmetic)) {
            const double value = load_element(stored, element_at(packed, from, size_of(stored))),
                         scale = stored == CONVT_S8 ? static_cast<double>(geometry.light.scale_of(m)) : 1;
            store_element(dtype, value * scale, element_at(w_out, to, size_of(dtype)));
            return;
        }
        const std::int32_t value = p.arithmetic == Arithmetic::kInt8 ? static_cast<const std::int8_t *>(packed)[from]
                                                                     : static_cast<const std::int16_t *>(packed)[from];
        static_cast<std::uint8_t *>(w_out)[to] = static_cast<std::uint8_t>(value + q->w_zero_point_of(m));
    };
    for (std::int64_t g = 0; g < p.group; g++) {
        for (std::int64_t ic = 0; ic < p.ic; ic++) {
            for (std::int64_t oc = 0; oc < p.oc; oc++) {
                const std::int64_t from = g * p.group_stride() + oc / tile * p.tile_stride() + oc % tile * p.block +
                                          p.place_of(ic),
                                   to = (g * p.ic + ic) * w.c + oc * w.m;
                for_each_place([&](const ElementPlace &e) {
                    if (e.from >= 0) unpack(from + e.to, to + e.from, g * p.oc + oc);
                });
            }
        }
    }
}

EpilogueLayout epilogue_of(const Packing &packing) {
    const PackedLayout &layout = packing.layout;
    const std::array<AxisPlan, 3> &axes = packing.axes;
    EpilogueLayout e;
    e.biases = layout.biases();
    for (std::size_t a = 0; a < 3 && layout.arithmetic == Arithmetic::kInt8; a++) {
        e.classes[a] = static_cast<std::int64_t>(axes[a].classes.size());
    }
    return e;
}

void make_epilogue(const Packing &packing, const Geometry &geometry, const QuantizationValues &q,
                   const std::int32_t *sums, const void *bias, void *out) {
    const PackedLayout &layout = packing.layout;
    const std::array<AxisPlan, 3> &axes = packing.axes;
    const EpilogueLayout e = epilogue_of(packing);
    auto *const biases = static_cast<std::int32_t *>(out);
    auto *const factors = reinterpret_cast<float *>(biases + e.bias_count());
    const bool real = geometry.y_dtype == CONVT_F32;

    // Write the bias alone for each class. Channels past the last have no bias and no factor.
    for (std::int64_t i = 0; i < e.biases; i++) {
        const std::int64_t m = layout.channel_of_bias(i);
        biases[i] = m >= 0 && bias && !real ? static_cast<const std::int32_t *>(bias)[m] : 0;
        factors[i] = m >= 0 ? factor_of(q, geometry, m) : 0;
        factors[e.biases + i] = m >= 0 && bias && real ? static_cast<const float *>(bias)[m] : 0;
    }
    if (layout.arithmetic != Arithmetic::kInt8) return;
    for (std::int64_t c = e.classes[0] * e.classes[1] * e.classes[2]; c-- > 0;) {
        std::copy_n(biases, e.biases, biases + c * e.biases); // class 0 last, as the others are copies of it
    }
    const std::int32_t zero = byte_x(q, geometry).zero;
    if (zero == 0) return;
    std::int32_t *to = biases;
    for_each_index(e.classes, [&](const Index &at) {
        const auto class_of = [&](std::size_t a) { return axes[a].classes[static_cast<std::size_t>(at[a])]; };
        const TapClass w = class_of(0), h = class_of(1), d = class_of(2);
        for_each_index({w.count, h.count, d.count}, [&](const Index &t) {
            const Index tap = {w.first + t[0], h.first + t[1], d.first + t[2]};
            const std::int32_t *const from = sums + number_of(tap, layout.taps) * e.biases;
            for (std::int64_t i = 0; i < e.biases; i++) to[i] -= zero * from[i];
        });
        to += e.biases;
    });
}

} // namespace convtranspose
