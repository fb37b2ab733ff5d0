// Ways to compute a layer as layers of other shapes, which have plans of their own. They are asked for, tried and recorded by
// name, as variants are.
#ifndef CONVTRANSPOSE_RUNTIME_ALGORITHMS_ALGORITHM_H_
#define CONVTRANSPOSE_RUNTIME_ALGORITHMS_ALGORITHM_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plan/layer_plan.h"

namespace convtranspose {

class Algorithm {
  public:
    virtual ~Algorithm() = default;

    virtual std::string summary() const = 0; // what it does with this layer, for a person
    virtual const LayerPlan &first() const = 0;
    virtual std::vector<const LayerPlan *> layers() const = 0; // one at least
    virtual bool weights_at_run_time() const { return false; }
    virtual std::uint64_t workspace_bytes() const = 0;
    std::size_t packed_bytes() const; // of all layers, once for those that share them

    virtual Status reshape(const Geometry &geometry, std::unique_ptr<Algorithm> *made) const = 0;
    virtual Status run(const RunTensors &tensors, char *workspace) const = 0; // which is aligned to 64
};

// Of pieces that have a plan each.
template<typename Pieces>
std::vector<const LayerPlan *> plans_of(const Pieces &pieces) {
    std::vector<const LayerPlan *> plans;
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

struct AlgorithmRequest {
    const Geometry &geometry;
    PlanSettings settings; // of the layers
    const void *w, *b;     // w: null if it arrives with each run. b: null likewise, or if there is none
    const QuantizationValues *quantization; // null likewise, or if the problem is not quantized
    Arithmetic arithmetic;                  // of the kernel that would compute it otherwise
    double most;                            // estimated cycles that the algorithm must stay below
};

struct MadeAlgorithm {
    std::unique_ptr<Algorithm> algorithm; // null: not for this layer, or not estimated to take less than `most`
    double cost = 0;                      // estimated cycles; 0: not known
};

struct AlgorithmKind {
    const char *name;
    bool for_weights_at_run_time, changes_rounding; // the latter: only if PlanSettings::winograd asks for it
    Status (*create)(const AlgorithmRequest &request, MadeAlgorithm *made);
};

// True if the algorithm rounds differently from the definition, so that the caller must allow it.
bool changes_rounding(const std::string &name);

// In the order in which they are tried: each has to be estimated to take less than those before it.
const std::array<AlgorithmKind, 7> &algorithms();

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_ALGORITHMS_ALGORITHM_H_
