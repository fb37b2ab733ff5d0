// The schedule of the algorithm in generators/col2im_channels_generator.cpp.
#ifndef CONVTRANSPOSE_SCHEDULES_SURROUNDINGS_COL2IM_CHANNELS_H_
#define CONVTRANSPOSE_SCHEDULES_SURROUNDINGS_COL2IM_CHANNELS_H_

#include <Halide.h>

namespace convtranspose {

// The loops and Funcs that the algorithm names; its generator inherits them.
struct Col2imChannels {
    Halide::Var lane{"lane"}, vector{"vector"}; // i % lanes, i / lanes
    Halide::Var i{"i"}, qw{"qw"}, rw{"rw"}, oh{"oh"}, od{"od"}, n{"n"};
    Halide::RDom tap;
    Halide::Func sum{"sum"};
};

// Sums in vectors of `lanes`. The end of a run is stored by a part of a vector, so the target must have masked stores.
void schedule_col2im_channels(const Col2imChannels &c, const Halide::Func &y, int lanes);

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_SURROUNDINGS_COL2IM_CHANNELS_H_
