#include "surroundings/col2im.h"

namespace convtranspose {

using namespace Halide;

void schedule_col2im(const Col2im &c, const Func &y, int lanes, int stride_w) {
    Func out = y, row = c.row, sum = c.sum;
    Var outer("outer"), inner("inner"), ow_phase("phase");
    if (stride_w) {
        // The phases are interleaved on the stack, so that the end of a row is stored in one go too.
        out.split(c.ow, outer, inner, lanes * stride_w, TailStrategy::GuardWithIf)
            .reorder({inner, outer, c.oh, c.od, c.oc, c.n})
            .vectorize(inner, lanes);
        row.compute_at(out, outer)
            .bound_extent(c.ow, lanes * stride_w)
            .align_bounds(c.ow, lanes * stride_w)
            .split(c.ow, inner, ow_phase, stride_w)
            .vectorize(inner)
            .unroll(ow_phase);
    } else {
        out.split(c.qw, outer, inner, lanes, TailStrategy::GuardWithIf)
            .reorder({inner, outer, c.rw, c.oh, c.od, c.oc, c.n})
            .vectorize(inner);
    }
    out.never_partition_all();
    out.specialize(out.output_buffer().dim(0).stride() == 1);
    sum.compute_at(stride_w ? row : out, stride_w ? Var::outermost() : outer)
        .bound_extent(c.lane, lanes)
        .bound_extent(c.vector, 1)
        .vectorize(c.lane);
    sum.update().reorder({c.lane, c.tap.x, c.tap.y, c.tap.z, c.vector, c.rw}).vectorize(c.lane);
    if (stride_w) {
        sum.bound_extent(c.rw, stride_w).unroll(c.rw);
        sum.update().unroll(c.rw);
    }
}

} // namespace convtranspose
