// Weights and bias in the order in which the kernels read them, as the operands of their arithmetic.
#ifndef CONVTRANSPOSE_RUNTIME_KERNELS_PACKED_WEIGHTS_H_
#define CONVTRANSPOSE_RUNTIME_KERNELS_PACKED_WEIGHTS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/variant.h"
#include "problem/axis_plan.h"
#include "problem/quantization.h"

namespace convtranspose {

// Weights of up to three spatial axes in the caller's memory. Strides in elements.
struct WeightsView {
    const void *data = nullptr;
    std::int64_t c = 0, m = 0;                 // strides of (C, M/group)
    std::array<std::int64_t, 3> k = {0, 0, 0}; // of kernel w, h, d
};

// oc_tile > 0: w as [group][oc tile][tap d][tap h][tap w][ic / block][oc in tile][ic in block], bias as [group][oc]; with
// taps_inside as [group][oc tile][tap d][ic / block][tap h][tap w][oc in tile][ic in block].
// oc_tile = 0 (one input and one output channel per group): w as [tap d][tap h][tap w][group], bias as [group].
// Channels (or groups) past the last are zeros up to a whole tile, or block. With pairs of taps in place of blocks of input
// channels, of which there is one, a tap along w is such a pair, and oc_tile = 0 makes w [tap d][tap h][tap w][group][2].
struct PackedLayout {
    Arithmetic arithmetic = Arithmetic::kFloat;
    std::int64_t block = 1;
    std::int64_t blocks_at_once = 1; // blocks are padded to a multiple of it
    bool pairs_taps = false;
    bool taps_inside = false; // oc_tile > 0 only
    std::int64_t oc_tile = 1;
    std::int64_t group_tile = 1; // oc_tile = 0 only: groups are padded to a multiple of it
    std::int64_t group = 1, ic = 0, oc = 0;
    std::array<std::int64_t, 3> taps = {1, 1, 1}; // packed kernel extents w, h, d

    std::int64_t blocks() const { // of input channels
        const std::int64_t at_once = block * blocks_at_once;
        return (ic + at_once - 1) / at_once * blocks_at_once;
    }
    std::int64_t groups() const { return oc_tile ? group : (group + group_tile - 1) / group_tile * group_tile; }
    std::int64_t tiles() const { return oc_tile ? (oc + oc_tile - 1) / oc_tile : 1; }
    std::int64_t taps_volume() const { return taps[0] * taps[1] * taps[2]; }
    // Elements from one to the next: input channel (or block of them), tap of w, tap of d, tile, group.
    std::int64_t block_stride() const { return oc_tile * block * (taps_inside ? taps[0] * taps[1] : 1); }
    std::int64_t tap_stride() const {
        return block * (!oc_tile ? groups() : taps_inside ? oc_tile : blocks() * oc_tile);
    }
    std::int64_t plane_stride() const { return taps[0] * taps[1] * block * (oc_tile ? blocks() * oc_tile : groups()); }
    std::int64_t tile_stride() const { return taps[2] * plane_stride(); }
    std::int64_t group_stride() const { return oc_tile ? tiles() * tile_stride() : block; }
    std::int64_t weights() const { return oc_tile ? group * group_stride() : tile_stride(); } // elements
    std::int64_t biases() const { return oc_tile ? group * tiles() * oc_tile : groups(); }
};

// How a variant wants weights packed: the tiles of a layout, the rest of which is the problem's.
PackedLayout packing_of(const Variant &variant);
bool same_packing(const PackedLayout &a, const PackedLayout &b); // of those tiles

// Packs into w_out (layout.weights() elements of the sum type, or of bf16) and bias_out (layout.biases() of the sum type); bias
// may be null (zeros).
// Returns whether all weights are finite.
bool pack_weights(const PackedLayout &layout, const std::array<AxisPlan, 3> &axes, convt_dtype dtype,
                  const WeightsView &w, const void *bias, void *w_out, void *bias_out);

// For integer arithmetic: the weights less their zero points, and for int8 their sums over the input channels, which are
// [tap d][tap h][tap w][biases()].
void pack_quantized(const PackedLayout &layout, const std::array<AxisPlan, 3> &axes, const Geometry &geometry,
                    const QuantizationValues &q, const WeightsView &w, void *w_out, std::int32_t *sums_out);

// Takes either back, exactly: w_out is the caller's memory that w described. dtype: as it was packed from, of floats; q: null
// for those.
void unpack_weights(const PackedLayout &layout, const std::array<AxisPlan, 3> &axes, convt_dtype dtype,
                    const QuantizationValues *q, const void *packed, const WeightsView &w, void *w_out);

// What else integer arithmetic needs: biases, less what x's zero point adds to the sums of each class of taps, then factors.
// bias is [class d][class h][class w][biases()] for int8, [biases()] for int16, s32; factors [kFactorColumns][biases()], f32.
struct EpilogueLayout {
    std::array<std::int64_t, 3> classes = {1, 1, 1}; // w, h, d; all 1 for int16
    std::int64_t biases = 0;

    std::int64_t bias_count() const { return classes[0] * classes[1] * classes[2] * biases; }
    std::int64_t bytes() const { return 4 * (bias_count() + 2 * biases); }
};
EpilogueLayout epilogue_of(const PackedLayout &layout, const std::array<AxisPlan, 3> &axes);

// bias: (M) of the problem's b_dtype, or null. sums: made by pack_quantized(); int8 only. out: EpilogueLayout::bytes().
void make_epilogue(const PackedLayout &layout, const std::array<AxisPlan, 3> &axes, const Geometry &geometry,
                   const QuantizationValues &q, const std::int32_t *sums, const void *bias, void *out);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_KERNELS_PACKED_WEIGHTS_H_
