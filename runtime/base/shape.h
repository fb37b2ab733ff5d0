// Shapes and strides as vectors of 64-bit numbers, and what is computed of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose {

// Returns the bytes of an element.
inline std::int64_t size_of(convt_dtype dtype) { return static_cast<std::int64_t>(convt_dtype_size(dtype)); }

// Returns the address of element i of a tensor, whose elements have `size` bytes, a number of any type.
template<typename Size>
const char *element_at(const void *tensor, std::int64_t i, Size size) {
    return static_cast<const char *>(tensor) + i * static_cast<std::int64_t>(size);
}
template<typename Size>
char *element_at(void *tensor, std::int64_t i, Size size) {
    return static_cast<char *>(tensor) + i * static_cast<std::int64_t>(size);
}

// Strides of a tensor are in elements. Up to rank 8 (six spatial axes) they are stored in the object, as every run makes some
// and should not allocate.
class Strides {
  public:
    Strides() = default;
    explicit Strides(std::size_t rank) : rank_(rank), many_(rank > few_.size() ? rank : 0) {}
    Strides(std::initializer_list<std::int64_t> strides) : Strides(strides.size()) {
        std::copy(strides.begin(), strides.end(), begin());
    }

    std::size_t size() const { return rank_; }
    const std::int64_t *data() const { return many_.empty() ? few_.data() : many_.data(); }
    const std::int64_t *begin() const { return data(); }
    const std::int64_t *end() const { return data() + rank_; }
    std::int64_t operator[](std::size_t i) const { return data()[i]; }
    std::int64_t *begin() { return many_.empty() ? few_.data() : many_.data(); }
    std::int64_t *end() { return begin() + rank_; }
    std::int64_t &operator[](std::size_t i) { return many_.empty() ? few_[i] : many_[i]; }
    std::int64_t front() const { return data()[0]; }
    std::int64_t back() const { return data()[rank_ - 1]; }

  private:
    std::size_t rank_ = 0;
    std::array<std::int64_t, 8> few_ = {};
    std::vector<std::int64_t> many_;
};

// Returns the strides of some dimensions, in order.
inline Strides strides_of(const Strides &all, const std::vector<std::size_t> &dimensions) {
    if (dimensions.size() == all.size()) return all;
    Strides some(dimensions.size());
    for (std::size_t i = 0; i < dimensions.size(); i++) some[i] = all[dimensions[i]];
    return some;
}

// A tensor without elements may have other extents of any size, whose product overflows.
inline bool has_no_elements(const Shape &shape) { return std::find(shape.begin(), shape.end(), 0) != shape.end(); }

// Returns the strides of a dense tensor in C order. If it has no elements, all strides are 1.
inline Strides dense_strides(const Shape &shape) {
    Strides strides(shape.size());
    std::fill(strides.begin(), strides.end(), 1);
    if (has_no_elements(shape)) return strides;
    for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
    return strides;
}

inline std::int64_t volume(const Shape &shape) {
    if (has_no_elements(shape)) return 0;
    std::int64_t n = 1;
    for (const std::int64_t extent : shape) n *= extent;
    return n;
}

// This says which dimensions of a tensor are the channels and the spatial axes.
struct DimensionOrder {
    std::size_t channel, first_axis, last_axis;
};
inline DimensionOrder dimension_order(convt_layout layout, std::size_t rank) {
    if (layout == CONVT_CHANNELS_LAST) return {rank - 1, 1, rank - 2};
    return {1, 2, rank - 1};
}

// Advances the index `at` to the next element in C order. Returns false after the last. List: holds one number for each axis.
template<typename List>
bool next(const List &extents, List *at) {
    for (std::size_t i = extents.size(); i-- > 0;) {
        if (++(*at)[i] < extents[i]) return true;
        (*at)[i] = 0;
    }
    return false;
}

// Copies a tensor that is not empty, with elements of `size` bytes. Strides are in elements. Where the last axis is dense in both
// tensors, it copies rows.
inline void copy_tensor(const Shape &shape, std::int64_t size, const void *from, const Strides &from_strides, void *to,
                        const Strides &to_strides) {
    Strides extents(shape.size()), at(shape.size());
    std::copy(shape.begin(), shape.end(), extents.begin());
    std::int64_t bytes = size;
    if (from_strides.back() == 1 && to_strides.back() == 1) {
        bytes *= shape.back();
        *(extents.end() - 1) = 1;
    }
    do {
        std::int64_t source = 0, target = 0;
        for (std::size_t d = 0; d < shape.size(); d++) {
            source += at[d] * from_strides[d];
            target += at[d] * to_strides[d];
        }
        std::memcpy(element_at(to, target, size), element_at(from, source, size), static_cast<std::size_t>(bytes));
    } while (next(extents, &at));
}

// These are for three axes w, h and d. Calls f(at) for each index of a box, w innermost.
using Index = std::array<std::int64_t, 3>;
template<typename F>
void for_each_index(const Index &extents, const F &f) {
    Index at;
    for (at[2] = 0; at[2] < extents[2]; at[2]++) {
        for (at[1] = 0; at[1] < extents[1]; at[1]++) {
            for (at[0] = 0; at[0] < extents[0]; at[0]++) f(at);
        }
    }
}
// Returns how many indices come before this one.
inline std::int64_t number_of(const Index &at, const Index &extents) {
    return (at[2] * extents[1] + at[1]) * extents[0] + at[0];
}

// Turns the shape or the strides of a tensor into those of the other layout: (N, C, axes...) becomes (N, axes..., C), or back.
template<typename ForEachAxis>
void move_channels(ForEachAxis *shape, convt_layout to) {
    if (shape->size() < 3) return;
    if (to == CONVT_CHANNELS_LAST) {
        std::rotate(shape->begin() + 1, shape->begin() + 2, shape->end());
    } else {
        std::rotate(shape->begin() + 1, shape->end() - 1, shape->end());
    }
}

} // namespace convtranspose
