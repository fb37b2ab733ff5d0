// The schedule of the algorithm in generators/winograd_input_generator.cpp.
#ifndef CONVTRANSPOSE_SCHEDULES_SURROUNDINGS_WINOGRAD_INPUT_H_
#define CONVTRANSPOSE_SCHEDULES_SURROUNDINGS_WINOGRAD_INPUT_H_

#include <Halide.h>

namespace convtranspose {

// The loops and Funcs that the algorithm names; its generator inherits them.
struct WinogradInput {
    Halide::Var channel{"channel"}, tw{"tw"}, th{"th"}, ew{"ew"}, eh{"eh"}, pw{"pw"}, ph{"ph"};
    Halide::Func patch{"patch"}; // x with zeros around it, at positions pw and ph
};

// All entries of a tile come one after the other. The x that they read is in the first-level cache from the first on, or, if the
// entries are built in, in registers: each element is loaded, or found to be outside, once.
void schedule_winograd_input(const WinogradInput &c, Halide::Func transformed, int lanes, bool built_in);

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_SURROUNDINGS_WINOGRAD_INPUT_H_
