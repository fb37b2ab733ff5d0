// Copies of tensors with gaps, where speed does not matter much.
#ifndef CONVTRANSPOSE_RUNTIME_BASE_TENSOR_COPY_H_
#define CONVTRANSPOSE_RUNTIME_BASE_TENSOR_COPY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/shape.h"

namespace convtranspose {

// Advances the index `at` to the next element in C order. Returns false after the last.
inline bool next(const std::vector<std::int64_t> &extents, std::vector<std::int64_t> *at) {
    for (std::size_t i = extents.size(); i-- > 0;) {
        if (++(*at)[i] < extents[i]) return true;
        (*at)[i] = 0;
    }
    return false;
}

// Copies a tensor that is not empty, with elements of `size` bytes. Strides are in elements. Where the last axis is dense in both
// tensors, it copies rows.
inline void copy_tensor(const Shape &shape, std::size_t size, const void *from, const Strides &from_strides, void *to,
                        const Strides &to_strides) {
    Shape extents = shape;
    std::size_t bytes = size;
    if (from_strides.back() == 1 && to_strides.back() == 1) {
        bytes *= static_cast<std::size_t>(shape.back());
        extents.back() = 1;
    }
    std::vector<std::int64_t> at(shape.size(), 0);
    do {
        std::int64_t source = 0, target = 0;
        for (std::size_t d = 0; d < shape.size(); d++) {
            source += at[d] * from_strides[d];
            target += at[d] * to_strides[d];
        }
        std::memcpy(static_cast<char *>(to) + target * static_cast<std::int64_t>(size),
                    static_cast<const char *>(from) + source * static_cast<std::int64_t>(size), bytes);
    } while (next(extents, &at));
}

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_BASE_TENSOR_COPY_H_
