// Schedules of the algorithm in generators/conv_transpose.h: the order of its loops, and what is held in registers.
#ifndef CONVTRANSPOSE_SCHEDULES_SCHEDULE_H_
#define CONVTRANSPOSE_SCHEDULES_SCHEDULE_H_

#include <memory>
#include <string>
#include <vector>

#include "conv_transpose.h"
#include "cpu/passes/branch_once.h"
#include "kernel_contract/kernel_types.h"

namespace convtranspose {

// The loops of a kernel for one layer; the defaults are those of a kernel for any layer.
struct Loops {
    int unrolled_axes = 0; // the taps of this many axes, w first, are unrolled, inside the loop over input channels
    int unrolled_ic = 1;   // input channels at a time
    bool tap_offset_order = false; // small_oc, planar depthwise: schedule_unrolled_phases()
    bool x_stays = false; // oc_vectorized: all channel tiles for one tile of positions, rather than the other way round
    // y has whole tiles only: none is stored in part.
    bool whole_oc = false, whole_w = false, whole_h = false;
};

// The register tile of a family, in elements.
struct Tile {
    int oc = 1;                 // output channels; conv_transpose()'s oc_tile
    int q = 1;                  // positions along w, of one phase
    int qh = 1;                 // positions along h, of one phase
    int lanes = 1;              // of a vector of the sum's type on the target
    bool masked_stores = false; // the target stores a part of a vector of any type at once
    bool masked_rows = false;   // it does so for y's type
    bool by_element = false;    // it multiplies a vector by any element of another; not with unrolled loops
    bool x86_64 = false;        // passes that were measured there alone apply (docs/lowering-passes.md)
    Loops loops;
};

// The names of a kernel's inputs, which lowering passes look for in the code.
struct InputNames {
    std::string x, w;
    std::vector<std::string> taps; // the tables of all axes
};

// In the order in which they run.
using LoweringPasses = std::vector<std::unique_ptr<Halide::Internal::IRMutator>>;

// Adds passes to a pipeline, which deletes them.
inline void add_passes(LoweringPasses passes, Halide::Pipeline pipeline) {
    for (auto &pass : passes) {
        pipeline.add_custom_lowering_pass(pass.release());
    }
}

// Stores the last tile of a dimension of y, if it is not whole, behind a branch within the loops over all tiles.
inline void branch_at_last_tiles(const ConvTranspose &c, Halide::Pipeline pipeline) {
    Halide::Func y = c.y;
    y.never_partition_all();
    pipeline.add_custom_lowering_pass(new BranchOnce);
}

// A way to schedule the algorithm, and the choices of the algorithm that it asks for.
struct ScheduleFamily {
    Family family;
    Outside outside;    // whether it wants x with zeros around it
    TapOrder tap_order; // of w and h
    void (*schedule)(const ConvTranspose &c, const Tile &tile, OutputOrder output_order);
    bool bias_last = false;
    // Passes to run after Halide's own; made anew for each pipeline, which they belong to.
    LoweringPasses (*lowering_passes)(const ConvTranspose &c, const Tile &tile, OutputOrder output_order,
                                      const InputNames &inputs) = nullptr;
    // Returns true if LLVM must not make pointers of the addresses that the kernel's loops count up. Null: it always may.
    bool (*keeps_addresses)(const ConvTranspose &c, const Tile &tile, OutputOrder output_order) = nullptr;
    // Returns true if the generator is to call branch_at_last_tiles(). Halide otherwise makes all loops once more for the last tile:
    // twice the code, but faster where loops are short, as those over few taps or blocks of channels are, and where a part of a
    // vector is stored element by element (docs/measurements/2026-11-29-one-nest.md). Null: it is never to.
    bool (*branches_at_last_tiles)(const ConvTranspose &c, const Tile &tile, OutputOrder output_order) = nullptr;
};

// The bytes of a vector of the sums.
inline int vector_bytes(const ConvTranspose &c, const Tile &tile) { return tile.lanes * c.sum.types()[0].bytes(); }

// The loops of an update: those of the register tile, the reduction, those outside of it.
template<typename Registers = std::vector<Halide::Var>>
std::vector<Halide::VarOrRVar> inner_to_outer(const Update &k, const Registers &tile,
                                              const std::vector<Halide::Var> &outer = {}, const Loops &loops = {}) {
    std::vector<Halide::VarOrRVar> order(tile.begin(), tile.end()), taps = {k.tw, k.th, k.td};
    const auto outside = taps.begin() + loops.unrolled_axes;
    order.insert(order.end(), taps.begin(), outside);
    order.emplace_back(k.ic);
    order.insert(order.end(), outside, taps.end());
    order.insert(order.end(), outer.begin(), outer.end());
    return order;
}

inline void unroll_reduction(const Update &k, const Loops &loops, Halide::Stage update) {
    const Halide::RVar taps[3] = {k.tw, k.th, k.td};
    for (int a = 0; a < loops.unrolled_axes; a++) {
        update.unroll(taps[a]);
    }
    if (loops.unrolled_ic > 1) {
        update.unroll(k.ic, loops.unrolled_ic);
    }
}

// The treatment of the last tile of a dimension of y, which may not be whole.
inline Halide::TailStrategy last_tile(bool whole) {
    return whole ? Halide::TailStrategy::RoundUp : Halide::TailStrategy::GuardWithIf;
}

// Makes registers of the sums of a stage: all loops of the tile, innermost first, are unrolled, the first of them in vectors.
inline void keep_in_registers(Halide::Stage stage, const std::vector<Halide::Var> &tile, int lanes) {
    stage.vectorize(tile.front(), lanes);
    for (const Halide::Var &v : tile) {
        stage.unroll(v);
    }
}

// A row that is put together out of phases.
struct PhasesOfRow {
    int phases, extent; // extent: of the row, in outputs
    int lanes;          // of a phase at a time
};

// Part of store_rows(): `f` is put together along `o` at loop `row` of y.
inline void interleave(Halide::Func f, const Halide::Var &o, const PhasesOfRow &of, const Halide::Func &y,
                       const Halide::Var &row) {
    Halide::Var q(o.name() + "_q"), r(o.name() + "_r");
    f.compute_at(y, row)
        .bound_extent(o, of.extent)
        .align_bounds(o, of.phases)
        .split(o, q, r, of.phases)
        .reorder(r, q)
        .vectorize(q, of.lanes)
        .unroll(r)
        .unroll(q);
}

// Interleaves the phases of w of a tile's row, at loop `row` of y, and then stores y along it, `along`, by whole vectors, and
// its end by a part of one: if they were interleaved while they are stored, ends of rows would be stored one by one. All is
// unrolled, so that LLVM keeps the row in registers. For targets with masked stores.
inline void store_rows(const ConvTranspose &c, const Tile &tile, Halide::Func y, const Halide::Var &along,
                       const Halide::Var &row) {
    const int stride = c.stride[0], extent = tile.q * stride;
    y.vectorize(along, tile.lanes).unroll(along);
    if (!c.half_row.defined()) {
        interleave(c.row, c.axes[0].o, {stride, extent, tile.lanes}, y, row);
        return;
    }
    Halide::Func halves = c.half_row;
    interleave(halves.bound_extent(c.parity, 2).unroll(c.parity), c.half_o, {stride / 2, extent / 2, tile.lanes}, y,
               row);
    interleave(c.row, c.axes[0].o, {2, extent, tile.lanes / 2}, y, row);
}

// If input channels come in blocks, reduces each in one instruction: ib joins the vectorised dimension.
inline void reduce_blocks(const ConvTranspose &c, const Update &k, Halide::Stage update) {
    if (c.block > 1) {
        update.atomic().vectorize(k.ib);
    }
}

// Tile::by_element: a load that repeats an element takes a slot of the vector units, as a multiply-add does. So the factors that a
// tile repeats are loaded in vectors, of as many neighbours as divide its extent, and multiplied by element.
inline int neighbours(int extent, int lanes) {
    while (extent % lanes != 0) {
        lanes /= 2;
    }
    return lanes;
}

// If neighbours are to be input channels (or blocks of them): takes those of an update two at a time, and an odd last one alone,
// for which loads may go one past the last channel. Returns the update whose ic counts pairs.
inline Update in_pairs(const Update &k, Halide::Stage update, const Halide::RVar &of_pair) {
    Update pairs = k;
    pairs.ic = Halide::RVar("pair");
    update.split(k.ic, pairs.ic, of_pair, 2, Halide::TailStrategy::GuardWithIf).unroll(of_pair);
    return pairs;
}

// Plain loops in the order of the definition: obviously right, for anything.
extern const ScheduleFamily kReference;

// Accumulators [tile.qh x tile.q positions] x [tile.oc channels], vectors along oc; x is broadcast. For deep channels. Any
// strides; needs at least tile.q columns and tile.qh rows per phase.
extern const ScheduleFamily kOcVectorized;

// As kOcVectorized, in the tile registers of AMX. For blocks of channels of 4 bytes.
extern const ScheduleFamily kAmx;

// Accumulators [tile.oc channels] x [tile.q positions], vectors along w; weights are broadcast. For wide rows, planar. Needs
// a constant stride of w, and x readable up to a whole tile past its last column.
extern const ScheduleFamily kOwVectorized;

// Accumulators [all phases of w and h] x [tile.oc channels] x [tile.q positions], vectors along w: one load of x feeds the
// taps of all phases that meet it. For few output channels. Needs constant strides of w and h, and x readable as above.
extern const ScheduleFamily kSmallOc;

// One input channel per group; for integers two taps along w are in a block. kChannels: vectors along g, tile.oc of them, by tile.q
// positions. kPlanar: as kOwVectorized or, with no stride of w built in, tile.q positions of a vector of phases.
extern const ScheduleFamily kDepthwise;

// For kernels with the taps of w and h built in, in TapOrder::kTapOffset, all of them unrolled: accumulators [all phases of w]
// x [all phases of h, or tile.qh positions of one phase if the stride of h is not built in] x [tile.oc channels] x [tile.q
// positions], vectors along w. One load of x feeds all taps that meet it, of whatever phases and rows.
void schedule_unrolled_phases(const ConvTranspose &c, const Tile &tile);

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_SCHEDULE_H_
