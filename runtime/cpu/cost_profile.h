// A cost profile holds what estimates (cost/) and the sizes of strips know of a CPU's cores: rates, cycles, slowdowns, sizes.
// Profiles are data: runtime/cost/profiles/fields.json says what each field means, which becomes the struct CostProfile, and the
// files beside it hold the values for each core that was measured.
#pragma once

#include <array>
#include <string>

#include "base/error.h"
#include "generated/cost_profile_fields.h"
#include "kernel_contract/kernel_table.h"

namespace convtranspose {

// A field by its name. Values that a profile may have lie between least and most.
struct CostField {
    const char *name, *unit;
    double least, most;
    double CostProfile::*value;
};

// The conditions are those of CpuFacts, in order, and the ISA of a plan. An empty one holds for any.
struct ShippedProfile {
    const char *name;
    std::array<const char *, 4> conditions;
    CostProfile profile;
};

extern const std::array<CostField, kCostFieldCount> kCostFields;
extern const std::array<ShippedProfile, kShippedProfileCount>
    kShippedProfiles; // the first whose conditions hold is taken

// Returns the profile of this CPU for plans that use the ISA, one of those for floats. Its second-level cache is the CPU's own, if
// the CPU tells.
const CostProfile &profile_of_cpu(Isa isa);

// Sets *profile to the shipped one of that name, or refuses with the names that there are.
Status find_profile(const std::string &name, CostProfile *profile);

// Sets a field of the profile to a number as text, or refuses a name, a text or a number that it cannot be.
Status set_field(const std::string &name, const std::string &value, CostProfile *profile);

} // namespace convtranspose
