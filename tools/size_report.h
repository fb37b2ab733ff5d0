// What the kernels cost in bytes, by ISA, type and family.
#ifndef CONVTRANSPOSE_TOOLS_SIZE_REPORT_H_
#define CONVTRANSPOSE_TOOLS_SIZE_REPORT_H_

#include <set>
#include <string>

namespace convtranspose::tools {

// The kernels that a set of layers uses, in the words of the build's options: CONVTRANSPOSE_TYPES and _FAMILIES.
struct Selection {
    std::set<std::string> types, families;

    void add(const std::string &variant); // by its name
};

// All that is built in. Throws Error where sizes are not known.
std::string size_report();

// A selection: the options that build it, and what it costs for each ISA.
std::string size_report(const Selection &selection);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_SIZE_REPORT_H_
