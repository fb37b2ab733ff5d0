// Where the weights of the tile that comes next lie.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_NEXT_WEIGHTS_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_NEXT_WEIGHTS_H_

#include <string>
#include <utility>
#include <vector>

#include <Halide.h>

namespace convtranspose {

// The weights of a tile are read once for each tile of positions. The first of those passes waits for them where they come from
// further than the second-level cache: at a third-level one's 9 bytes a cycle (Granite Rapids) for as long as two passes of 16
// sums should take, and 4x4 images have two. So each pass also fetches an equal share of the next tile's, one line a step at most.
class NextWeights {
  public:
    // at: the byte of w that a reduction reads, loops: those around it, outermost first, outputs: how the name of that over tiles of
    // output channels ends. The next one outwards is over groups, of which a call may compute a part, as one of several threads.
    // second_level_cache: its bytes.
    NextWeights(const Halide::Expr &at, const std::vector<const Halide::Internal::For *> &loops,
                const std::string &outputs, int second_level_cache);

    // Whether they are to be fetched: a group's do not stay in the second-level cache, but two tiles' do, and there are several
    // passes. Undefined if none of the loops is over tiles.
    const Halide::Expr &are_far() const { return far_; }

    // The outermost of the loops over a tile's positions; null if there is none. That they are far is known outside of it.
    const Halide::Internal::For *first_of_passes() const { return first_of_passes_; }

    // Bytes of w: what the first step of a pass fetches, and what each step goes further. Undefined where steps' reads do not lie
    // behind one another.
    struct Lines {
        Halide::Expr first, share;
    };
    Lines lines(const Halide::Internal::For *steps, const Halide::Expr &at) const;

    // The innermost loop of the reduction, whose steps read byte `at` of w, with a line of the next tile's fetched in each.
    Halide::Internal::Stmt fetched_in(const Halide::Internal::For *steps, const std::string &w,
                                      const Halide::Expr &at) const;

  private:
    const Halide::Internal::For *first_of_passes_ = nullptr;
    Halide::Expr far_, passes_, pass_;                        // pass_: how many came before
    std::vector<std::pair<std::string, Halide::Expr>> moved_; // loops' variables one tile later
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_NEXT_WEIGHTS_H_
