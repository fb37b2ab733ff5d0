// A set of loops, by which a lowering pass tells a later one about them.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_PASSES_LOOP_SET_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_PASSES_LOOP_SET_H_

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <Halide.h>

namespace convtranspose {

// Loops, each that very node of the code: a pass that runs between the one that fills the set and the one that reads it must not
// make them anew. A schedule gives both the same set.
class LoopSet {
  public:
    void add(Halide::Internal::Stmt loop) { loops_.push_back(std::move(loop)); }

    bool has(const Halide::Internal::For *loop) const {
        return std::any_of(loops_.begin(), loops_.end(), [&](const auto &l) { return l.get() == loop; });
    }

  private:
    std::vector<Halide::Internal::Stmt> loops_; // held, so that no other node is made in the same place
};

using SharedLoopSet = std::shared_ptr<LoopSet>;

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_PASSES_LOOP_SET_H_
