// This is the interface of an algorithm, which is a way to compute a layer. An algorithm supports a layer or says why not,
// estimates how long it takes, and is built only if it is chosen. Algorithms that compute a layer through layers of other shapes
// have a base class of their own (composed_plan.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/allocator.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/shape.h"
#include "cpu/cost_profile.h"
#include "direct/direct_plan.h"
#include "kernels/tuning.h"
#include "problem/geometry.h"
#include "problem/quantization.h"
#include "selection/candidates.h"

namespace convtranspose {

// A plan is made with these settings.
struct PlanSettings {
    Parallel parallel;
    Allocator allocator;
    Isa isa = Isa::kX86_64;
    const CostProfile *profile = nullptr; // what estimates go by; it outlives the plan
    std::string variant;                  // the kernel or algorithm that must be used; empty: the fastest by estimate
    bool sums_in_f16 = false;
    bool may_change_rounding = false; // algorithms that round differently from the definition are allowed
    bool all_threads = false;         // all of parallel.threads are used, not as many as the layer is worth
    std::uint32_t excluded = 0;       // algorithms that are not allowed: a sum of their bit_of()
    const Tuning *tuning = nullptr;   // null: see tuning_record()
    int measuring_ms = 0;             // 0: the choice is made by estimates; else candidates are timed for so long
};

// Algorithms are compared for this layer. The objects that it refers to must outlive the AlgorithmPlans proposed for it.
struct AlgorithmProblem {
    const Geometry &geometry;
    const PlanSettings &settings;
    const QuantizationValues *quantization = nullptr; // null: the layer is of floats, or it arrives with each run
    bool constant_weights = true;
    WeightFacts facts = {};               // known for constant quantized weights
    const TuningRecord *record = nullptr; // the layer's; null: none, or settings.variant names something
    // The direct algorithm's estimate in cycles. A proposal that cannot be below it need not be made.
    double limit = std::numeric_limits<double>::infinity();
};

// Weights and bias are null if they arrive with each run. b is also null if the layer has no bias. quantization is null if it
// arrives with each run, or if the layer has none; it is there where w is quantized and constant.
struct LayerWeights {
    const void *w = nullptr, *b = nullptr;
    const QuantizationValues *quantization = nullptr;
};

// A tensor of a run. Strides are in elements.
struct RunTensor {
    void *data = nullptr; // only that of y is written
    Strides strides;
    convt_memory memory = CONVT_HOST_MEMORY;
};

// These are the tensors of a run, after checks. w, b and quantization are null unless they arrive with each run.
struct RunTensors {
    RunTensor x, y, residual; // residual.data: null if none is added
    const void *w = nullptr, *b = nullptr;
    const QuantizationValues *quantization = nullptr;
    void *stream = nullptr; // plans on a device use it
};

// Estimated cycles on one thread: of the layers that an algorithm computes the layer through, and of what it does besides.
struct EstimatedCycles {
    double of_layers = 0, besides = 0;
    double all() const { return of_layers + besides; }
};

// An AlgorithmPlan is the plan of a layer by one algorithm. It begins as a proposal with an estimate, which packs no weights
// and allocates no memory for them. If it is chosen, it is built, and then it can run.
class AlgorithmPlan {
  public:
    virtual ~AlgorithmPlan() = default;

    double cycles() const { return cycles_.all(); } // infinite: build() says why it cannot
    const EstimatedCycles &estimated_cycles() const { return cycles_; }

    // Returns CONVT_UNSUPPORTED or CONVT_OVERFLOW if the algorithm cannot compute the layer after all; the next best is then
    // built.
    virtual Status build(const LayerWeights &weights) = 0;
    // Makes a built plan for other extents of x, with the same weights. This plan must have been built.
    virtual Status reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const = 0;
    // Returns a proposal that makes the same choice for other weights, or null if the choice depends on the weights.
    virtual std::unique_ptr<AlgorithmPlan> replan(const AlgorithmProblem & /*problem*/) const { return nullptr; }
    virtual Status run(const RunTensors &tensors, char *workspace) const = 0; // workspace: aligned to 64 bytes

    // For people: what it does with this layer, empty if a kernel computes that as it is; and why, if its estimate is the least.
    virtual std::string summary() const { return ""; }
    virtual std::string why_least() const { return "least estimated cost"; }
    // The kernel that computes the layer as it is; null: other layers are computed.
    virtual const char *own_kernel() const { return nullptr; }
    virtual bool follows_record() const { return false; } // true: own_kernel() is what a tuning record names
    // Returns its own direct plan, or that of the first layer that it computes the layer through.
    virtual const DirectPlan &direct() const = 0;
    virtual bool applies_post_ops() const { return false; } // false: the caller applies them to all of y
    virtual std::uint64_t workspace_bytes() const = 0;
    virtual std::size_t packed_bytes() const = 0;
    virtual bool shares_weights_of(const AlgorithmPlan &other) const = 0;               // other: by the same algorithm
    virtual void for_each_kernel(const std::function<void(const char *)> &f) const = 0; // all that a run may call
    virtual std::vector<Candidate> take_candidates() { return {}; } // the kernels that were compared

  protected:
    void estimate(const EstimatedCycles &cycles) { cycles_ = cycles; }

  private:
    EstimatedCycles cycles_;
};

// Returns settings for the layers that an algorithm computes a layer through. A variant that the caller named is not for them,
// and only the whole layer is timed.
inline PlanSettings for_layers(const PlanSettings &settings) {
    PlanSettings own = settings;
    own.variant.clear();
    own.measuring_ms = 0;
    return own;
}

// Returns null and sets *why if the algorithm does not support the layer.
using Proposer = std::unique_ptr<AlgorithmPlan>(const AlgorithmProblem &problem, UnsupportedReason *why);
Proposer propose_batch_as_width, propose_col2im, propose_depth_to_space, propose_direct, propose_layout_transpose,
    propose_output_parts, propose_phases_as_channels, propose_winograd;

struct Algorithm {
    const char *name;
    bool changes_rounding; // it rounds differently from the definition, so that the caller must allow it
    Proposer *propose;
};

// Returns all algorithms in alphabetical order, which decides no choice.
std::initializer_list<Algorithm> algorithms();
const Algorithm *find_algorithm(const std::string &name); // null: there is none of that name
std::uint32_t bit_of(const Algorithm &algorithm);         // in PlanSettings::excluded
std::uint32_t all_but_direct();

// Returns true if all conditions hold. Otherwise *why receives the text of the first one that does not.
struct Condition {
    bool holds;
    const char *otherwise;
};
inline bool supports(std::initializer_list<Condition> conditions, UnsupportedReason *why) {
    for (const Condition &condition : conditions) {
        if (condition.holds) continue;
        *why = {condition.otherwise};
        return false;
    }
    return true;
}

// Returns true if the layer's sums are to be kept in f16, which CPUs of its ISA can.
inline bool sums_in_f16(const AlgorithmProblem &problem) {
    return problem.settings.sums_in_f16 && problem.geometry.dtype == CONVT_F16 &&
           vectors_have_f16(problem.settings.isa);
}

constexpr const char *kNeedsConstantWeights = "it needs constant weights";
constexpr const char *kNeedsFloats = "it is not for sums of integers";
constexpr const char *kNeedsThreeAxes = "more than three spatial axes";
constexpr const char *kNeedsElements = "x or y has no elements";
inline bool has_elements(const Geometry &geometry) {
    return volume(geometry.x_shape) > 0 && volume(geometry.y_shape) > 0;
}

} // namespace convtranspose
