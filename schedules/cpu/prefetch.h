// A lowering pass that fetches what a reduction reads soon into the first-level cache, and what is then written. Halide 21
// prefetches only what is to be used once (x86: prefetchnta, which keeps it out of the second-level cache): 0.2 to 0.4 of the
// speed, measured, where weights are read again.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_PREFETCH_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_PREFETCH_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <Halide.h>

#include "lets.h"
#include "next_weights.h"

namespace convtranspose {

// In each innermost loop that stores to Func `sum`: per step, each cache line of input `w` that the step `w_bytes_ahead` later
// reads, for w whose steps' reads lie behind one another, through the pointer by which the step itself reads w (one_pointer.h); and
// of input `x` those that `x_steps_ahead` later does, or a quarter of all steps, if its reads of two steps share no line. 0: of
// none. A prefetch past the end of an input is of no consequence.
class Prefetch : public Halide::Internal::IRMutator {
  public:
    // second_level_cache: its bytes, which what follows goes by.
    Prefetch(std::string sum, int w_bytes_ahead, int x_steps_ahead, int second_level_cache)
        : sum_(std::move(sum)), w_bytes_ahead_(w_bytes_ahead), x_steps_ahead_(x_steps_ahead),
          second_level_cache_(second_level_cache) {}

    // Also the lines of output `y` that the sums are stored to, outside of loops and whole, where an image of y is larger than the
    // second-level cache: a third of them before each third of a reduction's innermost loop, the last time that it runs (of several
    // taps, the last one). All at once they would take the places that a core has for what it waits for (fill buffers, 16 on Golden
    // Cove) from the inputs. images: the dimension of y whose stride is an image. least_steps: of that loop.
    void fetch_stored(std::string y, int images, int least_steps) {
        y_ = std::move(y);
        images_ = images;
        least_steps_ = least_steps;
    }

    // Also, into the second-level cache, x of the tile of `positions` that comes next in the row, of so many rows, where all channels
    // of a position are side by side and an image of x is larger than that cache: by the first tile of output channels that reads
    // it, anew for each tap. images: the dimension of x whose stride is an image. With fetch_next(), which tells how such tiles are
    // counted.
    void fetch_next_x(int positions, int rows, int images) {
        next_positions_ = positions;
        next_rows_ = rows;
        x_images_ = images;
    }

    // Also, into the second-level cache, the weights of the tile that comes next (next_weights.h). outputs: how the name of the
    // loop over tiles of output channels ends.
    void fetch_next(std::string outputs) { outputs_ = std::move(outputs); }

  private:
    using IRMutator::visit;
    Halide::Internal::Stmt visit(const Halide::Internal::LetStmt *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::Allocate *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::For *op) override;
    Halide::Internal::Stmt within_loop(const Halide::Internal::For *op);
    Halide::Internal::Stmt reduction(const Halide::Internal::For *op);
    Halide::Internal::Stmt fetching(const Halide::Internal::For *op) const;
    Halide::Expr is_first_pass(const Halide::Expr &w_at) const;

    const std::string sum_;
    const int w_bytes_ahead_, x_steps_ahead_, second_level_cache_;
    std::string y_, outputs_;
    int images_ = 0, least_steps_ = 0, x_images_ = 0, next_positions_ = 0, next_rows_ = 0;
    // Of what is around the code that is visited: loops, outermost first, and where those of a reduction begin; values by name;
    // whether it is the copy for weights that are far; where in sums it is, and for which of them; the weights that come next; names
    // of how many bytes further x is of the next tile of positions, and of a next row; fetches of y's lines that are stored to
    // there, and whether those are far.
    std::vector<const Halide::Internal::For *> loops_;
    std::size_t reduction_begin_ = 0;
    Lets lets_;
    bool weights_far_ = false;
    enum class Sums { kOutside, kUndecided, kNear, kOfFarX, kStoredFar, kOfFarWeights } sums_ = Sums::kOutside;
    std::optional<NextWeights> next_;
    struct {
        std::string tile, row;
    } next_x_;
    std::vector<Halide::Internal::Stmt> stored_;
    Halide::Expr stores_far_;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_PREFETCH_H_
