// Weights and bias in the order in which the kernels read them, in the type of the sums.
#ifndef CONVTRANSPOSE_RUNTIME_PACKED_WEIGHTS_H_
#define CONVTRANSPOSE_RUNTIME_PACKED_WEIGHTS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "axis_plan.h"
#include "variant.h"

namespace convtranspose {

// Weights of up to three spatial axes in the caller's memory. Strides in elements.
struct WeightsView {
    const void *data = nullptr;
    std::int64_t c = 0, m = 0;                 // strides of (C, M/group)
    std::array<std::int64_t, 3> k = {0, 0, 0}; // of kernel w, h, d
};

// oc_tile > 0: w as [group][oc tile][tap d][tap h][tap w][ic][oc in tile], bias as [group][oc].
// oc_tile = 0 (one input and one output channel per group): w as [tap d][tap h][tap w][group], bias as [group].
// Channels (or groups) past the last are zeros up to a whole tile.
struct PackedLayout {
    std::int64_t oc_tile = 1;
    std::int64_t group_tile = 1; // oc_tile = 0 only: groups are padded to a multiple of it
    std::int64_t group = 1, ic = 0, oc = 0;
    std::array<std::int64_t, 3> taps = {1, 1, 1}; // packed kernel extents w, h, d

    std::int64_t groups() const { return oc_tile ? group : (group + group_tile - 1) / group_tile * group_tile; }
    std::int64_t tiles() const { return oc_tile ? (oc + oc_tile - 1) / oc_tile : 1; }
    std::int64_t taps_volume() const { return taps[0] * taps[1] * taps[2]; }
    std::int64_t weights() const { // elements
        return oc_tile ? group * tiles() * taps_volume() * ic * oc_tile : taps_volume() * groups();
    }
    std::int64_t biases() const { return oc_tile ? group * tiles() * oc_tile : groups(); }
};

// How a variant wants weights packed: the tiles of a layout, the rest of which is the problem's.
PackedLayout packing_of(const Variant &variant);

// Packs into w_out (layout.weights() elements of the sum type) and bias_out (layout.biases()); bias may be null (zeros).
// Returns whether all weights are finite.
bool pack_weights(const PackedLayout &layout, const std::array<AxisPlan, 3> &axes, convt_dtype dtype,
                  const WeightsView &w, const void *bias, void *w_out, void *bias_out);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_PACKED_WEIGHTS_H_
