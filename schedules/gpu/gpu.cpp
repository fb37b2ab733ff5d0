#include "gpu/gpu.h"

#include "gpu/passes.h"

namespace convtranspose {

using namespace Halide;

namespace {

// The digits of tile_digits(), in the order of the loops that store y.
enum TileDigit {
    kOcVector,
    kOcUnrolled,
    kPVector,
    kPUnrolled,
    kPThread,
    kOcThread,
    kPTile,
    kOcTile,
    kPart,
};

// The dimensions of the sum.
struct TileVars {
    Var ov, ou, pv, pu, pt, ot, po, oo, r;

    explicit TileVars(const ConvTranspose &c)
        : ov(c.digits[kOcVector]), ou(c.digits[kOcUnrolled]), pv(c.digits[kPVector]), pu(c.digits[kPUnrolled]),
          pt(c.digits[kPThread]), ot(c.digits[kOcThread]), po(c.digits[kPTile]), oo(c.digits[kOcTile]),
          r(c.digits[kPart]) {}
};

// y is undefined before anything is stored. The stage that says so does nothing, but on the device, so that y is asked for nowhere
// else.
void leave_undefined_on_device(Func y) { y.gpu_blocks(y.args()[0]); }

// Makes a block of a tile of y, in both families of tiles.
void make_blocks(const ConvTranspose &c) {
    Func y = c.y;
    leave_undefined_on_device(y);
    // Each element of y is stored once, by one thread.
    y.update()
        .allow_race_conditions()
        .unroll(c.o[kOcVector])
        .unroll(c.o[kOcUnrolled])
        .unroll(c.o[kPVector])
        .unroll(c.o[kPUnrolled])
        .gpu_threads(c.o[kPThread], c.o[kOcThread])
        .gpu_blocks(c.o[kPTile], c.o[kOcTile], c.o[kPart]);
}

// Takes the input channels of the reduction by chunks.
void split_chunks(const ConvTranspose &c, const GpuTile &tile, const RVar &chunks, const RVar &in_chunk) {
    Func sum = c.sum;
    sum.update().split(c.updates[0].ic, chunks, in_chunk, tile.chunk);
}

// Both operands of a block, staged in shared memory by all of its threads: a chunk of channels of the tile's columns of x and rows
// of w at a time.
void stage_in_shared_memory(const ConvTranspose &c, const GpuTile &tile, const RVar &chunks) {
    const GpuTile::Side &oc = tile.oc, &p = tile.p;
    const TileVars v(c);
    const Update &k = c.updates[0];
    const bool blocks = c.block > 1;
    Func x = k.x, w = k.w, sum = c.sum;
    Var f("f"), fx("fx"), fy("fy");
    x.compute_at(sum, chunks).store_in(MemoryType::GPUShared);
    w.compute_at(sum, chunks).store_in(MemoryType::GPUShared);
    if (tile.channels_last) {
        // Neighbouring threads store neighbouring channels: rows of those are four banks further each, not at the same one.
        x.align_storage(v.pt, p.threads + 1);
        x.fuse(k.op_ic, v.pv, f).fuse(f, v.pt, f).fuse(f, v.pu, f);
    } else {
        x.fuse(v.pv, v.pt, f).fuse(f, v.pu, f).fuse(f, k.op_ic, f);
    }
    x.split(f, f, fx, p.threads).split(f, f, fy, oc.threads).reorder(f, fx, fy).unroll(f).gpu_threads(fx, fy);
    // Vectors are a block of x, and 16 bytes of w.
    Var wv = v.ov;
    if (blocks) {
        wv = Var("v");
        x.reorder(k.op_ib, f, fx, fy).bound(k.op_ib, 0, c.block).vectorize(k.op_ib);
        w.fuse(k.op_ib, v.ov, wv).bound(k.op_ib, 0, c.block);
    }
    w.vectorize(wv)
        .fuse(v.ot, v.ou, f)
        .fuse(f, k.op_ic, f)
        .split(f, f, fx, p.threads)
        .split(f, f, fy, oc.threads)
        .reorder(wv, f, fx, fy)
        .unroll(f)
        .gpu_threads(fx, fy);
}

// States the extents that blocks and threads need, which Halide would otherwise have depend on where y ends. own: a thread's
// columns of x.
void bound_tiles(const ConvTranspose &c, const GpuTile &tile, Func own) {
    const GpuTile::Side &oc = tile.oc, &p = tile.p;
    const TileVars v(c);
    const Update &k = c.updates[0];
    Func sum = c.sum, x = k.x, w = k.w;
    sum.bound(v.ov, 0, oc.vector)
        .bound(v.ot, 0, oc.threads)
        .bound(v.ou, 0, oc.unrolled)
        .bound(v.pv, 0, p.vector)
        .bound(v.pt, 0, p.threads)
        .bound(v.pu, 0, p.unrolled)
        .bound_extent(v.po, 1)
        .bound_extent(v.oo, 1)
        .bound_extent(v.r, 1);
    x.bound(v.pv, 0, p.vector).bound(v.pt, 0, p.threads).bound(v.pu, 0, p.unrolled).bound_extent(v.po, 1);
    w.bound(v.ov, 0, oc.vector).bound(v.ot, 0, oc.threads).bound(v.ou, 0, oc.unrolled);
    for (Func operand : {x, w}) {
        operand.bound_extent(k.op_ic, tile.chunk)
            .bound_extent(k.op_taps[0], 1)
            .bound_extent(v.r, 1)
            .bound_extent(v.oo, 1);
    }
    own.bound(v.pv, 0, p.vector).bound_extent(v.pt, 1).bound(v.pu, 0, p.unrolled).bound_extent(k.op_ic, 1);
}

// For deep channels: tiles of x and w staged in shared memory, sums in registers.
// A block's threads each hold vector x unrolled sums of both sides in registers, stage a chunk of channels of x and of w in
// shared memory together, and then each multiply its rows and columns of that. Vectors lie apart by vector * threads, so that
// neighbouring threads read neighbouring vectors from shared memory: no two of them from one bank. bench/gpu/README.md says what
// ptxas makes of it.
void schedule_tiled(Pipeline pipeline, const ConvTranspose &c, const GpuTile &tile) {
    const TileVars v(c);
    const Update &k = c.updates[0];
    const RVar ici("in_chunk"), ico("chunks");
    const bool blocks = c.block > 1;
    Func sum = c.sum, x = k.x;
    make_blocks(c);
    split_chunks(c, tile, ico, ici);

    sum.compute_at(c.y, c.o[kPTile])
        .store_in(MemoryType::Register)
        .reorder(v.ov, v.ou, v.pv, v.pu, v.pt, v.ot)
        .vectorize(v.ov)
        .unroll(v.ou)
        .unroll(v.pv)
        .unroll(v.pu)
        .gpu_threads(v.pt, v.ot);
    sum.update().unroll(v.ou).unroll(v.pv).unroll(v.pu).unroll(ici).gpu_threads(v.pt, v.ot);
    if (blocks) {
        // Four products and their sum are one instruction of CUDA (dp4a).
        sum.update()
            .reorder({k.ib, v.ov, v.ou, v.pv, v.pu, ici, v.pt, v.ot, ico, k.tw})
            .atomic()
            .vectorize(k.ib)
            .unroll(v.ov);
    } else {
        sum.update().reorder({v.ov, v.ou, v.pv, v.pu, ici, v.pt, v.ot, ico, k.tw}).vectorize(v.ov);
    }

    stage_in_shared_memory(c, tile, ico);
    Func own = x.in(sum); // a thread's columns of x at one channel
    own.compute_at(sum, ici).store_in(MemoryType::Register);
    Var xv = v.pv;
    if (blocks) {
        xv = Var("v");
        own.fuse(k.op_ib, v.pv, xv).bound(k.op_ib, 0, c.block);
    }
    own.vectorize(xv).unroll(v.pt).unroll(v.pu);
    bound_tiles(c, tile, own);

    pipeline.add_custom_lowering_pass(new BoundedLoop(k.tw.name()));
    pipeline.add_custom_lowering_pass(new TwoBarriers(ico.name()));
    pipeline.add_custom_lowering_pass(new OneThreadsPart(sum.name()));
}

// For few output channels, and few input channels: each thread computes a few positions of all output channels of a tile, and reads x
// and w through the first-level cache.
void schedule_small_oc(Pipeline /*pipeline*/, const ConvTranspose &c, const GpuTile &tile) {
    const GpuTile::Side &oc = tile.oc, &p = tile.p;
    const TileVars v(c);
    const Update &k = c.updates[0];
    const RVar ici("in_chunk"), ico("chunks");
    Func sum = c.sum, x = k.x;
    make_blocks(c);
    split_chunks(c, tile, ico, ici);
    sum.compute_at(c.y, c.o[kPThread])
        .store_in(MemoryType::Register)
        .reorder(v.ov, v.ou, v.pv, v.pu)
        .vectorize(v.ov)
        .unroll(v.ou)
        .unroll(v.pv)
        .unroll(v.pu)
        .unroll(v.pt)
        .unroll(v.ot);
    sum.update()
        .reorder({v.ov, v.ou, v.pv, v.pu, v.pt, v.ot, ici, ico, k.tw})
        .vectorize(v.ov)
        .unroll(v.ou)
        .unroll(v.pv)
        .unroll(v.pu)
        .unroll(v.pt)
        .unroll(v.ot)
        .unroll(ici);
    x.compute_at(sum, ici).store_in(MemoryType::Register).unroll(v.pv).unroll(v.pu).unroll(v.pt);
    sum.bound(v.ov, 0, oc.vector)
        .bound(v.ou, 0, oc.unrolled)
        .bound_extent(v.ot, 1)
        .bound(v.pv, 0, p.vector)
        .bound(v.pu, 0, p.unrolled)
        .bound_extent(v.pt, 1)
        .bound_extent(v.po, 1)
        .bound_extent(v.oo, 1)
        .bound_extent(v.r, 1);
    x.bound(v.pv, 0, p.vector).bound(v.pu, 0, p.unrolled).bound_extent(v.pt, 1);
}

} // namespace

std::vector<Digit> tile_digits(const GpuTile &tile) {
    const GpuTile::Side &oc = tile.oc, &p = tile.p;
    std::vector<Digit> digits(kPart + 1);
    digits[kOcVector] = {"ov", Number::kOi, oc.vector, 1};
    digits[kOcThread] = {"ot", Number::kOi, oc.threads, oc.vector};
    digits[kOcUnrolled] = {"ou", Number::kOi, oc.unrolled, oc.vector * oc.threads};
    digits[kPVector] = {"pv", Number::kPosition, p.vector, 1};
    digits[kPThread] = {"pt", Number::kPosition, p.threads, p.vector};
    digits[kPUnrolled] = {"pu", Number::kPosition, p.unrolled, p.vector * p.threads};
    digits[kPTile] = {"po", Number::kPosition, 0, p.size()};
    digits[kOcTile] = {"oo", Number::kOo, 0, 1};
    digits[kPart] = {"part", Number::kPart, 0, 1};
    return digits;
}

const std::map<std::string, PhaseSchedule *> &phase_schedules() {
    static const std::map<std::string, PhaseSchedule *> all = {{"tiled", schedule_tiled},
                                                               {"small_oc", schedule_small_oc}};
    return all;
}

std::vector<Digit> each_digits(int channel_threads, int position_threads) {
    return {{"mt", Number::kOo, channel_threads, 1},
            {"pt", Number::kPosition, position_threads, 1},
            {"po", Number::kPosition, 0, position_threads},
            {"mo", Number::kOo, 0, channel_threads}};
}

void schedule_each(const ConvTranspose &c) {
    Func y = c.y, sum = c.sum;
    leave_undefined_on_device(y);
    // Each element of y is stored once, by one thread.
    y.update().allow_race_conditions().gpu_threads(c.o[0], c.o[1]).gpu_blocks(c.o[2], c.o[3]);
    sum.compute_at(c.y, c.o[0]).store_in(MemoryType::Register);
    for (const Var &digit : c.digits) {
        sum.bound_extent(digit, 1);
    }
}

} // namespace convtranspose
