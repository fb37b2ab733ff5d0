// Weights and biases are packed in the order in which kernels read them, as operands of their arithmetic.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/variant.h"
#include "problem/axis_plan.h"
#include "problem/quantization.h"

namespace convtranspose {

// This is a view of weights of up to three spatial axes in the caller's memory. Strides are in elements.
struct WeightsView {
    const void *data = nullptr;
    std::int64_t c = 0, m = 0;                 // strides of (C, M/group)
    std::array<std::int64_t, 3> k = {0, 0, 0}; // strides of kernel w, h, d
};

// Returns a view of dense weights (C, M/group, K1..Kn), of the last three axes if there are more.
inline WeightsView view_of_dense(const Shape &w_shape, const void *data) {
    const Strides strides = dense_strides(w_shape);
    WeightsView view = {data, strides[0], strides[1], {0, 0, 0}};
    for (std::size_t a = 0; a < std::min<std::size_t>(w_shape.size() - 2, 3); a++)
        view.k[a] = strides[strides.size() - 1 - a];
    return view;
}

// If oc_tile > 0, w is [group][oc tile][tap d][tap h][tap w][ic / block][oc in tile][ic in block] or, with taps_inside,
// [group][oc tile][tap d][ic / block][tap h][tap w][oc in tile][ic in block], and the bias is [group][oc]. If oc_tile = 0 (one
// input and one output channel per group), w is [tap d][tap h][tap w][group] and the bias [group]. Tiles and blocks are filled
// up with zeros. With pairs_taps, two taps along w are a block, as there is one input channel; w is
// [tap d][tap h][tap w][group][2] if oc_tile = 0.
struct PackedLayout {
    Arithmetic arithmetic = Arithmetic::kFloat;
    std::int64_t block = 1;
    std::int64_t blocks_at_once = 1; // blocks are padded to a multiple of it
    bool pairs_taps = false;
    bool taps_inside = false;   // oc_tile > 0 only
    bool phases_inside = false; // the elements of w are those of put_phases_inside()
    std::int64_t oc_tile = 1;
    std::int64_t group_tile = 1; // oc_tile = 0 only: groups are padded to a multiple of it
    std::int64_t group = 1, ic = 0, oc = 0;
    std::array<std::int64_t, 3> taps = {1, 1, 1}; // packed kernel extents w, h, d

    std::int64_t blocks() const { // blocks of input channels
        const std::int64_t at_once = block * blocks_at_once;
        return (ic + at_once - 1) / at_once * blocks_at_once;
    }
    std::int64_t groups() const { return oc_tile ? group : (group + group_tile - 1) / group_tile * group_tile; }
    std::int64_t tile_channels() const { return std::max<std::int64_t>(oc_tile, 1); }
    std::int64_t tiles() const { return oc_tile ? (oc + oc_tile - 1) / oc_tile : 1; }
    std::int64_t taps_volume() const { return taps[0] * taps[1] * taps[2]; }
    // These return strides, in elements: of an input channel (or a block of them), of a tap of w, of a tap of d, of a tile, of
    // a group.
    std::int64_t block_stride() const { return oc_tile * block * (taps_inside ? taps[0] * taps[1] : 1); }
    std::int64_t tap_stride() const {
        return block * (!oc_tile ? groups() : taps_inside ? oc_tile : blocks() * oc_tile);
    }
    std::int64_t plane_stride() const { return taps[0] * taps[1] * block * (oc_tile ? blocks() * oc_tile : groups()); }
    std::int64_t tile_stride() const { return taps[2] * plane_stride(); }
    std::int64_t group_stride() const { return oc_tile ? tiles() * tile_stride() : block; }
    // Returns the place of an input channel within a tile.
    std::int64_t place_of(std::int64_t channel) const { return channel / block * block_stride() + channel % block; }
    std::int64_t weights() const { return oc_tile ? group * group_stride() : tile_stride(); } // elements
    std::int64_t biases() const { return oc_tile ? group * tiles() * oc_tile : groups(); }
    // Returns the output channel that a bias is of, or -1 if it only fills up a tile.
    std::int64_t channel_of_bias(std::int64_t i) const {
        const std::int64_t of_group = biases() / groups(), g = i / of_group;
        return g < group && i % of_group < oc ? g * oc + i % of_group : -1;
    }
};

// Returns the members of a layout that a variant decides. The others are the problem's.
PackedLayout packing_of(const Variant &variant);
bool same_packing(const PackedLayout &a, const PackedLayout &b); // compares those members

// Weights as they are packed: their layout, and the taps of w, h and d, whose order they have.
struct Packing {
    const PackedLayout &layout;
    const std::array<AxisPlan, 3> &axes;
};

// Packs weights into w_out, layout.weights() elements, and what belongs to them into `more`. Returns true if all are finite. To
// floats (q is null) belongs the bias, layout.biases() elements of the sum type; a null bias becomes zeros, and the scales of light
// weights of s8 follow. Integers are stored less their zero points. To int8 belong the sums over the input channels, as
// [tap d][tap h][tap w][biases()]; to int16 nothing does. The bias of integers is not packed (make_epilogue()).
bool pack_weights(const Packing &packing, const Geometry &geometry, const QuantizationValues *q, const WeightsView &w,
                  const void *bias, void *w_out, void *more);

// Unpacks either kind, exactly. w_out: the caller's memory, which w describes.
void unpack_weights(const Packing &packing, const Geometry &geometry, const QuantizationValues *q, const void *packed,
                    const WeightsView &w, void *w_out);

// This is the layout of what else integer arithmetic needs: biases, less what x's zero point adds to the sums of each class of
// taps, then factors. Biases are s32, [class d][class h][class w][biases()] for int8 and [biases()] for int16. Factors are f32,
// [kFactorColumns][biases()].
struct EpilogueLayout {
    std::array<std::int64_t, 3> classes = {1, 1, 1}; // w, h, d; all 1 for int16
    std::int64_t biases = 0;

    std::int64_t bias_count() const { return classes[0] * classes[1] * classes[2] * biases; }
    std::int64_t bytes() const { return 4 * (bias_count() + 2 * biases); }
};
EpilogueLayout epilogue_of(const Packing &packing);

// Writes EpilogueLayout::bytes() bytes to `out`. bias: (M) of the problem's b_dtype, or null. sums: from pack_weights(), int8
// only.
void make_epilogue(const Packing &packing, const Geometry &geometry, const QuantizationValues &q,
                   const std::int32_t *sums, const void *bias, void *out);

} // namespace convtranspose
