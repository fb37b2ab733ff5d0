// The base of the algorithms that compute a layer through layers of other shapes, whose plans it owns.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/layer_plan.h"
#include "base/division.h"
#include "base/error.h"
#include "base/parallel.h"

namespace convtranspose {

// Returns true if there are enough tasks for threads to take whole ones, each with a workspace of its own: several for each
// thread, or the same number for all.
inline bool are_enough_for_each(std::int64_t tasks, std::int64_t threads) {
    return threads > 1 && (tasks >= 4 * threads || tasks % threads == 0);
}

// Runs tasks as Parallel::for_each_by() does. Returns the first failure, after which no more tasks begin.
template<typename Task>
Status run_by(const Parallel &parallel, int workers, std::int64_t count, const Task &task) {
    Status failure;
    std::atomic<bool> failed{false};
    parallel.for_each_by(workers, count, [&](std::int64_t i, std::int64_t worker) {
        if (failed) return;
        if (Status status = task(i, worker); !status && !failed.exchange(true)) failure = std::move(status);
    });
    return failure;
}

// A ComposedPlan computes its layer, but for the post-ops.
class ComposedPlan : public AlgorithmPlan {
  public:
    std::string summary() const override = 0;
    const DirectPlan &direct() const override { return plans_.front()->direct(); }
    std::uint64_t workspace_bytes() const override { return workers_ * bytes_of_worker() + shared_bytes_; }
    std::size_t packed_bytes() const override; // shared weights count once
    bool shares_weights_of(const AlgorithmPlan &other) const override;
    void for_each_kernel(const std::function<void(const char *)> &f) const override;

  protected:
    ComposedPlan(const Geometry &geometry, const PlanSettings &settings);

    // Has each thread take whole layers, which then run on one thread each.
    void take_whole_layers() {
        workers_ = threads_.threads;
        settings_.parallel = Parallel();
    }

    // Adds the plan of a layer: with the weights of another plan or, if `like` is null, with these.
    Status add_plan(const Geometry &layer, const LayerWeights &weights, const LayerPlan *like, const LayerPlan **made);
    const LayerPlan *add_plan(std::unique_ptr<LayerPlan> plan);

    bool weights_at_run_time() const { return plans_.front()->weights_at_run_time(); }
    std::uint64_t bytes_of_worker() const { return layer_bytes_ + own_bytes_; }
    // Calls task(i, workspace) for each i in 0..count-1, on the workers. workspace: of the plan; a task gets that of its worker.
    template<typename Task>
    Status for_each_task(std::int64_t count, char *workspace, const Task &task) const {
        return run_by(threads_, workers_, count, [&](std::int64_t i, std::int64_t worker) {
            return task(i, workspace + worker * bytes_of_worker());
        });
    }

    Geometry geometry_;     // without post-ops
    Parallel threads_;      // of the whole algorithm
    PlanSettings settings_; // for the layers
    int workers_ = 1;       // threads that take whole layers, each with a workspace of its own; 1: all share each layer
    // The workspace of a worker is that of any layer and, behind it, what the algorithm itself needs. What workers share follows.
    std::uint64_t layer_bytes_ = 0, own_bytes_ = 0, shared_bytes_ = 0;

  private:
    std::vector<std::unique_ptr<const LayerPlan>> plans_;
};

// Returns a layer of one row of positions, each with one tap: a product of matrices. Its shapes are to be set.
inline Geometry row_of(const Geometry &geometry, std::int64_t positions) {
    Geometry g = geometry;
    g.post_ops = {};
    g.axes = {pointwise_axis(positions)};
    return g;
}

// Returns the status of a reshaped plan whose own tensor, `what`, has more elements than kernels count.
inline Status too_large_to_reshape(const char *algorithm, const Geometry &geometry, const char *what,
                                   std::int64_t elements) {
    return overflow("a plan by ", algorithm, " cannot be reshaped to x_shape ", to_string(geometry.x_shape), ": ", what,
                    " has ", elements, " elements, may have ", kMostElements,
                    " at most; a new plan of that shape has another algorithm");
}

} // namespace convtranspose
