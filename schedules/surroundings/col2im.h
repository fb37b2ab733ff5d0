// The schedule of the algorithm in generators/col2im_generator.cpp.
#ifndef CONVTRANSPOSE_SCHEDULES_SURROUNDINGS_COL2IM_H_
#define CONVTRANSPOSE_SCHEDULES_SURROUNDINGS_COL2IM_H_

#include <Halide.h>

namespace convtranspose {

// The loops and Funcs that the algorithm names; its generator inherits them.
struct Col2im {
    Halide::Var lane{"lane"}, vector{"vector"}; // qw % lanes, qw / lanes
    Halide::Var ow{"ow"}, qw{"qw"}, rw{"rw"}, oh{"oh"}, od{"od"}, oc{"oc"}, n{"n"};
    Halide::RDom tap;
    Halide::Func sum{"sum"}, row{"row"};
};

// Sums `lanes` outputs of a phase at once, in vectors. A stride_w of 0 stands for any.
void schedule_col2im(const Col2im &c, const Halide::Func &y, int lanes, int stride_w);

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_SURROUNDINGS_COL2IM_H_
