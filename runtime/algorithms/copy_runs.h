// Copies elements of 1, 2, 4 or 8 bytes that are apart in the source, in the target or in both.
#ifndef CONVTRANSPOSE_RUNTIME_ALGORITHMS_COPY_RUNS_H_
#define CONVTRANSPOSE_RUNTIME_ALGORITHMS_COPY_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace convtranspose {

template<typename T, std::size_t... kI>
void copy_apart(const T *from, T *to, std::int64_t apart, std::index_sequence<kI...> /*elements*/) {
    ((to[static_cast<std::int64_t>(kI) * apart] = from[kI]), ...);
}

// Runs of elements, and the distances between elements: of runs in the source and the target, and in a run of the target.
struct Runs {
    std::int64_t from_step, step, apart;
    std::int64_t runs, count; // count: elements of a run
};

// Copies runs of elements. kCount: the length of a run if it is a constant, else 0. kDense: they are not apart.
template<typename T, std::size_t kCount, bool kDense>
void copy_runs(const char *from, char *to, const Runs &r) {
    const auto *source = reinterpret_cast<const T *>(from);
    auto *target = reinterpret_cast<T *>(to);
    for (std::int64_t q = 0; q < r.runs; q++, source += r.from_step, target += r.step) {
        if constexpr (kCount > 0 && kDense) {
            std::memcpy(target, source, kCount * sizeof(T));
        } else if constexpr (kCount > 0) {
            copy_apart(source, target, r.apart, std::make_index_sequence<kCount>());
        } else {
            for (std::int64_t i = 0; i < r.count; i++) target[i * r.apart] = source[i];
        }
    }
}

using CopyRuns = void (*)(const char *, char *, const Runs &);

template<typename T, bool kDense>
CopyRuns copy_of_count(std::int64_t count) {
    switch (count) {
    case 1: return copy_runs<T, 1, kDense>;
    case 2: return copy_runs<T, 2, kDense>;
    case 3: return copy_runs<T, 3, kDense>;
    case 4: return copy_runs<T, 4, kDense>;
    case 8: return copy_runs<T, 8, kDense>;
    default: return copy_runs<T, 0, kDense>;
    }
}

template<typename T>
CopyRuns copy_of(std::int64_t count, bool dense) {
    return dense ? copy_of_count<T, true>(count) : copy_of_count<T, false>(count);
}

// Returns the function that copies runs of `count` elements of `size` bytes.
inline CopyRuns copy_of(std::int64_t size, std::int64_t count, bool dense) {
    switch (size) {
    case 1: return copy_of<std::uint8_t>(count, dense);
    case 2: return copy_of<std::uint16_t>(count, dense);
    case 4: return copy_of<std::uint32_t>(count, dense);
    default: return copy_of<std::uint64_t>(count, dense);
    }
}

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_ALGORITHMS_COPY_RUNS_H_
