// A small layer, and the algorithm for it with choices of generators/numbering.h.
#ifndef CONVTRANSPOSE_TESTS_ALGORITHM_NUMBERED_LAYER_H_
#define CONVTRANSPOSE_TESTS_ALGORITHM_NUMBERED_LAYER_H_

#include <vector>

#include <Halide.h>

#include "generators/conv_transpose.h"
#include "schedules/gpu/gpu.h"

namespace convtranspose::test {

constexpr int kGroups = 2, kBatch = 2, kIc = 6, kOc = 5; // channels are per group
constexpr int kOut = 10 * 3;                             // of w and h
constexpr int kYSize = kBatch * kGroups * kOc * kOut;    // (n, channel, h, w)

// Channels come in blocks of u8 and s8, summed in s32, or are f32. All numbers are small integers, so that sums are exact.
struct Choices {
    Positions positions = Positions::kByAxis;
    Outside outside = Outside::kZero;
    int block = 1;  // of u8 and s8, summed in s32
    int splits = 1; // of the input channels; in a list
};

struct NumberedKernel {
    ConvTranspose c;
    GpuTile tile;
    int y_size = kYSize; // of all parts
    Halide::Type type;
};

NumberedKernel make_numbered(const Choices &choices);

// The value of x around it that the choices have.
inline int around_x(const Choices &choices) { return choices.block > 1 ? 3 : 0; }

// y by loops that scatter.
std::vector<int> expected_of_numbered(int around);

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_ALGORITHM_NUMBERED_LAYER_H_
