// Kernels take their tensors as Halide buffers over memory that belongs to somebody else.
#ifndef CONVTRANSPOSE_RUNTIME_KERNELS_HALIDE_BUFFER_H_
#define CONVTRANSPOSE_RUNTIME_KERNELS_HALIDE_BUFFER_H_

#include <HalideRuntime.h>

#include <cstdint>
#include <vector>

#include "convtranspose/convtranspose.h"
#include "kernel_contract/table_columns.h"

namespace convtranspose {

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

    void describe(const void *host, int dimensions) {
        raw.host = static_cast<std::uint8_t *>(const_cast<void *>(host));
        raw.dimensions = dimensions;
    }

    void set(int d, std::int64_t min, std::int64_t extent, std::int64_t stride) {
        // The stride of an axis with one position may be any number; it is never used.
        const bool fits = stride == static_cast<std::int32_t>(stride);
        dims[d] = halide_dimension_t(static_cast<std::int32_t>(min), static_cast<std::int32_t>(extent),
                                     fits ? static_cast<std::int32_t>(stride) : 0);
    }
};

// Returns count rows of a tap table, from the first on, as a buffer of (phase, column).
inline Buffer<2> table_buffer(const std::vector<std::int32_t> &table, std::int64_t first, std::int64_t count) {
    Buffer<2> buffer(table.data() + first * kTapColumns, halide_type_t(halide_type_int, 32));
    buffer.set(0, 0, count, kTapColumns);
    buffer.set(1, 0, kTapColumns, 1);
    return buffer;
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

#endif // CONVTRANSPOSE_RUNTIME_KERNELS_HALIDE_BUFFER_H_
