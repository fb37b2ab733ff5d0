// Why a kernel cannot compute a layer.
#ifndef CONVTRANSPOSE_RUNTIME_SELECTION_KERNEL_SUPPORT_H_
#define CONVTRANSPOSE_RUNTIME_SELECTION_KERNEL_SUPPORT_H_

#include <cstdint>
#include <string>

#include "kernels/variant.h"
#include "problem/spatial_problem.h"

namespace convtranspose {

// Why a variant cannot. Made for every variant with every plan, and seldom read: so no text yet.
struct UnsupportedReason {
    const char *text = nullptr; // # stands for the numbers, in order; null: it can
    std::int64_t first = 0, second = 0;
    bool is_overflow = false; // it could, were numbers of more bits
};
std::string to_string(const UnsupportedReason &unsupported);

// Something that a kernel reads or writes has more elements than it can count.
UnsupportedReason too_large(const char *text, std::int64_t elements);

// What stands against the variant, or nothing.
UnsupportedReason unsupported_reason(const Variant &variant, const SpatialProblem &problem);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_SELECTION_KERNEL_SUPPORT_H_
