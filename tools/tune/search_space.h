// The kernels that a search tries for a layer, beside those that are built in.
#ifndef CONVTRANSPOSE_TOOLS_TUNE_SEARCH_SPACE_H_
#define CONVTRANSPOSE_TOOLS_TUNE_SEARCH_SPACE_H_

#include <vector>

#include <nlohmann/json.hpp>

#include "toolbox.h"
#include "tuner.h"

namespace convtranspose::tools {

// In the order to try them. layer: what the worker says of it. Throws Error where the package has no kernels for its ISA.
std::vector<Candidate> search_space(const TuneOptions &options, const Toolbox &toolbox, const nlohmann::json &layer);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNE_SEARCH_SPACE_H_
