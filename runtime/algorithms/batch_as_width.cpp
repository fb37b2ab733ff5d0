#include "algorithms/batch_as_width.h"

#include <limits>
#include <memory>
#include <utility>

#include "base/error.h"
#include "selection/candidates.h"

namespace convtranspose {

namespace {

// Estimates are not that exact, least of single images, which are a row of one position: of those of one to three columns and long
// kernels, whose taps are then left out, three take 0.12 to 0.75 of the time, estimated to be 0.16 to 0.7; one 1.15, estimated 0.94.
constexpr double kGain = 0.945, kGainOfOne = 0.8;
// Of a single image; of more, tiles of several positions take less of any layer of the workloads, so nothing is estimated.
constexpr std::int64_t kMostColumnsOfOne = 4;

// (N, axes..., C) as (1, axes..., N, C). of_one: of the first, which now has an extent of 1.
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

} // namespace

double BatchAsWidth::cost(const Geometry &g, Isa isa) {
    const bool fits = !g.quantized() && g.layout == CONVT_CHANNELS_LAST && g.y_order == YOrder::kLayout &&
                      g.axes.size() <= 2 && volume(g.x_shape) > 0 &&
                      (g.batch > 1 || g.axes.back().in <= kMostColumnsOfOne);
    return fits ? least_cost(as_row(g), isa) : std::numeric_limits<double>::infinity();
}

Status BatchAsWidth::create(const AlgorithmRequest &request, MadeAlgorithm *made) {
    const double cycles = cost(request.geometry, request.settings.isa);
    if (cycles == std::numeric_limits<double>::infinity()) return Status();
    made->cost = cycles;
    const double gain = request.geometry.batch > 1 ? kGain : kGainOfOne;
    if (!(made->cost < gain * request.most)) return Status();
    auto own = std::make_unique<BatchAsWidth>();
    PlanSettings settings = request.settings;
    settings.by_kernel = true;
    Status status = LayerPlan::create(as_row(request.geometry), settings, nullptr, request.w, request.b, &own->plan_);
    if (!status) return status;
    made->algorithm = std::move(own);
    return Status();
}

Status BatchAsWidth::reshape(const Geometry &geometry, std::unique_ptr<Algorithm> *made) const {
    const Isa isa = plan_->settings().isa;
    Geometry layer = geometry;
    layer.post_ops = {};
    if (cost(layer, isa) < least_cost(layer, isa)) layer = as_row(layer);
    auto own = std::make_unique<BatchAsWidth>();
    if (Status status = plan_->reshape(layer, &own->plan_); !status) return status;
    *made = std::move(own);
    return Status();
}

std::string BatchAsWidth::summary() const {
    return is_row() ? "images side by side, as the positions of a row" : "as it is, of too few images for a row";
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
