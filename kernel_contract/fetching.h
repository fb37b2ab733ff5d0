// Kernels for 64-bit x86 fetch ahead and leave out zeros around x: the passes of schedules/cpu/passes/ decide by this when they do,
// and estimates of their cost go by it. Vectors are those of the sums.
#ifndef CONVTRANSPOSE_KERNEL_CONTRACT_FETCHING_H_
#define CONVTRANSPOSE_KERNEL_CONTRACT_FETCHING_H_

#include <cstdint>

namespace convtranspose {

inline constexpr int kCacheLine = 64; // bytes

// True if a vector is a cache line.
constexpr bool is_cache_line(int vector_bytes) { return vector_bytes >= kCacheLine; }

// Bytes of the second-level cache that kernels count on. For cores with shorter vectors it is that of Zen 2 and 3 (Intel's have
// 256 KiB to 2 MiB).
constexpr int counted_second_level_cache(int vector_bytes) { return is_cache_line(vector_bytes) ? 2 << 20 : 512 << 10; }

// True if a tile of so many vectors of weights and positions fetches ahead. Others would fetch about as often as they multiply.
inline constexpr int kLeastFetchingPositions = 6;
constexpr bool fetches_ahead(int vectors, int positions) {
    return positions >= kLeastFetchingPositions || (vectors == 3 && positions >= 4) || (vectors > 3 && positions > 1);
}

// The least steps of a reduction that fetch the lines of a y that is far.
constexpr int least_steps_fetching_y(int vector_bytes) { return is_cache_line(vector_bytes) ? 64 : 96; }

// The next tile's weights are fetched if those of a group are at least this large, and so do not stay in the second-level cache
// beside x and y,
constexpr int least_far_weights(int second_level_cache) { return second_level_cache / 2 * 3; }
// and those of a tile at most this large: otherwise they and what is fetched push each other out.
constexpr int most_weights_of_tile(int second_level_cache) { return second_level_cache / 2; }

// A tensor of so many bytes does not stay in the last cache beside others. Kernels whose tiles store several rows of y fetch later ones
// if y is as large, and copies by squares fetch an x with channels last.
inline constexpr int kLeavesLastCache = 8 << 20;

// True if copies fetch ahead of what they read or write of a tensor with channels first, of so many bytes and channels. The last cache
// does not hold such a tensor, and a core does not follow one stream for each of so many channels by itself.
constexpr bool fetches_copied(std::uint64_t bytes, std::int64_t channels) { return bytes >= 24 << 20 && channels > 20; }

// The number of positions at either end of a tile's row that are left out where they are outside of x.
constexpr int most_left_out(int tile_q) { return tile_q >= 4 && tile_q <= 8 ? 2 : 1; }

// True if kernels that may read x in place (vectors along w, stride 1, one row) fetch it ahead: tiles of three vectors gain by that.
constexpr bool fetches_x_ahead(bool masked_stores, int tile_q, int lanes) {
    return masked_stores && tile_q == 3 * lanes;
}

} // namespace convtranspose

#endif // CONVTRANSPOSE_KERNEL_CONTRACT_FETCHING_H_
