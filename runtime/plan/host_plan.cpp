// The plan of a problem on the CPU holds the plan of its layer without unit axes, and one for views of x and y that need all
// axes.
#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <vector>

#include "algorithms/layer_plan.h"
#include "plan/explain.h"
#include "plan/problem_plan.h"

namespace convtranspose {

class HostPlan : public ProblemPlan {
  public:
    ~HostPlan() override { delete with_gaps_.load(); }

    Status reshape(const Geometry &geometry, std::unique_ptr<ProblemPlan> *plan) const override {
        if (!others_are_units(geometry)) {
            return plan_on_cpu(geometry, layer_->settings(), kept_weights(), plan);
        }
        std::unique_ptr<HostPlan> own(new HostPlan(geometry));
        own->dimensions_ = dimensions_;
        own->kept_ = kept_;
        TRY(layer_->reshape(with_dimensions(geometry, dimensions_), layer_->settings().parallel, &own->layer_));
        own->know();
        *plan = std::move(own);
        return Status();
    }

    Status run(const RunTensors &tensors, void *workspace) const override {
        if (has_gaps_in_rows(tensors)) {
            const LayerPlan *whole = nullptr;
            TRY(plan_with_gaps(&whole));
            return whole->run(tensors, nullptr);
        }
        if (dimensions_.size() == geometry_.x_shape.size()) return layer_->run(tensors, workspace);
        RunTensors own = tensors;
        for (RunTensor *const tensor : {&own.x, &own.y, &own.residual}) {
            if (tensor->strides.size() > 0) tensor->strides = strides_of(tensor->strides, dimensions_);
        }
        return layer_->run(own, workspace);
    }

    const std::vector<AbleCandidate> &able() const override { return layer_->able(); }
    const std::vector<const char *> &kernels() const override { return layer_->kernels(); }
    TuningRecord record() const override { return layer_->record(); }
    std::string explain() const override { return convtranspose::explain(*layer_); }

  private:
    friend Status plan_on_cpu(const Geometry &, const PlanSettings &, const LayerWeights &,
                              std::unique_ptr<ProblemPlan> *);

    struct KeptWeights {
        Block w, b; // b: empty if there is none
    };

    explicit HostPlan(const Geometry &geometry) : geometry_(geometry) {}

    // Sets facts_, when everything else is.
    void know() {
        const Variant &variant = layer_->direct().variant();
        facts_.weights_at_run_time = layer_->weights_at_run_time();
        facts_.quantization = layer_->quantization();
        facts_.workspace_bytes = layer_->workspace_bytes();
        facts_.packed_bytes = layer_->packed_bytes() + (kept_ ? kept_->w.size() + kept_->b.size() : 0);
        facts_.threads = layer_->settings().parallel.threads;
        facts_.isa = isa_name(variant.isa);
        facts_.variant = variant.name;
        facts_.algorithm = layer_->algorithm();
        facts_.profile = layer_->settings().profile;
    }

    LayerWeights kept_weights() const {
        if (!kept_) return {nullptr, nullptr, layer_->quantization()};
        return {kept_->w.data(), kept_->b.data(), layer_->quantization()};
    }

    // Returns true if the axes that are not in dimensions_ have one position each.
    bool others_are_units(const Geometry &geometry) const {
        const std::size_t first = geometry.dimensions().first_axis;
        for (std::size_t a = 0; a < geometry.axes.size(); a++) {
            const bool is_there = std::find(dimensions_.begin(), dimensions_.end(), first + a) != dimensions_.end();
            if (!is_there && !is_unit(geometry.axes[a])) return false;
        }
        return true;
    }

    // Returns true if channels are first and x or y has gaps between positions of the last axis in dimensions_. Kernels read and
    // write rows of that axis densely.
    bool has_gaps_in_rows(const RunTensors &t) const {
        const std::size_t last = dimensions_.back();
        if (geometry_.layout != CONVT_CHANNELS_FIRST || last + 1 == geometry_.x_shape.size()) return false;
        const bool in_x = geometry_.x_shape[last] > 1 && t.x.strides[last] != 1;
        const bool in_y = geometry_.y_shape[last] > 1 &&
                          (t.y.strides[last] != 1 || (t.residual.data && t.residual.strides[last] != 1));
        return in_x || in_y;
    }

    // Returns the plan for such views, which has the settings and weights of the other. Threads that race to make it make one each.
    Status plan_with_gaps(const LayerPlan **made) const {
        LayerPlan *known = with_gaps_.load(std::memory_order_acquire);
        if (!known) {
            std::vector<std::size_t> all(geometry_.x_shape.size());
            std::iota(all.begin(), all.end(), std::size_t{0});
            // A kernel that was named may not support the layer, and a run does not measure.
            std::unique_ptr<LayerPlan> own;
            TRY(LayerPlan::create(with_dimensions(geometry_, all), for_layers(layer_->settings()), kept_weights(),
                                  &own));
            if (with_gaps_.compare_exchange_strong(known, own.get(), std::memory_order_acq_rel)) known = own.release();
        }
        *made = known;
        return Status();
    }

    const Geometry geometry_;
    std::unique_ptr<LayerPlan> layer_;
    std::vector<std::size_t> dimensions_; // the dimensions of x and y that layer_ has, without unit axes
    // The weights are kept as they were given, if they are constant and dimensions_ are not all: another input size may need
    // the other axes.
    std::shared_ptr<const KeptWeights> kept_;
    // This plan has all dimensions. The first run of a view with gaps along the last axis in dimensions_ makes it.
    mutable std::atomic<LayerPlan *> with_gaps_{nullptr};
};

Status plan_on_cpu(const Geometry &geometry, const PlanSettings &settings, const LayerWeights &weights,
                   std::unique_ptr<ProblemPlan> *plan) {
    std::unique_ptr<HostPlan> own(new HostPlan(geometry));
    own->dimensions_ = without_unit_axes(geometry);
    const Geometry layer = with_dimensions(geometry, own->dimensions_);
    TRY(settings.measuring_ms ? plan_by_measuring(layer, settings, weights, &own->layer_)
                              : LayerPlan::create(layer, settings, weights, &own->layer_));
    if (weights.w && own->dimensions_.size() < geometry.x_shape.size()) {
        auto kept = std::make_shared<HostPlan::KeptWeights>();
        TRY(copy_block(settings.allocator, weights.w, geometry.w_bytes(), "weights", &kept->w));
        TRY(copy_block(settings.allocator, weights.b, geometry.b_bytes(), "biases", &kept->b));
        own->kept_ = std::move(kept);
    }
    own->know();
    *plan = std::move(own);
    return Status();
}

} // namespace convtranspose
