#include "schedule.h"

namespace convtranspose {

using namespace Halide;

namespace {

// Bound by memory and by the loops over few taps, not by arithmetic. AMD EPYC (Zen 5, 2 cores, AVX-512), one thread, f32: 4x4
// stride 2 of 64 channels writes 16 GB/s planar and 29 GB/s channels last; 16x16 stride 8 of 21 channels 14 and 23 GB/s.
// Four vectors (64 columns) cover a row in one go; narrower rows take 1x2 and 1x1.
void schedule_depthwise(const ConvTranspose &c, const Tile &tile, Store store) {
    const AxisVars &w = c.axes[0], &h = c.axes[1], &d = c.axes[2];
    Func y = c.y, sum = c.sum;
    if (store == Store::kPlanar) {
        kWide.schedule(c, tile, store);
        return;
    }
    Var go("go"), gi("gi"), qo("qo"), qi("qi");
    y.split(c.g, go, gi, tile.oc * tile.lanes, TailStrategy::GuardWithIf)
        .split(w.q, qo, qi, tile.q, TailStrategy::ShiftInwards)
        .reorder({gi, qi, c.oc, qo, w.r, h.q, h.r, d.q, d.r, go, c.n})
        .vectorize(gi, tile.lanes)
        .unroll(qi);
    sum.compute_at(y, qo)
        .bound_extent(c.oi, 1)
        .bound_extent(c.oo, 1)
        .bound_extent(w.q, tile.q)
        .bound_extent(c.g, tile.oc * tile.lanes)
        .reorder_storage({c.g, w.q})
        .reorder({c.g, w.q})
        .vectorize(c.g, tile.lanes)
        .unroll(c.g)
        .unroll(w.q);
    const Update &k = c.updates[0];
    reduce_blocks(c, k, sum.update());
    sum.update().reorder(inner_to_outer(k, {c.g, w.q})).vectorize(c.g, tile.lanes).unroll(c.g).unroll(w.q);
}

} // namespace

const ScheduleFamily kDepthwise = {"depthwise", Outside::kNeverReads, TapOrder::kPerResidue, true,
                                   false,       schedule_depthwise};

} // namespace convtranspose
