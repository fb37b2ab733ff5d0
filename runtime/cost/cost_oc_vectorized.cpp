// Estimates of kernels whose vectors are of output channels. The figures behind them: docs/measurements/2026-11-26-estimates.md.
#include <algorithm>

#include "base/division.h"
#include "base/shape.h"
#include "cost/cost.h"
#include "cost/cost_terms.h"
#include "kernel_contract/fetching.h"
#include "kernel_contract/kernel_traits.h"

namespace convtranspose {

namespace {

// Planes of y that are a multiple of kFarPlanes bytes apart share a set of the first-level cache, which holds kWays lines or more.
constexpr std::int64_t kFarPlanes = 4096;
constexpr double kWays = 8;

class CostOfOcVectorized : CostTerms {
  public:
    explicit CostOfOcVectorized(const CostTerms &terms) : CostTerms(terms) {
        const auto vector_bytes = static_cast<int>(lanes * size);
        vectors_ = v.tile_oc / lanes;
        tiles_of_channels_ = parts_of(p.oc(), v.tile_oc);
        // The panel holds the weights of all phases that are computed together; a panel larger than the second-level cache comes
        // from further away.
        panel_ = ic * taps / phases * (v.stride_w ? real(w.phases) : 1) * v.tile_oc * w_size;
        w_bytes_ = groups * ic * taps * real(p.oc()) * w_size;
        x_bytes_ = real(volume(g.x_shape)) / images * real(size_of(g.dtype));
        is_of_short_vectors_ = is_float(v.arithmetic) && !is_cache_line(vector_bytes);
        const int cache = counted_second_level_cache(vector_bytes);
        fetches_next_ = is_float(v.arithmetic) && vector_bytes >= 32 && fetches(v) &&
                        w_bytes_ >= least_far_weights(cache) * groups && panel_ <= most_weights_of_tile(cache);
        // Only reductions of one tap count as prefetching here: CostProfile::far_store is fitted to that.
        const bool stores_far = y_bytes >= 2 * images * m.far_from,
                   fetches_stored =
                       w.max_count * h.max_count * d.max_count == 1 && ic >= least_steps_fetching_y(vector_bytes);
        waits_for_y_ = is_of_channels && stores_far && !fetches_stored &&
                       ic * taps >= least_steps_fetching_y(vector_bytes) * phases;
    }

    double operator()(const Variant *narrower) const {
        const RowOfTiles row =
            row_of_tiles(v, narrower, w.q_extent(), m.row_end, [&](const Variant &variant) { return tile(variant); });
        // If the weights, those that pad tiles of channels included, do not stay in the second-level cache, the first tile that
        // uses a panel reads it from further away; the first narrower tile at an end of a row does so once more. Prefetching
        // spreads that over all tiles.
        const double padded_bytes = tiles_of_channels_ * v.tile_oc * ic * taps * w_size;
        const bool far = groups * padded_bytes >= m.far_from;
        const double least = of(CostPart::kLoads, far ? padded_bytes / (m.far_weights * images) : 0);
        const double rows_of_tiles = parts_of(h.q_extent(), v.tile_qh) * real(d.q_extent());
        const auto computed = [&](double tiles_of_row, double cycles_of_row) {
            if (tiles_of_row == 0) return 0.0;
            const double computing = rows_of_tiles * tiles_of_channels_ * cycles_of_row,
                         passes = rows_of_tiles * tiles_of_row * images,
                         first = computing / (fetches_next_ ? 1 : passes);
            return computing - first + std::max(first, least);
        };
        return computed(row.count, row.tiles) + computed(narrower ? 1 : 0, row.end);
    }

  private:
    // Returns whether weights are fetched ahead, as far as estimates know.
    bool fetches(const Variant &tile) const {
        const int positions = tile.tile_q * tile.tile_qh;
        return is_of_short_vectors_ ? fetches_ahead(static_cast<int>(vectors_), positions)
                                    : positions >= kLeastFetchingPositions;
    }

