#include "tools/problem_line.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

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

const char *layout_name(convt_layout layout) { return layout == CONVT_CHANNELS_LAST ? "nhwc" : "nchw"; }

std::optional<convt_layout> layout_of_name(const std::string &name) {
    for (const convt_layout layout : {CONVT_CHANNELS_FIRST, CONVT_CHANNELS_LAST})
        if (name == layout_name(layout)) return layout;
    return std::nullopt;
}

bool is_light(const Problem &problem) {
    return !is_integer(problem.dtype) && problem.w_dtype.value_or(problem.dtype) != problem.dtype;
}

std::string to_line(const Problem &problem) {
    const Attributes &a = problem.attributes;
    const bool first = problem.layout == CONVT_CHANNELS_FIRST;
    // An invalid layer has a line too, so this product may wrap.
    const auto out_channels = static_cast<std::int64_t>(static_cast<std::uint64_t>(problem.w_shape.at(1)) *
                                                        static_cast<std::uint64_t>(a.group));
    std::ostringstream line;
    line << convt_dtype_name(problem.dtype) << " " << layout_name(problem.layout) << " n" << problem.x_shape.front()
         << " g" << a.group << " ic" << (first ? problem.x_shape.at(1) : problem.x_shape.back()) << " oc"
         << out_channels << " i" << join(spatial(problem)) << " k"
         << join(Shape(problem.w_shape.begin() + 2, problem.w_shape.end()));
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
    if (is_integer(problem.dtype) || is_light(problem))
        line << " w" << convt_dtype_name(problem.w_dtype.value_or(problem.dtype));
    if (is_integer(problem.dtype)) line << " y" << convt_dtype_name(problem.y_dtype.value_or(problem.dtype));
    if (problem.quantizes_x) line << " dynamic";
    return line.str();
}

namespace {

// A line while it is read: the problem, and what its shapes are made of.
struct LineReader {
    Problem problem;
    std::int64_t batch = 1, in_channels = 1, out_channels = 1;
    Shape in, kernel;
    bool bias = false;

    // Takes a type: that of x, in front, where alone s8 is no stride, or of w or y.
    bool take_dtype(const std::string &token, bool in_front) {
        bool taken = false;
        for (const convt_dtype dtype : {CONVT_F16, CONVT_BF16, CONVT_F32, CONVT_F64, CONVT_U8, CONVT_S8}) {
            const std::string name = convt_dtype_name(dtype);
            taken = taken || (token == name && in_front) || token == "w" + name || token == "y" + name;
            if (token == name && in_front) problem.dtype = dtype;
            if (token == "w" + name) problem.w_dtype = dtype;
            if (token == "y" + name) problem.y_dtype = dtype;
        }
        return taken;
    }

    // Takes any other token. Longer prefixes come before those that they begin with.
    void take(const std::string &token) {
        Attributes &a = problem.attributes;
        const std::vector<std::pair<std::string, std::function<void(const std::string &)>>> prefixes = {
            {"auto_", [&](const std::string &rest) { a.auto_pad = rest; }},
            {"ic", [&](const std::string &rest) { in_channels = single(rest); }},
            {"oc", [&](const std::string &rest) { out_channels = single(rest); }},
            {"op", [&](const std::string &rest) { a.output_padding = split(rest); }},
            {"os", [&](const std::string &rest) { a.output_shape = split(rest); }},
            {"n", [&](const std::string &rest) { batch = single(rest); }},
            {"g", [&](const std::string &rest) { a.group = single(rest); }},
            {"i", [&](const std::string &rest) { in = split(rest); }},
            {"k", [&](const std::string &rest) { kernel = split(rest); }},
            {"s", [&](const std::string &rest) { a.strides = split(rest); }},
            {"d", [&](const std::string &rest) { a.dilations = split(rest); }},
            {"v", [&](const std::string &rest) { problem.opset = version(rest); }},
            {"p", [&](const std::string &rest) { take_pads(rest); }},
        };
        if (const std::optional<convt_layout> layout = layout_of_name(token)) {
            problem.layout = *layout;
        } else if (token == "bias") {
            bias = true;
        } else if (token == "dynamic") {
            problem.quantizes_x = 1;
        } else {
            const auto found = std::find_if(prefixes.begin(), prefixes.end(),
                                            [&](const auto &prefix) { return token.rfind(prefix.first, 0) == 0; });
            if (found == prefixes.end()) throw std::invalid_argument("is no part of a layer");
            found->second(token.substr(found->first.size()));
        }
    }

    void take_pads(const std::string &pads) {
        const std::size_t bar = pads.find('_');
        if (bar == std::string::npos) throw std::invalid_argument("must be begins_ends");
        Shape all = split(pads.substr(0, bar));
        const Shape ends = split(pads.substr(bar + 1));
        all.insert(all.end(), ends.begin(), ends.end());
        problem.attributes.pads = all;
    }

    // Makes the shapes of the problem. line: for messages.
    Problem finish(const std::string &line) {
        const std::int64_t group = problem.attributes.group;
        if (in.empty() || kernel.size() != in.size()) {
            throw std::invalid_argument("i and k must have the same number of axes in the problem \"" + line + "\"");
        }
        if (group <= 0 || out_channels % group != 0) {
            throw std::invalid_argument("g must divide oc in the problem \"" + line + "\"");
        }
        problem.x_shape = in;
        problem.x_shape.insert(problem.layout == CONVT_CHANNELS_FIRST ? problem.x_shape.begin() : problem.x_shape.end(),
                               in_channels);
        problem.x_shape.insert(problem.x_shape.begin(), batch);
        problem.w_shape = {in_channels, out_channels / group};
        problem.w_shape.insert(problem.w_shape.end(), kernel.begin(), kernel.end());
        if (bias) problem.b_shape = Shape{out_channels};
        if (is_integer(problem.dtype)) {
            problem.w_dtype = problem.w_dtype.value_or(CONVT_S8);
            problem.y_dtype = problem.y_dtype.value_or(problem.dtype);
        }
        return problem;
    }
};

} // namespace

Problem problem_of_line(const std::string &line, const std::function<bool(const std::string &)> &other) {
    LineReader reader;
    int tokens = 0;
    std::istringstream stream(line);
    for (std::string token; stream >> token;) {
        try {
            const bool in_front = tokens++ == 0;
            if (other && !in_front && other(token)) continue;
            if (!reader.take_dtype(token, in_front)) reader.take(token);
        } catch (const std::logic_error &e) {
            throw std::invalid_argument(std::string("\"")
                                            .append(token)
                                            .append("\" in the problem \"")
                                            .append(line)
                                            .append("\" ")
                                            .append(e.what()));
        }
    }
    return reader.finish(line);
}

} // namespace convtranspose
