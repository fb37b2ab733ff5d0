// The family `oc_vectorized`: schedule.h says which layers it is for, and what its tile holds.
#include <memory>
#include <utility>

#include "cpu/passes/hoist_tap_loads.h"
#include "cpu/passes/interleave_positions.h"
#include "cpu/passes/prefetch.h"
#include "cpu/passes/row_base_pointers.h"
#include "cpu/passes/skip_padding.h"
#include "kernel_contract/fetching.h"
#include "kernel_contract/kernel_traits.h"
#include "schedule.h"

namespace convtranspose {

using namespace Halide;

namespace {

// The inner loop is the multiply-adds, their broadcasts of x and the loads of weights, with nothing spilled: 2x14 has 28
// accumulators and 2 weights in 32 registers. Two vectors of channels halve the loads of x against one, four would leave too few
// positions. Channel tiles are the outermost loop, so that the weights of a tile and phase are read from the second-level cache
// for all images of a batch. Measurements: docs/measurements/2026-11-26-schedules.md.

// One phase after the other, each stored at once: dense where y is channels last, scattered where it is planar.
void schedule_any_stride(const ConvTranspose &c, const Tile &tile, OutputOrder output_order) {
    const AxisVars &w = c.axes[0], &h = c.axes[1], &d = c.axes[2];
    Func y = c.y, sum = c.sum;
    Var oi("oi"), qo("qo"), qi("qi"), qho("qho"), qhi("qhi");
    y.split(c.oc, c.oo, oi, tile.oc, last_tile(tile.loops.whole_oc))
        .split(w.q, qo, qi, tile.q, TailStrategy::ShiftInwards)
        .split(h.q, qho, qhi, tile.qh, TailStrategy::ShiftInwards)
        .reorder({oi, qi, qhi, qo, qho, d.q, c.n, w.r, h.r, d.r, c.oo, c.g})
        .unroll(qi)
        .unroll(qhi);
    if (tile.loops.x_stays) {
        y.reorder({oi, qi, qhi, c.oo, qo, w.r, qho, h.r, d.q, d.r, c.g, c.n});
    }
    if (output_order == OutputOrder::kChannels) {
        // A loop over its vectors would keep the sums in memory.
        y.vectorize(oi, tile.lanes).unroll(oi);
    }
    sum.compute_at(y, tile.loops.x_stays ? c.oo : qo);
}

// All phases of w, one after the other, into a tile on the stack; then stored as runs of a row, so that each cache line of
// y is written once. At 16 positions of stride 1 or 8 of stride 2 such a run is one cache line per channel.
void schedule_built_in_stride(const ConvTranspose &c, const Tile &tile) {
    const AxisVars &w = c.axes[0], &h = c.axes[1], &d = c.axes[2];
    const int stride = c.stride[0], run = tile.q * stride;
    int lanes = tile.lanes;
    while (run % lanes != 0) {
        lanes /= 2;
    }
    Func y = c.y, sum = c.sum, parked = sum.in();
    Var oi("oi"), qo("qo"), o("o"), qho("qho"), qhi("qhi");
    y.split(c.oc, c.oo, oi, tile.oc, last_tile(tile.loops.whole_oc))
        .split(w.o, qo, o, run, last_tile(tile.loops.whole_w))
        .split(h.q, qho, qhi, tile.qh, TailStrategy::ShiftInwards)
        .reorder({o, qhi, oi, qo, qho, d.q, c.n, h.r, d.r, c.oo, c.g})
        .vectorize(o, lanes);
    // If the stride is no power of two, each vector in a loop would divide by it for every lane.
    if (run / lanes <= 4 || (stride & (stride - 1)) != 0) {
        y.unroll(o);
    }
    if (tile.loops.x_stays) {
        y.reorder({o, qhi, oi, c.oo, qo, qho, h.r, d.q, d.r, c.g, c.n});
    }
    parked.compute_at(y, tile.loops.x_stays ? c.oo : qo)
        .bound_extent(c.oi, tile.oc)
        .bound_extent(c.oo, 1)
        .bound_extent(w.q, tile.q)
        .bound_extent(w.r, stride)
        .bound_extent(h.q, tile.qh)
        .reorder_storage({c.oi, w.r, w.q, h.q})
        .reorder({c.oi, w.q, h.q, w.r});
    keep_in_registers(parked, {c.oi, w.q, h.q}, tile.lanes);
    if (tile.loops.unrolled_axes > 0) { // the unrolled taps differ by phase
        parked.unroll(w.r);
    }
    sum.compute_at(parked, w.r);
}

// Neighbours in x are positions along w, or, if channels come in blocks, those of one position. In the latter case all of a pair of
// blocks is done for one position before the next, so that one register holds x. Four blocks at once, or more than 20 sums of int8,
// would spill.
void schedule_by_element(const ConvTranspose &c, const Tile &tile) {
    const AxisVars &w = c.axes[0], &h = c.axes[1];
    const Update &k = c.updates[0];
    Func x = k.x, sum = c.sum;
    if (c.block > 1) {
        const RVar of_pair("of_pair");
        const Update pairs = in_pairs(k, sum.update(), of_pair);
        sum.update().reorder(inner_to_outer(pairs, std::vector<VarOrRVar>{c.oi, of_pair, w.q, h.q}));
        x.compute_at(sum, w.q).bound_extent(k.op_ic, 2).vectorize(k.op_ib).vectorize(k.op_ic);
    } else {
        sum.update().reorder(inner_to_outer(k, std::vector<Var>{c.oi, w.q, h.q}));
        x.compute_at(sum, k.ic)
            .bound_extent(w.q, tile.q)
            .bound_extent(h.q, tile.qh)
            .reorder({w.q, h.q})
            .vectorize(w.q, neighbours(tile.q, tile.lanes))
            .unroll(w.q)
            .unroll(h.q);
    }
}

void schedule_oc_vectorized(const ConvTranspose &c, const Tile &tile, OutputOrder output_order) {
    if (c.stride[0] == 0) {
        schedule_any_stride(c, tile, output_order);
    } else {
        schedule_built_in_stride(c, tile);
    }
    // The register tile: per input channel and tap, tile.oc / lanes vectors of weights times tile.q * tile.qh broadcast x.
    const AxisVars &w = c.axes[0], &h = c.axes[1];
    const Update &k = c.updates[0];
    const std::vector<Var> registers = {c.oi, w.q, h.q};
    Func sum = c.sum;
    sum.bound_extent(c.oi, tile.oc)
        .bound_extent(c.oo, 1)
        .bound_extent(w.q, tile.q)
        .bound_extent(h.q, tile.qh)
        .reorder({c.oi, w.q, h.q});
    keep_in_registers(sum, registers, tile.lanes);
    reduce_blocks(c, k, sum.update());
    if (tile.by_element) {
        schedule_by_element(c, tile);
    } else {
        sum.update().reorder(inner_to_outer(k, registers, {}, tile.loops));
    }
    keep_in_registers(sum.update(), registers, tile.lanes);
    unroll_reduction(k, tile.loops, sum.update());
}

// Thresholds of the passes below, in positions of a tile unless they say otherwise; kernel_contract/fetching.h has those that
// estimates of cost go by. Where each pass gains and where it loses time is in docs/measurements/2026-11-26-schedules.md.
constexpr int kMostInterleaved = 10;       // more would have distances reloaded from the stack for each tap
constexpr int kBytesAhead = 2048;          // of w
constexpr int kStepsAhead = 8;             // of x
constexpr int kLeastByPointers = 16;       // sums of a tile; LLVM does as well with fewer
constexpr int kLeastWithAvx2 = 8;          // the same with half the registers, where LLVM spills sums
constexpr int kLeastVectorByPointers = 32; // bytes, where y is planar: shorter vectors are slower with it
constexpr int kMostOfPointer = 8;          // positions that share a pointer

std::unique_ptr<Prefetch> make_prefetch(const ConvTranspose &c, const Tile &tile, OutputOrder output_order,
                                        const InputNames &inputs) {
    constexpr int kImagesOfX = 5; // dimension
    const int bytes = vector_bytes(c, tile);
    const bool x_apart = output_order == OutputOrder::kPlanar && tile.qh == 1; // steps of x do not share cache lines
    auto prefetch = std::make_unique<Prefetch>(Prefetch::Names{c.sum.name(), inputs.x, inputs.w},
                                               Prefetch::Ahead{kBytesAhead, x_apart ? kStepsAhead : 0},
                                               counted_second_level_cache(bytes));
    if (output_order == OutputOrder::kChannels) {
        prefetch->fetch_stored(c.y.name(), c.y.dimensions() - 1, least_steps_fetching_y(bytes));
    }
    if (!tile.loops.x_stays) {
        prefetch->fetch_next_weights(c.oo.name());
        if (output_order == OutputOrder::kChannels) prefetch->fetch_next_x(tile.q, kImagesOfX);
    }
    return prefetch;
}

// Their order is explained in docs/lowering-passes.md.
LoweringPasses make_passes(const ConvTranspose &c, const Tile &tile, OutputOrder output_order,
                           const InputNames &inputs) {
    LoweringPasses passes;
    if (!tile.x86_64 || c.block > 1) return passes;
    const int positions = tile.q * tile.qh, vectors = tile.oc / tile.lanes;
    std::shared_ptr<const LoopSet> for_far_images;
    passes.push_back(std::make_unique<HoistTapLoads>(inputs.taps));
    if (output_order == OutputOrder::kChannels && vectors > 1 && positions <= kMostInterleaved) {
        passes.push_back(std::make_unique<InterleavePositions>(c.sum.name(), vectors));
    }
    if (fetches_ahead(vectors, positions)) {
        auto prefetch = make_prefetch(c, tile, output_order, inputs);
        for_far_images = prefetch->loops_for_far_images();
        passes.push_back(std::move(prefetch));
    }
    if (skips_positions(tile.x86_64, c.block, tile.q) && tile.loops.unrolled_axes == 0 && tile.loops.unrolled_ic == 1) {
        passes.push_back(std::make_unique<SkipPadding>(c.sum.name(), inputs.x, tile.oc, tile.q, most_left_out(tile.q),
                                                       std::move(for_far_images)));
    }
    const int least_sums = is_cache_line(vector_bytes(c, tile)) ? kLeastByPointers : kLeastWithAvx2;
    const bool in_rows = tile.qh == 1 ? positions * vectors >= least_sums : positions > kMostInterleaved;
    const bool by_pointers = output_order == OutputOrder::kPlanar ? vector_bytes(c, tile) >= kLeastVectorByPointers
                                                                  : in_rows || vectors == 1;
    if (by_pointers) {
        const int pointers = (tile.q + kMostOfPointer - 1) / kMostOfPointer;
        passes.push_back(std::make_unique<RowBasePointers>(c.sum.name(), inputs.x, (tile.q + pointers - 1) / pointers));
    }
    return passes;
}

// LLVM makes a pointer of each address that a loop over positions counts up. For the phases of a stride that is built in these
// pointers are more than registers, and the code that moves them to and from the stack is longer than the rest. Measurements:
// docs/measurements/2026-11-29-smaller-kernels.md.
bool keeps_addresses(const ConvTranspose &c, const Tile &tile, OutputOrder output_order) {
    return tile.x86_64 && output_order == OutputOrder::kPlanar && c.stride[0] > 0 && c.block == 1;
}

bool branches_at_last_tiles(const ConvTranspose &c, const Tile &tile, OutputOrder output_order) {
    return output_order == OutputOrder::kPlanar || (c.sum.types()[0].is_float() && tile.masked_rows);
}

} // namespace

const ScheduleFamily kOcVectorized = {
    Family::kOcVectorized, Outside::kNeverReads, TapOrder::kPerPhase,   schedule_oc_vectorized, false,
    make_passes,           keeps_addresses,      branches_at_last_tiles};

} // namespace convtranspose
