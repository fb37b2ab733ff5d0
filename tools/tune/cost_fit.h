// Fits a cost profile to times of candidates, such that the candidates that it chooses take the least time.
#ifndef CONVTRANSPOSE_TOOLS_TUNE_COST_FIT_H_
#define CONVTRANSPOSE_TOOLS_TUNE_COST_FIT_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace convtranspose::tools {

// A layer, and the times of some of its candidates by name.
struct TimedLayer {
    std::string problem;
    std::map<std::string, double> ms;
};

// Returns what plans choose for each of the layers by estimates of a profile, an object of fields.
using Choose = std::function<std::vector<std::string>(const nlohmann::json &profile)>;

// Regret is how much longer choices take than the fastest candidates, as a share, in the geometric mean over layers. A choice that
// was not timed counts as the slowest that was.
struct Regret {
    double all = 0, even = 0, odd = 0; // over all layers, and over those of even and of odd numbers
};
Regret regret_of(const std::vector<TimedLayer> &layers, const std::vector<std::string> &choices);

// Changes one field of the profile after the other, as long as that lowers the regret of `all` by 0.25% at least and raises
// neither half's, until nothing helps or the time is up. watch() sees each new regret; it returns false when the time is up.
nlohmann::json fit(const std::vector<TimedLayer> &layers, nlohmann::json profile, const Choose &choose,
                   const std::function<bool(double regret)> &watch);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNE_COST_FIT_H_
