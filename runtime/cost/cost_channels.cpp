// Of kernels whose vectors are of output channels.
#include <algorithm>

#include "base/shape.h"
#include "cost/cost.h"
#include "cost/cost_profile.h"
#include "cost/cost_terms.h"

namespace convtranspose {

namespace {

// Of a reduction, by which kernels fetch the lines of a far y (schedules/cpu/channels.cpp). Estimates are of one tap: cost_profile.cpp's
// far_store was fitted when kernels of several fetched none.
double fetching_steps(double vector_bytes) { return vector_bytes < 64 ? 96 : 64; }
// Positions of a tile from which on kernels fetch the next tile's weights, if a group's are 3/2 of the second-level cache that they
// count on, and a tile's half of it (schedules/schedule.h, cpu/next_weights.cpp).
constexpr int kLeastFetching = 6;
double counted_on(double vector_bytes) { return vector_bytes < 64 ? 512 << 10 : 2 << 20; }
// Of short vectors (cost_profile.h), in bytes.
constexpr double kFarWeights = 2 << 20, kLargeX = 256 << 10;

// Positions that a tile whose row begins at `first` leaves out for being outside of x, of all taps of w (schedules/cpu/row_ends.h, of
// x86 alone), where that is felt: tiles of fewer than four positions wait for their weights. Channels first gains less.
double left_out(const Variant &v, const AxisPlan &w, std::int64_t first) {
    constexpr int kFelt = 4, kMostTwo = 8; // positions
    if (v.isa > Isa::kAmx || v.store != Store::kChannels || block_of(v) > 1 || v.tile_q < kFelt || unrolls_taps(v))
        return 0;
    const std::int64_t most = v.tile_q <= kMostTwo ? 2 : 1;
    // Taps of n whose distance a + t * step is at least `least`, for t = from .. n - 1.
    const auto at_least = [&](std::int64_t a, std::int64_t from, std::int64_t n, std::int64_t least) {
        return std::max<std::int64_t>(n - std::max(from, ceil_div(least - a, w.step)), 0);
    };
    double positions = 0;
    w.for_each_with_taps([&](const ResidueRun &, std::int64_t, const std::int32_t *row) {
        const std::int64_t begin = first + row[0], n = row[1], end = begin + v.tile_q - w.geometry.in;
        const std::int64_t before = n - at_least(begin, 0, n, 0); // taps that read before x
        for (std::int64_t least = 1; least <= most; least++) {
            const std::int64_t left = n - at_least(begin, 0, n, 1 - least);
            positions += static_cast<double>(left + at_least(end, before, n, least));
        }
    });
    return positions;
}

class CostOfChannels {
  public:
    explicit CostOfChannels(const CostTerms &terms);

    double operator()(const Variant *narrower) const;

  private:
    double late(const Variant &tile) const;   // times as long, where operands arrive late
    double k_step(const Variant &tile) const; // of one input channel and tap
    double store(const Variant &tile) const;  // of all sums of a tile
    double tile(const Variant &tile) const;
    double saved(const Variant &tile, double first) const; // by positions that are left out (row_ends.h)

