// Plans that measure: candidates whose estimates are near the least are timed on the layer itself.
#ifndef CONVTRANSPOSE_RUNTIME_PLAN_MEASURED_PLAN_H_
#define CONVTRANSPOSE_RUNTIME_PLAN_MEASURED_PLAN_H_

#include <memory>

#include "plan/layer_plan.h"

namespace convtranspose {

// Does what LayerPlan::create() does, with the fastest of the candidates that settings.measuring_ms leaves time to run. Nothing
// is timed if a variant is named, if there is a tuning record, if this process has measured the layer before, or if the
// layer is estimated to take too long for three runs.
Status plan_by_measuring(const Geometry &geometry, const PlanSettings &settings, const QuantizationValues *quantization,
                         const LayerWeights &weights, std::unique_ptr<LayerPlan> *plan);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_PLAN_MEASURED_PLAN_H_
