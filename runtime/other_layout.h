// Layers that kernels of their own layout serve badly: depthwise ones of many small planes, channels last with few outputs or many
// small groups. x is transposed, the layer computed as one of the other layout, and its y transposed back.
#ifndef CONVTRANSPOSE_RUNTIME_OTHER_LAYOUT_H_
#define CONVTRANSPOSE_RUNTIME_OTHER_LAYOUT_H_

#include <cstdint>
#include <memory>

#include "kernel_tables.h"
#include "method.h"

namespace convtranspose {

class OtherLayout : public Method {
  public:
    static Status create(const MethodRequest &request, MadeMethod *made);

    std::string summary() const override;
    const LayerPlan &first() const override { return *layer_; }
    std::vector<const LayerPlan *> layers() const override { return {layer_.get()}; }
    std::uint64_t workspace_bytes() const override { return layer_bytes_ + x_bytes_ + y_bytes_; }
    std::size_t packed_bytes() const override { return layer_->packed_bytes(); }
    Status reshape(const Geometry &geometry, std::unique_ptr<Method> *made) const override;
    Status run(const RunTensors &tensors, char *workspace) const override;

  private:
    OtherLayout(const Geometry &geometry, const PlanSettings &settings);
    void plan_workspace();
    bool is_in_both(std::int64_t channels, const Strides &strides, Strides *moved) const;
    void transpose(const Shape &shape, convt_layout from_layout, const void *from, const Strides &from_strides,
                   void *to, const Strides &to_strides) const;

    Geometry geometry_, inner_; // the layer's, and that in the other layout
    PlanSettings settings_;
    Copier copy_;
    std::unique_ptr<LayerPlan> layer_;
    std::uint64_t layer_bytes_ = 0, x_bytes_ = 0, y_bytes_ = 0;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_OTHER_LAYOUT_H_
