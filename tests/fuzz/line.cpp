// Lines of layers, as the command line and tuning records have them: any text is a layer or is refused, and a layer's own line is
// the same layer.
#include <cstdint>
#include <stdexcept>
#include <string>

#include "fuzz/fail.h"
#include "tools/problem_line.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    using namespace convtranspose;
    const std::string line(reinterpret_cast<const char *>(data), size);
    fuzz::set_context(line);
    Problem problem;
    try {
        problem = problem_of_line(line);
    } catch (const std::invalid_argument &error) {
        fuzz::require(*error.what() != '\0', "there is no message");
        return 0;
    }
    const std::string written = to_line(problem);
    fuzz::set_context(line + "\n" + written);
    const Problem again = problem_of_line(written);
    fuzz::require(to_line(again) == written, "read and written, it is '" + to_line(again) + "'");
    fuzz::require(again.x_shape == problem.x_shape && again.w_shape == problem.w_shape, "another layer");
    Shape y;
    if (!infer_shape(problem, &y)) fuzz::require(*convt_last_error() != '\0', "there is no message");
    return 0;
}
