// The search space of kernels for one layer: what the generators can make of it, in the order in which it is worth trying.
#ifndef CONVTRANSPOSE_TOOLS_TUNE_SCHEDULE_CANDIDATES_H_
#define CONVTRANSPOSE_TOOLS_TUNE_SCHEDULE_CANDIDATES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/selection/candidates.h"

namespace convtranspose {

struct ScheduleCandidate {
    // family_dtype_store_sWxH_tile_KEY, where KEY is a hash of the parameters and of what is built in.
    std::string name;
    std::string generator;
    // "name=value", all that the generator needs but its target (ISA) and -f. Candidates that differ in x_in_place alone have
    // the same: one object serves both.
    std::vector<std::string> parameters;
    Variant variant{};                               // but for name, run and built_in
    BuiltIn built_in{};                              // but for the tables
    std::array<std::vector<std::int32_t>, 3> tables; // w, h, d; empty: none
    double cost = 0;                                 // estimated cycles on one thread

    // The variant with all that it points to, which this owns.
    void complete(Variant *row, BuiltIn *layer) const;
};

// For kernels of floats and of 8-bit integers; empty for others. Every one of them compiles and can compute the problem. At most
// `most`, best first, by the estimate of runtime/selection/candidates.cpp.
std::vector<ScheduleCandidate> schedule_candidates(const SpatialProblem &problem, Isa isa, std::size_t most = 200);

// What the generator of autoscheduled kernels needs of a layer of floats; empty: it has none for it. Its kernels are used as the
// reference is, by calls that compute all residues, of which y must have as many of each.
std::vector<std::string> auto_parameters(const SpatialProblem &problem);

} // namespace convtranspose

#endif // CONVTRANSPOSE_TOOLS_TUNE_SCHEDULE_CANDIDATES_H_
