// Candidates: every variant of an ISA, with its estimated cost for a problem or the reason why it cannot compute it.
#ifndef CONVTRANSPOSE_RUNTIME_SELECTION_CANDIDATES_H_
#define CONVTRANSPOSE_RUNTIME_SELECTION_CANDIDATES_H_

#include <vector>

#include "cpu/cost_profile.h"
#include "kernels/variant.h"
#include "problem/spatial_problem.h"
#include "selection/input_access.h"
#include "selection/kernel_support.h"

namespace convtranspose {

struct Candidate {
    const Variant *variant = nullptr;
    UnsupportedReason unsupported;
    double cost = 0, copying = 0; // estimated cycles on one thread; those among them that copy x
    bool copies_x = false;
    bool packs_edge_strips = false; // only strips of x that taps leave are copied
    Columns in_place;               // if any, x is read in place for these and copied for the others
    bool narrower_ends = false;     // rows that are not whole tiles end in a narrower one (narrower_tiles())
};

// Estimates the variant for the problem by the profile, or says why it cannot compute it.
Candidate candidate(const Variant &variant, const SpatialProblem &problem, const CostProfile &profile);

// Returns the candidates for the problem, one for each variant of the ISA, in the order of the tables.
std::vector<Candidate> candidates(const SpatialProblem &problem, Isa isa, const CostProfile &profile);

// Returns the cost of the cheapest candidate for a layer of up to three axes.
double least_cost(const Geometry &geometry, Isa isa, const CostProfile &profile);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_SELECTION_CANDIDATES_H_
