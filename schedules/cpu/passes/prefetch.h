// A lowering pass that fetches into the caches what a reduction soon reads, and the lines that are then written. Halide 21 prefetches
// only data that are used once (x86: prefetchnta, which keeps them out of the second-level cache); weights are read again.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_PASSES_PREFETCH_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_PASSES_PREFETCH_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <Halide.h>

#include "cpu/passes/let_scope.h"
#include "cpu/passes/loop_set.h"
#include "cpu/passes/prefetch_next_weights.h"

namespace convtranspose {

// In each innermost loop that stores to Func `sum`, per step: each cache line of w that the step `w_bytes` later reads, if the reads
// of consecutive steps lie behind one another, through the pointer by which the step itself reads w (shared_base_pointer.h); and
// the lines of x that the step `x_steps` later reads, or a quarter of all steps if that is less, unless the reads of two steps share
// a line. A prefetch past the end of an input has no effect.
class Prefetch : public Halide::Internal::IRMutator {
  public:
    // The Func of the sums, and the inputs that they are made of.
    struct Names {
        std::string sum, x, w;
    };

    // The distance between the fetch of an input and its use; 0: it is not fetched.
    struct Ahead {
        int w_bytes = 0, x_steps = 0;
    };

    // The sizes of images and of weights are compared with second_level_cache_bytes where they decide what is fetched.
    Prefetch(Names names, Ahead ahead, int second_level_cache_bytes)
        : names_(std::move(names)), ahead_(ahead), second_level_cache_(second_level_cache_bytes) {}

    // Also fetches the lines of output `y` that the sums are stored to, outside of loops and whole, if an image of y is larger than
    // the second-level cache: a third of them before each third of a reduction's innermost loop, the last time that it runs (after
    // several taps, the last one). All at once would take from the inputs the buffers in which a core waits for lines.
    // images: the dimension of y whose stride is an image. least_steps: fewer steps of that loop fetch nothing of y.
    void fetch_stored(std::string y, int images, int least_steps) {
        y_ = std::move(y);
        images_ = images;
        least_steps_ = least_steps;
    }

    // Also fetches, into the second-level cache, the first row of x of the next tile of so many positions, if all channels of a position
    // are side by side and an image of x is larger than that cache: during the first tile of output channels that reads it, anew for
    // each tap. images: the dimension of x whose stride is an image. Needs fetch_next_weights(); x is not fetched where weights are.
    void fetch_next_x(int positions, int images) {
        next_positions_ = positions;
        x_images_ = images;
    }

    // Also fetches, into the second-level cache, the weights of the tile that comes next (prefetch_next_weights.h). output_tiles:
    // the schedule's variable over tiles of output channels.
    void fetch_next_weights(std::string output_tiles) { output_tiles_ = std::move(output_tiles); }

    // The loops that are made for a y that is far. They run where the ends of rows are far apart as well, and are left out of the work
    // of SkipPadding, which is given this set.
    std::shared_ptr<const LoopSet> loops_for_far_images() const { return far_images_; }

  private:
    class Body;
    // Within the passes over a tile's positions: names of what is known outside of them.
    struct Next {
        PrefetchNextWeights weights;
        std::string w_far, x_far; // whether the next tile's are fetched
        std::string ahead, share; // bytes: how far ahead the first pass begins, and how far each step goes for weights

        Halide::Expr w_is_far() const { return Halide::Internal::Variable::make(Halide::Bool(), w_far); }
        Halide::Expr x_is_far() const { return Halide::Internal::Variable::make(Halide::Bool(), x_far); }
    };

    using IRMutator::visit;
    Halide::Internal::Stmt visit(const Halide::Internal::LetStmt *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::Allocate *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::For *op) override;
    Halide::Internal::Stmt within_loop(const Halide::Internal::For *op);
    Halide::Internal::Stmt outside_of_passes(const Halide::Internal::For *op, const Body &body);
    Halide::Internal::Stmt reduction(const Halide::Internal::For *op, const Body &body);
    Halide::Internal::Stmt steps(const Halide::Internal::For *op, const Body &body) const;
    Halide::Internal::Stmt in_parts(const Halide::Internal::For *op, const Halide::Internal::Stmt &step) const;
    Halide::Expr is_first_pass(const Halide::Expr &w_at) const;

    const Names names_;
    const Ahead ahead_;
    const int second_level_cache_;
    std::string y_, output_tiles_;
    int images_ = 0, least_steps_ = 0, x_images_ = 0, next_positions_ = 0;
    const SharedLoopSet far_images_ = std::make_shared<LoopSet>();

    // The state of the visit.
    std::vector<const Halide::Internal::For *> loops_; // around it, outermost first
    std::size_t reduction_begin_ = 0;                  // where in loops_ those of a reduction begin
    LetScope scope_;
    enum class Sums { kOutside, kUndecided, kNear, kStoredFar, kOfFar } sums_ = Sums::kOutside;
    std::optional<Next> next_;
    std::string ahead_of_step_;        // how far ahead a reduction's first step fetches
    std::vector<Halide::Expr> stored_; // the lines of y that the sums are stored to, in bytes
    Halide::Expr stores_far_;          // true if those lines are far
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_PASSES_PREFETCH_H_
