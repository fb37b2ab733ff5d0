// Counts the CPUs that this process may use.
#pragma once

#include <cstddef>

namespace convtranspose {

// Returns the number of CPUs in the calling thread's affinity mask, or fewer if its control group grants less time; 1 without
// threads.
std::size_t usable_cpus();

// Returns the CPU time that Linux control groups grant the process, as a number of CPUs; 0: there is no limit. root is a prefix
// of all paths; it is "" except in tests.
double granted_cpus(const char *root);

} // namespace convtranspose
