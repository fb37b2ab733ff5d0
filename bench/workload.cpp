#include "workload.h"

#include <cstddef>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace convtranspose::bench {

namespace {

// One number for all axes, or one per axis.
Shape per_axis(const nlohmann::json &value, std::size_t axes) {
    return value.is_array() ? value.get<Shape>() : Shape(axes, value.get<std::int64_t>());
}

Layer layer_from(const nlohmann::json &fields) {
    Layer layer;
    layer.name = fields.at("name").get<std::string>();
    Problem &problem = layer.problem;
    Attributes &attributes = problem.attributes;
    const auto number = [&fields](const char *name) { return fields.at(name).get<std::int64_t>(); };
    const Shape spatial = fields.at("spatial").get<Shape>(), kernel = fields.at("k").get<Shape>();

    problem.x_shape = {number("n"), number("c")};
    problem.x_shape.insert(problem.x_shape.end(), spatial.begin(), spatial.end());
    attributes.group = number("g");
    if (attributes.group < 1) throw std::runtime_error("g is less than 1");
    problem.w_shape = {number("c"), number("m") / attributes.group};
    problem.w_shape.insert(problem.w_shape.end(), kernel.begin(), kernel.end());
    problem.b_shape = Shape{number("m")};
    attributes.strides = per_axis(fields.at("s"), spatial.size());
    attributes.dilations = per_axis(fields.at("d"), spatial.size());
    attributes.output_padding = per_axis(fields.at("op"), spatial.size());
    Shape pads = per_axis(fields.at("p"), spatial.size());
    pads.reserve(2 * pads.size()); // the end of an axis is padded as its begin
    for (std::size_t axis = 0; axis < spatial.size(); axis++) pads.push_back(pads[axis]);
    attributes.pads = pads;
    return layer;
}

} // namespace

std::vector<Layer> read_workload(const std::filesystem::path &file) {
    std::ifstream stream(file);
    if (!stream) throw std::runtime_error("cannot open '" + file.string() + "'");
    try {
        std::vector<Layer> layers;
        for (const nlohmann::json &fields : nlohmann::json::parse(stream)) layers.push_back(layer_from(fields));
        return layers;
    } catch (const std::exception &e) {
        throw std::runtime_error("'" + file.string() + "': " + e.what());
    }
}

} // namespace convtranspose::bench
