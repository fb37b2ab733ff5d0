// Choosing a kernel: every variant of the ISA either refuses a problem, with the reason, or estimates its cost.
#ifndef CONVTRANSPOSE_RUNTIME_SELECTION_CANDIDATES_H_
#define CONVTRANSPOSE_RUNTIME_SELECTION_CANDIDATES_H_

#include <vector>

#include "kernels/variant.h"
#include "problem/spatial_problem.h"
#include "selection/input_access.h"
#include "selection/kernel_support.h"

namespace convtranspose {

struct Candidate {
    const Variant *variant = nullptr;
    UnsupportedReason unsupported;
    double cost = 0, copying = 0; // estimated cycles on one thread; and those of them that copy x
    bool copies_x = false;
    bool packs_edge_strips = false; // but strips of x that no tap leaves are read in place
    Columns in_place;               // if any, of these x is read in place though it is copied for the others
    bool narrower_ends = false;     // rows end in a narrower tile, where they do not fill one (narrower_tiles())
};

Candidate candidate(const Variant &variant, const SpatialProblem &problem);

// Tries every variant of the ISA; in table order, which ends in the reference, which never refuses.
std::vector<Candidate> candidates(const SpatialProblem &problem, Isa isa);

// The cost of the cheapest of them, for a layer of up to three axes.
double least_cost(const Geometry &geometry, Isa isa);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_SELECTION_CANDIDATES_H_
