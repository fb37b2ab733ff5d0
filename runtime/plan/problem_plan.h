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

class ProblemPlan {
  public:
    virtual ~ProblemPlan() = default;

    // Plans the problem for other extents of x, with the same weights.
    virtual Status reshape(const Geometry &geometry, std::unique_ptr<ProblemPlan> *plan) const = 0;
    // Runs the plan. The tensors are checked, and have all dimensions of the problem. workspace: workspace_bytes() bytes of
    // host memory, aligned to 64; null: the plan's own.
    virtual Status run(const RunTensors &tensors, void *workspace) const = 0;

    virtual bool weights_at_run_time() const = 0;
    virtual const QuantizationValues *quantization() const = 0; // null: floats, or it arrives with each run
    virtual std::size_t workspace_bytes() const = 0;
    virtual std::size_t packed_bytes() const = 0;
    virtual int threads() const = 0;
    virtual bool is_on_device() const = 0;
    virtual const char *isa() const = 0; // or the kind of the device
    virtual const char *variant() const = 0;
    virtual const char *algorithm() const = 0;
    virtual const std::vector<AbleCandidate> &able() const = 0;
    virtual const CostProfile *profile() const = 0;               // null: estimates go by none
    virtual const std::vector<const char *> &kernels() const = 0; // names of all kernels that a run may call
    virtual TuningRecord record() const = 0;                      // of what the plan does
    virtual const std::string &explanation() const = 0;
};

// Makes a plan whose weights and x are of one kind. The arguments are those of LayerPlan::create().
using MakePlan = std::function<Status(const Geometry &geometry, const QuantizationValues *quantization,
                                      const LayerWeights &weights, std::unique_ptr<ProblemPlan> *plan)>;

// Plans a problem of light weights through one of f32 weights, or, if geometry.quantizes_x, of an x of u8. settings: those of the
// runs' own work.
Status plan_by_converting(const Geometry &geometry, const PlanSettings &settings,
                          const QuantizationValues *quantization, const LayerWeights &weights, const MakePlan &make,
                          std::unique_ptr<ProblemPlan> *plan);

// Plans a problem for the CPU. The arguments are those of LayerPlan::create().
Status plan_on_cpu(const Geometry &geometry, const PlanSettings &settings, const QuantizationValues *quantization,
                   const LayerWeights &weights, std::unique_ptr<ProblemPlan> *plan);

} // namespace convtranspose
