#include "interleave_positions.h"
#include "prefetch.h"
#include "row_ends.h"
#include "row_pointers.h"
#include "schedule.h"
#include "taps_once.h"

namespace convtranspose {

using namespace Halide;

namespace {

// AMD EPYC (Zen 5, 2 cores, AVX-512), one thread, f32, of an FMA peak of 276 GFLOP/s: 2x14 (28 accumulators, 2 weights, 2 to
// spare of 32 registers) 93% on a 2x2 stride 2 layer of 1024 channels 28 wide; 2x8 92..98% on 16x8 vocoder layers; 2x4x2 85% on
// 4x4 images, where rows fill the tile. The inner loop is the FMAs, their broadcasts and two loads of weights; nothing is
// spilled. Two vectors of channels halve the loads of x against one, four would leave too few positions.
//
// Loops, outermost first: channel tile, residues, rows, tiles of a row. The packed weights of one channel tile and residue,
// taps * ic * oc_tile elements, are then read over and over from the second-level cache, for all images of a batch.

// One residue after the other, each stored at once: dense where y is channels last, scattered where it is planar.
void schedule_any_stride(const ConvTranspose &c, const Tile &tile, Store store) {
    const AxisVars &w = c.axes[0], &h = c.axes[1], &d = c.axes[2];
    Func y = c.y, sum = c.sum;
    Var oo("oo"), oi("oi"), qo("qo"), qi("qi"), qho("qho"), qhi("qhi");
    y.split(c.oc, oo, oi, tile.oc, last_tile(tile.loops.whole_oc))
        .split(w.q, qo, qi, tile.q, TailStrategy::ShiftInwards)
        .split(h.q, qho, qhi, tile.qh, TailStrategy::ShiftInwards)
        .reorder({oi, qi, qhi, qo, qho, d.q, c.n, w.r, h.r, d.r, oo, c.g})
        .unroll(qi)
        .unroll(qhi);
    if (tile.loops.x_stays) {
        y.reorder({oi, qi, qhi, oo, qo, w.r, qho, h.r, d.q, d.r, c.g, c.n});
    }
    if (store == Store::kChannels) {
        // A loop over its vectors would have the sums in memory: 24 to 32 channels take twice as long so.
        y.vectorize(oi, tile.lanes).unroll(oi);
    }
    sum.compute_at(y, tile.loops.x_stays ? oo : qo);
}

// All residues of w, one after the other, into a tile on the stack; then stored as runs of a row, so that each cache line of
// y is written once. At 16 positions of stride 1 or 8 of stride 2 such a run is one cache line per channel.
void schedule_built_in_stride(const ConvTranspose &c, const Tile &tile) {
    const AxisVars &w = c.axes[0], &h = c.axes[1], &d = c.axes[2];
    const int stride = c.stride[0], run = tile.q * stride;
    int lanes = tile.lanes;
    while (run % lanes != 0) {
        lanes /= 2;
    }
    Func y = c.y, sum = c.sum, parked = sum.in();
    Var oo("oo"), oi("oi"), qo("qo"), o("o"), qho("qho"), qhi("qhi");
    y.split(c.oc, oo, oi, tile.oc, last_tile(tile.loops.whole_oc))
        .split(w.o, qo, o, run, last_tile(tile.loops.whole_w))
        .split(h.q, qho, qhi, tile.qh, TailStrategy::ShiftInwards)
        .reorder({o, qhi, oi, qo, qho, d.q, c.n, h.r, d.r, oo, c.g})
        .vectorize(o, lanes);
    // Of a stride that is no power of two each vector in a loop would divide by it for every lane: 1.8 to 3 times as long.
    if (run / lanes <= 4 || (stride & (stride - 1)) != 0) {
        y.unroll(o);
    }
    if (tile.loops.x_stays) {
        y.reorder({o, qhi, oi, oo, qo, qho, h.r, d.q, d.r, c.g, c.n});
    }
    parked.compute_at(y, tile.loops.x_stays ? oo : qo)
        .bound_extent(c.oi, tile.oc)
        .bound_extent(c.oo, 1)
        .bound_extent(w.q, tile.q)
        .bound_extent(w.r, stride)
        .bound_extent(h.q, tile.qh)
        .reorder_storage({c.oi, w.r, w.q, h.q})
        .reorder({c.oi, w.q, h.q, w.r});
    keep_in_registers(parked, {c.oi, w.q, h.q}, tile.lanes);
    if (tile.loops.unrolled_axes > 0) { // which residues differ in
        parked.unroll(w.r);
    }
    sum.compute_at(parked, w.r);
}

// Neighbours in x are positions along w; where channels come in blocks, those of one position. Then all of a pair of blocks is
// done for one position before the next, so that one register holds x. By models of the Cortex-A76, Neoverse V2 and Apple M1
// (bench/mca) 2x8 is at 100% of the limit in all types, where loads that repeat x left int8 at 61 to 67% and f32 at 89 to 94%.
// Four blocks at once, or more than 20 sums of int8, would spill.
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

void schedule_channels(const ConvTranspose &c, const Tile &tile, Store store) {
    if (c.stride[0] == 0) {
        schedule_any_stride(c, tile, store);
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

// Xeon (Granite Rapids, AVX-512), one thread, f32.
//
// Positions interleaved: 1.03 to 1.09 times as fast by 2x8 and 2x10, 1.3 by 2x5 (39 instructions for ten multiply-adds before, 21
// after; 2x8 39 and 33, of 16), from 32 input channels on; of fewer 0.92 to 1.09. Distances of more positions are reloaded from the
// stack for each tap: 2x12 1.02 to 1.05 of deep layers, 0.7 to 0.95 of several groups; 1x14, whose loads are part of the
// multiply-adds, 0.9.
//
// Rows of x through pointers, of eight positions at most each: 1.02 to 1.04 times as fast by 2x12 and 2x14, 1.02 to 1.07 by 4x6,
// 1.00 to 1.08 by 3x8, 1.02 by 2x10, 1.01 to 1.03 by 2x6x2 and 2x4x3, 1.03 to 1.09 by tiles of one vector of channels. Of smaller
// tiles, and of few positions in several rows, LLVM's own choice has as many instructions: 0.96 to 1.01. Not where a kernel holds
// several copies of a reduction: then some of 2x8 have 39 for 33 without (0.92 of the speed).
//
// Fetched ahead: 1.05 to 1.17 times as fast where weights or x come from the second-level cache or further (2x10 on a 16x8
// vocoder layer, whose 8 MB of weights come from the third: 64% of the FMA peak, 78% with), as fast where they do not; on AVX2
// 0.96 to 1.08. Distances of half or twice as much are within 1%. Smaller tiles, and a row of x for each of a tile's, would fetch
// about as often as they multiply: up to 6% slower in the first-level cache. Not so of four vectors: 4x4 1.06 to 1.16, 4x2x2 1.03
// to 1.18, 4x2 and 4x1x2 1.01 to 1.07. 8-bit integers gain nothing. Channels last, a step of x is on the line of the one before.
//
// Lines of y channels last, fetched while its sums are computed (of the last tap), of 64 channels or more: 1.02 to 1.12 times as fast
// where an image of y does not stay in the second-level cache (of one tap, 256 to 128 channels of 112x112, 2x2 stride 2: 4x3x2 1.04,
// 2x14 1.09, 2x8 1.12; of 192x192 1.06, 1.10, 1.11). Of 128 channels 0.99 to 1.03, of several taps, before each of them, 0.98. One
// line every few steps, from a list of them, hides as much, but its five instructions cost 0.95 where y is near; all lines at once
// gain half. On AMD's Zen 4, whose second-level cache has half the size, 128 channels gain 1.07 to 1.1 (by 2x14 and 2x8, 2-D and
// 3-D) and 64 channels 1.09 to 1.13; 3x8 1.01 to 1.12, which on the Xeon has 0.96 of the speed where y is near and weights are far,
// and there loses nothing. Of several taps, with the next positions' x, 0.99 to 1.08 (128 to 64 channels, 4 stride 2: 1.05 to 1.08).
//
// With AVX2 (Zen 3, 2x6), 128 to 64 channels of 224x224 1.04, 256 to 128 of 112x112 1.02: from 96 on there.
//
// The next positions' x, channels last, where an image of x does not stay in the second-level cache: products of one tap, of 512
// channels of 3200 positions to 16, 32 and 48 are 1.2 to 1.3 times as fast, of 64 of 65536 to 48 1.14; 2x2 stride 2 of 256 to 128
// channels of 112x112 1.06, of 24 to 24 of 160x160 1.05. Fetched wherever x is, 0.96 to 0.98 where it is near. Kernels are 1.13
// times as large.
//
// The next tile's weights (next_weights.h): 1.20 to 1.32 times as fast on a 4x4 image of 512 channels, of weights of 8 MB, 1.05 to
// 1.08 on 8x8 ones, 1.03 to 1.08 on vocoder layers of 100 columns, 1.02 to 1.19 where weights of 32 MB are for 16x16, 1.01 to 1.08
// for 28x28, 1.28 of 2048 channels for 64 columns. Where all weights are near, such a fetch a step would cost 1 to 5%.
//
// Taps looked up once for a residue, and weights of a step through one pointer: 1.00 to 1.03 times as fast, neither without the
// other (0.94 of 16x8 vocoder layers by the pointer alone).
//
// Positions outside of x left out at the ends of rows: 1.02 to 1.04 times as fast on images of 4x4, 8x8 (3-D too) and 16x12, 1.015 on
// 16x16, 1.02 of dilated 3x3 (two at either end), as much on AVX2; 0.98 where the batch is the row. Kernels are 1.17 times as large.
LoweringPasses make_passes(const ConvTranspose &c, const Tile &tile, Store store) {
    constexpr int kMostInterleaved = 10, kLeastFetching = 6, kManyVectors = 4, kBytesAhead = 2048, kStepsAhead = 8;
    constexpr int kLeastByPointers = 16, kMostOfPointer = 8; // sums; positions
    constexpr int kImagesOfX = 5;                            // dimension
    constexpr int kStepsOfLines = 64, kSteps = 96; // (runtime/cost/cost_channels.cpp, fetching_steps(), has these too)
    constexpr int kLeastTwo = 4, kMostTwo = 8;     // positions of which two at either end are left out, of others one
    if (!tile.x86_64 || c.block > 1) return {};
    const int positions = tile.q * tile.qh, vectors = tile.oc / tile.lanes, bytes = c.sum.types()[0].bytes();
    const bool is_of_lines = has_lines_as_vectors(tile, bytes);
    // Interleaving while a step is nothing but stores; pointers last, which hide what is read of x.
    LoweringPasses passes = {new TapsOnce()};
    if (store == Store::kChannels && vectors > 1 && positions <= kMostInterleaved) {
        passes.push_back(new InterleavePositions(c.sum.name(), vectors));
    }
    if (positions >= kLeastFetching || (vectors >= kManyVectors && positions > 1)) {
        const bool x_apart = store == Store::kPlanar && tile.qh == 1;
        auto *const prefetch =
            new Prefetch(c.sum.name(), kBytesAhead, x_apart ? kStepsAhead : 0, second_level_cache(tile, bytes));
        if (store == Store::kChannels)
            prefetch->fetch_stored(c.y.name(), c.y.dimensions() - 1, is_of_lines ? kStepsOfLines : kSteps);
        if (!tile.loops.x_stays) {
            prefetch->fetch_next(".oo");
            if (store == Store::kChannels) prefetch->fetch_next_x(tile.q, tile.qh, kImagesOfX);
        }
        passes.push_back(prefetch);
    }
    if (tile.q > 1 && tile.loops.unrolled_axes == 0 && tile.loops.unrolled_ic == 1) {
        const int most = tile.q >= kLeastTwo && tile.q <= kMostTwo ? 2 : 1;
        passes.push_back(new RowEnds(c.sum.name(), "x", tile.oc, tile.q, most));
    }
    const bool in_rows = tile.qh == 1 ? positions * vectors >= kLeastByPointers : positions > kMostInterleaved;
    if (store == Store::kChannels && (in_rows || vectors == 1)) {
        const int pointers = (tile.q + kMostOfPointer - 1) / kMostOfPointer;
        passes.push_back(new RowPointers(c.sum.name(), "x", (tile.q + pointers - 1) / pointers));
    }
    return passes;
}

} // namespace

const ScheduleFamily kChannels = {
    "channels", Outside::kNeverReads, TapOrder::kPerResidue, false, false, schedule_channels, 1, false, make_passes};

} // namespace convtranspose
