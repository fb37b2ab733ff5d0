// A lowering pass that leaves out the positions at either end of a tile's row where a tap reads the zeros around x.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_PASSES_SKIP_PADDING_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_PASSES_SKIP_PADDING_H_

#include <memory>
#include <string>
#include <utility>

#include <Halide.h>

#include "cpu/passes/let_scope.h"
#include "cpu/passes/loop_set.h"

namespace convtranspose {

// In each innermost loop that stores to Func `sum`, tiles of `tile_oc` channels by `tile_q` positions of a row (by rows): where the
// first or the last position is outside of input `x`, the loop runs without it, and without up to `most` of them where so many are.
// Others outside of x are multiplied all the same, so the caller must have zeros there. The minimum and the extent of x's first
// dimension say what is outside. Loops of the set `kept` stay as they are; it may be null.
class SkipPadding : public Halide::Internal::IRMutator {
  public:
    SkipPadding(std::string sum, std::string x, int tile_oc, int tile_q, int most,
                std::shared_ptr<const LoopSet> kept = nullptr)
        : sum_(std::move(sum)), x_(std::move(x)), tile_oc_(tile_oc), tile_q_(tile_q), most_(most),
          kept_(std::move(kept)) {}

  private:
    using IRMutator::visit;
    Halide::Internal::Stmt visit(const Halide::Internal::LetStmt *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::For *op) override;
    Halide::Expr position(Halide::Expr index) const;

    const std::string sum_, x_;
    const int tile_oc_, tile_q_, most_;
    const std::shared_ptr<const LoopSet> kept_;
    LetScope scope_; // around what is visited
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_PASSES_SKIP_PADDING_H_
