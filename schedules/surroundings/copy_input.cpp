#include "surroundings/copy_input.h"

#include <algorithm>

#include "cpu/passes/lowered_names.h"
#include "cpu/passes/prefetch_copied.h"
#include "kernel_contract/fetching.h"

namespace convtranspose {

using namespace Halide;

namespace {

constexpr int kRun = 32, kLongRun = 128; // positions
constexpr int kShortVector = 8;          // elements
constexpr int kAtOnce = 4;               // vectors

// The loops that copies are split into.
struct Parts {
    Var wi{"wi"}, ci{"ci"}, beside{"beside"}, near{"near"};
};

// Vectorizes along v. Without masks, a part of a vector of bytes would be copied lane by lane, each with a test of its own. So, unless
// copied by parts, the last vector overlaps the one before it, and fewer elements than a short vector holds are copied one after
// another. Measurements: docs/measurements/2026-11-29-odd-channels.md.
void vectorize(Stage s, const Var &v, const Expr &extent, int lanes, bool by_parts) {
    if (by_parts) {
        s.vectorize(v, lanes, TailStrategy::GuardWithIf);
        return;
    }
    s.specialize(extent >= lanes).vectorize(v, lanes, TailStrategy::ShiftInwards);
    if (lanes > kShortVector) {
        s.specialize(extent >= kShortVector).vectorize(v, kShortVector, TailStrategy::ShiftInwards);
    }
}

// Copies long rows by several vectors at once; the last of them may overlap those before. A loop over single vectors asks memory for fewer
// cache lines at the same time. Measurements: docs/measurements/2026-11-30-planar-copies.md.
void vectorize_long(Stage s, const Var &v, const Expr &extent, int lanes) {
    const Var wi = Parts().wi;
    const int length = kAtOnce * lanes;
    s.specialize(extent >= length).split(v, v, wi, length, TailStrategy::ShiftInwards).vectorize(wi, lanes).unroll(wi);
}

void by_loads(const CopyInput &c, Stage p, int lanes) {
    const Var wi = Parts().wi;
    p.split(c.w, c.w, wi, lanes, TailStrategy::GuardWithIf).reorder({wi, c.c0, c.c1, c.w, c.h, c.d, c.g, c.n});
    p.vectorize(wi);
}

void by_stores(const CopyInput &c, Stage p, int lanes) {
    const Var ci = Parts().ci;
    p.split(c.c1, c.c1, ci, lanes, TailStrategy::GuardWithIf).reorder({ci, c.c0, c.w, c.c1, c.h, c.d, c.g, c.n});
    p.vectorize(ci);
}

// The schedule for whole blocks. The last block of channels may hold fewer, and keeps the loops as they are.
Stage whole_block(Func p, int block) {
    const Internal::Dimension channels = p.output_buffer().dim(0);
    return p.specialize(channels.extent() == block && channels.min() == 0);
}

// Squares are loaded by rows, transposed by shuffles of registers, and written by rows.
struct Squares {
    Var read, written;   // the dimensions that are dense in x and in the copy
    int extent, in_line; // of a square; the number of squares that a cache line of x makes

    Squares(const Var &dense_in_x, const Var &dense_in_copy, const Type &type, const Target &target)
        : read(dense_in_x), written(dense_in_copy),
          extent(std::min(kCopyTile, std::min(target.natural_vector_size<uint8_t>(), 32) / type.bytes())),
          in_line(kCacheLine / (extent * type.bytes())) {}

