// Batches of small images, channels last: taps that leave an image along w meet zeros, as the positions of a tile are neighbours in
// a row, of which only those at its ends read there; of 4x4 images that is an eighth of the multiply-adds along w and as many along
// h where a tile has several rows. With the batch as the innermost spatial axis, of a kernel extent of 1, and w and h outside of
// it, a tile has the same position of several images, whose taps leave all of them or none: kernels leave such taps out. Weights
// are as they were, x and y where they were. A single image of very few columns gains likewise, by tiles of one position.
#ifndef CONVTRANSPOSE_RUNTIME_ALGORITHMS_BATCH_AS_WIDTH_H_
#define CONVTRANSPOSE_RUNTIME_ALGORITHMS_BATCH_AS_WIDTH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"

namespace convtranspose {

class BatchAsWidth : public AlgorithmPlan {
  public:
    static std::unique_ptr<AlgorithmPlan> propose(const AlgorithmProblem &problem, const Planner &planner,
                                                  UnsupportedReason *why);

    std::string summary() const override;
    std::vector<const SubPlan *> layers() const override { return {plan_.get()}; }
    std::uint64_t workspace_bytes() const override { return plan_->workspace_bytes(); }
    Status build(const LayerWeights &weights, const Planner &planner) override;
    Status reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const override;
    Status run(const RunTensors &tensors, char *workspace) const override;

  private:
    BatchAsWidth() = default;
    BatchAsWidth(const Geometry &geometry, const PlanSettings &settings);
    // Not so where the plan was given so few images that the layer as it is takes less.
    bool is_row() const { return plan_->geometry().x_column_bytes > 0; }

    Geometry geometry_; // of the layer to be planned
    PlanSettings settings_;
    std::unique_ptr<SubPlan> plan_;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_ALGORITHMS_BATCH_AS_WIDTH_H_
