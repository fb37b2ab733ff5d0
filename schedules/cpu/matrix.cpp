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

// What is along the rows of a tile register, and along its columns, in which memory is dense.
struct Sides {
    Var rows, columns;
    int row_extent, column_extent;
};

// Splits the tile of a stage into registers, its outer loops unrolled: the loops, innermost first.
std::vector<VarOrRVar> split_tile(const ConvTranspose &c, const Sides &sides, Stage stage) {
    const Var columns(AmxLoops::kColumns), rows(AmxLoops::kRows), h = c.axes[1].q;
    stage.split(sides.columns, sides.columns, columns, part_of(sides.column_extent))
        .split(sides.rows, sides.rows, rows, part_of(sides.row_extent));
    stage.unroll(sides.columns).unroll(sides.rows).unroll(h);
    return {columns, rows, sides.columns, sides.rows, h};
}

// Loops of y as those of channels.
void schedule_y_of_channels(const ConvTranspose &c, const Tile &tile) {
    const AxisVars &w = c.axes[0], &h = c.axes[1], &d = c.axes[2];
    Func y = c.y, sum = c.sum, parked = sum.in();
    Var oo("oo"), oi("oi"), qo("qo"), qi("qi"), qho("qho"), qhi("qhi");
    y.split(c.oc, oo, oi, tile.oc, last_tile(tile.loops.whole_oc))
        .split(w.q, qo, qi, tile.q, TailStrategy::ShiftInwards)
        .split(h.q, qho, qhi, tile.qh, TailStrategy::ShiftInwards)
        .reorder({oi, qi, qhi, qo, qho, d.q, c.n, w.r, h.r, d.r, oo, c.g})
        .vectorize(oi, tile.lanes)
        .unroll(oi);
    parked.compute_at(y, qo);
    sum.compute_at(y, qo);
}

// Loops of y as those of wide: all residues of w are parked on the stack, to be interleaved when they are stored.
void schedule_planar_y(const ConvTranspose &c, const Tile &tile) {
    const AxisVars &w = c.axes[0], &h = c.axes[1], &d = c.axes[2];
    const int stride = c.stride[0];
    Func y = c.y, sum = c.sum, parked = sum.in();
    Var oo("oo"), oi("oi"), qo("qo"), qi("qi"), qho("qho"), qhi("qhi");
    y.split(c.oc, oo, oi, tile.oc, last_tile(tile.loops.whole_oc))
        .split(w.o, qo, qi, tile.q * stride, last_tile(tile.loops.whole_w))
        .split(h.q, qho, qhi, tile.qh, TailStrategy::ShiftInwards)
        .reorder({qi, qhi, oi, qo, qho, h.r, d.q, d.r, oo, c.g, c.n});
    if (stride > 1) {
        store_rows(c, tile, y, qi, qhi);
    } else {
        y.vectorize(qi, tile.lanes);
    }
    // More than 16 KiB of these would not be on the stack: Halide would ask for memory.
    parked.compute_at(y, qo).bound_extent(w.r, stride).reorder_storage({w.q, w.r, h.q, c.oi});
    sum.compute_at(parked, w.r).reorder_storage({w.q, h.q, c.oi});
}

// Xeon (Granite Rapids, 2 cores), one thread, bf16, of a peak of 3474 GFLOP/s: tiles of 28 and 32 positions 1040 to 1480 on most
// deep layers, planar 720 to 1150. A step of the reduction is 16 blocks of input channels, 64 bytes of each position: four loads
// and, on 2x2 accumulators, four products of 16 cycles each, which the second-level cache, that all four come from where there
// are many channels, makes 35 to 55.
void schedule_matrix(const ConvTranspose &c, const Tile &tile, Store store) {
    const AxisVars &w = c.axes[0], &h = c.axes[1];
    Func sum = c.sum, parked = sum.in();
    const bool planar = store == Store::kPlanar;
    const Sides sides = planar ? Sides{c.oi, w.q, tile.oc, tile.q} : Sides{w.q, c.oi, tile.q, tile.oc};
    if (planar) {
        schedule_planar_y(c, tile);
    } else {
        schedule_y_of_channels(c, tile);
    }
    for (Func f : {parked, sum}) {
        f.bound_extent(c.oi, tile.oc)
            .bound_extent(c.oo, 1)
            .bound_extent(w.q, tile.q)
            .bound_extent(h.q, tile.qh)
            .reorder({sides.columns, sides.rows, h.q});
    }
    std::vector<VarOrRVar> loops = split_tile(c, sides, parked);
    if (planar) {
        loops.emplace_back(w.r);
    }
    parked.reorder(loops);
    sum.reorder(split_tile(c, sides, sum));

    const Update &k = c.updates[0];
    RVar depth(AmxLoops::kDepth), ib(AmxLoops::kBytes);
    Stage update = sum.update();
    std::vector<VarOrRVar> order = split_tile(c, sides, update);
    update.rename(k.ib, ib).split(k.ic, k.ic, depth, kMost);
    order.insert(order.begin(), {ib, depth});
    order.insert(order.end(), {k.ic, k.tw, k.th, k.td});
    update.reorder(order);
}

LoweringPasses make_passes(const ConvTranspose &c, const Tile & /*tile*/, Store /*store*/) {
    return {new AmxTiles(c.sum.name())};
}

} // namespace

const ScheduleFamily kMatrix = {
    "matrix", Outside::kNeverReads, TapOrder::kPerResidue, false, false, schedule_matrix, kMost, true, make_passes};

} // namespace convtranspose
