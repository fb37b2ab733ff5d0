// The interface of an algorithm, a way to compute a layer. An algorithm supports a layer or says why not, estimates how long it takes,
// and is built once, where it was chosen. One that computes a layer through layers of other shapes gets their plans from a planner.
#ifndef CONVTRANSPOSE_RUNTIME_ALGORITHMS_ALGORITHM_H_
#define CONVTRANSPOSE_RUNTIME_ALGORITHMS_ALGORITHM_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/allocator.h"
#include "base/parallel.h"
#include "base/shape.h"
#include "direct/direct_plan.h"
#include "kernels/tuning.h"
#include "problem/geometry.h"
#include "problem/quantization.h"
#include "selection/candidates.h"
#include "selection/kernel_support.h"

namespace convtranspose {

// A set of algorithms: one bit for each of algorithms(), in order.
using AlgorithmSet = std::uint32_t;
AlgorithmSet set_of(std::initializer_list<const char *> names);
AlgorithmSet all_but_direct();

// How a plan is to be made.
struct PlanSettings {
    Parallel parallel;
    Allocator allocator;
    Isa isa = Isa::kX86_64;
    std::string
        variant; // name of the kernel or the algorithm that must be used; empty: the one that is estimated to be fastest
    bool sums_in_f16 = false;
    bool may_change_rounding = false; // algorithms that round differently from the definition are allowed
    AlgorithmSet excluded = 0;
    const Tuning *tuning = nullptr; // null: see tuning_record()
};

// A layer for which algorithms are compared. What it refers to must outlive the AlgorithmPlans that are proposed for it.
struct AlgorithmProblem {
    AlgorithmProblem(const Geometry &layer, const PlanSettings &how) : geometry(layer), settings(how) {}

    const Geometry &geometry;
    const PlanSettings &settings;
    const QuantizationValues *quantization = nullptr; // null: of a float layer, or it arrives with each run
    bool constant_weights = true;
    WeightFacts facts;                    // of constant quantized weights
    const TuningRecord *record = nullptr; // for the layer; null: there is none, or settings.variant names something
};

// Null where they arrive with each run, b also where there is none.
struct LayerWeights {
    const void *w = nullptr, *b = nullptr;
};

// A run's tensors, checked. w and b: null unless they arrive with each run; likewise quantization. Strides are in elements.
struct RunTensors {
    const void *x = nullptr;
    Strides x_strides;
    const void *w = nullptr, *b = nullptr;
    void *y = nullptr;
    Strides y_strides;
    const QuantizationValues *quantization = nullptr;
    const void *residual = nullptr; // null: none is added
    Strides residual_strides;
    // For plans on a device.
    convt_memory x_memory = CONVT_HOST_MEMORY, y_memory = CONVT_HOST_MEMORY, residual_memory = CONVT_HOST_MEMORY;
    void *stream = nullptr;
};

// The plan of a layer that an algorithm computes on the way.
class SubPlan {
  public:
    virtual ~SubPlan() = default;

    virtual const Geometry &geometry() const = 0;
    virtual const PlanSettings &settings() const = 0;
    virtual const DirectPlan &
    direct() const = 0; // that computes it, or the first of the layers that it is computed through
    virtual bool weights_at_run_time() const = 0;
    virtual std::size_t workspace_bytes() const = 0;
    virtual std::size_t packed_bytes() const = 0;
    virtual bool shares_weights_of(const SubPlan &other) const = 0;
    virtual const std::vector<const char *> &kernels() const = 0; // names of all that a run may call

    virtual Status run(const RunTensors &tensors, void *workspace) const = 0;
    // For the same weights, with other extents of x.
    virtual Status reshape(const Geometry &geometry, std::unique_ptr<SubPlan> *plan) const = 0;
    // Of the same shape, with other constant weights, by the same kernel where they allow it. For layers of floats.
    virtual Status replan(const LayerWeights &weights, std::unique_ptr<SubPlan> *plan) const = 0;
};

class Planner {
  public:
    virtual ~Planner() = default;

    // Estimated cycles of the layer by the algorithm that would be chosen; infinite: none can compute it.
    virtual double estimate(const Geometry &geometry, const PlanSettings &settings) const = 0;
    virtual Status plan(const Geometry &geometry, const PlanSettings &settings, const QuantizationValues *quantization,
                        const LayerWeights &weights, std::unique_ptr<SubPlan> *plan) const = 0;
};

// Why an algorithm was chosen.
struct ChoiceReason {
    enum Kind { kByName, kByRecord, kByEstimate } kind = kByEstimate;
    std::string text, note; // note: why a record was not followed; may be empty
};

// A layer by one algorithm: first a proposal with an estimate, which packs nothing and allocates no memory for weights; then, if it
// is chosen, it is built, and runs.
class AlgorithmPlan {
  public:
    virtual ~AlgorithmPlan() = default;

