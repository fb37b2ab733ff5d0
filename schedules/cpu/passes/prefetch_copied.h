// A lowering pass that fetches, into the first-level cache, what a copy soon reads and the lines that it soon writes, where they are
// far. Rows that a copy reads or writes side by side are streams too many for a core to follow.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_PASSES_PREFETCH_COPIED_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_PASSES_PREFETCH_COPIED_H_

#include <string>
#include <utility>
#include <vector>

#include <Halide.h>

namespace convtranspose {

// Adds fetches where the code has branched on a condition that holds. They stand before each innermost loop, and before the loops directly
// around it that run over one of some variables. For each step of those loops they fetch what lies so many bytes behind each vector that
// the step loads from input x, or stores to output `copy`, if its flag says so. A prefetch outside of a buffer has no effect.
class PrefetchCopied : public Halide::Internal::IRMutator {
  public:
    static constexpr int kBytesAhead = 256;

    // An input or output, the flag that says whether it is fetched, and how far ahead, in bytes.
    struct Buffer {
        std::string name;
        Halide::Expr is_fetched;
        Halide::Expr ahead = kBytesAhead;
    };

    PrefetchCopied(Buffer x, Buffer copy, Halide::Expr condition, std::vector<std::string> variables)
        : x_(std::move(x)), copy_(std::move(copy)), condition_(std::move(condition)), variables_(std::move(variables)) {
    }

  private:
    using IRMutator::visit;
    Halide::Internal::Stmt visit(const Halide::Internal::IfThenElse *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::For *op) override;

    const Buffer x_, copy_;
    const Halide::Expr condition_;
    const std::vector<std::string> variables_;
    bool holds_ = false; // the condition, where the visit is
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_PASSES_PREFETCH_COPIED_H_
