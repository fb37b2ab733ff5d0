// What plans know of the cores of this machine: terms of estimates (cost.h) and sizes of strips that were measured on one
// vendor's cores, and elsewhere are nothing.
#ifndef CONVTRANSPOSE_RUNTIME_COST_COST_PROFILE_H_
#define CONVTRANSPOSE_RUNTIME_COST_COST_PROFILE_H_

#include <cstdint>
#include <limits>

#include "kernels/variant.h"

namespace convtranspose {

// An algorithm is chosen if it is estimated to take less than so many times as long, as estimates are not that exact.
struct Margins {
    // The other layout: of channels first, of weights that are not far and of such that are; of channels last. Zen 4: 19 layers
    // between the first two and 0.95 and 0.85 take 0.88 of the time in the mean.
    double layout_transpose = 1, layout_transpose_of_far = 0.915, layout_transpose_of_last = 0.9;
    double depth_to_space = 0.8; // without dilation
};

constexpr double kPerRowOfX = 2; // of shorter vectors (below), and where nothing else was measured

struct CostProfile {
    // Of vectors of a cache line. Of a step of channels: times as long, to load weights from the second-level cache; cycles besides,
    // for each row of x that a tile reads. Times as long: taps of depthwise layers with channels last.
    double near_weights = 1, per_row_of_x = kPerRowOfX, depthwise_taps = 1;
    Margins margins_of_lines;

    // Cycles that a load costs beside the multiply-adds that should hide it: of an operand of a cache line; of a vector of x along w
    // that crosses lines; of one from the second-level cache.
    double per_load = 0, per_crossing = 0, per_far_load = 0;
    // Of a step of channels last, for each instruction that is no multiply-add; then no per_load.
    double per_other = 0;
    // Cycles for each vector of x along w of a step, at least; the same of depthwise layers.
    double least_per_crossing = 0, least_per_depthwise_crossing = 0;
    // Times as long as estimated: tiles of fewer than so many positions, which wait for weights; those of three vectors of channels;
    // planes of one input channel by offset; depth_to_space with channels first, and of many groups; rows of f64.
    double narrow_tiles = 1.1, narrow_positions = 8, three_vectors = 1, one_channel = 1, depth_to_space = 1,
           groups_to_space = 1, wide_doubles = 1;

    // Times as long as in the midst of a row, for a narrower tile of channels at its end (cost_channels.cpp).
    double channels_row_end = 1.1;

    // Of vectors shorter than a cache line. Times as long, of tiles of channels: for each position that they have less than six, of
    // few where weights are far, of one vector, and of several rows of a large x. Cycles for a vector of x along w of a step.
    double per_position_less = 0, few_of_far = 1, one_vector = 1, several_rows = 1, per_vector_along = 0;
    // Cycles to store a part of such a vector.
    double per_masked_store = 0;
    // Cycles to copy an element of an x of more than far_bytes, and to transpose one of a strip of it, channels first.
    double far_copy = 0, strip_from_far = 0, far_bytes = std::numeric_limits<double>::infinity();

    // All of the second-level cache, in bytes, if what does not fit is known to take longer. What follows is of that.
    double second_level_cache = std::numeric_limits<double>::infinity();
    // Times as long: weights that arrive late, and very late; transposing channels first; rows of few output channels, of three
    // residues of h or more.
    double late_weights = 1, very_late_weights = 1, far_transposition = 1, far_rows = 1;
    // Cycles to transpose an element of a strip of y to a y that is further away, which kernels do while they compute.
    double strip_to_far = 0.7;
    // Bytes of weights a cycle.
    double far_weights = 1;
    // Cycles for a vector of x of few output channels, a store of a part of a cache line that groups share, a vector of a far y in
    // tiles of one row, or of few vectors, and an element of a product of col2im.
    double far_x = 0, shared_line = 0, far_store = 0, far_product = 0;
    // Tiles of output channels that are made of one tap faster from x in place than from a copy of it (prefers_in_place()): by variants
    // that fetch x ahead, and by others, of an x of less than in_place_bytes.
    std::int64_t tiles_in_place = 0, near_tiles_in_place = 0;
    double in_place_bytes = 0;
    // Cycles that this saves, of the 0.4 to copy an element of x: of up to four tiles, and of more, which read x anew.
    double not_copied = 0.25, not_copied_by_more = 0.1;

    // What a strip of x may take of that cache where weights decide, in bytes; how many strips are enough for a thread.
    std::int64_t near_strip = 384 << 10, fine_strips = 8;
};

const CostProfile &cost_profile();

// Of plans for an ISA.
Margins margins(Isa isa);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_COST_COST_PROFILE_H_
