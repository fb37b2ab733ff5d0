// What the pieces of DirectPlan share: buffers, strips, boxes, calls.
#ifndef CONVTRANSPOSE_RUNTIME_DIRECT_DIRECT_PLAN_PARTS_H_
#define CONVTRANSPOSE_RUNTIME_DIRECT_DIRECT_PLAN_PARTS_H_

#include <HalideRuntime.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/division.h"
#include "direct/box.h"
#include "direct/copy_box.h"
#include "direct/direct_plan.h"
#include "kernels/halide_buffer.h"

namespace convtranspose {

// Of y, so that what follows finds it in the second-level cache still.
constexpr std::int64_t kPieceBytes = 512 << 10;

// Of packed weights, of the copy of x, and of the packed bias.
struct OperandTypes {
    halide_type_t w, x, bias;
};
OperandTypes types_of(const Variant &v);

// What is computed at a time: some images, some positions along one axis, and the part of x that they read.
struct DirectPlan::Strip {
    std::int64_t first_image = 0, images = 1;
    std::int64_t q_begin = 0, q_end = 0;         // of the strip axis
    Columns columns;                             // of w, that read it
    std::array<std::int64_t, 3> x_min, x_extent; // w, h, d
    // Where that part of x is; strides in elements. The pointer is to x_min. strides.c is from one block of channels to the
    // next, where they come in blocks.
    const char *x = nullptr;
    char *copy = nullptr; // the same, if it is a copy of this strip's
    TensorStrides strides;
    std::int64_t group_stride = 0;
};

// One; or the beginnings, the middles and the ends of its rows, each of which reads x elsewhere.
struct DirectPlan::StripParts {
    std::array<Strip, 3> part;
    std::size_t count = 0;
};

// One call of the pipeline.
struct DirectPlan::Call {
    std::int64_t q_begin = 0, q_end = 0; // of the strip axis, which its boxes, one a call, make up
    std::array<Box, 3> box;
    std::int64_t oc_tile_begin = 0, oc_tile_end = 1;
    std::int64_t group_begin = 0, group_end = 1;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_DIRECT_DIRECT_PLAN_PARTS_H_
