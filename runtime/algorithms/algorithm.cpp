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

std::size_t Method::packed_bytes() const {
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

const std::array<MethodKind, 7> &methods() {
    static constexpr std::array<MethodKind, 7> all = {{
        {"residue_layers", false, false, ResidueLayers::create},
        {"depth_to_space", false, false, DepthToSpace::create},
        {"col2im", true, false, Col2im::create},
        {"output_parts", false, false, OutputParts::create},
        {"other_layout", false, false, OtherLayout::create},
        {"images_as_row", false, false, ImagesAsRow::create},
        {"winograd", false, true, Winograd::create},
    }};
    return all;
}

bool is_method(const std::string &name) {
    return std::any_of(methods().begin(), methods().end(), [&](const MethodKind &kind) { return name == kind.name; });
}

bool rounds_otherwise(const std::string &name) {
    return std::any_of(methods().begin(), methods().end(),
                       [&](const MethodKind &kind) { return name == kind.name && kind.rounds_otherwise; });
}

} // namespace convtranspose
