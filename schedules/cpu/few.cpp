#include "schedule.h"

namespace convtranspose {

using namespace Halide;

namespace {

// AMD EPYC (Zen 5, 2 cores, AVX-512), one thread, f32, of an FMA peak of 276 GFLOP/s: 50% on a 9x9 stride 2 layer with one
// output channel (1x4: 16 accumulators; 4 loads and 4 broadcasts for 16 FMAs), 56% on a 16-tap stride 8 one (1x3). What is lost
// is in the taps that not all residues share: there each FMA needs a load of its own.
void schedule_few(const ConvTranspose &c, const Tile &tile, Store) {
    const AxisVars &w = c.axes[0], &h = c.axes[1], &d = c.axes[2];
    Func y = c.y, sum = c.sum;
    Var oo("oo"), oi("oi"), qo("qo"), qi("qi"), rw("rw"), qh("qh"), rh("rh");
    const int stride_w = c.stride[0], stride_h = c.stride[1];

    y.split(c.oc, oo, oi, tile.oc, TailStrategy::GuardWithIf)
        .split(w.o, qo, qi, tile.q * stride_w, TailStrategy::GuardWithIf)
        .split(qi, qi, rw, stride_w)
        .split(h.o, qh, rh, stride_h, TailStrategy::GuardWithIf)
        .reorder({rw, qi, oi, rh, qo, qh, d.q, d.r, oo, c.g, c.n})
        .vectorize(qi, tile.lanes)
        .unroll(rw);

    sum.compute_at(y, qo)
        .bound_extent(c.oi, tile.oc)
        .bound_extent(c.oo, 1)
        .bound_extent(w.q, tile.q)
        .bound_extent(w.r, stride_w)
        .bound_extent(h.q, 1)
        .bound_extent(h.r, stride_h)
        .reorder_storage({w.q, w.r, h.r, c.oi})
        .reorder({w.q, w.r, h.r, c.oi})
        .vectorize(w.q, tile.lanes)
        .unroll(w.q)
        .unroll(w.r)
        .unroll(h.r)
        .unroll(c.oi);
    const Update &shared = c.updates[0], &rest = c.updates[1];
    reduce_blocks(c, shared, sum.update(0));
    sum.update(0)
        .reorder(inner_to_outer(shared, {w.q, w.r, h.r, c.oi}))
        .vectorize(w.q, tile.lanes)
        .unroll(w.q)
        .unroll(w.r)
        .unroll(h.r)
        .unroll(c.oi);
    reduce_blocks(c, rest, sum.update(1));
    sum.update(1)
        .reorder(inner_to_outer(rest, {w.q, c.oi}, {w.r, h.r}))
        .vectorize(w.q, tile.lanes)
        .unroll(w.q)
        .unroll(c.oi);
}

} // namespace

const ScheduleFamily kFew = {"few", Outside::kNeverReads, TapOrder::kShared, false, true, schedule_few};

} // namespace convtranspose
