#include <algorithm>

#include "schedule.h"

namespace convtranspose {

using namespace Halide;

// With 16 registers, one row of phases at a time leaves room for a second vector of positions, so that each weight that is loaded
// serves two multiply-adds. The weights of all taps lie side by side for an input channel (has_taps_inside()), so that a step reads
// them at constant distances from one address; with an address for each tap, most addresses would be on the stack.
// Measurements: docs/measurements/2026-11-26-schedules.md, of tiles of several rows 2026-11-29-depthwise.md.
void schedule_unrolled_phases(const ConvTranspose &c, const Tile &tile) {
    const AxisVars &w = c.axes[0], &h = c.axes[1], &d = c.axes[2];
    const Loops &loops = tile.loops;
    const int stride_w = c.stride[0], stride_h = c.stride[1];
    Func y = c.y, sum = c.sum;
    Var oo("oo"), oi("oi"), qo("qo"), qi("qi"), rw("rw"), qho("qho"), qhi("qhi");
    const std::vector<Var> registers = {w.q, w.r, h.q, h.r, c.oi};

    y.split(c.oc, oo, oi, tile.oc, last_tile(loops.whole_oc))
        .split(w.o, qo, qi, tile.q * stride_w, last_tile(loops.whole_w));
    // Either way phases of h are unrolled: taps are constants only if the phase is one.
    if (stride_h > 0) {
        y.split(h.o, qho, qhi, stride_h, last_tile(loops.whole_h))
            .reorder({qi, qhi, oi, qo, qho, d.r, d.q, oo, c.g, c.n})
            .unroll(qhi);
    } else {
        y.split(h.q, qho, qhi, tile.qh, TailStrategy::ShiftInwards)
            .reorder({qi, qhi, oi, qo, h.r, qho, d.r, d.q, oo, c.g, c.n})
            .unroll(qhi)
            .unroll(h.r);
    }
    y.unroll(oi);
    // Rows that do not fill a tile gain by whole stores.
    if (stride_w > 1 && tile.masked_rows && (!loops.whole_w || c.half_row.defined())) {
        store_rows(c, tile, y, qi, stride_h > 0 || tile.qh > 1 ? qhi : oi);
    } else {
        y.split(qi, qi, rw, stride_w).reorder(rw, qi).vectorize(qi, tile.lanes).unroll(rw).unroll(qi);
    }

    sum.compute_at(y, qo)
        .bound_extent(c.oi, tile.oc)
        .bound_extent(c.oo, 1)
        .bound_extent(w.q, tile.q)
        .bound_extent(w.r, stride_w)
        .bound_extent(h.q, tile.qh)
        .bound_extent(h.r, std::max(stride_h, 1))
        .reorder_storage(registers)
        .reorder({w.q, w.r, h.q, h.r, c.oi});
    keep_in_registers(sum, registers, tile.lanes);
    const Update &k = c.updates[0];
    reduce_blocks(c, k, sum.update());
    sum.update().reorder(inner_to_outer(k, registers, {}, loops));
    keep_in_registers(sum.update(), registers, tile.lanes);
    unroll_reduction(k, loops, sum.update());
}

} // namespace convtranspose
