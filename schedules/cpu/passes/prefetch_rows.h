// A lowering pass that fetches the rows of y that come next, where y is far. A core follows a stream of lines by itself, but not rows of a
// plane that are written side by side. Measurements: docs/measurements/2026-11-30-rows-of-a-far-y.md.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_PASSES_PREFETCH_ROWS_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_PASSES_PREFETCH_ROWS_H_

#include <string>
#include <utility>

#include <Halide.h>

namespace convtranspose {

// Before the sums of each tile are computed: fetches, into the second-level cache, the lines of output `y` that the tile with the same
// columns stores to so many steps of the loop over rows later that they are at least kLeastAhead bytes away. A prefetch outside of y
// has no effect.
class PrefetchRows : public Halide::Internal::IRMutator {
  public:
    static constexpr int kLeastAhead = 6 << 10; // bytes

    // The Func of the sums, which are allocated for a tile and stored there, and the output.
    struct Names {
        std::string sum, y;
    };

    // step: how far the loop over rows goes at a time, in bytes. is_fetched: whether rows are.
    PrefetchRows(Names names, Halide::Expr step, Halide::Expr is_fetched)
        : names_(std::move(names)), step_(std::move(step)), is_fetched_(std::move(is_fetched)) {}

  private:
    using IRMutator::visit;
    Halide::Internal::Stmt visit(const Halide::Internal::ProducerConsumer *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::Allocate *op) override;

    const Names names_;
    const Halide::Expr step_, is_fetched_;
    std::string ahead_; // the variable that holds the distance, in bytes; 0: nothing is fetched
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_PASSES_PREFETCH_ROWS_H_
