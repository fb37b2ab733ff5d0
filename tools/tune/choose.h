// The question of convtranspose-worker what plans choose (worker_main.cpp).
#ifndef CONVTRANSPOSE_TOOLS_TUNE_CHOOSE_H_
#define CONVTRANSPOSE_TOOLS_TUNE_CHOOSE_H_

#include <string>

#include <nlohmann/json.hpp>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose::tools {

// Returns the name of what a plan does, a kernel or an algorithm, as tuning records have it.
std::string choice_of(const Plan &plan);

// Answers the job "choose": plans its problems on all CPUs. Weights do not matter, so they are zero.
nlohmann::json choose(const nlohmann::json &job);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNE_CHOOSE_H_
