// The plan of a layer on the CPU holds the algorithm that was chosen for it, and the workspaces that it runs in.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/allocator.h"
#include "base/once.h"
#include "kernels/post_ops.h"
#include "kernels/tuning.h"
#include "problem/geometry.h"

namespace convtranspose {

// Each algorithm that is considered for a layer has such an estimate, but for one that compared kernels: those have estimates.
struct AlgorithmEstimate {
    const char *name;
    UnsupportedReason unsupported; // if set, it was not proposed
    EstimatedCycles cycles;
};

enum class ChosenBy { kName, kRecord, kEstimate };

// Plans that measure consider what is estimated to take up to so many times the least.
constexpr double kNearEstimates = 3;

class LayerPlan {
  public:
    // trial: the record to follow if there is no other; null: what is remembered, if settings allow measuring.
    static Status create(const Geometry &geometry, const PlanSettings &settings, const LayerWeights &weights,
                         std::unique_ptr<LayerPlan> *plan, std::shared_ptr<const TuningRecord> trial = nullptr);

    // Returns the least estimated cycles of any algorithm for the layer; infinite: none can compute it.
    static double estimate(const Geometry &geometry, const PlanSettings &settings);

    Status run(const RunTensors &tensors, void *workspace) const;
    // Plans the layer for other extents of x, with the same weights, on at most these threads.
    Status reshape(const Geometry &geometry, const Parallel &parallel, std::unique_ptr<LayerPlan> *plan) const;
    // Plans the layer for other constant weights of the same shape, with the same kernel if they allow it. Layers of floats only.
    Status replan(const LayerWeights &weights, std::unique_ptr<LayerPlan> *plan) const;

    const Geometry &geometry() const { return geometry_; }
    const PlanSettings &settings() const { return asked_; }
    const DirectPlan &direct() const { return chosen_->direct(); }
    bool weights_at_run_time() const { return !constant_weights_; }
    std::size_t workspace_bytes() const { return static_cast<std::size_t>(chosen_->workspace_bytes()); }
    std::size_t packed_bytes() const { return chosen_->packed_bytes(); }
    bool shares_weights_of(const LayerPlan &other) const;
    const std::vector<const char *> &kernels() const { return listed().kernels; } // all that a run may call

    const char *algorithm() const { return algorithm_->name; }
    int threads() const { return settings_.parallel.threads; } // at most those of settings()
    // Cycles on one thread by which threads() were chosen; empty: they are asked for or recorded.
    const std::optional<double> &cycles_on_one_thread() const { return cycles_on_one_thread_; }
    double cycles() const { return chosen_->cycles(); } // as estimated, on one thread
    bool is_by_estimate() const { return chosen_by_ == ChosenBy::kEstimate; }
    void follow(std::shared_ptr<const TuningRecord> record); // record: of what this plan does, with a reason for it
    TuningRecord record() const;                             // of what this plan does
    std::string measuring_key() const;                       // names the problem for remember()
    const QuantizationValues *quantization() const { return quantization_ ? &*quantization_ : nullptr; }
    const WeightFacts *facts() const { return facts_ ? &*facts_ : nullptr; } // known for constant quantized weights
    const std::string &reason() const { return reason_; }
    // Kernels that were compared, and estimates of all algorithms that are not excluded.
    const std::vector<Candidate> &candidates() const { return considered().candidates; }
    const std::vector<AlgorithmEstimate> &estimates() const { return considered().estimates; }
    const std::vector<AbleCandidate> &able() const { return listed().able; } // all that can, the chosen one first

  private:
    LayerPlan(const Geometry &geometry, const PlanSettings &settings, bool constant_weights);

    const char *recorded_isa() const; // in tuning records
    void find_record(std::shared_ptr<const TuningRecord> trial);
    void choose_threads();
    bool follows_record(const AlgorithmPlan &plan) const;
    void set_reason(ChosenBy by);
    AlgorithmProblem problem(const PlanSettings &settings) const;
    struct Proposal;
    static std::vector<Proposal> consider(AlgorithmProblem problem, const Algorithm *only = nullptr);
    const Algorithm *named() const;
    Status build_first(const std::vector<Proposal> &proposals, const LayerWeights &weights);
    std::optional<Status> choose_named(const LayerWeights &weights);
    Status choose_by_estimate(const LayerWeights &weights);
    Status finish();
    struct Considered {
        std::vector<AlgorithmEstimate> estimates;
        std::vector<Candidate> candidates;
    };
    struct Listed {
        std::vector<const char *> kernels; // that a run may call
        std::vector<AbleCandidate> able;
    };
    Considered considered_of(const std::vector<Proposal> &proposals) const;
    const Considered &considered() const;
    const Listed &listed() const;
    void finish_whole(const RunTensors &tensors) const;

    const Geometry geometry_;
    const bool constant_weights_;
    const PlanSettings asked_;                     // as given
    PlanSettings settings_;                        // the same, with the number of threads that are used
    const TuningRecord *record_ = nullptr;         // the problem's; null: none, or a variant was named
    std::shared_ptr<const TuningRecord> measured_; // keeps record_ alive if it is no tuning record
    std::string record_note_;                      // why records could not be followed
    std::optional<double> cycles_on_one_thread_;   // see cycles_on_one_thread()
    std::optional<QuantizationValues> quantization_;
    std::optional<WeightFacts> facts_;
    const Algorithm *algorithm_ = nullptr;
    std::unique_ptr<AlgorithmPlan> chosen_;
    std::string reason_;
    ChosenBy chosen_by_ = ChosenBy::kEstimate;
    PostOpsCall post_ops_;

    std::vector<Candidate> candidates_; // those of a named plan, or of one that was reshaped
    Lazy<Considered> considered_;
    Lazy<Listed> listed_;
    mutable SpareBlocks workspaces_;
};

} // namespace convtranspose
