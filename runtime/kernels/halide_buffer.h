// Kernels take their tensors as Halide buffers over memory that belongs to somebody else.
#pragma once

#include <HalideRuntime.h>

#include <cstdint>
#include <initializer_list>

#include "convtranspose/convtranspose.h"

namespace convtranspose {

// A dimension that begins at 0. Strides are in elements.
struct Dimension {
    std::int64_t extent, stride;
};

// A buffer of up to kMost dimensions.
template<int kMost>
struct Buffer {
    halide_dimension_t dims[kMost] = {};
    halide_buffer_t raw = {};

    Buffer(const void *host, halide_type_t type, std::initializer_list<Dimension> dimensions = {}) {
        locate(host);
        raw.type = type;
        raw.dim = dims;
        for (const Dimension &d : dimensions) add(d.extent, d.stride);
    }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;

    void locate(const void *host) { raw.host = static_cast<std::uint8_t *>(const_cast<void *>(host)); }
    void add(std::int64_t extent, std::int64_t stride, std::int64_t min = 0) {
        set(raw.dimensions++, min, extent, stride);
    }
    void set(int d, std::int64_t min, std::int64_t extent, std::int64_t stride) {
        // The stride of an axis with one position may be any number; it is never used.
        const bool fits = stride == static_cast<std::int32_t>(stride);
        dims[d] = halide_dimension_t(static_cast<std::int32_t>(min), static_cast<std::int32_t>(extent),
                                     fits ? static_cast<std::int32_t>(stride) : 0);
    }
};

// Returns count rows of a table of integers with so many columns as a buffer of (row, column).
inline Buffer<2> table_buffer(const std::int32_t *rows, std::int64_t count, std::int64_t columns) {
    return {rows, halide_type_t(halide_type_int, 32), {{count, columns}, {columns, 1}}};
}

inline halide_type_t type_of(convt_dtype dtype) {
    switch (dtype) {
    case CONVT_F16: return halide_type_t(halide_type_float, 16);
    case CONVT_BF16: return halide_type_t(halide_type_bfloat, 16);
    case CONVT_F32: return halide_type_t(halide_type_float, 32);
    case CONVT_F64: return halide_type_t(halide_type_float, 64);
    case CONVT_U8: return halide_type_t(halide_type_uint, 8);
    case CONVT_S8: return halide_type_t(halide_type_int, 8);
    case CONVT_S32: break;
    }
    return halide_type_t(halide_type_int, 32);
}

} // namespace convtranspose
