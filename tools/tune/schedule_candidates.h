// The search space of kernels for one layer: those that the generators can make, in the order in which they are worth trying.
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
    // The name of a kernel for one layer (docs/kernel-names.md) without _in_place. It ends in a hash of all that makes the kernel.
    std::string name;
    std::string generator;
    // "name=value" for all that the generator needs, except its target (ISA) and -f. Candidates that differ in x_in_place alone
    // have the same parameters, and one object serves both.
    std::vector<std::string> parameters;
    Variant variant{};                               // but for name, run and built_in
    BuiltIn built_in{};                              // but for the tables
    std::array<std::vector<std::int32_t>, 3> tables; // w, h, d; empty: none
    double cost = 0;                                 // estimated cycles on one thread

    // Makes the variant complete with all that it points to, which this object owns.
    void complete(Variant *row, BuiltIn *layer) const;
};

// At most `most` candidates for kernels of floats and of 8-bit integers; none for others. Each compiles and can compute the
// problem. They are sorted, best first, by the estimate of runtime/selection/candidates.cpp.
std::vector<ScheduleCandidate> schedule_candidates(const SpatialProblem &problem, Isa isa, std::size_t most = 200);

// The parameters that the generator of autoscheduled kernels needs for a layer of floats; empty if it can make none. Its kernels
// are used as the reference is, by calls that compute all phases, so y must have equally many positions of each.
std::vector<std::string> auto_parameters(const SpatialProblem &problem);

} // namespace convtranspose

#endif // CONVTRANSPOSE_TOOLS_TUNE_SCHEDULE_CANDIDATES_H_
