// Walks over a tensor element by element, where speed does not matter.
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

// Copies a dense tensor with elements of `size` bytes to a tensor with strides, which are in elements.
inline void copy_apart(const Shape &shape, std::size_t size, const void *from, void *to, const Strides &strides) {
    const char *element = static_cast<const char *>(from);
    std::vector<std::int64_t> at(shape.size(), 0);
    do {
        std::int64_t offset = 0;
        for (std::size_t d = 0; d < shape.size(); d++) offset += at[d] * strides[d];
        std::memcpy(static_cast<char *>(to) + offset * static_cast<std::int64_t>(size), element, size);
        element += size;
    } while (next(shape, &at));
}

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_BASE_TENSOR_COPY_H_
