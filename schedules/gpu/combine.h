// The schedule of the algorithm in generators/gpu_combine_generator.cpp.
#ifndef CONVTRANSPOSE_SCHEDULES_GPU_COMBINE_H_
#define CONVTRANSPOSE_SCHEDULES_GPU_COMBINE_H_

#include <Halide.h>

namespace convtranspose {

// The threads of a block, each of which stores one element of y. The algorithm numbers elements by thread and block.
constexpr int kCombineThreads = 256;

// The loops and Funcs that the algorithm names; its generator inherits them.
struct Combine {
    Halide::Var i{"i"}, j{"j"};          // an element: its number, and its place in y
    Halide::Func sum{"sum"}, out{"out"}; // of i
    Halide::RDom o;                      // (thread, block)
};

void schedule_combine(const Combine &c, const Halide::Func &y, Halide::Pipeline pipeline, const Halide::Target &target);

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_GPU_COMBINE_H_
