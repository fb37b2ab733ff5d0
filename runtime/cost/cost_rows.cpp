// Estimates of kernels whose vectors are of columns of y, or of groups. The figures behind them:
// docs/measurements/2026-11-26-estimates.md.
#include <algorithm>

#include "cost/cost.h"
#include "cost/cost_terms.h"
#include "kernel_contract/fetching.h"
#include "kernels/packed_weights.h"

namespace convtranspose {

double cost_of_rows(const CostTerms &t, const Variant *narrower) {
    const Variant &v = t.v;
    if (has_tap_offset_order(v)) return cost_of_tap_offset_order(t);
    const double rows_of_tiles =
        parts_of(t.h.q_extent(), v.tile_qh) * static_cast<double>(t.d.q_extent()) * parts_of(t.p.oc(), v.tile_oc);
    const double loop = unrolls_taps(v)                  ? 0
                        : v.family == Family::kDepthwise ? t.m.per_depthwise_tap // there is no loop over input channels
                                                         : t.m.per_tap;
    const double store =
        v.output_order == OutputOrder::kPlanar ? t.interleave : cycles_to_scatter(t.g, t.m) * t.lanes; // per vector
    const bool is_wide_of_doubles = v.family == Family::kOwVectorized && t.size == sizeof(double) && t.taps > 1;
    const double doubles = is_wide_of_doubles ? t.m.wide_doubles : 1;
    const auto tile = [&](const Variant &variant) {
        const double of_vectors = variant.tile_q / t.lanes * variant.tile_qh;
        return t.ic * t.taps * t.step(of_vectors, v.tile_oc) +
               t.phases * (t.of(CostPart::kTiles, t.m.per_row_phase) +
                           t.of(CostPart::kStores, of_vectors * v.tile_oc * store)) +
               t.of(CostPart::kTiles, t.taps * loop) + t.of(CostPart::kTiles, t.skipped * t.m.per_skipped_tap);
    };
    const RowOfTiles row = row_of_tiles(v, narrower, t.w.q_extent(), t.m.row_end, tile);
    return rows_of_tiles * doubles * (row.tiles + row.end);
}

double cost_of_depthwise_channels(const CostTerms &t) {
    const Variant &v = t.v;
    // Each multiply-add takes a load.
    const double vectors = v.tile_oc * static_cast<double>(v.tile_q);
    const double tiles = parts_of(t.g.group, packing_of(v).group_tile) * parts_of(t.w.q_extent(), v.tile_q) * t.rows;
    const double each = std::max(v.lanes * t.size, 32.0) / kCacheLine; // in cache lines
    const double rows_of_taps =
        static_cast<double>(t.w.phases) * static_cast<double>(t.h.elements.size() * t.d.elements.size());
    return tiles *
           (t.of(CostPart::kTiles, rows_of_taps * t.m.per_row_of_taps) +
            t.taps * t.of_steps(vectors / t.m.multiply_adds,
                                std::max(vectors * (t.m.depthwise_step + t.m.depthwise_line * each), t.m.latency)) +
            t.phases * (t.of(CostPart::kTiles, t.m.per_few_phase) +
                        t.of(CostPart::kStores, vectors * (t.m.store_depthwise + t.m.store_depthwise_line * each)))) /
           t.groups;
}

} // namespace convtranspose
