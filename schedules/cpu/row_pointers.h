// A lowering pass by which a step of a reduction reads the positions of a row of x through one pointer.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_ROW_POINTERS_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_ROW_POINTERS_H_

#include <string>
#include <utility>

#include <Halide.h>

namespace convtranspose {

// In each innermost loop that stores to Func `sum`: loads of input `x` of which all indices but the first are the same, and that
// one less than `positions` apart, are from a pointer that each step makes anew, plus multiples of x's first stride, which is
// known at run time only. LLVM is told nothing about that pointer. Else its LoopStrengthReduce would step through x by a register
// for each position, an addition each, on the ports of the multiply-adds (62 instructions for the 28 multiply-adds of 2x14; 51
// so), or keep some of the addresses on the stack.
class RowPointers : public Halide::Internal::IRMutator {
  public:
    RowPointers(std::string sum, std::string x, int positions)
        : sum_(std::move(sum)), x_(std::move(x)), positions_(positions) {}

  private:
    using IRMutator::visit;
    Halide::Internal::Stmt visit(const Halide::Internal::For *op) override;

    const std::string sum_, x_;
    const int positions_;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_ROW_POINTERS_H_
