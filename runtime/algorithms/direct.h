// In the direct algorithm, one kernel computes the layer as it is. If there are more than three spatial axes, the outer ones
// are called the leading axes; each of their positions is the sum of the kernel's results over the taps of those axes.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "kernels/post_ops.h"

namespace convtranspose {

class Direct : public AlgorithmPlan {
  public:
    Status build(const LayerWeights &weights) override;
    Status reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const override;
    std::unique_ptr<AlgorithmPlan> replan(const AlgorithmProblem &problem) const override;
    Status run(const RunTensors &tensors, char *workspace) const override;

    std::string why_least() const override { return why_least_; }
    const char *own_kernel() const override { return direct_->variant().name; }
    bool follows_record() const override { return recorded_; }
    const DirectPlan &direct() const override { return *direct_; }
    bool applies_post_ops() const override { return leading_ == 0; }
    std::uint64_t workspace_bytes() const override {
        return run_packed_bytes_ + run_epilogue_bytes_ + direct_bytes_ + partial_bytes_ + dense_y_bytes_;
    }
    std::size_t packed_bytes() const override { return packed_ ? packed_->block.size() + epilogue_.size() : 0; }
    bool shares_weights_of(const AlgorithmPlan &other) const override;
    void for_each_kernel(const std::function<void(const char *)> &f) const override;
    std::vector<Candidate> take_candidates() override {
        return names_a_kernel() ? std::vector<Candidate>() : std::move(candidates_);
    }

  private:
    friend Proposer propose_direct;

    // These are weights in the form that direct plans read, one block for each kernel element of the leading axes.
    struct Packed {
        Block block;
        bool finite = true;
        Block bias; // (M) as given; empty: there is none
        PackedLayout layout;
    };

    explicit Direct(const AlgorithmProblem &problem);
    void set_problem(const AlgorithmProblem &problem, bool single_positions);
    void choose(const Packed *packed);
    Status refused() const;
    bool names_a_kernel() const;
    bool weights_at_run_time() const { return packed_ == nullptr; }
    std::int64_t leading_elements() const; // kernel elements of the leading axes
    Shape inner_y_shape() const;
    std::int64_t weights_before(std::int64_t i) const;

    Status pack_all(const LayerWeights &weights, Packed *packed) const;
    Status repack(const Direct &from);
    bool pack(const DirectPlan &direct, const LayerWeights &weights, const QuantizationValues *q, void *packed) const;
    void prepare(const DirectPlan &direct, const QuantizationValues &q, const void *packed, const void *b,
                 void *epilogue) const;
    void plan_fallbacks();
    Status finish();

    const DirectPlan *direct_for(const RunTensors &tensors, void *workspace) const;
    void run_leading(const DirectPlan &direct, const RunTensors &tensors, DirectOperands operands, char *partial) const;

    const Geometry &geometry_;
    const PlanSettings &settings_;
    const QuantizationValues *quantization_; // null: the layer is of floats, or it arrives with each run
    const TuningRecord *record_;
    std::size_t leading_ = 0;
    std::vector<AxisPlan> leading_axes_;
    SpatialProblem problem_; // without the leading axes
    std::vector<Candidate> candidates_;
    std::string why_least_;
    bool is_possible_ = false, recorded_ = false; // some kernel can; a tuning record names direct_
    std::shared_ptr<const DirectPlan> direct_;    // shared by replan(); null until a kernel is chosen
    PostOpsCall post_ops_;
    // Weights that arrive with a run may hold an infinity or a NaN, or their sums may not fit, so that direct_ must not be
    // used. Then the run uses the first of these plans that it may use; the last one is the reference.
    std::list<DirectPlan> fallbacks_;
    std::shared_ptr<const Packed> packed_;
    Block epilogue_; // one for each kernel element of the leading axes; constant weights only
    // These are the sizes of the parts of the workspace, in order: the run's packed weights and epilogue, the direct plan's
    // workspace, sums over the leading axes, y. The last is for a planar kernel where channels are last, which implies one
    // output channel: if y is a crop, its columns are apart, and such kernels, which store runs of a row, cannot write it.
    std::uint64_t run_packed_bytes_ = 0, run_epilogue_bytes_ = 0, direct_bytes_ = 0, partial_bytes_ = 0,
                  dense_y_bytes_ = 0;
};

} // namespace convtranspose
