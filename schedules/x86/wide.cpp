#include "schedule.h"

namespace convtranspose {

using namespace Halide;

namespace {

void schedule_wide(const ConvTranspose &c, const Tile &tile, Store) {
    const AxisVars &w = c.axes[0], &h = c.axes[1], &d = c.axes[2];
    const int stride = c.stride[0];
    Func y = c.y, sum = c.sum, parked = sum.in();
    Var oo("oo"), oi("oi"), qo("qo"), qi("qi"), r("r"), qho("qho"), qhi("qhi");

    y.split(c.oc, oo, oi, tile.oc, TailStrategy::GuardWithIf)
        .split(w.o, qo, qi, tile.q * stride, TailStrategy::GuardWithIf)
        .split(qi, qi, r, stride)
        .split(h.q, qho, qhi, tile.qh, TailStrategy::ShiftInwards)
        .reorder({r, qi, qhi, oi, qo, qho, h.r, d.q, d.r, oo, c.g, c.n})
        .vectorize(qi, tile.lanes)
        .unroll(r);

    // The sums of one residue after the other are made in registers and parked on the stack, so that the residues can be
    // interleaved when they are stored.
    parked.compute_at(y, qo)
        .bound_extent(c.oi, tile.oc)
        .bound_extent(c.oo, 1)
        .bound_extent(w.q, tile.q)
        .bound_extent(w.r, stride)
        .bound_extent(h.q, tile.qh)
        .reorder({w.q, h.q, c.oi, w.r})
        .reorder_storage({w.q, w.r, h.q, c.oi})
        .vectorize(w.q, tile.lanes)
        .unroll(w.q)
        .unroll(h.q)
        .unroll(c.oi);

    const Update &k = c.updates[0];
    sum.compute_at(parked, w.r)
        .bound_extent(c.oi, tile.oc)
        .bound_extent(c.oo, 1)
        .bound_extent(w.q, tile.q)
        .bound_extent(h.q, tile.qh)
        .reorder_storage({w.q, h.q, c.oi})
        .reorder({w.q, h.q, c.oi})
        .vectorize(w.q, tile.lanes)
        .unroll(w.q)
        .unroll(h.q)
        .unroll(c.oi);
    sum.update()
        .reorder({w.q, h.q, c.oi, k.ic, k.tw, k.th, k.td})
        .vectorize(w.q, tile.lanes)
        .unroll(w.q)
        .unroll(h.q)
        .unroll(c.oi);
}

}  // namespace

const ScheduleFamily kWide = {"wide", Outside::kNeverReads, TapOrder::kPerResidue, false, schedule_wide};

}  // namespace convtranspose
