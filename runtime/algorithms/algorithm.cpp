#include "algorithms/algorithm.h"

#include <algorithm>

#include "algorithms/batch_as_width.h"
#include "algorithms/col2im.h"
#include "algorithms/depth_to_space.h"
#include "algorithms/layout_transpose.h"
#include "algorithms/output_parts.h"
#include "algorithms/phases_as_channels.h"
#include "algorithms/winograd.h"

namespace convtranspose {

std::size_t Algorithm::packed_bytes() const {
    const std::vector<const LayerPlan *> plans = layers();
    std::size_t bytes = 0;
    for (auto plan = plans.begin(); plan != plans.end(); ++plan) {
        const bool shares = std::any_of(plans.begin(), plan, [&](const LayerPlan *before) {
            return before == *plan || (*plan)->shares_weights_of(*before);
        });
        if (!shares) bytes += (*plan)->packed_bytes();
    }
    return bytes;
}

const std::array<AlgorithmKind, 7> &algorithms() {
    static constexpr std::array<AlgorithmKind, 7> all = {{
        {"phases_as_channels", false, false, PhasesAsChannels::create},
        {"depth_to_space", false, false, DepthToSpace::create},
        {"col2im", true, false, Col2im::create},
        {"output_parts", false, false, OutputParts::create},
        {"layout_transpose", false, false, LayoutTranspose::create},
        {"batch_as_width", false, false, BatchAsWidth::create},
        {"winograd", false, true, Winograd::create},
    }};
    return all;
}

bool is_algorithm(const std::string &name) {
    return std::any_of(algorithms().begin(), algorithms().end(),
                       [&](const AlgorithmKind &kind) { return name == kind.name; });
}

bool changes_rounding(const std::string &name) {
    return std::any_of(algorithms().begin(), algorithms().end(),
                       [&](const AlgorithmKind &kind) { return name == kind.name && kind.changes_rounding; });
}

} // namespace convtranspose
