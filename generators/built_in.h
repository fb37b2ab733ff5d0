// The parts of a layer that are built into a kernel, which then is for such layers alone (kernel_contract/kernel_table.h: BuiltIn).
#ifndef CONVTRANSPOSE_GENERATORS_BUILT_IN_H_
#define CONVTRANSPOSE_GENERATORS_BUILT_IN_H_

#include <array>
#include <string>
#include <vector>

#include "conv_transpose.h"

namespace convtranspose {

// The taps of an axis. Nothing is built in if there is neither a table nor a count.
struct BuiltInTaps {
    int step = 0;                                    // with a table: between the input positions of consecutive taps
    std::vector<std::array<int, kTapColumns>> table; // a row for each phase
    int count = 0;                                   // of taps: every phase has as many; 0: they may differ

    int kernel() const; // with a table: extent of the packed weights
    bool knows_counts() const { return count > 0 || !table.empty(); }
};

// table: "STEP/OFFSET:COUNT:FIRST,..." with a row for each of `stride` phases, or empty. If the stride is not built in, y has a
// whole number of positions of each of the phases, so that all calls are for all of them. count: as above. Ends with a message
// that names `axis` if they make no sense.
BuiltInTaps read_built_in_taps(const std::string &axis, const std::string &table, int count, int stride);

// Makes constants of what is built in.
void build_in(const BuiltInTaps &built_in, Axis *axis);

} // namespace convtranspose

#endif // CONVTRANSPOSE_GENERATORS_BUILT_IN_H_
