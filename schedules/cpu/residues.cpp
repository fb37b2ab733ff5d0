#include "schedule.h"

#include <algorithm>

namespace convtranspose {

using namespace Halide;

// AMD EPYC (Zen 3, 2 cores, AVX2), one thread, f32, of an FMA peak of 103 GFLOP/s: 83% on 2x2 stride 2 of 128 to 64 channels in 3-D,
// 81% on 3x3 stride 2 of 128 to 64 channels (3x2, one row of residues at a time), 69% on 9x9 stride 3 to one (1x3, likewise), 68% on
// 9x9 stride 2 to one (1x3, all residues), 69% on 16 taps stride 8 (1x1). 16 registers hold the sums of three channels of all
// residues of 2x2 by one vector, whose weights are then loaded for one multiply-add each; of one row of residues by two, for two:
// 13 loads for 12 multiply-adds of 2x2 stride 2, and 8. 3x2 by rows takes 0.77 to 0.97 of the time of 3x1 of both (eight layers).
//
// The weights of all taps lie side by side for an input channel (kernel_contract/kernel_table.h: has_taps_inside), so that a step reads them at
// constant distances from one address. Where each tap had its own, the step loaded most of the addresses from the stack (9x9 stride
// 3: 81 multiply-adds in 270 instructions, 197 so): 0.74 of the time there, 0.79 on 16 taps stride 8, 0.93 on 9x9 stride 2.
void schedule_residues(const ConvTranspose &c, const Tile &tile) {
    const AxisVars &w = c.axes[0], &h = c.axes[1], &d = c.axes[2];
    const Loops &loops = tile.loops;
    const int stride_w = c.stride[0], stride_h = c.stride[1];
    Func y = c.y, sum = c.sum;
    Var oo("oo"), oi("oi"), qo("qo"), qi("qi"), rw("rw"), qh("qh"), rh("rh");
    const std::vector<Var> registers = {w.q, w.r, h.r, c.oi};

    y.split(c.oc, oo, oi, tile.oc, last_tile(loops.whole_oc))
        .split(w.o, qo, qi, tile.q * stride_w, last_tile(loops.whole_w));
    // Either way residues of h are unrolled: taps are constants only where the residue is one.
    if (stride_h > 0) {
        y.split(h.o, qh, rh, stride_h, last_tile(loops.whole_h))
            .reorder({qi, rh, oi, qo, qh, d.q, d.r, oo, c.g, c.n})
            .unroll(rh);
    } else {
        y.reorder({qi, oi, qo, h.r, h.q, d.q, d.r, oo, c.g, c.n}).unroll(h.r);
    }
    y.unroll(oi);
    // Xeon (Granite Rapids), layers of which a row does not fill a tile: 0.4 to 0.9 of the time.
    if (stride_w > 1 && tile.masked_rows && (!loops.whole_w || c.half_row.defined())) {
        store_rows(c, tile, y, qi, stride_h > 0 ? rh : oi);
    } else {
        y.split(qi, qi, rw, stride_w).reorder(rw, qi).vectorize(qi, tile.lanes).unroll(rw).unroll(qi);
    }

    sum.compute_at(y, qo)
        .bound_extent(c.oi, tile.oc)
        .bound_extent(c.oo, 1)
        .bound_extent(w.q, tile.q)
        .bound_extent(w.r, stride_w)
        .bound_extent(h.q, 1)
        .bound_extent(h.r, std::max(stride_h, 1))
        .reorder_storage({w.q, w.r, h.r, c.oi})
        .reorder({w.q, w.r, h.r, c.oi});
    keep_in_registers(sum, registers, tile.lanes);
    const Update &k = c.updates[0];
    reduce_blocks(c, k, sum.update());
    sum.update().reorder(inner_to_outer(k, registers, {}, loops));
    keep_in_registers(sum.update(), registers, tile.lanes);
    unroll_reduction(k, loops, sum.update());
}

} // namespace convtranspose