    Stage split(Stage s) const {
        const Parts parts;
        return s.split(written, written, parts.wi, extent, TailStrategy::ShiftInwards)
            .split(read, read, parts.ci, extent, TailStrategy::ShiftInwards)
            .vectorize(parts.wi)
            .unroll(parts.ci);
    }
    void load(Func element, const Func &copy) const {
        element.compute_at(copy, Parts().beside).reorder(read, written).vectorize(read).unroll(written);
    }
};

// As many squares as make a cache line of x come one after another, then some along w, then all channels of those, so that
// positions of x are read as streams. Channels of the copy a multiple of 4 KiB apart share a set of the first-level cache, which
// holds the lines of one square, not of two: there a long run of squares along w comes first, then the next channels.
// Measurements: docs/measurements/2026-11-29-transposing.md.
void tile(const CopyInput &c, const Func &p, Stage s, const Squares &squares, const Type &type, bool fetches) {
    const Parts parts;
    Stage few_sets = s.specialize(p.output_buffer().dim(4).stride() % (4096 / type.bytes()) == 0);
    squares.split(few_sets)
        .split(c.w, c.w, parts.beside, kLongRun / squares.extent, TailStrategy::GuardWithIf)
        .reorder({parts.wi, parts.ci, parts.beside, c.c1, c.w, c.h, c.d, c.c0, c.g, c.n});
    squares.split(s)
        .split(c.c1, c.c1, parts.beside, squares.in_line, TailStrategy::GuardWithIf)
        .split(c.w, c.w, parts.near, kRun / squares.extent, TailStrategy::GuardWithIf)
        .reorder({parts.wi, parts.ci, parts.beside, parts.near, c.c1, c.w, c.h, c.d, c.c0, c.g, c.n});
    if (fetches) {
        few_sets.never_partition_all();
        s.never_partition_all();
    }
}

// A cache line of x of each channel of a square, then the other channels of the same positions.
void tile_to_channels(const CopyInput &c, Stage s, const Squares &squares, bool fetches) {
    const Parts parts;
    squares.split(s)
        .split(c.w, c.w, parts.beside, squares.in_line, TailStrategy::GuardWithIf)
        .reorder({parts.wi, parts.ci, parts.beside, c.c0, c.w, c.c1, c.h, c.d, c.g, c.n});
    if (fetches) s.never_partition_all();
}

// Copies that fetch have loops of their own, since a test in the loops makes copies that fetch nothing slower. Loops that
// fetch wait for memory, so they are made short: they are not partitioned.
// x_ahead: how far ahead x is fetched, in bytes.
Stage fetching(const CopyInput &c, Func p, Pipeline pipeline, const Expr &x_ahead) {
    const Parts parts;
    const Expr fetches = c.fetches_x || c.fetches_copy;
    pipeline.add_custom_lowering_pass(new PrefetchCopied({c.x_name, c.fetches_x, x_ahead}, {p.name(), c.fetches_copy},
                                                         fetches, {parts.near.name(), parts.beside.name()}));
    return p.specialize(fetches);
}

} // namespace

void schedule_copy_input(const CopyInput &c, const Func &copy, const CopyShape &shape, const Target &target,
                         Pipeline pipeline) {
    const int block = shape.block, lanes = target.natural_vector_size(shape.type);
    const bool fetches = target.arch == Target::X86 && target.bits == 64; // measured there alone
    Func p = copy;
    const Expr positions = p.output_buffer().dim(1).extent();
    switch (shape.order) {
    case CopyOrder::kPlanar:
        p.reorder({c.c0, c.w, c.c1, c.h, c.d, c.g, c.n});
        if (block == 1) {
            if (shape.is_float) vectorize_long(p, c.w, positions, lanes);
            vectorize(p, c.w, positions, lanes, shape.by_parts);
        } else {
            Stage whole = whole_block(p, block);
            whole.unroll(c.c0);
            vectorize(whole, c.w, positions, lanes / block, shape.by_parts);
        }
        break;
    case CopyOrder::kChannels:
        p.reorder({c.c0, c.w, c.c1, c.h, c.d, c.g, c.n});
        vectorize(p, c.c0, p.output_buffer().dim(0).extent(), lanes, shape.by_parts);
        break;
    case CopyOrder::kTransposed:
        if (block == 1) {
            // A vector of 16 lanes is put together from single loads faster than taken apart into single stores, unless most lanes
            // stay empty; one of 8 is not.
            if (target.has_feature(Target::AVX512)) {
                by_loads(c, p.specialize(p.output_buffer().dim(1).extent() >= 8), lanes);
            }
            by_stores(c, p, lanes);
        } else {
            // Positions by sixteens: a cache line of x is still near when its next block is due.
            const Var wi = Parts().wi;
            p.split(c.w, c.w, wi, 16, TailStrategy::GuardWithIf).reorder({c.c0, wi, c.c1, c.w, c.h, c.d, c.g, c.n});
            whole_block(p, block).vectorize(c.c0).unroll(wi, 4);
        }
        break;
    case CopyOrder::kTiles: {
        const Squares squares(c.c1, c.w, shape.type, target);
        const Expr run_of_x = stride_of(c.x_name, 1) * (kRun * shape.type.bytes());
        if (fetches) tile(c, p, fetching(c, p, pipeline, run_of_x), squares, shape.type, true);
        tile(c, p, p, squares, shape.type, false);
        squares.load(c.element, p);
        break;
    }
    case CopyOrder::kTilesToChannels: {
        const Squares squares(c.w, c.c0, shape.type, target);
        if (fetches) tile_to_channels(c, fetching(c, p, pipeline, PrefetchCopied::kBytesAhead), squares, true);
        tile_to_channels(c, p, squares, false);
        squares.load(c.element, p);
        break;
    }
    case CopyOrder::kToChannels:
        // Partitioned, its loops would have many times the code, for copies of a few positions.
        p.reorder({c.c0, c.w, c.c1, c.h, c.d, c.g, c.n}).vectorize(c.c0, 4, TailStrategy::GuardWithIf);
        p.never_partition_all();
        break;
    }
}

} // namespace convtranspose
