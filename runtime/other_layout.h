// Layers that kernels of their own layout serve badly: depthwise ones of many small planes, channels last with few outputs or many
// small groups. x is transposed, the layer computed as one of the other layout, and its y transposed back.
#ifndef CONVTRANSPOSE_RUNTIME_OTHER_LAYOUT_H_
#define CONVTRANSPOSE_RUNTIME_OTHER_LAYOUT_H_

#include <cstdint>
#include <memory>

#include "layer_plan.h"

namespace convtranspose {

class OtherLayout {
  public:
    // *made is null afterwards if this is not for the layer, or not estimated to take less than `cost` cycles. w: not null.
    static Status create(const Geometry &geometry, const PlanSettings &settings, const void *w, const void *b,
                         double cost, std::unique_ptr<OtherLayout> *made);
    Status reshape(const Geometry &geometry, std::unique_ptr<OtherLayout> *made) const;

    Status run(const RunTensors &tensors, void *workspace) const; // which is aligned to 64

    const LayerPlan &layer() const { return *layer_; }
    std::uint64_t workspace_bytes() const { return layer_bytes_ + x_bytes_ + y_bytes_; }
    double cost() const { return cost_; }

  private:
    OtherLayout(const Geometry &geometry, const PlanSettings &settings);
    void plan_workspace();
    void transpose(const Shape &shape, convt_layout from_layout, const void *from, const Strides &from_strides,
                   void *to, const Strides &to_strides) const;

    Geometry geometry_, inner_; // the layer's, and that in the other layout
    PlanSettings settings_;
    CopyFunction copy_ = nullptr;
    std::unique_ptr<LayerPlan> layer_;
    double cost_ = 0;
    std::uint64_t layer_bytes_ = 0, x_bytes_ = 0, y_bytes_ = 0;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_OTHER_LAYOUT_H_
