// Batches of small images, channels last, are computed with the batch as the innermost spatial axis. In the layer as it is, a
// tile holds neighbouring positions of a row, and a tap that leaves the image at an end of the row multiplies zeros; in short
// rows that is much of the work. With the batch as the innermost axis, of kernel extent 1, a tile holds the same position of
// several images. A tap then leaves x for all of them or for none, and kernels leave such taps out. Weights do not change, and
// x and y stay where they are. A single image of very few columns gains likewise, by tiles of one position.
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
    // Returns false if the plan was reshaped to so few images that the layer as it is takes less time.
    bool is_row() const { return plan_->geometry().x_column_bytes > 0; }

    Geometry geometry_; // the layer that is planned
    PlanSettings settings_;
    std::unique_ptr<SubPlan> plan_;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_ALGORITHMS_BATCH_AS_WIDTH_H_
