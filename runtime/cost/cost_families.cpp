// Estimates of the families other than oc_vectorized: kernels for few output channels, those whose vectors are of columns of y or
// of groups, and those that multiply matrices by AMX. The figures behind them: docs/measurements/2026-11-26-estimates.md.
#include <algorithm>

#include "base/division.h"
#include "base/shape.h"
#include "cost/cost.h"
#include "cost/cost_terms.h"
#include "kernel_contract/fetching.h"
#include "kernels/packed_weights.h"

namespace convtranspose {

// Returns the cycles that a load of a vector of x along w loses by crossing cache lines, on the average over the offsets. Rows
// begin at cache lines (DirectLayer::copied_row()), so the loads of one offset cross none.
double CostTerms::cycles_to_cross_lines() const {
    return m.per_crossing * (1 - 1 / real(std::max<std::int64_t>(w.high - w.low, 1)));
}

// Returns the extra cycles of the first load of a vector of x if x does not fit in the second-level cache. They count if x
// has a single row, or several planes, each of which is walked anew.
double CostTerms::cycles_from_far() const {
    if (h.q_extent() > 1 && d.q_extent() == 1) return 0;
    const double bytes = real(volume(g.x_shape)) * real(size_of(g.dtype));
    return is_far(bytes) ? m.far_x : 0;
}

// Returns the cycles to store the ends of rows that fill no vector, under masks of vectors shorter than a cache line.
double CostTerms::cycles_to_store_ends() const {
    const bool are_masked = v.output_order == OutputOrder::kPlanar && v.lanes * size < kCacheLine &&
                            has_masked_stores(v.isa, static_cast<int>(size_of(v.dtype)));
    if (!are_masked || w.geometry.out % v.lanes == 0) return 0;
    const double rows_of_y = real(h.geometry.out * d.geometry.out * p.oc());
    return of(CostPart::kStores, rows_of_y * m.per_masked_store);
}

// This is for kernels that walk the offsets of x once for all phases (TapOrder::kTapOffset).
double CostTerms::cost_of_tap_offset_order() const {
    const double vectors = real(v.tile_q) / v.lanes;
    const double phases_w = real(w.phases), phases_h = real(h.phases), rows_of_tile = v.tile_qh;
    const double taps_of_w_h = real(w.elements.size() * h.elements.size());
    // The phases of h share rows of x if its stride is built in, else each reads a row more for each row of the tile.
    const double rows_read =
        v.stride_h ? real(h.high - h.low) : real(h.elements.size()) + phases_h * (rows_of_tile - 1);
    const double loads = vectors * real(w.high - w.low) * rows_read;
    const double latency = m.latency * real(w.max_count) * (v.stride_h ? h.max_count : real(h.elements.size()));
    const double rows_of_x = real(h.high - h.low) + rows_of_tile - 1;
    // Loads wait only if the rows of x take a good part of the first-level cache.
    const double x_bytes = rows_of_x * real(v.tile_q * p.ic() * operand_size(v));
    const bool waits = v.family == Family::kSmallOc && x_bytes >= m.first_level_rows;
    // Most such loads hide among the multiply-adds of many taps.
    const double exposed = taps_of_w_h < m.hiding_taps ? 1 : m.exposed_crossing;
    const double crossing =
        waits ? exposed * loads * cycles_to_cross_lines() + rows_of_x * vectors * m.per_far_load : 0;
    const double far = v.family == Family::kSmallOc ? rows_of_x * vectors * cycles_from_far() : 0;
    // A step loads x and broadcasts weights.
    const double multiply = taps_of_w_h * v.tile_oc * vectors * rows_of_tile / m.multiply_adds;
    const double of_step = of_steps(
        multiply, std::max({multiply, (2 * loads + taps_of_w_h * v.tile_oc) / m.loads, latency}) +
                      (v.lanes * operand_size(v) < kCacheLine ? 0 : m.per_load) * (loads + taps_of_w_h * v.tile_oc) +
                      crossing + far);
    const double tiles =
        parts_of(w.q_extent(), v.tile_q) * parts_of(h.q_extent(), v.tile_qh) * parts_of(p.oc(), v.tile_oc);
    const double planes = real(d.q_extent());
    // Without masked stores, the end of a row that does not fill a tile is stored element by element, and each element is put
    // together from all phases.
    const std::int64_t run = std::int64_t{v.tile_q} * v.stride_w;
    const double ends = real(w.geometry.out % run * h.geometry.out * d.geometry.out * p.oc());
    const bool depthwise = v.family == Family::kDepthwise;
    const bool masked = has_masked_stores(v.isa, static_cast<int>(size_of(p.y_dtype)));
    const double slower_there = p.ic() == 1 ? m.one_channel : 1;
    const double stores = real(d.phases) * phases_w * phases_h * vectors * rows_of_tile * v.tile_oc * interleave;
    return of(CostPart::kStores, depthwise && !masked ? m.store_row_end * std::max(v.stride_w - 2, 0) * ends : 0) +
           cycles_to_store_ends() +
           slower_there * tiles * planes * (real(d.elements.size()) * ic * of_step + of(CostPart::kStores, stores));
}

double CostTerms::cost_of_small_oc() const {
    if (has_tap_offset_order(v)) return cost_of_tap_offset_order();
    // The taps of an axis are those at offsets that all its phases share, and the rest. One load of x feeds all that is shared.
    const double vectors = v.tile_q / lanes;
    const double all_w = real(w.elements.size()), all_h = real(h.elements.size());
    const double shared_w = w.shared_count(), shared_h = h.shared_count(), stride_w = v.stride_w, stride_h = v.stride_h;
    // The rest is not negative, though in a y shorter than the kernel's stride not all phases have taps.
    const double rest_w = std::max(all_w - shared_w * stride_w, 0.0),
                 rest_h = std::max(all_h - shared_h * stride_h, 0.0);
    // With phases of two axes, the factor at the end of this function covers loads that cross cache lines.
    const double crossing = v.stride_h > 1 ? 0 : vectors * cycles_to_cross_lines();
    const auto load_step = [&](double broadcasts) { // step() includes the latency of few accumulators
        const double own = step(vectors, broadcasts);
        return of_steps(own, std::max(own, vectors * load) + crossing);
    };
    const double steps = shared_w * shared_h * load_step(stride_w * stride_h * v.tile_oc) +
                         rest_w * shared_h * load_step(stride_h * v.tile_oc) +
                         shared_w * rest_h * load_step(stride_w * v.tile_oc) + rest_w * rest_h * load_step(v.tile_oc) +
                         of(CostPart::kLoads, real(h.high - h.low) * vectors * cycles_from_far());
    const double loops = (shared_w + rest_w) * (shared_h + rest_h) * m.per_shared_tap;
    const double tiles = parts_of(w.q_extent(), v.tile_q) * rows * parts_of(p.oc(), v.tile_oc);
    // Kernels for phases of two axes take longer than their steps add up to.
    const double far_rows = v.stride_h > 2 && is_far(y_bytes) ? m.far_rows : 1;
    return cycles_to_store_ends() + (v.stride_h > 1 ? m.two_axes : 1) * far_rows * tiles *
                                        (real(d.elements.size()) * (ic * steps + of(CostPart::kTiles, loops)) +
                                         phases * (of(CostPart::kTiles, m.per_small_oc_phase) +
                                                   of(CostPart::kStores, vectors * v.tile_oc * interleave)));
}

double CostTerms::cost_of_rows(const Variant *narrower) const {
    if (has_tap_offset_order(v)) return cost_of_tap_offset_order();
    const double rows_of_tiles = parts_of(h.q_extent(), v.tile_qh) * real(d.q_extent()) * parts_of(p.oc(), v.tile_oc);
    const double loop = unrolls_taps(v)                  ? 0
                        : v.family == Family::kDepthwise ? m.per_depthwise_tap // there is no loop over input channels
                                                         : m.per_tap;
    const double store =
        v.output_order == OutputOrder::kPlanar ? interleave : cycles_to_scatter(g, m) * lanes; // per vector
    const bool is_wide_of_doubles = v.family == Family::kOwVectorized && size == sizeof(double) && taps > 1;
    const double doubles = is_wide_of_doubles ? m.wide_doubles : 1;
    const auto tile = [&](const Variant &variant) {
        const double of_vectors = variant.tile_q / lanes * variant.tile_qh;
        return ic * taps * step(of_vectors, v.tile_oc) +
               phases *
                   (of(CostPart::kTiles, m.per_row_phase) + of(CostPart::kStores, of_vectors * v.tile_oc * store)) +
               of(CostPart::kTiles, taps * loop) + of(CostPart::kTiles, skipped * m.per_skipped_tap);
    };
    const RowOfTiles row = row_of_tiles(v, narrower, w.q_extent(), m.row_end, tile);
    return cycles_to_store_ends() + rows_of_tiles * doubles * (row.tiles + row.end);
}

double CostTerms::cost_of_depthwise_channels() const {
    // Each multiply-add takes a load.
    const double vectors = v.tile_oc * real(v.tile_q);
    const double tiles = parts_of(g.group, packing_of(v).group_tile) * parts_of(w.q_extent(), v.tile_q) * rows;
    const double each = std::max(v.lanes * size, 32.0) / kCacheLine; // in cache lines
    const double rows_of_taps = real(w.phases) * real(h.elements.size() * d.elements.size());
    return tiles *
           (of(CostPart::kTiles, rows_of_taps * m.per_row_of_taps) +
            taps * of_steps(vectors / m.multiply_adds,
                            std::max(vectors * (m.depthwise_step + m.depthwise_line * each), m.latency)) +
            phases * (of(CostPart::kTiles, m.per_small_oc_phase) +
                      of(CostPart::kStores, vectors * (m.store_depthwise + m.store_depthwise_line * each)))) /
           groups;
}

double CostTerms::cost_of_vectors_of_phases() const {
    double vectors = 0; // of a position and all output channels
    for (const PhaseRun &run : w.runs) vectors += parts_of(run.count, v.lanes) * real(p.oc());
    const double positions = v.tile_q, tiles = parts_of(w.q_extent(), v.tile_q);
    const double rows_of_y = rows * real(h.phases * d.phases), taps_of_rows = rows * h.taps * d.taps;
    // A step loads a vector of weights, and an x for each position.
    const double multiply = positions / m.multiply_adds,
                 of_step = of_steps(multiply, std::max({multiply, (positions + 1) / m.loads, m.latency})),
                 loop = unrolls_taps(v) ? 0 : of(CostPart::kTiles, m.per_depthwise_tap);
    return vectors * (tiles * (taps_of_rows * w.max_count * (of_step + loop) +
                               rows_of_y * of(CostPart::kStores, positions * m.store_depthwise)) +
                      rows_of_y * of(CostPart::kTiles, m.per_small_oc_phase));
}

double CostTerms::cost_of_amx() const {
    // A multiplication takes as many cycles as its first operand has rows, and one on the same sums can follow after 52; a load
    // takes 8. Rows are positions, or output channels if y is planar.
    const bool planar = has_rows_of_channels(v);
    const double columns = v.tile_oc / lanes, rows_of = planar ? kAmxRows : std::min(v.tile_q, kAmxRows),
                 row_tiles = parts_of(v.tile_q, kAmxRows) * v.tile_qh;
    const double tiles = parts_of(w.q_extent(), v.tile_q) * parts_of(h.q_extent(), v.tile_qh) * real(d.q_extent()) *
                         parts_of(p.oc(), v.tile_oc);
    // Cycles to store a vector of sums. Bytes of a last tile that is not full take longer, as their stores are masked.
    const double partial = p.oc() % v.tile_oc && !is_float(v.arithmetic)
                               ? m.amx_store_masked / parts_of(p.oc(), v.tile_oc)
                               : 0,
                 store = m.amx_store + partial;
    // Operands come from the second-level cache.
    const double multiply = columns * row_tiles * rows_of,
                 k_step = of_steps(multiply,
                                   std::max({multiply, 8 * (columns + row_tiles), 52.0,
                                             (kAmxRows * columns + rows_of * row_tiles) * kAmxRows * 4 / m.amx_rate}));
    return tiles * (parts_of(p.ic(), std::int64_t{block_of(v)} * blocks_at_once(v)) * taps * k_step +
                    phases * (of(CostPart::kTiles, m.amx_phase) +
                              of(CostPart::kStores, columns * v.tile_q * v.tile_qh * store)) +
                    of(CostPart::kTiles, taps * m.amx_tap));
}

} // namespace convtranspose