    const CostTerms &t_;
    const Variant &v_;
    const CostProfile &m_;
    double vectors_, tiles_of_channels_; // of a tile; of all output channels of a group
    double panel_, w_bytes_, x_bytes_;   // of weights for a tile, and all; of an image
    bool is_of_lines_, is_of_short_vectors_;
    // Passes over a tile's weights fetch the next one's from further away (schedules/cpu/next_weights.h).
    bool fetches_next_;
    // For lines of a far y that are not fetched ahead (schedules/cpu/prefetch.h).
    bool waits_for_y_;
};

CostOfChannels::CostOfChannels(const CostTerms &terms) : t_(terms), v_(terms.v), m_(cost_profile()) {
    const double vector_bytes = t_.lanes * t_.size;
    vectors_ = v_.tile_oc / t_.lanes;
    tiles_of_channels_ = parts_of(t_.p.oc(), v_.tile_oc);
    // If the weights of all residues that are computed together do not fit in the second-level cache, they come from further away.
    panel_ =
        t_.ic * t_.taps / t_.residues * (v_.stride_w ? static_cast<double>(t_.w.residues) : 1) * v_.tile_oc * t_.size;
    w_bytes_ = t_.groups * t_.ic * t_.taps * static_cast<double>(t_.p.oc()) * t_.size;
    x_bytes_ =
        static_cast<double>(volume(t_.g.x_shape)) / t_.images * static_cast<double>(convt_dtype_size(t_.g.dtype));
    is_of_lines_ = is_float(v_.arithmetic) && vector_bytes >= 64;
    is_of_short_vectors_ = is_float(v_.arithmetic) && vector_bytes < 64;
    fetches_next_ = is_float(v_.arithmetic) && vector_bytes >= 32 && v_.tile_q * v_.tile_qh >= kLeastFetching &&
                    2 * w_bytes_ >= 3 * counted_on(vector_bytes) * t_.groups && 2 * panel_ <= counted_on(vector_bytes);
    const bool stores_far = t_.y_bytes >= 2 * t_.images * m_.second_level_cache,
               fetches_stored =
                   t_.w.max_count * t_.h.max_count * t_.d.max_count == 1 && t_.ic >= fetching_steps(vector_bytes);
    waits_for_y_ = t_.is_of_channels && stores_far && !fetches_stored && t_.ic * t_.taps >= 64 * t_.residues;
}

double CostOfChannels::late(const Variant &tile) const {
    const double positions = static_cast<double>(tile.tile_q) * tile.tile_qh;
    // Measured with vectors of a cache line on Zen 5, weights of tiles of fewer than eight positions arrive late: 54
    // columns by tiles of 6 take 1.13 times as long as by tiles of 14, though those compute two for nothing.
    double late = t_.lanes * t_.size == 64 && positions < m_.narrow_positions ? m_.narrow_tiles : 1;
    if (vectors_ == 3) late *= m_.three_vectors;
    // They do where y and all weights fill the second-level cache; a large panel is lost between two tiles where y alone
    // does.
    if (v_.store == Store::kChannels) {
        if (w_bytes_ >= 2 * m_.second_level_cache && !fetches_next_) late *= m_.late_weights;
    } else {
        if (t_.y_bytes + w_bytes_ >= m_.second_level_cache) late = m_.late_weights;
        if (t_.y_bytes >= m_.second_level_cache && panel_ >= kSecondLevelCache) late *= m_.very_late_weights;
    }
    if (is_of_short_vectors_) {
        const double less = std::max(0.0, kLeastFetching - positions);
        late *= 1 + m_.per_position_less * less;
        if (less > 0 && w_bytes_ >= kFarWeights) late *= m_.few_of_far;
        if (vectors_ == 1) late *= m_.one_vector;
        if (tile.tile_qh > 1 && x_bytes_ >= kLargeX) late *= m_.several_rows;
    }
    return late;
}

double CostOfChannels::k_step(const Variant &tile) const {
    const double positions = static_cast<double>(tile.tile_q) * tile.tile_qh;
    const double near_weights = is_of_lines_ ? m_.near_weights : 1,
                 per_row_of_x = is_of_lines_ ? m_.per_row_of_x : kPerRowOfX;
    return late(tile) *
           std::max({t_.step(vectors_, positions),
                     near_weights * vectors_ * t_.load * (panel_ > kSecondLevelCache ? 1.4 : 1) +
                         per_row_of_x * tile.tile_qh,
                     panel_ >= 0.9 * m_.second_level_cache ? vectors_ * t_.lanes * t_.size / m_.far_weights : 0});
}

double CostOfChannels::store(const Variant &tile) const {
    const double positions = static_cast<double>(tile.tile_q) * tile.tile_qh;
    double store = positions * vectors_ * 4;
    if (!is_float(v_.arithmetic)) {
        // Requantization; masked, where the tile is not full, it takes a few times as long.
        const double partial = t_.p.oc() % v_.tile_oc ? 1 : 0;
        store = positions * vectors_ * (4 + 8 * partial / tiles_of_channels_);
    }
    if (is_of_short_vectors_ && t_.p.oc() % v_.lanes != 0) {
        store += positions * m_.per_masked_store / tiles_of_channels_;
    }
    if (v_.store == Store::kPlanar) {
        const double used = static_cast<double>(std::min<std::int64_t>(t_.p.oc(), v_.tile_oc));
        store = positions * used * (v_.stride_w ? 0.7 : 2.5);
    }
    // Groups of less than a cache line come back to each line one after the other.
    if (v_.store == Store::kChannels && shares_cache_lines(t_.g)) {
        if (y_position_bytes(t_.g) >= kFarPositions) {
            store += positions * cycles_to_scatter(t_.g);
        } else if (t_.y_bytes >= m_.second_level_cache) {
            store += positions * m_.shared_line;
        }
    }
    // Lines of a far y arrive later if all are of one row, or few of them are side by side.
    const bool few_lines = tile.tile_qh == 1 || vectors_ < 4;
    if (waits_for_y_ && few_lines) store += positions * vectors_ * m_.far_store;
    return store;
}

double CostOfChannels::tile(const Variant &tile) const {
    const double once = v_.store == Store::kChannels ? 10 : 30;
    return t_.ic * t_.taps * k_step(tile) + t_.residues * (once + store(tile)) + (unrolls_taps(v_) ? 0 : t_.taps * 6);
}

// Of a tile whose row begins there. Of 8x8 images (4x4 stride 2), where it would be 1.067, it is 1.04.
double CostOfChannels::saved(const Variant &tile, double first) const {
    const double positions = left_out(tile, t_.w, static_cast<std::int64_t>(first) * v_.tile_q);
    return positions > 0 ? 0.65 * t_.ic * t_.taps / t_.w.taps * positions * k_step(tile) / tile.tile_q : 0;
}

double CostOfChannels::operator()(const Variant *narrower) const {
    RowOfTiles row = row_of_tiles(v_, narrower, t_.w.q_extent(), m_.channels_row_end,
                                  [&](const Variant &variant) { return tile(variant); });
    if (row.count > 0) row.tiles -= saved(v_, 0);
    if (row.count > 1) row.tiles -= saved(v_, row.count - 1);
    if (narrower) row.end -= saved(*narrower, row.count);
    // Each weight, those of channels that only fill a tile too, is read from further away if there are that many: by the
    // first of the tiles that it is for, and once more by the first at an end of a row.
    const double padded_bytes = tiles_of_channels_ * v_.tile_oc * t_.ic * t_.taps * t_.size;
    const bool far = t_.groups * padded_bytes >= 0.8 * m_.second_level_cache;
    const double least = far ? padded_bytes / (m_.far_weights * t_.images) : 0;
    const double rows = parts_of(t_.h.q_extent(), v_.tile_qh) * static_cast<double>(t_.d.q_extent());
    const auto computed = [&](double tiles_of_row, double cycles_of_row) {
        if (tiles_of_row == 0) return 0.0;
        const double computing = rows * tiles_of_channels_ * cycles_of_row, passes = rows * tiles_of_row * t_.images,
                     first = computing / (fetches_next_ ? 1 : passes);
        return computing - first + std::max(first, least);
    };
    return computed(row.count, row.tiles) + computed(narrower ? 1 : 0, row.end);
}

} // namespace

double cost_of_channels(const CostTerms &terms, const Variant *narrower) { return CostOfChannels(terms)(narrower); }

} // namespace convtranspose
