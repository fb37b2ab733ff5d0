// A lowering pass that changes the order in which a step of a reduction goes through the positions of a register tile.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_PASSES_INTERLEAVE_POSITIONS_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_PASSES_INTERLEAVE_POSITIONS_H_

#include <string>
#include <utility>

#include <Halide.h>

namespace convtranspose {

// A step must be nothing but stores to Func `sum`, `vectors` of them for each position. The positions of the second half then come
// between those of the first. Where positions lie a stride apart that only the caller knows, LLVM's LoopStrengthReduce derives the
// address of a position from its neighbour's, an addition each on the ports of the multiply-adds. Distances that change it leaves
// alone, and then all positions share an index.
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

#endif // CONVTRANSPOSE_SCHEDULES_CPU_PASSES_INTERLEAVE_POSITIONS_H_