    // Returns the slowdown by operands that arrive late.
    double late(const Variant &tile) const {
        const double positions = real(tile.tile_q) * tile.tile_qh;
        // Tiles of few positions need their weights, vectors of a cache line, sooner than they arrive.
        double late = lanes * size == kCacheLine && positions < m.narrow_positions ? m.narrow_tiles : 1;
        if (vectors_ == 3) late *= m.three_vectors;
        // Weights also arrive late if y and all weights together fill the second-level cache; if y alone does, a large panel is
        // evicted between two tiles.
        if (v.output_order == OutputOrder::kChannels) {
            if (w_bytes_ >= 2 * m.far_from && !fetches_next_) late *= m.late_weights;
        } else {
            if (is_far(y_bytes + w_bytes_)) late = m.late_weights;
            if (is_far(y_bytes) && panel_ >= m.counted_cache) late *= m.very_late_weights;
        }
        if (is_of_short_vectors_) {
            if (!fetches(tile)) {
                late *= 1 + m.per_position_less * (kLeastFetchingPositions - positions);
                if (w_bytes_ >= m.far_weights_from) late *= m.few_of_far;
            }
            if (tile.tile_qh > 1 && x_bytes_ >= m.large_x) late *= m.several_rows;
        }
        return late;
    }

    // Returns the cycles of one input channel and tap.
    double k_step(const Variant &tile) const {
        const double positions = real(tile.tile_q) * tile.tile_qh;
        const double multiply = step(vectors_, positions);
        return of_steps(multiply,
                        late(tile) * std::max({multiply, vectors_ * load + m.per_row_of_x * tile.tile_qh,
                                               panel_ >= m.far_from ? vectors_ * lanes * w_size / m.far_weights : 0}));
    }

    // Returns the cycles to store all sums of a tile.
    double store(const Variant &tile) const {
        const double positions = real(tile.tile_q) * tile.tile_qh;
        double store = positions * vectors_ * m.store;
        if (!is_float(v.arithmetic)) {
            // Requantization is part of the store, and slow where a tile is not full, as it is masked then.
            const double partial = p.oc() % v.tile_oc ? 1 : 0;
            store += positions * vectors_ * m.store_masked_bytes * partial / tiles_of_channels_;
        }
        if (is_of_short_vectors_ && p.oc() % v.lanes != 0) {
            store += positions * m.per_masked_store / tiles_of_channels_;
        }
        if (v.output_order == OutputOrder::kPlanar) {
            const double used = real(std::min<std::int64_t>(p.oc(), v.tile_oc));
            const double alone = m.store_alone + (used > kWays && planes_collide() ? m.store_to_few_sets : 0);
            store = positions * used * (v.stride_w ? m.store_in_runs : alone);
        }
        // Groups that share cache lines of y store to each line one after the other.
        if (v.output_order == OutputOrder::kChannels && shares_cache_lines(g)) {
            if (y_position_bytes(g) >= kFarPositions) {
                store += positions * cycles_to_scatter(g, m);
            } else if (is_far(y_bytes)) {
                store += positions * m.shared_line;
            }
        }
        // Lines of a far y arrive later if a tile has them all in one row, or few of them side by side.
        const bool few_lines = tile.tile_qh == 1 || vectors_ < 4;
        if (waits_for_y_ && few_lines) store += positions * vectors_ * m.far_store;
        return store;
    }

    // Returns whether the planes of y that a tile stores to share sets of the first-level cache.
    bool planes_collide() const {
        const std::int64_t plane = capped_product({w.geometry.out, h.geometry.out, d.geometry.out, size_of(p.y_dtype)});
        return plane % kFarPlanes == 0 && !rounds_y(v, p.y_dtype);
    }

    double tile(const Variant &tile) const {
        const double once = v.output_order == OutputOrder::kChannels ? 0 : m.per_planar_phase;
        return ic * taps * k_step(tile) + phases * (of(CostPart::kTiles, once) + of(CostPart::kStores, store(tile))) +
               of(CostPart::kTiles, unrolls_taps(v) ? 0 : taps * m.per_tap) +
               of(CostPart::kTiles, skipped * m.per_skipped_tap);
    }

    double vectors_, tiles_of_channels_; // in a tile; for the output channels of a group
    double panel_, w_bytes_, x_bytes_;   // bytes: weights of a tile, all weights, an image of x
    bool is_of_short_vectors_;
    // True if kernels prefetch the weights of the next tile while they compute one. Tiles of few positions and many vectors of a
    // cache line fetch too, but CostProfile::late_weights is fitted as if they did not.
    bool fetches_next_;
    // True if stores wait for lines of a far y, because kernels do not prefetch them.
    bool waits_for_y_;
};

} // namespace

double cost_of_oc_vectorized(const CostTerms &terms, const Variant *narrower) {
    return CostOfOcVectorized(terms)(narrower);
}

} // namespace convtranspose
