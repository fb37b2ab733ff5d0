#include "algorithms/composed_plan.h"

#include <algorithm>

#include "base/allocator.h"

namespace convtranspose {

ComposedPlan::ComposedPlan(const Geometry &geometry, const PlanSettings &settings)
    : geometry_(geometry), threads_(settings.parallel), settings_(for_layers(settings)) {
    geometry_.post_ops = {};
}

std::size_t ComposedPlan::packed_bytes() const {
    std::size_t bytes = 0;
    for (auto plan = plans_.begin(); plan != plans_.end(); ++plan) {
        const bool shares =
            std::any_of(plans_.begin(), plan, [&](const auto &before) { return (*plan)->shares_weights_of(*before); });
        if (!shares) bytes += (*plan)->packed_bytes();
    }
    return bytes;
}

bool ComposedPlan::shares_weights_of(const AlgorithmPlan &other) const {
    return plans_.front()->shares_weights_of(*static_cast<const ComposedPlan &>(other).plans_.front());
}

void ComposedPlan::for_each_kernel(const std::function<void(const char *)> &f) const {
    for (const auto &plan : plans_) {
        for (const char *const name : plan->kernels()) f(name);
    }
}

Status ComposedPlan::add_plan(const Geometry &layer, const LayerWeights &weights, const LayerPlan *like,
                              const LayerPlan **made) {
    std::unique_ptr<LayerPlan> plan;
    TRY(like ? like->reshape(layer, settings_.parallel, &plan) : LayerPlan::create(layer, settings_, weights, &plan));
    *made = add_plan(std::move(plan));
    return Status();
}

const LayerPlan *ComposedPlan::add_plan(std::unique_ptr<LayerPlan> plan) {
    layer_bytes_ = std::max(layer_bytes_, round_up(plan->workspace_bytes()));
    return plans_.emplace_back(std::move(plan)).get();
}

} // namespace convtranspose
