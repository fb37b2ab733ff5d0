// The options of a provider, as a session was given them.
#ifndef CONVTRANSPOSE_ONNXRUNTIME_SETTINGS_H_
#define CONVTRANSPOSE_ONNXRUNTIME_SETTINGS_H_

#include <memory>
#include <optional>
#include <string>

#include "convtranspose/convtranspose.hpp"
#include "ort_api.h"

namespace convtranspose::provider {

constexpr const char *kProviderName = "ConvTransposeExecutionProvider";

struct Settings {
    int threads = 0;                            // 0: as many as ONNX Runtime has, counted at the first run
    bool measures = false;                      // plans run candidates, and take the fastest
    bool winograd = false;                      // f32 and f64 layers may be computed by Winograd's algorithm
    bool fuse = true;                           // neighbours are computed with a layer
    bool explain = false;                       // layers and their plans are printed to the standard error output
    std::optional<convt_dtype> weights;         // f16, bf16 or s8: constant weights of f32 layers become that
    bool quantizes_x = false;                   // f32 layers of 8-bit weights quantize their x
    std::string isa;                            // empty: the best of this CPU
    std::shared_ptr<const convt_tuning> tuning; // null: what the environment says
};

// Reads the options of this provider, and ONNX Runtime's number of threads. Throws Failure for an option or a value that there is
// not, and names those that there are.
Settings settings_of(const Api &api, const OrtSessionOptions *options);

} // namespace convtranspose::provider

#endif // CONVTRANSPOSE_ONNXRUNTIME_SETTINGS_H_
