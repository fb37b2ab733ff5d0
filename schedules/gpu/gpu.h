// GPU schedules of the algorithms in generators/gpu_conv_transpose.h: their blocks, threads and registers.
#ifndef CONVTRANSPOSE_SCHEDULES_GPU_GPU_H_
#define CONVTRANSPOSE_SCHEDULES_GPU_GPU_H_

#include "gpu_conv_transpose.h"

namespace convtranspose {

// Tiles of x and w staged in shared memory, sums in registers: for deep channels. channels_last: neighbouring threads stage
// neighbouring channels of x, not positions.
void schedule_tiled(Halide::Pipeline pipeline, const ByPhase &c, bool channels_last);

// Each thread computes a few positions of all output channels of a tile, and reads x and w through the first-level cache: for few
// output channels, and few input channels.
void schedule_small_oc(const ByPhase &c);

// Each element of y has a thread, whose neighbours are along w or along channels: for depthwise layers, and for anything.
void schedule_each(const ByOutput &c);

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_GPU_GPU_H_
