// A lowering pass that stores a whole tile behind one branch.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_PASSES_BRANCH_ONCE_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_PASSES_BRANCH_ONCE_H_

#include <Halide.h>

namespace convtranspose {

// Where the last tile of an output may be stored in part, Halide makes a branch of the store of each vector: a vector that lies inside
// of the output is stored whole, otherwise the part that does. This pass makes one branch of those that follow each other: if all
// vectors lie inside, they are stored whole, otherwise a part of each. LLVM does not join such branches.
class BranchOnce : public Halide::Internal::IRMutator {
  private:
    using IRMutator::visit;
    Halide::Internal::Stmt visit(const Halide::Internal::Block *op) override;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_PASSES_BRANCH_ONCE_H_
