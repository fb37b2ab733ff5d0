#include "amx_tiles.h"
#include "schedule.h"

namespace convtranspose {

using namespace Halide;

namespace {

constexpr int kMost = 16; // rows, columns and steps of a tile register

int part_of(int extent) { // the largest that is at most kMost and makes equal parts
    int parts = (extent + kMost - 1) / kMost;
    while (extent % parts != 0) parts++;
    return extent / parts;
}

// Splits the tile of a stage into registers, its outer loops unrolled.
std::vector<VarOrRVar> split_tile(const ConvTranspose &c, const Tile &tile, Stage stage) {
    const AxisVars &w = c.axes[0], &h = c.axes[1];
    const Var columns(AmxLoops::kColumns), rows(AmxLoops::kRows);
    stage.split(c.oi, c.oi, columns, part_of(tile.oc)).split(w.q, w.q, rows, part_of(tile.q));
    stage.unroll(c.oi).unroll(w.q).unroll(h.q);
    return {columns, rows, c.oi, w.q, h.q};
}

// Loops as those of channels; a step of the reduction is 16 blocks of input channels, 64 bytes of each position.
void schedule_matrix(const ConvTranspose &c, const Tile &tile, Store) {
    const AxisVars &w = c.axes[0], &h = c.axes[1], &d = c.axes[2];
    Func y = c.y, sum = c.sum, parked = sum.in();
    Var oo("oo"), oi("oi"), qo("qo"), qi("qi"), qho("qho"), qhi("qhi");
    y.split(c.oc, oo, oi, tile.oc, last_tile(tile.loops.whole_oc))
        .split(w.q, qo, qi, tile.q, TailStrategy::ShiftInwards)
        .split(h.q, qho, qhi, tile.qh, TailStrategy::ShiftInwards)
        .reorder({oi, qi, qhi, qo, qho, d.q, c.n, w.r, h.r, d.r, oo, c.g})
        .vectorize(oi, tile.lanes)
        .unroll(oi);
    parked.compute_at(y, qo)
        .bound_extent(c.oi, tile.oc)
        .bound_extent(c.oo, 1)
        .bound_extent(w.q, tile.q)
        .bound_extent(h.q, tile.qh)
        .reorder({c.oi, w.q, h.q});
    parked.reorder(split_tile(c, tile, parked));
    sum.compute_at(y, qo)
        .bound_extent(c.oi, tile.oc)
        .bound_extent(c.oo, 1)
        .bound_extent(w.q, tile.q)
        .bound_extent(h.q, tile.qh)
        .reorder({c.oi, w.q, h.q});
    sum.reorder(split_tile(c, tile, sum));

    const Update &k = c.updates[0];
    RVar depth(AmxLoops::kDepth), ib(AmxLoops::kBytes);
    Stage update = sum.update();
    std::vector<VarOrRVar> order = split_tile(c, tile, update);
    update.rename(k.ib, ib).split(k.ic, k.ic, depth, kMost);
    order.insert(order.begin(), {ib, depth});
    order.insert(order.end(), {k.ic, k.tw, k.th, k.td});
    update.reorder(order);
}

Internal::IRMutator *make_pass(const ConvTranspose &c) { return new AmxTiles(c.sum.name()); }

} // namespace

const ScheduleFamily kMatrix = {
    "matrix", Outside::kNeverReads, TapOrder::kPerResidue, false, false, schedule_matrix, kMost, true, make_pass};

} // namespace convtranspose
