#include "schedule.h"

namespace convtranspose {

namespace {

void schedule_reference(const ConvTranspose &c, const Tile &, OutputOrder) {
    // Inlining would recompute the whole sum for nothing, and a whole image of sums would need memory: one element at a time.
    Halide::Func sum = c.sum;
    sum.compute_at(c.y, c.oc);
}

} // namespace

const ScheduleFamily kReference = {Family::kReference, Outside::kSkipped, TapOrder::kPerPhase, schedule_reference};

} // namespace convtranspose
