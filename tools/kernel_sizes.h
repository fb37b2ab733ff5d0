// The bytes of code of each kernel that is built in, in a table that the build makes (cmake/kernel_sizes.cmake).
#ifndef CONVTRANSPOSE_TOOLS_KERNEL_SIZES_H_
#define CONVTRANSPOSE_TOOLS_KERNEL_SIZES_H_

#include <cstddef>
#include <vector>

namespace convtranspose::tools {

struct KernelSize {
    const char *name; // of the variant or copy, and behind it _ and the ISA
    std::size_t bytes;
};

const std::vector<KernelSize> &kernel_sizes();
extern const std::size_t kRuntimeSize; // of the dispatcher, which every program has

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_KERNEL_SIZES_H_
