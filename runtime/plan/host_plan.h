// A plan for a problem on the CPU: the plan of its layer without unit axes, and what views of x and y with other dimensions need.
#ifndef CONVTRANSPOSE_RUNTIME_PLAN_HOST_PLAN_H_
#define CONVTRANSPOSE_RUNTIME_PLAN_HOST_PLAN_H_

#include <atomic>
#include <memory>
#include <vector>

#include "plan/layer_plan.h"
#include "plan/problem_plan.h"

namespace convtranspose {

class HostPlan : public ProblemPlan {
  public:
    // As LayerPlan::create().
    static Status create(const Geometry &geometry, const PlanSettings &settings, const QuantizationValues *quantization,
                         const LayerWeights &weights, std::unique_ptr<ProblemPlan> *plan);
    ~HostPlan() override { delete with_gaps_.load(); }

    Status reshape(const Geometry &geometry, std::unique_ptr<ProblemPlan> *plan) const override;
    Status run(const RunTensors &tensors, void *workspace) const override;

    bool weights_at_run_time() const override { return layer_->weights_at_run_time(); }
    const std::optional<QuantizationValues> &quantization() const override { return layer_->quantization(); }
    std::size_t workspace_bytes() const override { return layer_->workspace_bytes(); }
    std::size_t packed_bytes() const override;
    int threads() const override { return layer_->settings().parallel.threads; }
    bool is_on_device() const override { return false; }
    const char *isa() const override;
    const char *variant() const override { return layer_->direct().variant().name; }
    const char *algorithm() const override { return layer_->algorithm(); }
    const std::vector<const char *> &able() const override { return layer_->able(); }
    const std::vector<const char *> &kernels() const override { return layer_->kernels(); }
    const std::string &key() const override { return layer_->key(); }
    const std::string &explanation() const override { return layer_->explanation(); }

  private:
    struct KeptWeights {
        Block w, b; // b: empty if there is none
    };

    explicit HostPlan(const Geometry &geometry) : geometry_(geometry) {}
    LayerWeights kept_weights() const;
    bool others_are_units(const Geometry &geometry) const;
    bool has_gaps_in_rows(const RunTensors &tensors) const;
    Status plan_with_gaps(const LayerPlan **made) const;

    const Geometry geometry_;
    std::unique_ptr<LayerPlan> layer_;
    std::vector<std::size_t> dimensions_; // of x and y, that layer_ is for: without unit axes
    // Where those are not all, and weights are constant: as they came, for an input size that has more along the other axes.
    std::shared_ptr<const KeptWeights> kept_;
    // The plan with all dimensions, made by the first run of a view that has gaps along the last axis that is left.
    mutable std::atomic<LayerPlan *> with_gaps_{nullptr};
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_PLAN_HOST_PLAN_H_
