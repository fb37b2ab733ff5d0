// The schedule of the algorithm in generators/post_ops_generator.cpp.
#ifndef CONVTRANSPOSE_SCHEDULES_SURROUNDINGS_POST_OPS_H_
#define CONVTRANSPOSE_SCHEDULES_SURROUNDINGS_POST_OPS_H_

#include <Halide.h>

namespace convtranspose {

// Computes in vectors of `lanes` along i, the dense dimension of y.
void schedule_post_ops(Halide::Func y, const Halide::Var &i, int lanes);

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_SURROUNDINGS_POST_OPS_H_
