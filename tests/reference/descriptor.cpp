#include "reference/descriptor.h"

#include <sstream>
#include <stdexcept>
#include <utility>

#include "reference/quantized.h"
#include "tools/problem_line.h"

namespace convtranspose::test {

namespace {

std::int32_t integer(const std::string &text) {
    std::size_t used = 0;
    const int value = std::stoi(text, &used);
    if (used != text.size()) throw std::invalid_argument(text);
    return value;
}

} // namespace

std::string describe(const Problem &problem) {
    std::ostringstream line;
    line << to_line(problem);
    if (problem.quantization) {
        const QuantizedAs q = quantized_as(problem);
        line << " zx" << q.x_zero_point << " zw" << q.w_zero_point << " zy" << q.y_zero_point
             << (q.per_channel ? " pc" : "") << (q.relu ? " relu" : "");
    }
    return line.str();
}

Problem parse_problem(const std::string &line) {
    QuantizedAs quantized;
    Problem problem = problem_of_line(line, [&quantized](const std::string &token) {
        const std::pair<const char *, std::int32_t *> zero_points[] = {
            {"zx", &quantized.x_zero_point}, {"zw", &quantized.w_zero_point}, {"zy", &quantized.y_zero_point}};
        for (const auto &[name, value] : zero_points) {
            if (token.rfind(name, 0) != 0) continue;
            *value = integer(token.substr(2));
            return true;
        }
        quantized.per_channel = quantized.per_channel || token == "pc";
        quantized.relu = quantized.relu || token == "relu";
        return token == "pc" || token == "relu";
    });
    if (is_quantized(problem.dtype)) {
        quantized.w = *problem.w_dtype;
        quantized.y = *problem.y_dtype;
        quantize(&problem, quantized);
    }
    return problem;
}

std::string describe(const Problem &problem, std::uint64_t seed, const Options &options) {
    std::ostringstream line;
    line << describe(problem) << "   (values of seed " << seed << ", threads " << options.threads;
    if (options.isa) line << ", isa " << options.isa;
    if (options.variant) line << ", variant " << options.variant;
    line << ")";
    return line.str();
}

} // namespace convtranspose::test
