// Private types that the source files of DirectPlan share: operand types, strips, calls.
#ifndef CONVTRANSPOSE_RUNTIME_DIRECT_DIRECT_PLAN_PARTS_H_
#define CONVTRANSPOSE_RUNTIME_DIRECT_DIRECT_PLAN_PARTS_H_

#include <HalideRuntime.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/division.h"
#include "direct/copy_box.h"
#include "direct/direct_plan.h"
#include "kernels/halide_buffer.h"

namespace convtranspose {

// Bytes of a piece of y that stays in the second-level cache until post-ops have read it, or other tiles have stored to it.
constexpr std::int64_t kPieceBytes = 512 << 10;

// The types of packed weights, of the copy of x, and of the packed bias.
struct OperandTypes {
    halide_type_t w, x, bias;
};
OperandTypes types_of(const Variant &v);

// A strip: positions of some images, along the strip axis, that are computed together, and the part of x that they read.
struct DirectPlan::Strip {
    std::int64_t first_image = 0, images = 1;
    std::int64_t q_begin = 0, q_end = 0;         // positions along the strip axis
    Columns columns;                             // columns of y that read this part of x
    std::array<std::int64_t, 3> x_min, x_extent; // w, h, d
    // The place of that part of x, in the caller's memory or in a copy: x points to x_min, and strides are in elements. If channels
    // come in blocks, strides.c is from one block to the next.
    const char *x = nullptr;
    char *copy = nullptr; // x, if it is a copy made for this strip
    TensorStrides strides;
    std::int64_t group_stride = 0;
};

// The parts of a strip, by columns: a single one, or the beginnings, the middles and the ends of its rows. Each reads x elsewhere.
struct DirectPlan::StripParts {
    std::array<Strip, 3> part;
    std::size_t count = 0;
};

// One call of a kernel: the box of y that it computes.
struct DirectPlan::Call {
    std::int64_t q_begin = 0, q_end = 0; // positions along the strip axis of all calls of the task
    std::array<Box, 3> box;
    std::int64_t oc_tile_begin = 0, oc_tile_end = 1;
    std::int64_t group_begin = 0, group_end = 1;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_DIRECT_DIRECT_PLAN_PARTS_H_
