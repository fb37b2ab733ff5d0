// Estimates of kernels whose vectors are of output channels. The figures behind them: docs/measurements/2026-11-26-estimates.md.
#include <algorithm>

#include "base/shape.h"
#include "cost/cost.h"
#include "cost/cost_terms.h"
#include "kernel_contract/fetching.h"
#include "kernel_contract/kernel_traits.h"

namespace convtranspose {

namespace {

class CostOfOcVectorized {
  public:
    explicit CostOfOcVectorized(const CostTerms &terms);

    double operator()(const Variant *narrower) const;

  private:
    bool fetches(const Variant &tile) const;  // weights ahead, as far as estimates know
    double late(const Variant &tile) const;   // slowdown by operands that arrive late
    double k_step(const Variant &tile) const; // cycles of one input channel and tap
    double store(const Variant &tile) const;  // cycles to store all sums of a tile
    double tile(const Variant &tile) const;

    const CostTerms &t_;
    const Variant &v_;
    const CostProfile &m_;
    double vectors_, tiles_of_channels_; // in a tile; for the output channels of a group
    double panel_, w_bytes_, x_bytes_;   // bytes: weights of a tile, all weights, an image of x
    bool is_of_short_vectors_;
    // True if kernels prefetch the weights of the next tile while they compute one. Tiles of few positions and many vectors of a
    // cache line fetch too, but CostProfile::late_weights is fitted as if they did not.
    bool fetches_next_;
    // True if stores wait for lines of a far y, because kernels do not prefetch them.
    bool waits_for_y_;
};

CostOfOcVectorized::CostOfOcVectorized(const CostTerms &terms) : t_(terms), v_(terms.v), m_(terms.m) {
    const auto vector_bytes = static_cast<int>(t_.lanes * t_.size);
    vectors_ = v_.tile_oc / t_.lanes;
    tiles_of_channels_ = parts_of(t_.p.oc(), v_.tile_oc);
    // The panel holds the weights of all phases that are computed together; a panel larger than the second-level cache comes
    // from further away.
    panel_ =
        t_.ic * t_.taps / t_.phases * (v_.stride_w ? static_cast<double>(t_.w.phases) : 1) * v_.tile_oc * t_.w_size;
    w_bytes_ = t_.groups * t_.ic * t_.taps * static_cast<double>(t_.p.oc()) * t_.w_size;
    x_bytes_ =
        static_cast<double>(volume(t_.g.x_shape)) / t_.images * static_cast<double>(convt_dtype_size(t_.g.dtype));
    is_of_short_vectors_ = is_float(v_.arithmetic) && !is_cache_line(vector_bytes);
    const int cache = counted_second_level_cache(vector_bytes);
    fetches_next_ = is_float(v_.arithmetic) && vector_bytes >= 32 && fetches(v_) &&
                    w_bytes_ >= least_far_weights(cache) * t_.groups && panel_ <= most_weights_of_tile(cache);
    // Only reductions of one tap count as prefetching here: CostProfile::far_store is fitted to that.
    const bool stores_far = t_.y_bytes >= 2 * t_.images * m_.far_from,
               fetches_stored = t_.w.max_count * t_.h.max_count * t_.d.max_count == 1 &&
                                t_.ic >= least_steps_fetching_y(vector_bytes);
    waits_for_y_ = t_.is_of_channels && stores_far && !fetches_stored &&
                   t_.ic * t_.taps >= least_steps_fetching_y(vector_bytes) * t_.phases;
}

bool CostOfOcVectorized::fetches(const Variant &tile) const {
    const int positions = tile.tile_q * tile.tile_qh;
    return is_of_short_vectors_ ? fetches_ahead(static_cast<int>(vectors_), positions)
                                : positions >= kLeastFetchingPositions;
}

double CostOfOcVectorized::late(const Variant &tile) const {
    const double positions = static_cast<double>(tile.tile_q) * tile.tile_qh;
    // Tiles of few positions need their weights, vectors of a cache line, sooner than they arrive.
    double late = t_.lanes * t_.size == kCacheLine && positions < m_.narrow_positions ? m_.narrow_tiles : 1;
    if (vectors_ == 3) late *= m_.three_vectors;
    // Weights also arrive late if y and all weights together fill the second-level cache; if y alone does, a large panel is evicted
    // between two tiles.
    if (v_.output_order == OutputOrder::kChannels) {
        if (w_bytes_ >= 2 * m_.far_from && !fetches_next_) late *= m_.late_weights;
    } else {
        if (t_.is_far(t_.y_bytes + w_bytes_)) late = m_.late_weights;
        if (t_.is_far(t_.y_bytes) && panel_ >= m_.counted_cache) late *= m_.very_late_weights;
    }
    if (is_of_short_vectors_) {
        if (!fetches(tile)) {
            late *= 1 + m_.per_position_less * (kLeastFetchingPositions - positions);
            if (w_bytes_ >= m_.far_weights_from) late *= m_.few_of_far;
        }
        if (tile.tile_qh > 1 && x_bytes_ >= m_.large_x) late *= m_.several_rows;
    }
    return late;
}

double CostOfOcVectorized::k_step(const Variant &tile) const {
    const double positions = static_cast<double>(tile.tile_q) * tile.tile_qh;
    const double step = t_.step(vectors_, positions);
    return t_.of_steps(
        step, late(tile) * std::max({step, vectors_ * t_.load + m_.per_row_of_x * tile.tile_qh,
                                     panel_ >= m_.far_from ? vectors_ * t_.lanes * t_.w_size / m_.far_weights : 0}));
}

double CostOfOcVectorized::store(const Variant &tile) const {
    const double positions = static_cast<double>(tile.tile_q) * tile.tile_qh;
    double store = positions * vectors_ * m_.store;
    if (!is_float(v_.arithmetic)) {
        // Requantization is part of the store, and slow where a tile is not full, as it is masked then.
        const double partial = t_.p.oc() % v_.tile_oc ? 1 : 0;
        store += positions * vectors_ * m_.store_masked_bytes * partial / tiles_of_channels_;
    }
    if (is_of_short_vectors_ && t_.p.oc() % v_.lanes != 0) {
        store += positions * m_.per_masked_store / tiles_of_channels_;
    }
    if (v_.output_order == OutputOrder::kPlanar) {
        const double used = static_cast<double>(std::min<std::int64_t>(t_.p.oc(), v_.tile_oc));
        store = positions * used * (v_.stride_w ? m_.store_in_runs : m_.store_alone);
    }
    // Groups that share cache lines of y store to each line one after the other.
    if (v_.output_order == OutputOrder::kChannels && shares_cache_lines(t_.g)) {
        if (y_position_bytes(t_.g) >= kFarPositions) {
            store += positions * cycles_to_scatter(t_.g, m_);
        } else if (t_.is_far(t_.y_bytes)) {
            store += positions * m_.shared_line;
        }
    }
    // Lines of a far y arrive later if a tile has them all in one row, or few of them side by side.
    const bool few_lines = tile.tile_qh == 1 || vectors_ < 4;
    if (waits_for_y_ && few_lines) store += positions * vectors_ * m_.far_store;
    return store;
}

double CostOfOcVectorized::tile(const Variant &tile) const {
    const double once = v_.output_order == OutputOrder::kChannels ? 0 : m_.per_planar_phase;
    return t_.ic * t_.taps * k_step(tile) +
           t_.phases * (t_.of(CostPart::kTiles, once) + t_.of(CostPart::kStores, store(tile))) +
           t_.of(CostPart::kTiles, unrolls_taps(v_) ? 0 : t_.taps * m_.per_tap) +
           t_.of(CostPart::kTiles, t_.skipped * m_.per_skipped_tap);
}

double CostOfOcVectorized::operator()(const Variant *narrower) const {
    const RowOfTiles row =
        row_of_tiles(v_, narrower, t_.w.q_extent(), m_.row_end, [&](const Variant &variant) { return tile(variant); });
    // If the weights, those that pad tiles of channels included, do not stay in the second-level cache, the first tile that uses a
    // panel reads it from further away; the first narrower tile at an end of a row does so once more. Prefetching spreads that
    // over all tiles.
    const double padded_bytes = tiles_of_channels_ * v_.tile_oc * t_.ic * t_.taps * t_.w_size;
    const bool far = t_.groups * padded_bytes >= m_.far_from;
    const double least = t_.of(CostPart::kLoads, far ? padded_bytes / (m_.far_weights * t_.images) : 0);
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

double cost_of_oc_vectorized(const CostTerms &terms, const Variant *narrower) {
    return CostOfOcVectorized(terms)(narrower);
}

} // namespace convtranspose
