// The fields of cost profiles (runtime/cost/profiles/fields.json).
#ifndef CONVTRANSPOSE_TOOLS_COST_FIELD_H_
#define CONVTRANSPOSE_TOOLS_COST_FIELD_H_

namespace convtranspose::tools {

struct CostField {
    const char *name, *unit;
    double least, most;
};

constexpr CostField kCostFields[] = {
#include "generated/cost_fields.inc"
};

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_COST_FIELD_H_
