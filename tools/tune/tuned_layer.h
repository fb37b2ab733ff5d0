// The kernel that a search found for a layer, and how the package ships it.
#ifndef CONVTRANSPOSE_TOOLS_TUNE_TUNED_LAYER_H_
#define CONVTRANSPOSE_TOOLS_TUNE_TUNED_LAYER_H_

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace convtranspose::tools {

struct TunedLayer {
    std::vector<std::string> names; // where it is from: "model.onnx: ConvTranspose 'up1'"
    std::string line;               // the layer as it was given; the record has it as it is planned
    nlohmann::json record;          // as Tuner::tune() makes it, stamped
};

// A file into `folder` for each layer whose choice is not the default one, as schedules/tuned holds them (kernels/tuned.py).
// Returns how many. Throws Error.
std::size_t write_rows(const std::vector<TunedLayer> &layers, const std::string &folder);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNE_TUNED_LAYER_H_
