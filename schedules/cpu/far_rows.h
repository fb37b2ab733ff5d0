// When kernels fetch the rows of a y that is far.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_FAR_ROWS_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_FAR_ROWS_H_

#include "schedule.h"

namespace convtranspose {

// Adds the pass PrefetchRows for a schedule whose tiles hold sums of several rows of a plane.
void fetch_far_rows(const ConvTranspose &c, const Tile &tile, LoweringPasses *passes);

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_FAR_ROWS_H_
