// Reports the bytes that kernels take, by ISA, type and family.
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

// Reports on all kernels that are built in. Throws Error if sizes are not known.
std::string size_report();

// Reports on a selection: the options that build it, and its bytes for each ISA.
std::string size_report(const Selection &selection);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_SIZE_REPORT_H_
