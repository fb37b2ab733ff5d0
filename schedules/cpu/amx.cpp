// The family `amx`: schedule.h says which layers it is for, and what its tile holds.
#include <memory>

#include "cpu/passes/amx_tiles.h"
#include "kernel_contract/kernel_traits.h"
#include "schedule.h"

namespace convtranspose {

using namespace Halide;

namespace {

// The variables of the loops that one matrix instruction replaces.
AmxLoops instruction_loops() { return {"amx_bytes", "amx_depth", "amx_columns", "amx_rows"}; }

// The largest extent that is at most kAmxRows and makes equal parts.
int part_of(int extent) {
    int parts = (extent + kAmxRows - 1) / kAmxRows;
    while (extent % parts != 0) parts++;
    return extent / parts;
}

// The dimensions along the rows of a tile register, and along its columns, in which memory is dense.
struct Sides {
    Var rows, columns;
    int row_extent, column_extent;
};

// Splits the tile of a stage into registers, its outer loops unrolled: the loops, innermost first.
std::vector<VarOrRVar> split_tile(const ConvTranspose &c, const Sides &sides, Stage stage) {
    const AmxLoops loops = instruction_loops();
    const Var columns(loops.columns), rows(loops.rows), h = c.axes[1].q;
    stage.split(sides.columns, sides.columns, columns, part_of(sides.column_extent))
        .split(sides.rows, sides.rows, rows, part_of(sides.row_extent));
    stage.unroll(sides.columns).unroll(sides.rows).unroll(h);
    return {columns, rows, sides.columns, sides.rows, h};
}

// The loops of y are those of kOcVectorized.
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

// The loops of y are those of kOwVectorized: all phases of w are parked on the stack, to be interleaved when they are stored.
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

// A step of the reduction is 16 blocks of input channels, 64 bytes of each position: on 2x2 accumulators four loads and four products
// of 16 cycles each. With many channels all four loads come from the second-level cache, which bounds the speed.
// Measurements: docs/measurements/2026-11-26-schedules.md.
void schedule_amx(const ConvTranspose &c, const Tile &tile, OutputOrder output_order) {
    const AxisVars &w = c.axes[0], &h = c.axes[1];
    Func sum = c.sum, parked = sum.in();
    const bool planar = output_order == OutputOrder::kPlanar;
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
    std::vector<VarOrRVar> parked_order = split_tile(c, sides, parked);
    if (planar) {
        parked_order.emplace_back(w.r);
    }
    parked.reorder(parked_order);
    sum.reorder(split_tile(c, sides, sum));

    const Update &k = c.updates[0];
    const AmxLoops loops = instruction_loops();
    RVar depth(loops.depth), ib(loops.bytes);
    Stage update = sum.update();
    std::vector<VarOrRVar> order = split_tile(c, sides, update);
    update.rename(k.ib, ib).split(k.ic, k.ic, depth, kAmxRows);
    order.insert(order.begin(), {ib, depth});
    order.insert(order.end(), {k.ic, k.tw, k.th, k.td});
    update.reorder(order);
}

LoweringPasses make_passes(const ConvTranspose &c, const Tile & /*tile*/, OutputOrder /*output_order*/,
                           const InputNames & /*inputs*/) {
    LoweringPasses passes;
    passes.push_back(std::make_unique<AmxTiles>(c.sum.name(), instruction_loops()));
    return passes;
}

} // namespace

const ScheduleFamily kAmx = {Family::kAmx, Outside::kNeverReads, TapOrder::kPerPhase, schedule_amx, true, make_passes};

} // namespace convtranspose
