// GPU schedules of the algorithm in generators/conv_transpose.h: their blocks, threads and registers, and how they want the sum
// numbered.
#ifndef CONVTRANSPOSE_SCHEDULES_GPU_GPU_H_
#define CONVTRANSPOSE_SCHEDULES_GPU_GPU_H_

#include <map>
#include <string>
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

// The digits for schedules of tiles of a phase: Positions::kInPhase, with a TermList.
std::vector<Digit> tile_digits(const GpuTile &tile);

// Returns the schedules of tiles of a phase, by the names that kernels/table.py gives them.
using PhaseSchedule = void(Halide::Pipeline pipeline, const ConvTranspose &c, const GpuTile &tile);
const std::map<std::string, PhaseSchedule *> &phase_schedules();

// The digits for schedule_each(): Positions::kOutputs, and tiles of one output channel.
std::vector<Digit> each_digits(int channel_threads, int position_threads);

// Each element of y has a thread, whose neighbours are along w or along channels: for depthwise layers, and for anything.
void schedule_each(const ConvTranspose &c);

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_GPU_GPU_H_
