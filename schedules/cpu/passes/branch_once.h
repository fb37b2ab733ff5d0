// A lowering pass that stores a whole tile behind one branch.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_PASSES_BRANCH_ONCE_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_PASSES_BRANCH_ONCE_H_

#include <Halide.h>

namespace convtranspose {

// Where the last tile of an output may be stored in part, Halide makes of each vector's store a branch: if all of the vector is
// inside, it is stored, otherwise the part that is. This pass makes one branch of those that follow each other: if all of all
// vectors is inside, they are stored, otherwise the parts. LLVM leaves the branches as they are.
class BranchOnce : public Halide::Internal::IRMutator {
  private:
    using IRMutator::visit;
    Halide::Internal::Stmt visit(const Halide::Internal::Block *op) override;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_PASSES_BRANCH_ONCE_H_
