// The algorithm with no schedule at all, as families, to be compared like any other.
#ifndef CONVTRANSPOSE_TESTS_ALGORITHM_UNSCHEDULED_H_
#define CONVTRANSPOSE_TESTS_ALGORITHM_UNSCHEDULED_H_

#include "schedules/schedule.h"

namespace convtranspose {

inline void leave_unscheduled(const ConvTranspose &, const Tile &, OutputOrder) {}

inline const ScheduleFamily kUnscheduled = {Family::kReference, Outside::kSkipped, TapOrder::kPerPhase,
                                            leave_unscheduled};
inline const ScheduleFamily kUnscheduledShared = {Family::kSmallOc, Outside::kNeverReads, TapOrder::kShared,
                                                  leave_unscheduled};

} // namespace convtranspose

#endif // CONVTRANSPOSE_TESTS_ALGORITHM_UNSCHEDULED_H_
