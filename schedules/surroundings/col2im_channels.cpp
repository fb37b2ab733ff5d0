#include "surroundings/col2im_channels.h"

namespace convtranspose {

using namespace Halide;

void schedule_col2im_channels(const Col2imChannels &c, const Func &y, int lanes) {
    constexpr int kPositions = 8; // at once
    Func out = y, sum = c.sum;
    Var outer("outer"), inner("inner"), positions("positions"), position("position");
    out.never_partition_all();
    // Fewer positions are computed one at a time.
    Stage many = out.specialize(out.output_buffer().dim(2).extent() >= kPositions);
    many.split(c.qw, positions, position, kPositions, TailStrategy::ShiftInwards);
    const auto in_vectors = [&](auto &stage) {
        stage.split(c.i, outer, inner, lanes, TailStrategy::GuardWithIf)
            .reorder({inner, position, outer, c.rw, positions, c.oh, c.od, c.n})
            .vectorize(inner)
            .unroll(position);
    };
    in_vectors(many);
    out.split(c.qw, positions, position, 1);
    in_vectors(out);
    sum.compute_at(out, outer).bound_extent(c.lane, lanes).bound_extent(c.vector, 1).vectorize(c.lane).unroll(c.qw);
    sum.update().reorder({c.lane, c.qw, c.tap.x, c.tap.y, c.tap.z, c.vector, c.rw}).vectorize(c.lane).unroll(c.qw);
}

} // namespace convtranspose
