// A lowering pass by which kernels look up the taps of a residue once, and test once which of them are inside of x.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_TAPS_ONCE_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_TAPS_ONCE_H_

#include <vector>

#include <Halide.h>

#include "lets.h"

namespace convtranspose {

// Tables of taps (taps_w, taps_h, taps_d) are read where the residue is known, outside of the loops over its positions. As Halide
// has them, loads stand where they are used, under conditions, from where LLVM moves none of them: each tap began with a chain of
// loads and multiplications, and the first load of x after it. Of conditions within others those are left out that are known
// there to hold: LLVM's LoopUnswitch makes copies of the loops around for each, and gives up where those are many.
class TapsOnce : public Halide::Internal::IRMutator {
  private:
    using IRMutator::visit;
    Halide::Internal::Stmt visit(const Halide::Internal::For *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::LetStmt *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::IfThenElse *op) override;

    Lets lets_;                       // around what is visited
    std::vector<Halide::Expr> known_; // conditions that hold there
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_TAPS_ONCE_H_
