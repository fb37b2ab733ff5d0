// GPU schedules of the algorithm in generators/conv_transpose.h: their blocks, threads and registers, and how they want the sum
// numbered.
#ifndef CONVTRANSPOSE_SCHEDULES_GPU_GPU_H_
#define CONVTRANSPOSE_SCHEDULES_GPU_GPU_H_

#include <vector>

#include "conv_transpose.h"

namespace convtranspose {

// A block's tile of y.
struct GpuTile {
    // Its output channels, or its positions: vector x threads x unrolled.
    struct Side {
        int vector = 1, threads = 1, unrolled = 1;
        int size() const { return vector * threads * unrolled; }
    } oc, p;
    int chunk = 1;              // input channels, or blocks of them, that are staged at a time
    bool channels_last = false; // neighbouring threads stage neighbouring channels of x, not positions
};

// The digits for the two schedules of tiles: Positions::kInPhase, with a TermList.
std::vector<Digit> tile_digits(const GpuTile &tile);

// Tiles of x and w staged in shared memory, sums in registers: for deep channels.
void schedule_tiled(Halide::Pipeline pipeline, const ConvTranspose &c, const GpuTile &tile);

// Each thread computes a few positions of all output channels of a tile, and reads x and w through the first-level cache: for few
// output channels, and few input channels.
void schedule_small_oc(const ConvTranspose &c, const GpuTile &tile);

// The digits for schedule_each(): Positions::kOutputs, and tiles of one output channel.
std::vector<Digit> each_digits(int channel_threads, int position_threads);

// Each element of y has a thread, whose neighbours are along w or along channels: for depthwise layers, and for anything.
void schedule_each(const ConvTranspose &c);

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_GPU_GPU_H_
