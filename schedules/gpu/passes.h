// Lowering passes for GPUs, for what Halide 21 has no schedule for. They run after Halide's own, before kernels are split off.
#ifndef CONVTRANSPOSE_SCHEDULES_GPU_PASSES_H_
#define CONVTRANSPOSE_SCHEDULES_GPU_PASSES_H_

#include <map>
#include <set>
#include <string>

#include <Halide.h>

namespace convtranspose {

// Reduces an allocation to the part that one thread uses. Halide allocates a Func that all threads of a block compute, each its own
// part, over loops outside of the threads (around a barrier) for the whole block; in registers that is once for each thread.
// Indices lose the thread's number, which leaves constants, and those are numbered afresh. As no other thread adds to the part,
// sums that are scheduled as atomic(), to be made by vectors, need no atomics.
class OneThreadsPart : public Halide::Internal::IRMutator {
  public:
    explicit OneThreadsPart(std::string func) : func_(std::move(func)) {}

  private:
    using Halide::Internal::IRMutator::visit;
    Halide::Internal::Stmt visit(const Halide::Internal::For *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::LetStmt *op) override;
    Halide::Expr visit(const Halide::Internal::Let *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::Allocate *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::Atomic *op) override;
    Halide::Expr visit(const Halide::Internal::Load *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::Store *op) override;

    bool is_ours(const std::string &name) const;
    Halide::Expr renumbered(Halide::Expr index);

    const std::string func_;
    std::set<std::string> threads_;
    std::map<std::string, Halide::Expr> lets_;
    std::map<std::int64_t, int> places_; // from the block's allocation to the thread's
};

// Ends a loop at a bound that differs between blocks, if its body, which has barriers, does nothing unless loop < bound. The body
// then need not ask.
class BoundedLoop : public Halide::Internal::IRMutator {
  public:
    explicit BoundedLoop(std::string loop) : loop_(std::move(loop)) {}

  private:
    using Halide::Internal::IRMutator::visit;
    Halide::Internal::Stmt visit(const Halide::Internal::For *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::IfThenElse *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::LetStmt *op) override;
    Halide::Expr visit(const Halide::Internal::LT *op) override;

    const std::string loop_;
    std::string name_; // the loop's own, while inside of it
    Halide::Expr bound_;
};

// Leaves two barriers in a loop that first fills shared memory by several stages and then reads all of it: one between writes and
// reads, and one between the turns. Halide puts some around each stage.
class TwoBarriers : public Halide::Internal::IRMutator {
  public:
    explicit TwoBarriers(std::string loop) : loop_(std::move(loop)) {}

  private:
    using Halide::Internal::IRMutator::visit;
    Halide::Internal::Stmt visit(const Halide::Internal::For *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::Evaluate *op) override;

    const std::string loop_;
    int before_reads_ = 0, between_turns_ = 0; // which barriers stay, from 1; 0: outside of the loop
    int seen_ = 0;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_GPU_PASSES_H_
