// Part of Prefetch (prefetch.h): where the weights of the tile that comes next lie.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_PASSES_PREFETCH_NEXT_WEIGHTS_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_PASSES_PREFETCH_NEXT_WEIGHTS_H_

#include <string>
#include <utility>
#include <vector>

#include <Halide.h>

namespace convtranspose {

// The weights of a tile are read once for each tile of positions. The first of those passes waits for them if they come from
// further than the second-level cache, for about as long as a few passes take. So each pass also fetches an equal share of the
// next tile's weights into that cache, one line a step at most.
class PrefetchNextWeights {
  public:
    // at: the byte of w that a reduction reads. loops: those around it, outermost first. output_tiles: the schedule's variable over
    // tiles of output channels; the loop around that is over groups, of which a call may compute a part, as one of several threads.
    PrefetchNextWeights(const Halide::Expr &at, const std::vector<const Halide::Internal::For *> &loops,
                        const std::string &output_tiles, int second_level_cache_bytes);

    // True if they are to be fetched: a group's weights do not stay in the second-level cache, but two tiles' do, and there are
    // several passes. Undefined if none of the loops is over tiles.
    const Halide::Expr &are_far() const { return far_; }

    // The outermost of the loops over a tile's positions, outside of which are_far() is known; null if there is none.
    const Halide::Internal::For *first_of_passes() const { return first_of_passes_; }

    // The byte of w that the first step of a pass fetches, and how many bytes each step goes further. Undefined if the reads of
    // consecutive steps do not lie behind one another.
    struct Lines {
        Halide::Expr first, share;
    };
    Lines lines(const Halide::Internal::For *steps, const Halide::Expr &at) const;

    // The number of passes that came before a reduction within loops `around`. Where that computes the rest of a row, the loop over the
    // row's whole tiles has ended, and is not among them.
    Halide::Expr pass(const std::vector<const Halide::Internal::For *> &around) const;

  private:
    const Halide::Internal::For *first_of_passes_ = nullptr;
    Halide::Expr far_, passes_, pass_;
    std::vector<const Halide::Internal::For *> over_positions_;
    std::vector<std::pair<std::string, Halide::Expr>> moved_; // the loops' variables one tile later
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_PASSES_PREFETCH_NEXT_WEIGHTS_H_
