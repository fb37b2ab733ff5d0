// Reasons why a kernel cannot compute a layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/packed_weights.h"
#include "kernels/variant.h"
#include "problem/spatial_problem.h"

namespace convtranspose {

// The reason why a variant cannot compute a problem. It is made for every variant with every plan and seldom read, so its text is
// put together only by to_string().
struct UnsupportedReason {
    // In it, each # stands for a number, in order, @ for the positions of an axis (rows) and % for its name (h). Null: it can.
    const char *text = nullptr;
    std::int64_t first = 0, second = 0;
    bool is_overflow = false; // true: only because kernels count with 32 bits
    std::size_t axis = 0;     // w, h or d
};
std::string to_string(const UnsupportedReason &unsupported);

// Returns the reason that something has more elements than a kernel can count. text has a # for their number and one for the limit.
UnsupportedReason too_large(const char *text, std::int64_t elements);

// These rules are those of all kernels, for CPUs and for devices; the second is for those that are not for any problem. packing: the
// variant's own.
UnsupportedReason unsupported_arithmetic(Arithmetic arithmetic, const SpatialProblem &problem);
UnsupportedReason unsupported_values(Arithmetic arithmetic, const SpatialProblem &problem);
UnsupportedReason unsupported_sizes(const PackedLayout &packing, const SpatialProblem &problem);

constexpr const char *kOtherType = "computes another type of y";

// Returns why the variant cannot compute the problem; text is null if it can.
UnsupportedReason unsupported_reason(const Variant &variant, const SpatialProblem &problem);

} // namespace convtranspose
