#include "schedule.h"

#include <algorithm>

namespace convtranspose {

using namespace Halide;

namespace {

// Bound by the loops over few taps, not by arithmetic: what counts is how much is done between them. AMD EPYC (Zen 5, 2 cores,
// AVX-512), one thread, 4x4 stride 2 of 64 channels, and 16x16 stride 8 of 21, channels last: one vector by 4 positions writes
// 25 and 21 GB/s of f32, by 8 28 and 27, by 16 27 and 27; u8 takes 0.95 and 0.94 of f32's time by 4, 0.75 and 0.80 by 8, 0.65
// and 0.67 by 16. Two vectors of channels by 8 were 1.06 and 1.5 times slower than one. With 16 registers (AVX2) 8 positions
// are best, 1.2 and 1.3 times as fast as 4. Planar: four vectors (64 columns) cover a row in one go; narrower rows take 1x2
// and 1x1.
//
// All channels and residues of some positions are computed before the next: what is written lies side by side, though each
// tile of channels reads its weights anew. With tiles of channels outermost, whose vectors of y lie as far apart as positions
// do, 17 layers took 1.0 to 2.7 times as long (Xeon, Granite Rapids: 64 channels of 64x64, 4x4 stride 2, 1.52, 21 of 16x16
// stride 8 1.75). Images of fewer columns than the larger tiles fit into the first-level cache by 128 channels at a time, which
// takes 0.8 of the time (1000 channels of 7x7).
void schedule_depthwise(const ConvTranspose &c, const Tile &tile, Store store) {
    const AxisVars &w = c.axes[0], &h = c.axes[1], &d = c.axes[2];
    Func y = c.y, sum = c.sum;
    if (store == Store::kPlanar) {
        if (tile.loops.by_offset) {
            schedule_residues(c, tile);
        } else {
            kWide.schedule(c, tile, store);
        }
        return;
    }
    Var go("go"), gi("gi"), gb("gb"), qo("qo"), qi("qi");
    // The last tile of groups is stored in part, or overlaps the one before it where that would be slow. The tile of one
    // position is for any number of groups.
    const bool overlaps = !tile.masked_stores && tile.q > 1;
    y.split(c.g, go, gi, tile.oc * tile.lanes, overlaps ? TailStrategy::ShiftInwards : TailStrategy::GuardWithIf)
        .split(w.q, qo, qi, tile.q, TailStrategy::ShiftInwards)
        .reorder({gi, qi, c.oc, go, w.r, qo, h.q, h.r, d.q, d.r, c.n})
        .vectorize(gi, tile.lanes)
        .unroll(qi);
    if (tile.q < 8) {
        y.split(go, gb, go, std::max(128 / (tile.oc * tile.lanes), 1), TailStrategy::GuardWithIf)
            .reorder({w.r, qo, h.q, h.r, d.q, d.r, gb});
    }
    sum.compute_at(y, go)
        .bound_extent(c.oi, 1)
        .bound_extent(c.oo, 1)
        .bound_extent(w.q, tile.q)
        .bound_extent(c.g, tile.oc * tile.lanes)
        .reorder_storage({c.g, w.q})
        .reorder({c.g, w.q});
    keep_in_registers(sum, {c.g, w.q}, tile.lanes);
    const Update &k = c.updates[0];
    reduce_blocks(c, k, sum.update());
    sum.update().reorder(inner_to_outer(k, {c.g, w.q}, {}, tile.loops));
    keep_in_registers(sum.update(), {c.g, w.q}, tile.lanes);
    unroll_reduction(k, tile.loops, sum.update());
}

} // namespace

const ScheduleFamily kDepthwise = {"depthwise", Outside::kNeverReads, TapOrder::kPerResidue, true,
                                   false,       schedule_depthwise};

} // namespace convtranspose
