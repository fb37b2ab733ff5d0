#include "tools/input_shape.h"

#include <charconv>
#include <set>
#include <system_error>

#include "tools/error.h"

namespace convtranspose::tools {

namespace {

[[noreturn]] void reject(const std::string &argument, const char *why) {
    throw UsageError("--input-shape " + argument + " is not NAME=1x3x224x224: " + why);
}

} // namespace

std::vector<InputShape> input_shapes_from(const std::vector<std::string> &arguments) {
    std::vector<InputShape> shapes;
    std::set<std::string> names;
    for (const std::string &argument : arguments) {
        const std::size_t equals = argument.rfind('=');
        if (equals == std::string::npos || equals == 0) reject(argument, "it must have a name, then =, then extents");
        InputShape input;
        input.name = argument.substr(0, equals);
        const char *p = argument.data() + equals + 1, *const end = argument.data() + argument.size();
        for (;;) {
            std::int64_t extent = 0;
            const std::from_chars_result result = std::from_chars(p, end, extent);
            if (result.ec == std::errc::result_out_of_range) reject(argument, "an extent exceeds 64 bits");
            if (result.ec != std::errc()) reject(argument, "extents must be integers with x between");
            if (extent < 0) reject(argument, "extents must not be negative");
            input.shape.push_back(extent);
            p = result.ptr;
            if (p == end) break;
            if (*p++ != 'x') reject(argument, "extents must be integers with x between");
        }
        if (!names.insert(input.name).second) reject(argument, "the name has a shape already");
        shapes.push_back(std::move(input));
    }
    return shapes;
}

void require_all_used(const std::vector<InputShape> &shapes) {
    for (const InputShape &shape : shapes) {
        if (!shape.used)
            throw Error("--input-shape: no model has a graph input or computed value '" + shape.name +
                        "' (an initializer has the shape of its data)");
    }
}

} // namespace convtranspose::tools
