#include "tools/estimate_parts.h"

#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "tools/cost_field.h"
#include "tools/profile_line.h"

namespace convtranspose::tools {

using nlohmann::json;

namespace {

using Estimates = std::map<std::string, double>;

} // namespace

Estimates estimates_of(const Plan &plan) {
    Estimates all;
    for (std::size_t i = 0; i < convt_plan_candidate_count(plan.get()); i++)
        all[convt_plan_candidate(plan.get(), i)] = convt_plan_candidate_cycles(plan.get(), i);
    return all;
}

json profile_of(const Plan &plan) {
    json profile = json::object();
    double value = 0;
    for (std::size_t i = 0; const char *const name = convt_plan_cost_field(plan.get(), i, &value); i++)
        profile[name] = std::isinf(value) ? json("infinite") : json(value);
    return profile;
}

json features(const Plan &plan, const std::function<Plan(const convt_tuning *)> &plan_by) {
    json profile = profile_of(plan);
    const Estimates whole = estimates_of(plan);
    Estimates left = whole;
    std::map<std::string, json> parts;
    for (const CostField &field : kCostFields) {
        const std::optional<double> value = value_without_effect(field);
        if (!value || profile[field.name] == *value) continue;
        profile[field.name] = *value;
        const Estimates next = estimates_of(plan_by(read_tuning(profile_line(profile.dump())).get()));
        for (auto &[name, cycles] : left) {
            const auto found = next.find(name);
            if (found == next.end()) continue; // an algorithm that is no longer proposed
            if (found->second != cycles) parts[name][field.name] = cycles - found->second;
            cycles = found->second;
        }
    }
    json candidates = json::array();
    for (std::size_t i = 0; i < convt_plan_candidate_count(plan.get()); i++) {
        const std::string name = convt_plan_candidate(plan.get(), i);
        parts[name]["other"] = left.at(name);
        candidates.push_back({{"name", name}, {"cycles", whole.at(name)}, {"parts", parts[name]}});
    }
    return candidates;
}

} // namespace convtranspose::tools
