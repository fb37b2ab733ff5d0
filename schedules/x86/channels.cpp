#include "schedule.h"

namespace convtranspose {

using namespace Halide;

namespace {

void schedule_channels(const ConvTranspose &c, const Tile &tile, Store store) {
    const AxisVars &w = c.axes[0], &h = c.axes[1], &d = c.axes[2];
    Func y = c.y, sum = c.sum;
    Var oo("oo"), oi("oi"), qo("qo"), qi("qi"), qho("qho"), qhi("qhi");

    // Loops, outermost first: channel tile, residues, rows, tiles of a row. The packed weights of one channel tile and
    // residue, taps * ic * oc_tile elements, are then read over and over from the second-level cache.
    y.split(c.oc, oo, oi, tile.oc, TailStrategy::GuardWithIf)
        .split(w.q, qo, qi, tile.q, TailStrategy::ShiftInwards)
        .split(h.q, qho, qhi, tile.qh, TailStrategy::ShiftInwards)
        .reorder({oi, qi, qhi, qo, qho, d.q, c.n, w.r, h.r, d.r, oo, c.g});
    if (store == Store::kChannels) {
        y.vectorize(oi, tile.lanes);
    }
    y.unroll(qi).unroll(qhi);

    sum.compute_at(y, qo)
        .bound_extent(c.oi, tile.oc)
        .bound_extent(c.oo, 1)
        .bound_extent(w.q, tile.q)
        .bound_extent(h.q, tile.qh)
        .vectorize(c.oi, tile.lanes)
        .unroll(c.oi)
        .unroll(w.q)
        .unroll(h.q);
    const Update &k = c.updates[0];
    sum.update()
        .reorder({c.oi, w.q, h.q, k.ic, k.tw, k.th, k.td})
        .vectorize(c.oi, tile.lanes)
        .unroll(c.oi)
        .unroll(w.q)
        .unroll(h.q);
}

}  // namespace

const Family kChannels = {"channels", Outside::kNeverReads, TapOrder::kPerResidue, false, schedule_channels};

}  // namespace convtranspose
