#include "surroundings/winograd_output.h"

namespace convtranspose {

using namespace Halide;

void schedule_winograd_output(const WinogradOutput &c, Func y, int lanes, int outputs_w) {
    Var inner("inner");
    const OutputImageParam out = y.output_buffer();
    Stage whole = y.specialize(out.dim(1).extent() == outputs_w && out.dim(3).extent() == 2);
    whole.split(c.channel, c.channel, inner, lanes, TailStrategy::ShiftInwards)
        .vectorize(inner)
        .reorder({inner, c.bw, c.bh, c.channel, c.tw, c.th})
        .unroll(c.bw)
        .unroll(c.bh);
    y.split(c.channel, c.channel, inner, lanes, TailStrategy::ShiftInwards)
        .vectorize(inner)
        .reorder({inner, c.bw, c.bh, c.channel, c.tw, c.th});
}

} // namespace convtranspose
