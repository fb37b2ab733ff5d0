#ifndef CONVTRANSPOSE_RUNTIME_SHAPE_H_
#define CONVTRANSPOSE_RUNTIME_SHAPE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose {

// Strides, in elements, of a dense tensor in C order; positive even where an extent is 0.
inline std::vector<std::int64_t> dense_strides(const Shape &shape) {
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t i = shape.size() - 1; i-- > 0;)
        strides[i] = strides[i + 1] * std::max<std::int64_t>(shape[i + 1], 1);
    return strides;
}

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_SHAPE_H_
