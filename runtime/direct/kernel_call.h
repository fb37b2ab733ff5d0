// A kernel is called for a box of y, with x, w and y as buffers.
#pragma once

#include <array>
#include <cstdint>

#include "direct/input_packing.h"

namespace convtranspose {

// The part of a strip's y that one call computes.
struct KernelCall {
    std::int64_t q_begin = 0, q_end = 0; // positions along the strip axis of all calls of the task
    std::array<Box, 3> box;
    std::int64_t oc_tile_begin = 0, oc_tile_end = 1;
    std::int64_t group_begin = 0, group_end = 1;
};

// Makes the call, or several: one for each of the strip's parts that has columns of the box, and in each of those one more for the
// ends of rows if a narrower tile computes them.
void call_kernels(const DirectLayer &layer, const StripParts &rows, const KernelCall &call, const DirectOperands &o);

} // namespace convtranspose
