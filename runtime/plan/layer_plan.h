// What a convt_plan is: geometry, chosen variant, packed weights, and workspaces to run in.
#ifndef CONVTRANSPOSE_RUNTIME_PLAN_LAYER_PLAN_H_
#define CONVTRANSPOSE_RUNTIME_PLAN_LAYER_PLAN_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/allocator.h"
#include "base/parallel.h"
#include "base/shape.h"
#include "direct/direct_plan.h"
#include "kernels/tuning.h"
#include "problem/geometry.h"

namespace convtranspose {

struct PlanSettings {
    Parallel parallel;
    Allocator allocator;
    Isa isa = Isa::kX86_64;
    std::string variant; // forced; empty: by cost
    bool sums_in_f16 = false, winograd = false;
    bool keeps_layout = false;      // not computed in the other one
    bool by_kernel = false;         // nor by another algorithm
    const Tuning *tuning = nullptr; // null: see tuning_record()
};

bool is_algorithm(const std::string &name); // as algorithms() has it

// An algorithm's estimate.
struct AlgorithmEstimate {
    const char *name;
    double cost; // cycles
};

// Weights as one or more direct plans read them: one block for each kernel element of the leading axes (beyond three), so one
// where there are none.
struct Packed {
    Block block;
    bool finite = true;
    WeightFacts facts; // quantized only
    Block bias;        // (M) as given; empty: none
    PackedLayout layout;
};

// A run's tensors, checked. w and b: null unless they arrive with each run; likewise quantization.
struct RunTensors {
    const void *x = nullptr;
    Strides x_strides;
    const void *w = nullptr, *b = nullptr;
    void *y = nullptr;
    Strides y_strides;
    const QuantizationValues *quantization = nullptr;
    const void *residual = nullptr; // null: none is added
    Strides residual_strides;
    // Of plans for a device.
    convt_memory x_memory = CONVT_HOST_MEMORY, y_memory = CONVT_HOST_MEMORY, residual_memory = CONVT_HOST_MEMORY;
    void *stream = nullptr;
};

class Algorithm;

class LayerPlan {
  public:
    ~LayerPlan();

    // w: null if it arrives with each run. b: null if there is none, or likewise. quantization: null likewise, or if the
    // problem is not quantized; w comes with it.
    static Status create(const Geometry &geometry, const PlanSettings &settings, const QuantizationValues *quantization,
                         const void *w, const void *b, std::unique_ptr<LayerPlan> *plan);
    Status reshape(const Geometry &geometry, std::unique_ptr<LayerPlan> *plan) const;
    // A plan of the same shape with other constant weights, by the same kernel where they allow it. Of floats.
    Status replan(const void *w, const void *b, std::unique_ptr<LayerPlan> *plan) const;

    Status run(const RunTensors &tensors, void *workspace) const;

    const Geometry &geometry() const { return geometry_; }
    const PlanSettings &settings() const { return settings_; }
    bool weights_at_run_time() const;
    const std::optional<QuantizationValues> &quantization() const { return quantization_; }
    const WeightFacts *facts() const { return packed_ && geometry_.quantized() ? &packed_->facts : nullptr; }
    const DirectPlan &direct() const;                         // the first, if layers of other shapes compute this one
    const char *algorithm() const { return algorithm_name_; } // null: none, direct() computes
    const std::vector<AlgorithmEstimate> &estimates() const { return estimates_; } // of algorithms that were considered
    std::size_t workspace_bytes() const { return static_cast<std::size_t>(workspace_bytes_); }
    std::size_t packed_bytes() const { return packed_bytes_; }
    bool shares_weights_of(const LayerPlan &other) const;
    const std::vector<Candidate> &candidates() const { return candidates_; }
    const std::string &reason() const { return reason_; }
    const std::vector<const char *> &able() const;    // names of what can, by cost
    const std::vector<const char *> &kernels() const; // names of all variants that a run may call
    const std::string &key() const;                   // tuning_key()
    const std::string &explanation() const;           // each of these made when first asked for

  private:
    LayerPlan(const Geometry &geometry, const PlanSettings &settings);

    Status choose(const Packed *packed);
    Status finish_planning();
    Status refused() const;
    void plan_fallbacks();
    const Candidate *cheapest(const std::vector<Candidate> &candidates) const;
    const Candidate *tuned(std::string *note) const;
    Status plan_algorithm(const void *w, const void *b);
    void list() const;
    bool names_a_variant() const { return !settings_.variant.empty() && !is_algorithm(settings_.variant); }
    std::int64_t leading_elements() const; // kernel elements of the leading axes
    Status pack_all(const void *w, const void *b, Packed *packed) const;
    Status take_weights(const void *w, const void *b, std::shared_ptr<Packed> packed);
    bool has_packed_otherwise() const; // whether a candidate is refused for its packing alone
    Status repack(const LayerPlan &from);
    template<typename F>
    void for_each_leading_element(const F &f) const;
    bool pack(const DirectPlan &direct, const void *w, const void *b, const QuantizationValues *q, void *packed) const;
    void prepare(const DirectPlan &direct, const QuantizationValues &q, const void *packed, const void *b,
                 void *epilogue) const;
    const DirectPlan *direct_for(const RunTensors &tensors, void *workspace) const;
    void finish_whole(const RunTensors &tensors) const;
    void run_leading(const DirectPlan &direct, const RunTensors &tensors, DirectPlan::Operands operands,
                     char *workspace) const;

    // The problem with its leading axes, those beyond the innermost three, taken off.
    Geometry geometry_, direct_geometry_;
    std::size_t leading_ = 0;
    PlanSettings settings_;
    SpatialProblem problem_;
    std::vector<Candidate> candidates_;
    std::string reason_;
    mutable std::once_flag explained_;
    mutable std::string explanation_;
    mutable std::once_flag listed_;
    mutable std::vector<const char *> able_, kernels_;
    mutable std::string key_;
    const TuningRecord *record_ = nullptr; // for the problem; null: there is none, or a name was given
    std::string record_note_;              // why records could not be used
    std::optional<QuantizationValues> quantization_;
    PostOpsCall post_ops_;
    DirectPlan direct_;
    double cost_ = 0;                      // its estimate
    std::unique_ptr<Algorithm> algorithm_; // null: direct_ computes
    const char *algorithm_name_ = nullptr;
    std::vector<AlgorithmEstimate> estimates_;
    // Weights that arrive at run time may be such as direct_ must not be used for: an inf or a NaN among them, or sums that do
    // not fit. Then the first of these that may is run; the last is the reference.
    std::vector<DirectPlan> fallbacks_;
    std::shared_ptr<const Packed> packed_;
    Block epilogue_; // of constant weights: one for each element of the leading axes
    std::size_t packed_bytes_ = 0;
    // Workspace: packed weights and epilogue of the run, the direct plan's, sums over leading axes, y.
    std::uint64_t workspace_bytes_ = 0, direct_workspace_bytes_ = 0, partial_bytes_ = 0, run_packed_bytes_ = 0,
                  run_epilogue_bytes_ = 0;
    // A single output channel that comes last leaves the columns of y apart if y is a crop, which kernels that store runs
    // of a row cannot do: they then write here.
    std::uint64_t dense_y_bytes_ = 0;

    mutable SpareBlocks workspaces_;
};

// What was planned and why, as text for a person.
std::string explain(const LayerPlan &plan);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_PLAN_LAYER_PLAN_H_
