// What is made of the layers that were tuned: a library of exactly those, and files by which the package ships them.
#ifndef CONVTRANSPOSE_TOOLS_TUNE_EMIT_H_
#define CONVTRANSPOSE_TOOLS_TUNE_EMIT_H_

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "toolbox.h"

namespace convtranspose::tools {

struct TunedLayer {
    std::vector<std::string> names; // where it is from: "model.onnx: ConvTranspose 'up1'"
    nlohmann::json record;          // as Tuner::tune() makes it, stamped
};

// Writes into options.emit: lib/ (archives and a CMake package), include/, example/. Throws Error.
void emit(const std::vector<TunedLayer> &layers, const TuneOptions &options, const Toolbox &toolbox);

// A file into `folder` for each layer whose choice is not the default one, as schedules/tuned holds them (cmake/tuned.cmake).
// Returns how many.
std::size_t write_rows(const std::vector<TunedLayer> &layers, const std::string &folder);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNE_EMIT_H_
