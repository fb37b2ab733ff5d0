#include "algorithms/algorithm.h"

#include <algorithm>

namespace convtranspose {

std::initializer_list<Algorithm> algorithms() {
    // convt_algorithm_name() promises that they are in alphabetical order.
    static constexpr std::initializer_list<Algorithm> kAll = {
        {"batch_as_width", false, propose_batch_as_width},
        {"col2im", false, propose_col2im},
        {"depth_to_space", false, propose_depth_to_space},
        {"direct", false, propose_direct},
        {"layout_transpose", false, propose_layout_transpose},
        {"output_parts", false, propose_output_parts},
        {"phases_as_channels", false, propose_phases_as_channels},
        {"winograd", true, propose_winograd}, // rounds differently
    };
    return kAll;
}

const Algorithm *find_algorithm(const std::string &name) {
    const auto *const found = std::find_if(algorithms().begin(), algorithms().end(),
                                           [&](const Algorithm &algorithm) { return name == algorithm.name; });
    return found == algorithms().end() ? nullptr : found;
}

std::uint32_t bit_of(const Algorithm &algorithm) { return std::uint32_t{1} << (&algorithm - algorithms().begin()); }

std::uint32_t all_but_direct() { return ~bit_of(*find_algorithm("direct")); }

} // namespace convtranspose
