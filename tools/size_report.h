// Reports the bytes that kernels take, by ISA, type and family.
#ifndef CONVTRANSPOSE_TOOLS_SIZE_REPORT_H_
#define CONVTRANSPOSE_TOOLS_SIZE_REPORT_H_

#include <set>
#include <string>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose::tools {

// The kernels that a set of layers uses, in the words of the build's options: CONVTRANSPOSE_TYPES and _FAMILIES.
struct Selection {
    std::set<std::string> types, families;

    // Adds all kernels that runs of a plan may call, and the types of x and y: their kernels copy x and finish y.
    void add(const Plan &plan, convt_dtype x, convt_dtype y, bool has_post_ops);
};

// Reports on all kernels that are built in. Throws Error if sizes are not known.
std::string size_report();

// Reports on a selection: the options that build it, and its bytes for each ISA.
std::string size_report(const Selection &selection);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_SIZE_REPORT_H_
