// A lowering pass that computes with the matrix instructions of AMX: Halide 21 does so for one accumulator at a time, which
// waits out the latency of each (52 cycles where 16 would do); this keeps as many as are unrolled.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_AMX_TILES_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_AMX_TILES_H_

#include <string>
#include <utility>
#include <vector>

#include <Halide.h>

namespace convtranspose {

// Loops that make up a matrix instruction, innermost first: 4 bytes of neighbours, up to 16 of those, columns and rows of a
// tile. Those of one step may be left out.
struct AmxLoops {
    static constexpr const char *kBytes = "amx_bytes", *kDepth = "amx_depth", *kColumns = "amx_columns",
                                *kRows = "amx_rows";
};

// Makes tile registers of what Func `sum` holds. Its stages, and the one that reads it, must be loops of the names above, not
// vectorized, around one store: of zero; of its sum with a product of two loads, kBytes and kDepth innermost; or into memory,
// dense along kColumns. What is multiplied must be of bf16, or of bytes, and the operand of the rows dense along kBytes and
// kDepth, that of the columns along kBytes and kColumns. Ends with a message where that is not so.
class AmxTiles : public Halide::Internal::IRMutator {
  public:
    explicit AmxTiles(std::string sum) : sum_(std::move(sum)) {}

  private:
    using IRMutator::visit;

    Halide::Internal::Stmt visit(const Halide::Internal::Allocate *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::Free *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::For *op) override;

    const std::string &tile_at(const Halide::Expr &index); // the register of the accumulator that begins there

    std::string sum_;
    std::vector<std::pair<Halide::Expr, std::string>> tiles_;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_AMX_TILES_H_
