// How a kernel reads x: where it is, or a copy of it, or of parts of it.
#ifndef CONVTRANSPOSE_RUNTIME_SELECTION_INPUT_ACCESS_H_
#define CONVTRANSPOSE_RUNTIME_SELECTION_INPUT_ACCESS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_tables.h"
#include "kernels/variant.h"
#include "problem/spatial_problem.h"

namespace convtranspose {

// Positions q of w, begin .. end - 1.
struct Columns {
    std::int64_t begin = 0, end = 0;
    bool any() const { return begin < end; }
};

// Whether neighbouring positions, so many bytes apart, would meet in one or two sets of a first-level cache: then a tile of them
// does not stay there from one input channel to the next.
inline bool in_few_sets(std::int64_t bytes) { return bytes % 2048 == 0; }

// Whether rows of y are made up of whole tiles, as a built-in stride reads them.
bool has_whole_tiles(const Variant &v, const SpatialProblem &p);

// Whether the variant reads each element of x for so few products that copying it would take about as long.
bool prefers_in_place(const Variant &v, const SpatialProblem &p);

// Whether the variant is to read x where it is, even if that is estimated to be slower.
bool forces_in_place(const Variant &v, const SpatialProblem &p);

// Whether the variant can read x where it is, but for taps that leave it, and for a last tile at the end of all strips.
bool reads_x_in_place(const Variant &v, const SpatialProblem &p);

constexpr std::size_t kNoAxis = 3;
// Whether taps along some other axis than `but` leave x, other than those that the variant leaves out.
bool leaves_x(const Variant &v, const SpatialProblem &p, std::size_t but);

// The columns whose tiles read x where it is, as taps leave x along w only: whole tiles, with tiles enough after them that the
// last one, which overlaps the one before it, does not reach back to them.
Columns columns_in_place(const Variant &v, const SpatialProblem &p, const NarrowerTiles &narrower);

// Whether the ends of rows are copied alone. Each tile of output channels then reads its weights once more for either end, which
// is for weights that stay in the second-level cache.
bool packs_row_edges(const Variant &v, const SpatialProblem &p);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_SELECTION_INPUT_ACCESS_H_
