// Estimates of kernels that multiply matrices by AMX.
#include <algorithm>

#include "cost/cost_terms.h"

namespace convtranspose {

double cost_of_amx(const CostTerms &t) {
    const Variant &v = t.v;
    const SpatialProblem &p = t.p;
    // A multiplication takes as many cycles as its first operand has rows, and one on the same sums can follow after 52; a load takes
    // 8. Rows are positions, or output channels if y is planar.
    const bool planar = has_rows_of_channels(v);
    const double columns = v.tile_oc / t.lanes, rows_of = planar ? kAmxRows : std::min(v.tile_q, kAmxRows),
                 row_tiles = parts_of(v.tile_q, kAmxRows) * v.tile_qh;
    const double tiles = parts_of(t.w.q_extent(), v.tile_q) * parts_of(t.h.q_extent(), v.tile_qh) *
                         static_cast<double>(t.d.q_extent()) * parts_of(p.oc(), v.tile_oc);
    // Cycles to store a vector of sums. Bytes of a last tile that is not full take longer, as their stores are masked.
    const double partial = p.oc() % v.tile_oc && !is_float(v.arithmetic)
                               ? t.m.amx_store_masked / parts_of(p.oc(), v.tile_oc)
                               : 0,
                 store = t.m.amx_store + partial;
    // Operands come from the second-level cache.
    const double multiply = columns * row_tiles * rows_of,
                 k_step = t.of_steps(
                     multiply, std::max({multiply, 8 * (columns + row_tiles), 52.0,
                                         (kAmxRows * columns + rows_of * row_tiles) * kAmxRows * 4 / t.m.amx_rate}));
    return tiles * (parts_of(p.ic(), std::int64_t{block_of(v)} * blocks_at_once(v)) * t.taps * k_step +
                    t.phases * (t.of(CostPart::kTiles, t.m.amx_phase) +
                                t.of(CostPart::kStores, columns * v.tile_q * v.tile_qh * store)) +
                    t.of(CostPart::kTiles, t.taps * t.m.amx_tap));
}

} // namespace convtranspose
