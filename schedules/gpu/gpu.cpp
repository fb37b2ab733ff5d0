#include "gpu/gpu.h"

#include "gpu/passes.h"

namespace convtranspose {

using namespace Halide;

namespace {

// y is undefined before anything is stored. The stage that says so does nothing, but on the device, so that y is asked for nowhere
// else.
void leave_undefined_on_device(Func y) { y.gpu_blocks(y.args()[0]); }

// A block is a tile of y, in both families by phase.
void make_blocks(const ByPhase &c) {
    Func y = c.y;
    leave_undefined_on_device(y);
    // Each element of y is stored once, by one thread.
    y.update()
        .allow_race_conditions()
        .unroll(c.o[0])
        .unroll(c.o[1])
        .unroll(c.o[2])
        .unroll(c.o[3])
        .gpu_threads(c.o[4], c.o[5])
        .gpu_blocks(c.o[6], c.o[7], c.o[8]);
}

// Both operands of a block, staged in shared memory by all of its threads: a chunk of channels of the tile's columns of x and rows
// of w at a time.
void stage_in_shared_memory(const ByPhase &c, const RVar &chunks, bool channels_last) {
    const ByPhaseInputs::Side &oc = c.oc_side, &p = c.p_side;
    const bool blocks = c.block > 1;
    Func x = c.x, w = c.w, sum = c.sum;
    Var f("f"), fx("fx"), fy("fy");
    x.compute_at(sum, chunks).store_in(MemoryType::GPUShared);
    w.compute_at(sum, chunks).store_in(MemoryType::GPUShared);
    if (channels_last) {
        // Neighbouring threads store neighbouring channels: rows of those are four banks further each, not at the same one.
        x.align_storage(c.pt, p.threads + 1);
        x.fuse(c.ic, c.pv, f).fuse(f, c.pt, f).fuse(f, c.pu, f);
    } else {
        x.fuse(c.pv, c.pt, f).fuse(f, c.pu, f).fuse(f, c.ic, f);
    }
    x.split(f, f, fx, p.threads).split(f, f, fy, oc.threads).reorder(f, fx, fy).unroll(f).gpu_threads(fx, fy);
    // Vectors are a block of x, and 16 bytes of w.
    Var wv = c.ov;
    if (blocks) {
        wv = Var("v");
        x.reorder(c.b, f, fx, fy).bound(c.b, 0, c.block).vectorize(c.b);
        w.fuse(c.b, c.ov, wv).bound(c.b, 0, c.block);
    }
    w.vectorize(wv)
        .fuse(c.ot, c.ou, f)
        .fuse(f, c.ic, f)
        .split(f, f, fx, p.threads)
        .split(f, f, fy, oc.threads)
        .reorder(wv, f, fx, fy)
        .unroll(f)
        .gpu_threads(fx, fy);
}

// States the extents that blocks and threads need, which Halide would otherwise have depend on where y ends. own: a thread's
// columns of x.
void bound_tiles(const ByPhase &c, Func own) {
    const ByPhaseInputs::Side &oc = c.oc_side, &p = c.p_side;
    Func sum = c.sum, x = c.x, w = c.w;
    sum.bound(c.ov, 0, oc.vector)
        .bound(c.ot, 0, oc.threads)
        .bound(c.ou, 0, oc.unrolled)
        .bound(c.pv, 0, p.vector)
        .bound(c.pt, 0, p.threads)
        .bound(c.pu, 0, p.unrolled)
        .bound_extent(c.po, 1)
        .bound_extent(c.oo, 1)
        .bound_extent(c.r, 1);
    x.bound(c.pv, 0, p.vector).bound(c.pt, 0, p.threads).bound(c.pu, 0, p.unrolled).bound_extent(c.po, 1);
    w.bound(c.ov, 0, oc.vector).bound(c.ot, 0, oc.threads).bound(c.ou, 0, oc.unrolled);
    for (Func operand : {x, w}) {
        operand.bound_extent(c.ic, c.chunk).bound_extent(c.t, 1).bound_extent(c.r, 1).bound_extent(c.oo, 1);
    }
    own.bound(c.pv, 0, p.vector).bound_extent(c.pt, 1).bound(c.pu, 0, p.unrolled).bound_extent(c.ic, 1);
}

} // namespace

// A block's threads each hold vector x unrolled sums of both sides in registers, stage a chunk of channels of x and of w in
// shared memory together, and then each multiply its rows and columns of that. Vectors lie apart by vector * threads, so that
// neighbouring threads read neighbouring vectors from shared memory: no two of them from one bank. bench/gpu/README.md says what
// ptxas makes of it.
void schedule_tiled(Pipeline pipeline, const ByPhase &c, bool channels_last) {
    const RVar ici = c.k[0], ico = c.k[1];
    const bool blocks = c.block > 1;
    Func sum = c.sum, x = c.x;
    make_blocks(c);

    sum.compute_at(c.y, c.o[6])
        .store_in(MemoryType::Register)
        .reorder(c.ov, c.ou, c.pv, c.pu, c.pt, c.ot)
        .vectorize(c.ov)
        .unroll(c.ou)
        .unroll(c.pv)
        .unroll(c.pu)
        .gpu_threads(c.pt, c.ot);
    sum.update().unroll(c.ou).unroll(c.pv).unroll(c.pu).unroll(ici).gpu_threads(c.pt, c.ot);
    if (blocks) {
        // Four products and their sum are one instruction of CUDA (dp4a).
        sum.update()
            .reorder({c.k[3], c.ov, c.ou, c.pv, c.pu, ici, c.pt, c.ot, ico, c.k[2]})
            .atomic()
            .vectorize(c.k[3])
            .unroll(c.ov);
    } else {
        sum.update().reorder({c.ov, c.ou, c.pv, c.pu, ici, c.pt, c.ot, ico, c.k[2]}).vectorize(c.ov);
    }

    stage_in_shared_memory(c, ico, channels_last);
    Func own = x.in(sum); // a thread's columns of x at one channel
    own.compute_at(sum, ici).store_in(MemoryType::Register);
    Var xv = c.pv;
    if (blocks) {
        xv = Var("v");
        own.fuse(c.b, c.pv, xv).bound(c.b, 0, c.block);
    }
    own.vectorize(xv).unroll(c.pt).unroll(c.pu);
    bound_tiles(c, own);

    pipeline.add_custom_lowering_pass(new BoundedLoop(c.k[2].name()));
    pipeline.add_custom_lowering_pass(new TwoBarriers(ico.name()));
    pipeline.add_custom_lowering_pass(new OneThreadsPart(sum.name()));
}

void schedule_small_oc(const ByPhase &c) {
    const ByPhaseInputs::Side &oc = c.oc_side, &p = c.p_side;
    const RVar ici = c.k[0];
    Func sum = c.sum, x = c.x;
    make_blocks(c);
    sum.compute_at(c.y, c.o[4])
        .store_in(MemoryType::Register)
        .reorder(c.ov, c.ou, c.pv, c.pu)
        .vectorize(c.ov)
        .unroll(c.ou)
        .unroll(c.pv)
        .unroll(c.pu)
        .unroll(c.pt)
        .unroll(c.ot);
    sum.update()
        .reorder({c.ov, c.ou, c.pv, c.pu, c.pt, c.ot, ici, c.k[1], c.k[2]})
        .vectorize(c.ov)
        .unroll(c.ou)
        .unroll(c.pv)
        .unroll(c.pu)
        .unroll(c.pt)
        .unroll(c.ot)
        .unroll(ici);
    x.compute_at(sum, ici).store_in(MemoryType::Register).unroll(c.pv).unroll(c.pu).unroll(c.pt);
    sum.bound(c.ov, 0, oc.vector)
        .bound(c.ou, 0, oc.unrolled)
        .bound_extent(c.ot, 1)
        .bound(c.pv, 0, p.vector)
        .bound(c.pu, 0, p.unrolled)
        .bound_extent(c.pt, 1)
        .bound_extent(c.po, 1)
        .bound_extent(c.oo, 1)
        .bound_extent(c.r, 1);
    x.bound(c.pv, 0, p.vector).bound(c.pu, 0, p.unrolled).bound_extent(c.pt, 1);
}

void schedule_each(const ByOutput &c) {
    Func y = c.y, sum = c.sum;
    leave_undefined_on_device(y);
    // Each element of y is stored once, by one thread.
    y.update().allow_race_conditions().gpu_threads(c.o[0], c.o[1]).gpu_blocks(c.o[2], c.o[3]);
    sum.compute_at(c.y, c.o[0]).store_in(MemoryType::Register).bound_extent(c.m, 1).bound_extent(c.p, 1);
}

} // namespace convtranspose
