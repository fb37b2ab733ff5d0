// Models: any bytes are a model whose layers can be told, or an error with a message.
#include <cstddef>
#include <cstdint>
#include <optional>

#include "fuzz/fail.h"
#include "fuzz/input_file.h"
#include "tools/error.h"
#include "tools/layer.h"
#include "tools/onnx_model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    using namespace convtranspose;
    const fuzz::InputFile file(data, size, ".onnx");
    const auto attempt = [](const auto &f) {
        try {
            f();
        } catch (const tools::Error &error) {
            fuzz::require(*error.what() != '\0', "there is no message");
        }
    };
    attempt([&] {
        tools::Model model(file.path());
        attempt([&] { model.only_node(); });
        attempt([&] { model.require_nodes(); });
        attempt([&] { model.infer_shapes({}); });
        for (std::size_t i = 0; i < model.node_count() && i < 8; ++i) {
            fuzz::require(!model.label(i).empty(), "a node without a name for messages");
            attempt([&] {
                const tools::Layer layer = tools::layer_of(model, i, std::nullopt);
                Shape y;
                if (!infer_shape(layer.problem, &y)) fuzz::require(*convt_last_error() != '\0', "there is no message");
                if (layer.node.w.empty() || !model.is_constant(layer.node.w)) return;
                model.constant(layer.node.w);
            });
        }
    });
    return 0;
}
