// Layers that kernels of their own layout serve badly are computed in the other layout: depthwise ones of many small planes,
// channels last with few outputs or many small groups, channels first with deep narrow images. x is transposed, the layer
// computed, and its y transposed back. If that takes much memory, it is done in blocks: some groups of an image, some images,
// or a strip of an image's outermost axis at a time. Each block is a layer of its own whose transposed tensors stay in cache.
#ifndef CONVTRANSPOSE_RUNTIME_ALGORITHMS_LAYOUT_TRANSPOSE_H_
#define CONVTRANSPOSE_RUNTIME_ALGORITHMS_LAYOUT_TRANSPOSE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/algorithm.h"
#include "kernels/kernel_tables.h"

namespace convtranspose {

class LayoutTranspose : public AlgorithmPlan {
  public:
    static std::unique_ptr<AlgorithmPlan> propose(const AlgorithmProblem &problem, const Planner &planner,
                                                  UnsupportedReason *why);

    std::string summary() const override;
    std::vector<const SubPlan *> layers() const override { return plans_of(blocks_); }
    std::uint64_t workspace_bytes() const override {
        return static_cast<std::uint64_t>(workers_) * (layer_bytes_ + x_bytes_ + y_bytes_);
    }
    Status build(const LayerWeights &weights, const Planner &planner) override;
    Status reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const override;
    Status run(const RunTensors &tensors, char *workspace) const override;

  private:
    struct Block {
        std::shared_ptr<const SubPlan> plan; // in the other layout; blocks of one shape and the same weights share it
        std::int64_t first_group, x_begin, y_begin; // x_begin and y_begin: along the outermost axis
    };
    // A strip is a range of x and a range of y along the outermost axis. y_begin belongs to phase 0.
    struct Strip {
        std::int64_t x_begin, x_end, y_begin, y_end;
    };

    LayoutTranspose(const Geometry &geometry, const PlanSettings &settings, std::int64_t block_groups);
    static std::int64_t groups_at_once(const Geometry &geometry);
    void plan_strips();
    std::int64_t block_count() const;
    std::int64_t first_group(std::int64_t block) const { return strips_ > 1 ? 0 : block * block_groups_; }
    Strip strip(std::int64_t block) const;
    Geometry inner(std::int64_t block) const;
    bool y_is_far() const;
    double cycles_to_transpose_all() const;
    double cycles_of_layers(const Planner &planner) const;
    template<typename OfBlock>
    double of_blocks(const OfBlock &of_block) const;
    Status plan_block(std::int64_t block, const LayerWeights &weights, const Planner &planner,
                      std::unique_ptr<SubPlan> *plan) const;
    Status add_strips(const SubPlan &from);
    void plan_workspace();
    Status run_block(const Block &block, std::int64_t image, const RunTensors &tensors, char *workspace) const;
    void transpose(const std::int64_t *shape, convt_layout from_layout, const void *from, const Strides &from_strides,
                   void *to, const Strides &to_strides) const;

    Geometry geometry_;
    PlanSettings settings_; // for the layers
    Parallel parallel_;     // for the whole algorithm
    int workers_ = 1;       // threads that take whole blocks, each with a workspace of its own; 1: all share each block
    std::int64_t block_groups_, images_;    // groups and images of a block
    std::int64_t strips_ = 1, strip_q_ = 0; // strips of an image; strides of y in a strip, along the outermost axis
    Copier copy_;
    std::vector<Block> blocks_;
    std::uint64_t layer_bytes_ = 0, x_bytes_ = 0, y_bytes_ = 0; // for each worker
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_ALGORITHMS_LAYOUT_TRANSPOSE_H_
