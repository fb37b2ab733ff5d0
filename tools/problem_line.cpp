#include "problem_line.h"

#include <charconv>
#include <climits>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace convtranspose {

namespace {

bool is_integer(convt_dtype dtype) { return dtype == CONVT_U8 || dtype == CONVT_S8; }

std::string join(const Shape &values) {
    std::ostringstream stream;
    for (std::size_t i = 0; i < values.size(); ++i) stream << (i ? "x" : "") << values[i];
    return stream.str();
}

Shape split(const std::string &text) {
    Shape values;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, 'x');) {
        std::int64_t value = 0;
        const char *const end = part.data() + part.size();
        const std::from_chars_result result = std::from_chars(part.data(), end, value);
        if (result.ec == std::errc::result_out_of_range) throw std::invalid_argument("exceeds 64 bits");
        if (result.ec != std::errc() || result.ptr != end)
            throw std::invalid_argument("must be integers with x between");
        values.push_back(value);
    }
    if (values.empty()) throw std::invalid_argument("must be integers with x between");
    return values;
}

std::int64_t single(const std::string &text) {
    const Shape values = split(text);
    if (values.size() != 1) throw std::invalid_argument("must be one integer");
    return values[0];
}

int version(const std::string &text) {
    const std::int64_t value = single(text);
    if (value < 1 || value > INT_MAX) throw std::invalid_argument("must be 1 .. 2147483647");
    return static_cast<int>(value);
}

Shape spatial(const Problem &problem) {
    Shape shape = problem.x_shape;
    shape.erase(problem.layout == CONVT_CHANNELS_FIRST ? shape.begin() + 1 : shape.end() - 1);
    shape.erase(shape.begin());
    return shape;
}

} // namespace

std::string to_line(const Problem &problem) {
    const Attributes &a = problem.attributes;
    const bool first = problem.layout == CONVT_CHANNELS_FIRST;
    // An invalid layer has a line too, so this product may wrap.
    const auto out_channels = static_cast<std::int64_t>(static_cast<std::uint64_t>(problem.w_shape.at(1)) *
                                                        static_cast<std::uint64_t>(a.group));
    std::ostringstream line;
    line << convt_dtype_name(problem.dtype) << (first ? " nchw" : " nhwc") << " n" << problem.x_shape.front() << " g"
         << a.group << " ic" << (first ? problem.x_shape.at(1) : problem.x_shape.back()) << " oc" << out_channels
         << " i" << join(spatial(problem)) << " k" << join(Shape(problem.w_shape.begin() + 2, problem.w_shape.end()));
    if (a.strides) line << " s" << join(*a.strides);
    if (a.pads) {
        const auto middle = a.pads->begin() + static_cast<std::ptrdiff_t>(a.pads->size() / 2);
        line << " p" << join(Shape(a.pads->begin(), middle)) << "_" << join(Shape(middle, a.pads->end()));
    }
    if (a.output_padding) line << " op" << join(*a.output_padding);
    if (a.output_shape && !a.output_shape->empty()) line << " os" << join(*a.output_shape);
    if (a.dilations) line << " d" << join(*a.dilations);
    if (a.auto_pad) line << " auto_" << *a.auto_pad;
    if (problem.opset != 22) line << " v" << problem.opset;
    if (problem.b_shape) line << " bias";
    if (is_integer(problem.dtype)) {
        line << " w" << convt_dtype_name(problem.w_dtype.value_or(problem.dtype)) << " y"
             << convt_dtype_name(problem.y_dtype.value_or(problem.dtype));
    }
    return line.str();
}

Problem problem_of_line(const std::string &line, const std::function<bool(const std::string &)> &other) {
    Problem problem;
    Attributes &a = problem.attributes;
    std::int64_t batch = 1, in_channels = 1, out_channels = 1;
    Shape in, kernel;
    bool bias = false;

    int tokens = 0;
    std::istringstream stream(line);
    for (std::string token; stream >> token;) {
        const auto rest = [&token](std::size_t prefix) { return token.substr(prefix); };
        const auto starts = [&token](const char *prefix) { return token.rfind(prefix, 0) == 0; };
        try {
            const bool in_front = tokens++ == 0; // where alone s8 is a type, and not a stride
            if (other && !in_front && other(token)) continue;
            bool is_dtype = false;
            for (const convt_dtype dtype : {CONVT_F16, CONVT_BF16, CONVT_F32, CONVT_F64, CONVT_U8, CONVT_S8}) {
                const std::string name = convt_dtype_name(dtype);
                is_dtype = is_dtype || (token == name && in_front) || token == "w" + name || token == "y" + name;
                if (token == name && in_front) problem.dtype = dtype;
                if (token == "w" + name) problem.w_dtype = dtype;
                if (token == "y" + name) problem.y_dtype = dtype;
            }
            if (is_dtype) continue;
            if (token == "nchw") {
                problem.layout = CONVT_CHANNELS_FIRST;
            } else if (token == "nhwc") {
                problem.layout = CONVT_CHANNELS_LAST;
            } else if (token == "bias") {
                bias = true;
            } else if (starts("auto_")) {
                a.auto_pad = rest(5);
            } else if (starts("ic")) {
                in_channels = single(rest(2));
            } else if (starts("oc")) {
                out_channels = single(rest(2));
            } else if (starts("op")) {
                a.output_padding = split(rest(2));
            } else if (starts("os")) {
                a.output_shape = split(rest(2));
            } else if (starts("n")) {
                batch = single(rest(1));
            } else if (starts("g")) {
                a.group = single(rest(1));
            } else if (starts("i")) {
                in = split(rest(1));
            } else if (starts("k")) {
                kernel = split(rest(1));
            } else if (starts("s")) {
                a.strides = split(rest(1));
            } else if (starts("d")) {
                a.dilations = split(rest(1));
            } else if (starts("v")) {
                problem.opset = version(rest(1));
            } else if (starts("p")) {
                const std::size_t bar = token.find('_');
                if (bar == std::string::npos) throw std::invalid_argument("must be begins_ends");
                a.pads = split(token.substr(1, bar - 1));
                const Shape ends = split(rest(bar + 1));
                a.pads->insert(a.pads->end(), ends.begin(), ends.end());
            } else {
                throw std::invalid_argument("is no part of a layer");
            }
        } catch (const std::logic_error &e) {
            throw std::invalid_argument(std::string("\"")
                                            .append(token)
                                            .append("\" in the problem \"")
                                            .append(line)
                                            .append("\" ")
                                            .append(e.what()));
        }
    }
    if (in.empty() || kernel.size() != in.size()) {
        throw std::invalid_argument("i and k must have the same number of axes in the problem \"" + line + "\"");
    }
    if (a.group <= 0 || out_channels % a.group != 0) {
        throw std::invalid_argument("g must divide oc in the problem \"" + line + "\"");
    }

    problem.x_shape = in;
    problem.x_shape.insert(problem.layout == CONVT_CHANNELS_FIRST ? problem.x_shape.begin() : problem.x_shape.end(),
                           in_channels);
    problem.x_shape.insert(problem.x_shape.begin(), batch);
    problem.w_shape = {in_channels, out_channels / a.group};
    problem.w_shape.insert(problem.w_shape.end(), kernel.begin(), kernel.end());
    if (bias) problem.b_shape = Shape{out_channels};
    if (is_integer(problem.dtype)) {
        problem.w_dtype = problem.w_dtype.value_or(CONVT_S8);
        problem.y_dtype = problem.y_dtype.value_or(problem.dtype);
    }
    return problem;
}

} // namespace convtranspose
