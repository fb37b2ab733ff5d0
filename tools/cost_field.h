// The fields of cost profiles (runtime/cost/profiles/fields.json).
#ifndef CONVTRANSPOSE_TOOLS_COST_FIELD_H_
#define CONVTRANSPOSE_TOOLS_COST_FIELD_H_

#include <cstring>
#include <optional>

namespace convtranspose::tools {

struct CostField {
    const char *name, *unit;
    double least, most;
};

constexpr CostField kCostFields[] = {
#include "generated/cost_fields.inc"
};

// Returns the value at which a field has no effect: cycles of none, a factor of one, a rate as high as it can be. Nothing for
// fields that are sizes or numbers, which account for no cycles themselves.
inline std::optional<double> value_without_effect(const CostField &field) {
    const auto is = [&](const char *unit) { return std::strcmp(field.unit, unit) == 0; };
    if (is("cycles") || is("added factor")) return 0;
    if (is("factor")) return 1;
    if (std::strstr(field.unit, "per cycle")) return field.most;
    return std::nullopt;
}

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_COST_FIELD_H_
