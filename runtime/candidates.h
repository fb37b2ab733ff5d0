// Choosing a kernel: every variant of the ISA either refuses a problem, with the reason, or estimates its cost.
#ifndef CONVTRANSPOSE_RUNTIME_CANDIDATES_H_
#define CONVTRANSPOSE_RUNTIME_CANDIDATES_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "axis_plan.h"
#include "geometry.h"
#include "variant.h"

namespace convtranspose {

// A problem of up to three spatial axes, w, h, d; those it lacks have extent 1.
struct CoreProblem {
    Geometry geometry;
    convt_dtype x_dtype, y_dtype;              // y_dtype: of y, or that of the sums; u8 for any 8-bit y
    std::array<AxisGeometry, 3> axes;          // w, h, d
    std::array<std::int64_t, 3> weight_stride; // of the node, by which weights are packed; axes may have another
    std::array<AxisPlan, 3> plan;              // residues that have outputs
    bool sums_in_f16 = false;                  // asked for
    bool weights_at_run_time = false;
    bool may_be_infinite = false;             // weights known to hold an inf or a NaN
    bool fits_int8 = true, fits_int32 = true; // WeightFacts, as far as they are known

    std::int64_t ic() const { return geometry.in_channels_per_group(); }
    std::int64_t oc() const { return geometry.out_channels_per_group(); }
    bool reads_outside() const;                 // whether a tap of some output leaves x
    bool reads_outside(std::size_t axis) const; // along that one
    std::size_t strip_axis() const; // along which x is copied and computed in strips: the outermost that has an extent
};

// single_positions: whether axes on which x has one position are made residues only (see the source).
CoreProblem core_problem(const Geometry &geometry, convt_dtype y_dtype, bool single_positions);

// Why a variant cannot. Made for every variant with every plan, and seldom read: so no text yet.
struct Refusal {
    const char *text = nullptr; // # stands for the numbers, in order; null: it can
    std::int64_t first = 0, second = 0;
};
std::string to_string(const Refusal &refusal);

// Positions q of w, begin .. end - 1.
struct Columns {
    std::int64_t begin = 0, end = 0;
    bool any() const { return begin < end; }
};

struct Candidate {
    const Variant *variant = nullptr;
    Refusal refusal;
    double cost = 0; // estimated cycles on one thread
    bool copies_x = false;
    bool copies_ends = false;   // but strips of x that no tap leaves are read in place
    Columns in_place;           // if any, of these x is read in place though it is copied for the others
    bool narrower_ends = false; // rows end in a narrower tile, where they do not fill one (narrower_tiles())
};

Candidate candidate(const Variant &variant, const CoreProblem &problem);

// Tries every variant of the ISA; in table order, which ends in the reference, which never refuses.
std::vector<Candidate> candidates(const CoreProblem &problem, Isa isa);

// The cost of the cheapest of them, for a layer whose axes are all the core's.
double least_cost(const Geometry &geometry, Isa isa);

// The order in which x has to be copied for a variant.
// Cycles to store a single element of y among those of other channels. Where its cache line holds none that is stored with it,
// that line comes from further away: measured, 6 cycles with positions 1536 bytes apart, 44 with 4096, which meet in few sets.
double cycles_to_scatter(const Geometry &geometry);
// Whether groups of channels of y, channels last, are of less than a cache line.
bool shares_cache_lines(const Geometry &geometry);

// Whether neighbouring positions, so many bytes apart, would meet in one or two sets of a first-level cache: then a tile of them
// does not stay there from one input channel to the next.
inline bool in_few_sets(std::int64_t bytes) { return bytes % 2048 == 0; }

CopyOrder copy_order(const Variant &variant, convt_layout layout);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_CANDIDATES_H_
