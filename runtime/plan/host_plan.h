// The plan of a problem on the CPU holds the plan of its layer without unit axes, and one for views of x and y that need all
// axes.
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
    // The arguments are those of LayerPlan::create().
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
    const std::vector<AbleCandidate> &able() const override { return layer_->able(); }
    const CostProfile *profile() const override { return layer_->settings().profile; }
    const std::vector<const char *> &kernels() const override { return layer_->kernels(); }
    const std::string &key() const override { return layer_->key(); }
    TuningRecord record() const override { return layer_->record(); }
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
    std::vector<std::size_t> dimensions_; // the dimensions of x and y that layer_ has, without unit axes
    // The weights are kept as they were given, if they are constant and dimensions_ are not all: another input size may need
    // the other axes.
    std::shared_ptr<const KeptWeights> kept_;
    // This plan has all dimensions. The first run of a view with gaps along the last axis in dimensions_ makes it.
    mutable std::atomic<LayerPlan *> with_gaps_{nullptr};
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_PLAN_HOST_PLAN_H_
