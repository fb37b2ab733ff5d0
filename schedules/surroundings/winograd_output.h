// The schedule of the algorithm in generators/winograd_output_generator.cpp.
#ifndef CONVTRANSPOSE_SCHEDULES_SURROUNDINGS_WINOGRAD_OUTPUT_H_
#define CONVTRANSPOSE_SCHEDULES_SURROUNDINGS_WINOGRAD_OUTPUT_H_

#include <Halide.h>

namespace convtranspose {

// The loops and Funcs that the algorithm names; its generator inherits them.
struct WinogradOutput {
    Halide::Var channel{"channel"}, bw{"bw"}, bh{"bh"}, tw{"tw"}, th{"th"};
};

// A whole tile has outputs_w outputs along w. At the end of an axis y may have one output alone.
void schedule_winograd_output(const WinogradOutput &c, Halide::Func y, int lanes, int outputs_w);

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_SURROUNDINGS_WINOGRAD_OUTPUT_H_
