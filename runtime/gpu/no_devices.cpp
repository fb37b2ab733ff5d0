// This file stands in for plans on devices in a library that is built for none. No device table is ever found.
#include "base/error.h"
#include "gpu/device_plan.h"

namespace convtranspose {

namespace {

Status none() { return Status(CONVT_UNSUPPORTED, "no devices are built in"); }

} // namespace

Status DevicePlan::create(const Geometry &, const DeviceRequest &, const Allocator &, const QuantizationValues *,
                          const LayerWeights &, std::unique_ptr<ProblemPlan> *) {
    return none();
}

Status DevicePlan::reshape(const Geometry &, std::unique_ptr<ProblemPlan> *) const { return none(); }

Status DevicePlan::run(const RunTensors &, void *) const { return none(); }

std::size_t DevicePlan::packed_bytes() const { return 0; }

TuningRecord DevicePlan::record() const { return {}; }

} // namespace convtranspose
