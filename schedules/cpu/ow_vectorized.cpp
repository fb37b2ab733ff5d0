// The family `ow_vectorized`: schedule.h says which layers it is for, and what its tile holds.
#include <memory>

#include "cpu/passes/prefetch.h"
#include "kernel_contract/fetching.h"
#include "schedule.h"

namespace convtranspose {

using namespace Halide;

namespace {

// Neighbours in w are output channels, or, if their number is odd, those of two input channels.
void schedule_by_element(const ConvTranspose &c, const Tile &tile) {
    const AxisVars &q = c.axes[0], &h = c.axes[1];
    const Update &k = c.updates[0];
    Func w = k.w, sum = c.sum;
    w.bound_extent(c.oi, tile.oc);
    if (c.block > 1) {
        w.vectorize(k.op_ib);
    }
    if (tile.oc % 2 == 0) {
        sum.update().reorder(inner_to_outer(k, std::vector<Var>{q.q, h.q, c.oi}));
        w.compute_at(sum, k.ic).vectorize(c.oi, neighbours(tile.oc, tile.lanes)).unroll(c.oi);
    } else {
        const RVar of_pair("of_pair");
        const Update pairs = in_pairs(k, sum.update(), of_pair);
        sum.update().reorder(inner_to_outer(pairs, std::vector<VarOrRVar>{q.q, h.q, c.oi, of_pair}));
        w.compute_at(sum, pairs.ic).bound_extent(k.op_ic, 2).vectorize(c.oi).vectorize(k.op_ic);
    }
}

// The inner loop holds no store and no spill; with 16 registers (AVX2) 4x3 is the largest tile of which that is true.
// The phases of a row and of a plane follow each other, so that y is written in its order.
// Measurements: docs/measurements/2026-11-26-schedules.md, of the order 2026-11-30-rows-of-a-far-y.md.
void schedule_ow_vectorized(const ConvTranspose &c, const Tile &tile, OutputOrder output_order) {
    const AxisVars &w = c.axes[0], &h = c.axes[1], &d = c.axes[2];
    const int stride = c.stride[0];
    Func y = c.y, sum = c.sum, parked = sum.in();
    Var oo("oo"), oi("oi"), qo("qo"), qi("qi"), r("r"), qho("qho"), qhi("qhi");

    y.split(c.oc, oo, oi, tile.oc, last_tile(tile.loops.whole_oc))
        .split(w.o, qo, qi, tile.q * stride, last_tile(tile.loops.whole_w))
        .split(h.q, qho, qhi, tile.qh, TailStrategy::ShiftInwards);
    if (stride > 1 && tile.masked_rows && output_order == OutputOrder::kPlanar && !tile.loops.whole_w) {
        store_rows(c, tile, y.reorder({qi, qhi, oi, qo, h.r, qho, d.r, d.q, oo, c.g, c.n}), qi, qhi);
    } else {
        y.split(qi, qi, r, stride)
            .reorder({r, qi, qhi, oi, qo, h.r, qho, d.r, d.q, oo, c.g, c.n})
            .vectorize(qi, tile.lanes)
            .unroll(r);
        // Unrolled, y is stored from registers; a loop would read the sums from the stack. Interleaved rows hardly gain by it.
        if (stride == 1 && tile.x86_64 && output_order == OutputOrder::kPlanar && c.y.types()[0].is_float()) {
            y.unroll(qi).unroll(qhi).unroll(oi);
        }
    }

    // The sums of one phase after the other are made in registers and parked on the stack, so that the phases can be
    // interleaved when they are stored.
    parked.compute_at(y, qo)
        .bound_extent(c.oi, tile.oc)
        .bound_extent(c.oo, 1)
        .bound_extent(w.q, tile.q)
        .bound_extent(w.r, stride)
        .bound_extent(h.q, tile.qh)
        .reorder({w.q, h.q, c.oi, w.r})
        .reorder_storage({w.q, w.r, h.q, c.oi});
    const std::vector<Var> registers = {w.q, h.q, c.oi};
    keep_in_registers(parked, registers, tile.lanes);
    if (tile.loops.unrolled_axes > 0) { // the unrolled taps differ by phase
        parked.unroll(w.r);
    }

    const Update &k = c.updates[0];
    sum.compute_at(parked, w.r)
        .bound_extent(c.oi, tile.oc)
        .bound_extent(c.oo, 1)
        .bound_extent(w.q, tile.q)
        .bound_extent(h.q, tile.qh)
        .reorder_storage({w.q, h.q, c.oi})
        .reorder({w.q, h.q, c.oi});
    keep_in_registers(sum, registers, tile.lanes);
    reduce_blocks(c, k, sum.update());
    std::vector<Var> step = registers;
    if (tile.by_element) {
        schedule_by_element(c, tile);
    } else {
        if (tile.oc * tile.lanes < tile.q * tile.qh) {
            // One vector of x at a time meets all weights: where vectors are more than weights, all of them would not fit beside
            // the sums.
            Var vector("vector"), lane("lane");
            sum.update().split(w.q, vector, lane, tile.lanes);
            step = {lane, c.oi, vector, h.q};
        }
        sum.update().reorder(inner_to_outer(k, step, {}, tile.loops));
    }
    keep_in_registers(sum.update(), step, tile.lanes);
    unroll_reduction(k, tile.loops, sum.update());
}

// Tiles of three vectors that may read x in place fetch it ahead; narrower ones and other strides gain nothing.
// Measurements: docs/measurements/2026-11-26-schedules.md.
LoweringPasses make_passes(const ConvTranspose &c, const Tile &tile, OutputOrder output_order,
                           const InputNames &inputs) {
    constexpr int kStepsAhead = 16;
    LoweringPasses passes;
    const bool in_place = output_order == OutputOrder::kPlanar && c.stride[0] == 1 && tile.qh == 1;
    if (tile.x86_64 && in_place && fetches_x_ahead(tile.masked_stores, tile.q, tile.lanes)) {
        passes.push_back(std::make_unique<Prefetch>(Prefetch::Names{c.sum.name(), inputs.x, inputs.w},
                                                    Prefetch::Ahead{0, kStepsAhead},
                                                    counted_second_level_cache(vector_bytes(c, tile))));
    }
    return passes;
}

// Kernels of integers that write y channels last have an address for each element that they store, and LLVM would make a pointer
// of each (keeps_addresses() of the family oc_vectorized).
bool keeps_addresses(const ConvTranspose &c, const Tile &tile, OutputOrder output_order) {
    return tile.x86_64 && output_order == OutputOrder::kChannels && c.block > 1;
}

bool branches_at_last_tiles(const ConvTranspose &c, const Tile &, OutputOrder) { return c.sum.types()[0].is_float(); }

} // namespace

const ScheduleFamily kOwVectorized = {
    Family::kOwVectorized, Outside::kNeverReads, TapOrder::kPerPhase,   schedule_ow_vectorized, false,
    make_passes,           keeps_addresses,      branches_at_last_tiles};

} // namespace convtranspose
