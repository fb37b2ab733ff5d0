// A lowering pass by which reductions leave out the positions at either end of a row of a tile that a tap reads outside of x.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_ROW_ENDS_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_ROW_ENDS_H_

#include <string>
#include <utility>

#include <Halide.h>

#include "lets.h"

namespace convtranspose {

// In each innermost loop that stores to Func `sum`, tiles of `tile_oc` channels by `tile_q` positions of a row (by rows): where the
// first or the last position is outside of input `x`, the loop runs without it; without `most` of them where so many are. Further
// ones are multiplied all the same, so zeros have to be there. What is outside is told by the minimum and the extent of x's first
// dimension. Of 8x8 images, 3x3 or 4x4 stride 2, a sixteenth is such, of 4x4 ones an eighth.
class RowEnds : public Halide::Internal::IRMutator {
  public:
    RowEnds(std::string sum, std::string x, int tile_oc, int tile_q, int most)
        : sum_(std::move(sum)), x_(std::move(x)), tile_oc_(tile_oc), tile_q_(tile_q), most_(most) {}

  private:
    using IRMutator::visit;
    Halide::Internal::Stmt visit(const Halide::Internal::LetStmt *op) override;
    Halide::Internal::Stmt visit(const Halide::Internal::For *op) override;
    Halide::Expr position(Halide::Expr index) const;

    const std::string sum_, x_;
    const int tile_oc_, tile_q_, most_;
    Lets lets_; // around what is visited
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_ROW_ENDS_H_
