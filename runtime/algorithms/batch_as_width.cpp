// Batches of small images, channels last, are computed with the batch as the innermost spatial axis. In the layer as it is, a
// tile holds neighbouring positions of a row, and a tap that leaves the image at an end of the row multiplies zeros; in short
// rows that is much of the work. With the batch as the innermost axis, of kernel extent 1, a tile holds the same position of
// several images. A tap then leaves x for all of them or for none, and kernels leave such taps out. Weights do not change, and
// x and y stay where they are. A single image of very few columns gains likewise, by tiles of one position.
#include <memory>
#include <string>
#include <utility>

#include "algorithms/composed_plan.h"
#include "selection/candidates.h"

namespace convtranspose {

namespace {

// A single image is considered up to this many columns. Tiles of several positions are faster for wider images.
constexpr std::int64_t kMostColumnsOfOne = 4;

// Turns the strides of (N, axes..., C) into those of (1, axes..., N, C).
Strides with_images_last(const Strides &from) {
    Strides to(from.size() + 1);
    const std::size_t last = from.size() - 1;
    for (std::size_t i = 0; i < last; i++) to[i] = from[i];
    to[last] = from[0];
    to[last + 1] = from[last];
    return to;
}

Geometry as_row(const Geometry &geometry) {
    Geometry g = geometry;
    g.axes.push_back(pointwise_axis(geometry.batch));
    g.batch = 1;
    g.set_shapes();
    g.x_column_bytes = volume(geometry.x_shape) / geometry.batch * size_of(g.dtype);
    return g;
}

bool are_worth_it(const Geometry &g) { return g.batch > 1 || g.axes.back().in <= kMostColumnsOfOne; }

} // namespace

class BatchAsWidth : public ComposedPlan {
  public:
    std::string summary() const override {
        return is_row() ? "images side by side, as the positions of a row"
                        : "the layer as it is: too few images for a row";
    }

    Status build(const LayerWeights &weights) override { return add_plan(as_row(geometry_), weights, nullptr, &plan_); }

    Status reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const override {
        std::unique_ptr<BatchAsWidth> own(new BatchAsWidth(problem));
        Geometry layer = own->geometry_;
        const bool may = volume(layer.x_shape) > 0 && are_worth_it(layer);
        if (may && own->cost_of(as_row(layer)) < own->cost_of(layer)) layer = as_row(layer);
        TRY(own->add_plan(layer, {}, plan_, &own->plan_));
        *made = std::move(own);
        return Status();
    }

    Status run(const RunTensors &t, char *workspace) const override {
        RunTensors own;
        own.x = t.x;
        own.y = t.y;
        if (is_row()) {
            own.x.strides = with_images_last(t.x.strides);
            own.y.strides = with_images_last(t.y.strides);
        }
        return plan_->run(own, workspace);
    }

  private:
    friend Proposer propose_batch_as_width;

    explicit BatchAsWidth(const AlgorithmProblem &problem) : ComposedPlan(problem.geometry, problem.settings) {
        settings_.excluded = all_but_direct();
    }
    double cost_of(const Geometry &layer) const { return least_cost(layer, settings_.isa, *settings_.profile); }
    // Returns false if the plan was reshaped to so few images that the layer as it is takes less time.
    bool is_row() const { return plan_->geometry().x_column_bytes > 0; }

    const LayerPlan *plan_ = nullptr;
};

std::unique_ptr<AlgorithmPlan> propose_batch_as_width(const AlgorithmProblem &problem, UnsupportedReason *why) {
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
    std::unique_ptr<BatchAsWidth> own(new BatchAsWidth(problem));
    own->estimate({own->cost_of(as_row(own->geometry_))});
    return own;
}

} // namespace convtranspose
