// The family `depthwise`: schedule.h says which layers it is for, and what its tile holds.
#include <algorithm>
#include <memory>

#include "cpu/far_rows.h"
#include "cpu/passes/hoist_tap_loads.h"
#include "kernel_contract/fetching.h"
#include "kernel_contract/kernel_traits.h"
#include "schedule.h"

namespace convtranspose {

using namespace Halide;

namespace {

// Strides are at least as long as a vector, so a vector is of neighbouring phases, which lie side by side in y and need not be
// interleaved. A vector of phases is computed for all of a row before the next, so that the weights of built-in taps stay in registers.
// Measurements: docs/measurements/2026-11-30-vectors-of-phases.md.
void schedule_vectors_of_phases(const ConvTranspose &c, const Tile &tile) {
    const AxisVars &w = c.axes[0], &h = c.axes[1], &d = c.axes[2];
    Func y = c.y, sum = c.sum;
    Var ro("ro"), ri("ri"), qo("qo"), qi("qi");
    const std::vector<Var> registers = {w.r, w.q};
    y.split(w.r, ro, ri, tile.lanes, TailStrategy::ShiftInwards)
        .split(w.q, qo, qi, tile.q, TailStrategy::ShiftInwards)
        .reorder({ri, qi, qo, ro, h.r, h.q, d.r, d.q, c.oc, c.g, c.n})
        .vectorize(ri)
        .unroll(qi);
    sum.compute_at(y, qo)
        .bound_extent(c.oi, 1)
        .bound_extent(c.oo, 1)
        .bound_extent(w.q, tile.q)
        .bound_extent(w.r, tile.lanes)
        .reorder_storage(registers)
        .reorder({w.r, w.q});
    keep_in_registers(sum, registers, tile.lanes);
    const Update &k = c.updates[0];
    sum.update().reorder(inner_to_outer(k, registers, {}, tile.loops));
    keep_in_registers(sum.update(), registers, tile.lanes);
    unroll_reduction(k, tile.loops, sum.update());
}

// The loops over few taps bound the speed, not the arithmetic, so tiles are as large as registers allow. All channels and phases
// of some positions are computed before the next: stores then lie side by side, though each tile of channels reads its weights
// anew. Rows are computed in the order of y. Images narrower than the larger tiles take 128 channels at a time, which fit into the
// first-level cache.
// Measurements: docs/measurements/2026-11-26-schedules.md.
void schedule_depthwise(const ConvTranspose &c, const Tile &tile, OutputOrder output_order) {
    const AxisVars &w = c.axes[0], &h = c.axes[1], &d = c.axes[2];
    Func y = c.y, sum = c.sum;
    if (output_order == OutputOrder::kPlanar) {
        if (c.stride[0] == 0) {
            schedule_vectors_of_phases(c, tile);
        } else if (tile.loops.tap_offset_order) {
            schedule_unrolled_phases(c, tile);
        } else {
            kOwVectorized.schedule(c, tile, output_order);
        }
        return;
    }
    Var go("go"), gi("gi"), gb("gb"), qo("qo"), qi("qi");
    const bool overlaps = overlaps_groups(tile.masked_stores, tile.q); // else the last tile of groups is stored in part
    // To narrow the sums of several vectors to bytes together takes fewer instructions than each by itself. CPUs with masked stores
    // narrow and store a vector by one instruction.
    const bool packs = c.y.types()[0].bytes() == 1 && !tile.masked_rows;
    y.split(c.g, go, gi, tile.oc * tile.lanes, overlaps ? TailStrategy::ShiftInwards : TailStrategy::GuardWithIf)
        .split(w.q, qo, qi, tile.q, TailStrategy::ShiftInwards)
        .reorder({gi, qi, c.oc, go, w.r, qo, h.r, h.q, d.r, d.q, c.n})
        .vectorize(gi, packs ? tile.oc * tile.lanes : tile.lanes)
        .unroll(qi);
    if (tile.q < 8) {
        y.split(go, gb, go, std::max(128 / (tile.oc * tile.lanes), 1), TailStrategy::GuardWithIf)
            .reorder({w.r, qo, h.r, h.q, d.r, d.q, gb});
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

// Kernels of floats whose vectors are cache lines do without the pass: it makes them slower where y does not fit in the caches, though
// a little faster where it does (docs/measurements/2026-11-29-depthwise-bytes.md).
LoweringPasses make_passes(const ConvTranspose &c, const Tile &tile, OutputOrder output_order,
                           const InputNames &inputs) {
    LoweringPasses passes;
    const bool gains = c.block > 1 || !is_cache_line(vector_bytes(c, tile));
    if (tile.x86_64 && output_order == OutputOrder::kChannels && gains) {
        passes.push_back(std::make_unique<HoistTapLoads>(inputs.taps));
    }
    if (tile.loops.tap_offset_order) fetch_far_rows(c, tile, &passes);
    return passes;
}

} // namespace

const ScheduleFamily kDepthwise = {
    Family::kDepthwise, Outside::kNeverReads, TapOrder::kPerPhase, schedule_depthwise, false, make_passes};

} // namespace convtranspose
