// The parts that estimates are made of: how many cycles each field of the cost profile accounts for.
#ifndef CONVTRANSPOSE_TOOLS_ESTIMATE_PARTS_H_
#define CONVTRANSPOSE_TOOLS_ESTIMATE_PARTS_H_

#include <functional>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose::tools {

// Returns the fields of the cost profile that the plan was made with, as a JSON object.
nlohmann::json profile_of(const Plan &plan);

// Returns the estimated cycles of all candidates by their names; infinite or 0 for a layer without elements.
std::map<std::string, double> estimates_of(const Plan &plan);

// Returns for each candidate of the plan its name, its estimate in cycles, and the parts that add up to it. plan_by() plans the
// same problem with a tuning text. Parts come from plans in which one field after the other loses its effect, in the order of the
// profile: slowdowns become one, cycles none, and rates as high as they can be. What is left in the end is the part "other".
nlohmann::json features(const Plan &plan, const std::function<Plan(const convt_tuning *)> &plan_by);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_ESTIMATE_PARTS_H_
