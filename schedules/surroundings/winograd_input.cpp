#include "surroundings/winograd_input.h"

namespace convtranspose {

using namespace Halide;

void schedule_winograd_input(const WinogradInput &c, Func transformed, int lanes, bool built_in) {
    Var inner("inner");
    transformed.split(c.channel, c.channel, inner, lanes, TailStrategy::ShiftInwards).vectorize(inner);
    if (built_in) {
        transformed.reorder({inner, c.ew, c.eh, c.channel, c.tw, c.th}).unroll(c.ew).unroll(c.eh);
        Func patch = c.patch;
        patch.compute_at(transformed, c.channel).vectorize(c.channel).unroll(c.pw).unroll(c.ph);
        transformed.never_partition_all();
    } else {
        transformed.reorder({inner, c.channel, c.ew, c.eh, c.tw, c.th});
    }
}

} // namespace convtranspose
