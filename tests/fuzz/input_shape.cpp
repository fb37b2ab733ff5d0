// --input-shape, once for each line of the input: shapes, or a usage error with a message.
#include "tools/input_shape.h"

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "fuzz/fail.h"
#include "tools/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    using namespace convtranspose;
    std::istringstream text(std::string(reinterpret_cast<const char *>(data), size));
    std::vector<std::string> arguments;
    for (std::string line; std::getline(text, line);) arguments.push_back(line);
    try {
        const std::vector<tools::InputShape> shapes = tools::input_shapes_from(arguments);
        fuzz::require(shapes.size() == arguments.size(), "more or fewer shapes than arguments");
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            fuzz::require(!shapes[i].name.empty() && !shapes[i].shape.empty(), "no name or no extents");
            // Said again it is the same, but for leading zeros.
            std::string again = shapes[i].name + "=";
            for (const std::int64_t extent : shapes[i].shape) {
                fuzz::require(extent >= 0, "a negative extent");
                again += std::to_string(extent) + "x";
            }
            again.pop_back();
            fuzz::require(tools::input_shapes_from({again})[0].shape == shapes[i].shape,
                          "another shape when it is said again");
        }
    } catch (const tools::UsageError &error) {
        fuzz::require(*error.what() != '\0', "there is no message");
    }
    return 0;
}
