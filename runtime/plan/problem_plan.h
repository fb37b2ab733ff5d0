// The C interface holds such a plan, on the CPU or on a device.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "problem/geometry.h"
#include "problem/quantization.h"

namespace convtranspose {

class LayerPlan;

// These are facts of a plan, known since it was made.
struct PlanFacts {
    bool weights_at_run_time = false, is_on_device = false;
    const QuantizationValues *quantization = nullptr; // null: floats, or it arrives with each run
    std::size_t workspace_bytes = 0, packed_bytes = 0;
    int threads = 1;
    const char *isa = "", *variant = "", *algorithm = ""; // isa: or the kind of the device
    const CostProfile *profile = nullptr;                 // null: estimates go by none
};

class ProblemPlan {
  public:
    virtual ~ProblemPlan() = default;

    const PlanFacts &facts() const { return facts_; }

    // Plans the problem for other extents of x, with the same weights.
    virtual Status reshape(const Geometry &geometry, std::unique_ptr<ProblemPlan> *plan) const = 0;
    // Runs the plan. The tensors are checked, and have all dimensions of the problem. workspace: facts().workspace_bytes bytes
    // of host memory, aligned to 64; null: the plan's own.
    virtual Status run(const RunTensors &tensors, void *workspace) const = 0;

    virtual const std::vector<AbleCandidate> &able() const = 0;
    virtual const std::vector<const char *> &kernels() const = 0; // names of all kernels that a run may call
    virtual TuningRecord record() const = 0;                      // of what the plan does
    virtual std::string explain() const = 0;                      // a description with reasons, for people

  protected:
    PlanFacts facts_; // made with the plan
};

// Makes a plan whose weights and x are of one kind. The arguments are those of LayerPlan::create().
using MakePlan =
    std::function<Status(const Geometry &geometry, const LayerWeights &weights, std::unique_ptr<ProblemPlan> *plan)>;

// Plans a problem of light weights through one of f32 weights, or, if geometry.quantizes_x, of an x of u8. settings: those of the
// runs' own work.
Status plan_by_converting(const Geometry &geometry, const PlanSettings &settings, const LayerWeights &weights,
                          const MakePlan &make, std::unique_ptr<ProblemPlan> *plan);

// Plans a problem for the CPU. The arguments are those of LayerPlan::create().
Status plan_on_cpu(const Geometry &geometry, const PlanSettings &settings, const LayerWeights &weights,
                   std::unique_ptr<ProblemPlan> *plan);

// Does what LayerPlan::create() does, with the fastest of the candidates that settings.measuring_ms leaves time to run. Nothing
// is timed if a variant is named, if there is a tuning record, if this process has measured the layer before, or if the
// layer is estimated to take too long for three runs.
Status plan_by_measuring(const Geometry &geometry, const PlanSettings &settings, const LayerWeights &weights,
                         std::unique_ptr<LayerPlan> *plan);

} // namespace convtranspose
