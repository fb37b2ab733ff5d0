// What the pieces of Core share: buffers, strips, boxes, calls.
#ifndef CONVTRANSPOSE_RUNTIME_CORE_PARTS_H_
#define CONVTRANSPOSE_RUNTIME_CORE_PARTS_H_

#include <HalideRuntime.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "core.h"
#include "division.h"

namespace convtranspose {

// A Halide buffer over somebody's memory.
template<int Dimensions>
struct Buffer {
    halide_dimension_t dims[Dimensions] = {};
    halide_buffer_t raw = {};

    Buffer(const void *host, halide_type_t type) {
        raw.host = static_cast<std::uint8_t *>(const_cast<void *>(host));
        raw.type = type;
        raw.dimensions = Dimensions;
        raw.dim = dims;
    }

    void set(int d, std::int64_t min, std::int64_t extent, std::int64_t stride) {
        // The stride of a single position may be any number, and is of no use.
        const bool fits = stride == static_cast<std::int32_t>(stride);
        dims[d] = halide_dimension_t(static_cast<std::int32_t>(min), static_cast<std::int32_t>(extent),
                                     fits ? static_cast<std::int32_t>(stride) : 0);
    }
};

constexpr std::int64_t kCacheLine = 64;

// Of y, so that what follows finds it in the second-level cache still.
constexpr std::int64_t kPieceBytes = 512 << 10;

// Extents and strides (c0, w, h, d, c1, g, n), in elements, of what a copy kernel copies.
struct CopyBox {
    std::array<std::int64_t, 7> extents, from, to;
};

// On all threads, in parts of the longest dimension but c0 and w.
template<typename Data>
struct Typed {
    Data *data; // of the box's first element
    halide_type_t type;
};
void run_copy(const Copier &copy, const CopyBox &box, const Typed<const void> &from, const Typed<void> &to,
              const ByteX &byte_x, const Parallel &parallel);

halide_type_t type_of(convt_dtype dtype);

// Of packed weights, of the copy of x, and of the packed bias.
struct OperandTypes {
    halide_type_t w, x, bias;
};
OperandTypes types_of(const Variant &v);

// What is computed at a time: some images, some positions along one axis, and the part of x that they read.
struct Core::Strip {
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
struct Core::StripParts {
    std::array<Strip, 3> part;
    std::size_t count = 0;
};

// The part of an axis of y that one call computes: residues first..first+count-1 of positions q, all of which exist. An
// axis with built-in stride has all residues, and positions past the end of y that are not stored.
struct Box {
    std::int64_t first = 0, count = 1;
    std::int64_t row = 0; // of the table of taps: of the first residue
    std::int64_t q_begin = 0, q_end = 0;

    bool any() const { return q_begin < q_end; }
};

// A run of the axis, at positions q_begin..q_end-1 as far as it has them.
inline Box box_of(const ResidueRun &run, std::int64_t q_begin, std::int64_t q_end) {
    return {run.first, run.count, run.row, q_begin, std::min(q_end, run.q_extent)};
}

// One call of the pipeline.
struct Core::Call {
    std::int64_t q_begin = 0, q_end = 0; // of the strip axis, which its boxes, one a call, make up
    std::array<Box, 3> box;
    std::int64_t oc_tile_begin = 0, oc_tile_end = 1;
    std::int64_t group_begin = 0, group_end = 1;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_CORE_PARTS_H_
