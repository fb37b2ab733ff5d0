// Profiles of CPU cores: the terms of estimates (cost.h) and the sizes of strips that are fitted to measurements on one vendor's
// cores. The defaults, for all other cores, leave a term out or hold what serves any.
#ifndef CONVTRANSPOSE_RUNTIME_COST_COST_PROFILE_H_
#define CONVTRANSPOSE_RUNTIME_COST_COST_PROFILE_H_

#include <cstdint>
#include <limits>

#include "kernels/variant.h"

namespace convtranspose {

// An algorithm other than the direct one is chosen only if its estimate is less than this fraction of that one's, because estimates
// of different algorithms are not exact enough to be compared as they are.
struct Margins {
    // For computing channels first in channels last, with weights that are near and with weights that are far; for the reverse.
    double layout_transpose = 1, layout_transpose_of_far = 0.915, layout_transpose_of_last = 0.9;
    double depth_to_space = 0.8; // for layers without dilation
};

// This is per_row_of_x of cores without a fitted value, and of vectors shorter than a cache line.
constexpr double kPerRowOfX = 2;

// "Vectors of channels" are those of kernels whose vectors are of output channels, with one input channel and tap as a step.
// Slowdowns are factors. What is *far* does not fit in the second-level cache.
struct CostProfile {
    // These are for vectors of a cache line: a slowdown of loading weights and the cycles for each row of x that a tile reads, both
    // in a step by vectors of channels; and a slowdown of taps of depthwise layers, channels last.
    double near_weights = 1, per_row_of_x = kPerRowOfX, depthwise_taps = 1;
    Margins margins_of_lines;

    // Cycles that a load costs in spite of the multiply-adds that should hide it: a load of an operand of a cache line; of a vector
    // of x along w that crosses lines; of a vector of x that comes from the second-level cache.
    double per_load = 0, per_crossing = 0, per_far_load = 0;
    // Cycles of each instruction that is no multiply-add, in a step by vectors of channels with y channels last. If it is not 0, it
    // takes the place of per_load there.
    double per_other = 0;
    // The least cycles of a step for each vector of x along w; the same for depthwise layers.
    double least_per_crossing = 0, least_per_depthwise_crossing = 0;
    // Slowdowns: tiles of fewer than narrow_positions positions, which wait for weights; tiles of three vectors of channels; planes of
    // one input channel whose offsets are walked once; depth_to_space with channels first, and with many groups; rows of f64.
    double narrow_tiles = 1.1, narrow_positions = 8, three_vectors = 1, one_channel = 1, depth_to_space = 1,
           groups_to_space = 1, wide_doubles = 1;

    // The slowdown of a narrower tile at the end of a row, with vectors of channels (cost_oc_vectorized.cpp).
    double channels_row_end = 1.1;

    // These are for vectors shorter than a cache line. Slowdowns of tiles by vectors of channels: for each position below six, added;
    // for having fewer than six if weights are far; for one vector; for several rows of a large x. Cycles of a step for each vector
    // of x along w.
    double per_position_less = 0, few_of_far = 1, one_vector = 1, several_rows = 1, per_vector_along = 0;
    // Cycles to store a part of such a vector under a mask.
    double per_masked_store = 0;
    // Cycles to copy an element of an x of more than far_bytes, and to transpose an element of a strip of it, channels first.
    double far_copy = 0, strip_from_far = 0, far_bytes = std::numeric_limits<double>::infinity();

    // The whole second-level cache in bytes; infinite if it is not known that tensors which do not fit take longer. The terms that
    // follow are for such tensors.
    double second_level_cache = std::numeric_limits<double>::infinity();
    // Slowdowns: weights that arrive late, and very late; transposing channels first; rows of few output channels with three phases
    // of h or more.
    double late_weights = 1, very_late_weights = 1, far_transposition = 1, far_rows = 1;
    // Cycles to transpose an element of a strip of y into a far y; kernels that store there themselves hide that.
    double strip_to_far = 0.7;
    // Bytes of far weights that arrive in a cycle.
    double far_weights = 1;
    // Extra cycles: to load a vector of a far x for few output channels; to store a part of a cache line that groups share; to store a
    // vector of a far y from tiles of one row or of few vectors; to add an element of a product in col2im.
    double far_x = 0, shared_line = 0, far_store = 0, far_product = 0;
    // The most tiles of output channels for which a layer of one tap is computed faster from x in place than from a copy of it
    // (prefers_in_place()): for variants that prefetch x; for others, with an x of less than in_place_bytes.
    std::int64_t tiles_in_place = 0, near_tiles_in_place = 0;
    double in_place_bytes = 0;
    // Cycles that this saves, of those to copy an element of x: with up to four tiles; with more, which read x anew.
    double not_copied = 0.25, not_copied_by_more = 0.1;

    // The most bytes of that cache that a near strip of x takes; how many strips per thread are enough for threads to take whole ones.
    std::int64_t near_strip = 384 << 10, fine_strips = 8;
};

// Returns the profile of this machine's CPU.
const CostProfile &cost_profile();

// Returns the margins for plans that use the ISA.
Margins margins(Isa isa);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_COST_COST_PROFILE_H_
