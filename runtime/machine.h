// What plans know of the cores of this machine: terms of estimates (candidates.h) and sizes of strips that were measured on one
// vendor's cores, and elsewhere are nothing.
#ifndef CONVTRANSPOSE_RUNTIME_MACHINE_H_
#define CONVTRANSPOSE_RUNTIME_MACHINE_H_

#include <cstdint>
#include <limits>

namespace convtranspose {

struct Machine {
    // Cycles that loading an operand of a cache line costs beside the multiply-adds that should hide it.
    double per_load = 0;
    // The same, where it crosses cache lines, as vectors of x along w do; and at least so many for each such vector, those of
    // depthwise layers apart.
    double per_crossing = 0, least_per_crossing = 0, least_per_depthwise_crossing = 0;
    // The same, where it comes from the second-level cache.
    double per_far_load = 0;
    // What tiles of fewer than eight positions take times as long as estimated, waiting for weights.
    double narrow_tiles = 1.1;
    // The same, of planes of one input channel by offset, and of depth_to_space with channels first, and of many groups.
    double one_channel = 1, depth_to_space = 1, groups_to_space = 1;
    // All of the second-level cache in bytes, if what does not fit is known to take longer; the terms below are of that: times as
    // long for weights that arrive late, for transposing channels first and for rows of `few` with three residues of h or more, cycles for a vector of x of `few`, bytes of weights a cycle, cycles for a store of a
    // part of a cache line that groups share, and for an element of a product of col2im.
    double second_level_cache = std::numeric_limits<double>::infinity();
    double late_weights = 1, very_late_weights = 1, far_transposition = 1, far_rows = 1, far_x = 0, far_weights = 0,
           shared_line = 0, far_product = 0;
    // What a strip of x may take of that cache where weights decide; and of how many strips a thread has enough.
    std::int64_t near_strip = 384 << 10, fine_strips = 8;
};

const Machine &machine();

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_MACHINE_H_
