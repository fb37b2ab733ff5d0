// A lowering pass that changes the order in which a step of a reduction goes through the positions of a register tile.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_INTERLEAVE_POSITIONS_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_INTERLEAVE_POSITIONS_H_

#include <string>
#include <utility>

#include <Halide.h>

namespace convtranspose {

// Where Func `sum` is stored to, `vectors` at a time for one position: those of the second half of the positions between those of
// the first. Where positions lie a stride apart that is known at run time only, LLVM makes addresses of neighbours one from the
// other (the chains of its LoopStrengthReduce): an addition a position and step, on the ports of the multiply-adds. Distances that
// change it leaves alone, and has an index that all positions share.
class InterleavePositions : public Halide::Internal::IRMutator {
  public:
    InterleavePositions(std::string sum, int vectors) : sum_(std::move(sum)), vectors_(vectors) {}

  private:
    using IRMutator::visit;
    Halide::Internal::Stmt visit(const Halide::Internal::Block *op) override;

    std::string sum_;
    int vectors_;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_INTERLEAVE_POSITIONS_H_
