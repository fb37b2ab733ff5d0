// A lowering pass that computes with the matrix instructions of AMX. Halide 21 has such a pass for one accumulator at a time, which
// waits for the latency of each instruction; this one keeps as many accumulators as the schedule unrolls.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_PASSES_AMX_TILES_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_PASSES_AMX_TILES_H_

#include <string>
#include <utility>
#include <vector>

#include <Halide.h>

namespace convtranspose {

// The schedule's variables whose loops make up a matrix instruction, innermost first. A loop of one step may be left out.
struct AmxLoops {
    std::string bytes;         // 4 bytes of neighbours
    std::string depth;         // up to 16 of those
    std::string columns, rows; // of a tile, up to 16 each
};

// Makes tile registers of the values of Func `sum`. Its stages, and the stage that reads it, must be loops over AmxLoops, not
// vectorized, around one store: of zero; of its sum with a product of two loads, bytes and depth innermost; or into memory, dense
// along columns. The factors must be bf16, or bytes; the operand of the rows must be dense along bytes and depth, that of the
// columns along bytes and columns. Ends with a message where that is not so.
class AmxTiles : public Halide::Internal::IRMutator {
  public:
    AmxTiles(std::string sum, AmxLoops loops) : sum_(std::move(sum)), loops_(std::move(loops)) {}

  private:
    using IRMutator::visit;

    Halide::Internal::Stmt visit(const Halide::Internal::Allocate *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::Free *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::For *op) override;

    const std::string &tile_at(const Halide::Expr &index); // the register of the accumulator that begins there

    const std::string sum_;
    const AmxLoops loops_;
    std::vector<std::pair<Halide::Expr, std::string>> tiles_;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_PASSES_AMX_TILES_H_
