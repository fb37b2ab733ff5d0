#include "method.h"

#include <algorithm>

#include "col2im.h"
#include "depth_to_space.h"
#include "images_as_row.h"
#include "other_layout.h"
#include "residue_layers.h"

namespace convtranspose {

const std::vector<MethodKind> &methods() {
    static const std::vector<MethodKind> all = {
        {"residue_layers", false, ResidueLayers::create},
        {"depth_to_space", false, DepthToSpace::create},
        {"col2im", true, Col2im::create},
        {"other_layout", false, OtherLayout::create},
        {"images_as_row", false, ImagesAsRow::create},
    };
    return all;
}

bool is_method(const std::string &name) {
    return std::any_of(methods().begin(), methods().end(), [&](const MethodKind &kind) { return name == kind.name; });
}

} // namespace convtranspose
