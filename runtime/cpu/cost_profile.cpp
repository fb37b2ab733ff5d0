#include "cpu/cost_profile.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "base/number.h"
#include "base/once.h"
#include "cpu/cpu.h"

namespace convtranspose {

namespace {

constexpr const char *kInfiniteText = "infinite";

// Returns the shipped profiles with the second-level cache of this CPU, in order.
std::vector<CostProfile> with_cache_of_cpu() {
    std::vector<CostProfile> profiles;
    profiles.reserve(kShippedProfiles.size());
    for (const ShippedProfile &shipped : kShippedProfiles) {
        profiles.push_back(shipped.profile);
        if (cpu_facts().second_level_cache > 0) profiles.back().second_level_cache = cpu_facts().second_level_cache;
    }
    return profiles;
}

} // namespace

const CostProfile &profile_of_cpu(Isa isa) {
    static Once<std::vector<CostProfile>> profiles;
    const CpuFacts &facts = cpu_facts();
    const std::array<const char *, 4> those = {facts.vendor, facts.widest_isa, facts.multiplies_in_halves,
                                               isa_name(isa)};
    const auto holds = [](const char *condition, const char *fact) {
        return !*condition || std::strcmp(condition, fact) == 0;
    };
    std::size_t i = 0;
    const auto matches = [&](const auto &all) { return std::equal(all.begin(), all.end(), those.begin(), holds); };
    while (!matches(kShippedProfiles[i].conditions)) i++; // the last has no conditions
    return profiles.get(with_cache_of_cpu)[i];
}

Status find_profile(const std::string &name, CostProfile *profile) {
    TextStream names;
    for (const ShippedProfile &shipped : kShippedProfiles) {
        names << (names.str().empty() ? "" : ", ") << shipped.name;
        if (name != shipped.name) continue;
        *profile = shipped.profile;
        return Status();
    }
    return invalid("there is no cost profile \"", name, "\"; there are ", names.str());
}

Status set_field(const std::string &name, const std::string &value, CostProfile *profile) {
    const auto *const field =
        std::find_if(kCostFields.begin(), kCostFields.end(), [&](const CostField &f) { return name == f.name; });
    if (field == kCostFields.end()) return invalid("a cost profile has no field \"", name, "\"");
    double number = std::numeric_limits<double>::infinity();
    const bool is_number = value == kInfiniteText || read_number(value, &number);
    if (!is_number || number < field->least || number > field->most) {
        return invalid(name, " = ", value, " must be a number from ", field->least, " to ", field->most, ", in ",
                       field->unit);
    }
    profile->*field->value = number;
    return Status();
}

} // namespace convtranspose
