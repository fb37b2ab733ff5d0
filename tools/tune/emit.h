// A library of exactly the layers that were tuned: the dispatcher, their kernels, their records.
#ifndef CONVTRANSPOSE_TOOLS_TUNE_EMIT_H_
#define CONVTRANSPOSE_TOOLS_TUNE_EMIT_H_

#include <vector>

#include "tools/commands.h"
#include "tools/tune/kernel_builder.h"
#include "tools/tune/tuned_layer.h"

namespace convtranspose::tools {

// Writes into options.emit: lib/ (archives and a CMake package), include/, example/. Throws Error.
void emit(const std::vector<TunedLayer> &layers, const TuneOptions &options, const KernelBuilder &builder);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNE_EMIT_H_
