// This file stands in for plans on devices in a library that is built for none. No device table is ever found.
#include "base/error.h"
#include "gpu/device_plan.h"

namespace convtranspose {

Status plan_on_device(const Geometry &, const DeviceRequest &, const Allocator &, const LayerWeights &,
                      std::unique_ptr<ProblemPlan> *) {
    return Status(CONVT_UNSUPPORTED, "no devices are built in");
}

} // namespace convtranspose
