// A lowering pass that reads the positions of a row of x, in a step of a reduction, through one pointer.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_PASSES_ROW_BASE_POINTERS_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_PASSES_ROW_BASE_POINTERS_H_

#include <string>
#include <utility>

#include <Halide.h>

namespace convtranspose {

// In each innermost loop that stores to Func `sum`, loads of input `x` at constant distances are made from one pointer, as are those
// that are less than `positions` multiples of x's first stride apart, where only the caller knows that. Each step makes the pointer
// anew, hidden from LLVM, whose LoopStrengthReduce would step through x by a register for each position, an addition each on the
// ports of the multiply-adds, or keep some of the addresses on the stack.
class RowBasePointers : public Halide::Internal::IRMutator {
  public:
    RowBasePointers(std::string sum, std::string x, int positions)
        : sum_(std::move(sum)), x_(std::move(x)), positions_(positions) {}

  private:
    using IRMutator::visit;
    Halide::Internal::Stmt visit(const Halide::Internal::For *op) override;

    const std::string sum_, x_;
    const int positions_;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_PASSES_ROW_BASE_POINTERS_H_
