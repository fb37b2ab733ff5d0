#include "packed_weights.h"

#include <algorithm>
#include <cmath>

#include "half.h"

namespace convtranspose {

namespace {

template<typename Stored, typename Sum>
bool pack(const PackedLayout &p, const std::array<AxisPlan, 3> &axes, const WeightsView &w, const void *bias,
          Sum *w_out, Sum *bias_out) {
    const auto *from = static_cast<const Stored *>(w.data);
    const std::int64_t tile = std::max<std::int64_t>(p.oc_tile, 1);
    const std::int64_t ic_stride = p.oc_tile ? tile : 0; // oc_tile = 0 has one input channel
    const std::int64_t tap_stride = p.oc_tile ? p.ic * tile : p.groups();
    const std::int64_t tile_stride = p.taps_volume() * tap_stride;
    const std::int64_t group_stride = p.oc_tile ? p.tiles() * tile_stride : 1;
    Sum not_finite = 0; // becomes and stays NaN with the first inf or NaN: x * 0 is 0 for any other
    for (std::int64_t g = 0; g < p.groups(); g++) {
        for (std::int64_t t = 0; t < p.tiles(); t++) {
            Sum *const to_tile = w_out + g * group_stride + t * tile_stride;
            const std::int64_t filled = g < p.group ? std::min(tile, p.oc - t * tile) : 0;
            // Input channels outermost: w is read front to back, and the tile's taps are written side by side.
            for (std::int64_t ic = 0; ic < p.ic; ic++) {
                Sum *to = to_tile + ic * ic_stride;
                for (std::int64_t d = 0; d < p.taps[2]; d++) {
                    for (std::int64_t h = 0; h < p.taps[1]; h++) {
                        const std::int64_t at_dh = axes[2].elements[d] * w.k[2] + axes[1].elements[h] * w.k[1];
                        for (std::int64_t v = 0; v < p.taps[0]; v++, to += tap_stride) {
                            const Stored *const source =
                                from + (g * p.ic + ic) * w.c + t * tile * w.m + at_dh + axes[0].elements[v] * w.k[0];
                            for (std::int64_t i = 0; i < filled; i++) {
                                const Sum value = static_cast<Sum>(source[i * w.m]);
                                not_finite += value * 0;
                                to[i] = value;
                            }
                            for (std::int64_t i = filled; i < tile; i++) to[i] = 0;
                        }
                    }
                }
            }
        }
    }
    const auto *const b = static_cast<const Stored *>(bias);
    const std::int64_t per_group = p.tiles() * tile;
    for (std::int64_t g = 0; g < p.groups(); g++) {
        for (std::int64_t i = 0; i < per_group; i++) {
            const bool exists = b && g < p.group && i < p.oc;
            bias_out[g * per_group + i] = exists ? static_cast<Sum>(b[g * p.oc + i]) : Sum(0);
        }
    }
    return not_finite == 0;
}

} // namespace

PackedLayout packing_of(const Variant &v) {
    PackedLayout packing;
    const bool dense_groups = v.family == Family::kDepthwise && v.store == Store::kChannels;
    packing.oc_tile = dense_groups ? 0 : v.tile_oc;
    packing.group_tile = dense_groups ? static_cast<std::int64_t>(v.tile_oc) * v.lanes : 1;
    return packing;
}

bool pack_weights(const PackedLayout &layout, const std::array<AxisPlan, 3> &axes, convt_dtype dtype,
                  const WeightsView &w, const void *bias, void *w_out, void *bias_out) {
    switch (dtype) {
    case CONVT_F16:
        return pack<F16>(layout, axes, w, bias, static_cast<float *>(w_out), static_cast<float *>(bias_out));
    case CONVT_BF16:
        return pack<Bf16>(layout, axes, w, bias, static_cast<float *>(w_out), static_cast<float *>(bias_out));
    case CONVT_F32:
        return pack<float>(layout, axes, w, bias, static_cast<float *>(w_out), static_cast<float *>(bias_out));
    case CONVT_F64:
        return pack<double>(layout, axes, w, bias, static_cast<double *>(w_out), static_cast<double *>(bias_out));
    }
    return false;
}

} // namespace convtranspose
