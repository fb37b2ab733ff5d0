// A lowering pass that looks up the taps of a phase once, and tests once which of them are inside of x.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_PASSES_HOIST_TAP_LOADS_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_PASSES_HOIST_TAP_LOADS_H_

#include <string>
#include <utility>
#include <vector>

#include <Halide.h>

#include "cpu/passes/let_scope.h"

namespace convtranspose {

// Loads of tap tables move to where the phase is known, outside of the loops over its positions: Halide leaves them at their
// use, under conditions that LLVM moves no load out of, so that each tap begins with a chain of loads. A condition that is known
// to hold, as it stands within the same one, is left out: for each of them LLVM's LoopUnswitch copies the loops around it.
class HoistTapLoads : public Halide::Internal::IRMutator {
  public:
    // tables: the names of the inputs that hold taps.
    explicit HoistTapLoads(std::vector<std::string> tables) : tables_(std::move(tables)) {}

  private:
    using IRMutator::visit;
    Halide::Internal::Stmt visit(const Halide::Internal::For *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::LetStmt *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::IfThenElse *op) override;

    const std::vector<std::string> tables_;
    LetScope scope_;                  // around what is visited
    std::vector<Halide::Expr> known_; // conditions that hold there
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_PASSES_HOIST_TAP_LOADS_H_
