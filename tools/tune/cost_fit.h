// Fits a cost profile to times of candidates, such that estimates are in proportion to them.
#ifndef CONVTRANSPOSE_TOOLS_TUNE_COST_FIT_H_
#define CONVTRANSPOSE_TOOLS_TUNE_COST_FIT_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace convtranspose::tools {

// A layer, and the times of some of its candidates by name.
struct TimedLayer {
    std::string problem, isa;
    std::map<std::string, double> ms;
};

// The choice of a plan of a layer by estimates of a profile, and the estimated cycles of all candidates by name.
struct EstimatedLayer {
    std::string choice;
    std::map<std::string, double> cycles;
};

// Returns the estimates of each of the layers by a profile, an object of fields.
using Estimate = std::function<std::vector<EstimatedLayer>(const nlohmann::json &profile)>;

// Returns how much longer choices take than the fastest candidates, as a share, in the geometric mean over layers. A choice that
// was not timed counts as the slowest that was.
double regret_of(const std::vector<TimedLayer> &layers, const std::vector<EstimatedLayer> &estimated);

// Changes all fields of the profile together, but those that are sizes or numbers, until the logarithms of estimates and of times
// differ least: within each layer, for candidates that are fast or estimated to be. A field that changes costs something too, so
// few layers change it little. Ends when little is gained or the time is up. watch() is called before each call of estimate, with
// the regret of the profile so far; it returns false when the time is up.
nlohmann::json fit(const std::vector<TimedLayer> &layers, nlohmann::json profile, const Estimate &estimate,
                   const std::function<bool(double regret)> &watch);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNE_COST_FIT_H_