    double cycles() const { return cycles_; } // estimated, on one thread; infinite: build() says why it cannot
    // It is chosen if its cycles are less than `gain` times those of another, as estimates are not exact.
    double gain() const { return gain_; }

    // CONVT_UNSUPPORTED or CONVT_OVERFLOW: it cannot, so that the next best is built.
    virtual Status build(const LayerWeights &weights, const Planner &planner) = 0;
    // Of a built plan: for the same weights, with other extents of x. It is built when it is made.
    virtual Status reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const = 0;
    // A proposal that makes the same choice for other weights; null: the choice depended on them.
    virtual std::unique_ptr<AlgorithmPlan> again(const AlgorithmProblem & /*problem*/) const { return nullptr; }
    virtual Status run(const RunTensors &tensors, char *workspace) const = 0; // which is aligned to 64

    virtual std::string summary() const = 0; // what it does with this layer, for a person
    virtual std::string reason(const ChoiceReason &why) const;
    virtual bool follows_record() const { return false; }              // it uses the kernel that a tuning record names
    virtual std::vector<const SubPlan *> layers() const { return {}; } // that it computes the layer through
    virtual const DirectPlan &direct() const { return layers().front()->direct(); }
    virtual bool weights_at_run_time() const { return false; }
    virtual bool applies_post_ops() const { return false; } // if not, they are applied to all of y behind it
    virtual std::uint64_t workspace_bytes() const = 0;
    virtual std::size_t packed_bytes() const;                         // of all layers, once for those that share them
    virtual bool shares_weights_of(const AlgorithmPlan &other) const; // by the same algorithm
    virtual void for_each_kernel(const std::function<void(const char *)> &f) const;
    virtual std::vector<Candidate> take_candidates() { return {}; } // kernels that were compared

  protected:
    void estimate(double cycles, double gain) {
        cycles_ = cycles;
        gain_ = gain;
    }

  private:
    double cycles_ = 0, gain_ = 1;
};

struct Algorithm {
    const char *name;
    bool changes_rounding; // it rounds differently from the definition, so that the caller must allow it
    // Null: it does not support the layer, and *why says why.
    std::unique_ptr<AlgorithmPlan> (*propose)(const AlgorithmProblem &problem, const Planner &planner,
                                              UnsupportedReason *why);
};

// All of them. Their order decides nothing.
const std::array<Algorithm, 8> &algorithms();
const Algorithm *find_algorithm(const std::string &name); // null: there is none of that name

// Whether all conditions hold; *why: else what follows from the first that does not.
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

constexpr const char *kNeedsConstantWeights = "it needs constant weights";
constexpr const char *kNeedsFloats = "it is not for sums of integers";
constexpr const char *kNeedsThreeAxes = "more than three spatial axes";
constexpr const char *kNeedsElements = "x or y has no elements";
inline bool has_elements(const Geometry &geometry) {
    return volume(geometry.x_shape) > 0 && volume(geometry.y_shape) > 0;
}

// Settings of the layers that an algorithm computes one through: a name that is asked for is not theirs.
inline PlanSettings for_layers(const PlanSettings &settings) {
    PlanSettings own = settings;
    own.variant.clear();
    return own;
}

// Of pieces that have a plan each.
template<typename Pieces>
std::vector<const SubPlan *> plans_of(const Pieces &pieces) {
    std::vector<const SubPlan *> plans;
    plans.reserve(pieces.size());
    for (const auto &piece : pieces) plans.push_back(piece.plan.get());
    return plans;
}

// Whether so many tasks are enough for threads to take them whole, each with a workspace of its own: several for each, or the
// same number.
inline bool are_enough_for_each(std::int64_t tasks, std::int64_t threads) {
    return threads > 1 && (tasks >= 4 * threads || tasks % threads == 0);
}

// As Parallel::for_each_by. Returns what failed, if anything did: what is left is then not begun.
template<typename Task>
Status run_by(const Parallel &parallel, int workers, std::size_t count, const Task &task) {
    Status failure;
    std::atomic<bool> failed{false};
    parallel.for_each_by(workers, count, [&](std::size_t i, std::size_t worker) {
        if (failed) return;
        if (Status status = task(i, worker); !status && !failed.exchange(true)) failure = std::move(status);
    });
    return failure;
}

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_ALGORITHMS_ALGORITHM_H_
