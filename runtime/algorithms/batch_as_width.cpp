#include "algorithms/batch_as_width.h"

#include <limits>
#include <memory>
#include <utility>

#include "base/error.h"
#include "selection/candidates.h"

namespace convtranspose {

namespace {

// A single image is considered up to this many columns. Tiles of several positions are faster for wider images.
constexpr std::int64_t kMostColumnsOfOne = 4;

// Turns (N, axes..., C) into (1, axes..., N, C). of_one: the first entry of the result, whose axis has extent 1.
template<typename ForEachAxis>
ForEachAxis with_images_last(const ForEachAxis &from, std::int64_t of_one) {
    ForEachAxis to(from.size() + 1);
    const std::size_t last = from.size() - 1;
    to[0] = of_one;
    for (std::size_t i = 1; i < last; i++) to[i] = from[i];
    to[last] = from[0];
    to[last + 1] = from[last];
    return to;
}

Geometry as_row(const Geometry &geometry) {
    Geometry g = geometry;
    g.post_ops = {};
    g.axes.push_back(pointwise_axis(geometry.batch));
    g.batch = 1;
    g.x_shape = with_images_last(geometry.x_shape, 1);
    g.y_shape = with_images_last(geometry.y_shape, 1);
    g.w_shape.push_back(1);
    g.x_column_bytes = volume(geometry.x_shape) / geometry.batch * static_cast<std::int64_t>(convt_dtype_size(g.dtype));
    return g;
}

bool are_worth_it(const Geometry &g) { return g.batch > 1 || g.axes.back().in <= kMostColumnsOfOne; }

} // namespace

BatchAsWidth::BatchAsWidth(const Geometry &geometry, const PlanSettings &settings)
    : geometry_(as_row(geometry)), settings_(for_layers(settings)) {
    settings_.excluded = all_but_direct();
}

std::unique_ptr<AlgorithmPlan> BatchAsWidth::propose(const AlgorithmProblem &problem, const Planner & /*planner*/,
                                                     UnsupportedReason *why) {
    const Geometry &g = problem.geometry;
    const bool last = g.layout == CONVT_CHANNELS_LAST && g.y_order == YOrder::kLayout;
    const bool supported = supports({{problem.constant_weights, kNeedsConstantWeights},
                                     {!g.quantized(), kNeedsFloats},
                                     {last, "channels are not last"},
                                     {g.axes.size() <= 2, "more than two spatial axes"},
                                     {volume(g.x_shape) > 0, kNeedsElements},
                                     {are_worth_it(g), "a single image of many columns"}},
                                    why);
    if (!supported) return nullptr;
    std::unique_ptr<BatchAsWidth> own(new BatchAsWidth(g, problem.settings));
    const CostProfile &profile = *problem.settings.profile;
    own->estimate({least_cost(own->geometry_, own->settings_.isa, profile)},
                  g.batch > 1 ? profile.margin_batch_as_width : profile.margin_one_as_width);
    return own;
}

Status BatchAsWidth::build(const LayerWeights &weights, const Planner &planner) {
    return planner.plan(geometry_, settings_, nullptr, weights, &plan_);
}

Status BatchAsWidth::reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const {
    const Geometry &geometry = problem.geometry;
    const auto cost_of = [&](const Geometry &g) {
        return least_cost(g, problem.settings.isa, *problem.settings.profile);
    };
    Geometry layer = geometry;
    layer.post_ops = {};
    const bool may = volume(layer.x_shape) > 0 && are_worth_it(layer);
    if (may && cost_of(as_row(layer)) < cost_of(layer)) layer = as_row(layer);
    std::unique_ptr<BatchAsWidth> own(new BatchAsWidth());
    if (Status status = plan_->reshape(layer, problem.settings.parallel, &own->plan_); !status) return status;
    *made = std::move(own);
    return Status();
}

std::string BatchAsWidth::summary() const {
    return is_row() ? "images side by side, as the positions of a row" : "the layer as it is: too few images for a row";
}

Status BatchAsWidth::run(const RunTensors &t, char *workspace) const {
    RunTensors own;
    own.x = t.x;
    own.y = t.y;
    own.x_strides = is_row() ? with_images_last(t.x_strides, t.x_strides[0]) : t.x_strides;
    own.y_strides = is_row() ? with_images_last(t.y_strides, t.y_strides[0]) : t.y_strides;
    return plan_->run(own, workspace);
}

} // namespace convtranspose
