#include "conformance/cases.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <stdexcept>

#include "reference/built_types.h"

namespace convtranspose::test {

namespace {

// An unknown name becomes a value that the enumeration does not have, for the library to refuse.
convt_dtype dtype_of(const std::string &name) {
    for (const convt_dtype dtype : {CONVT_F16, CONVT_BF16, CONVT_F32, CONVT_F64, CONVT_U8, CONVT_S8}) {
        if (name == convt_dtype_name(dtype)) return dtype;
    }
    return static_cast<convt_dtype>(0);
}

Ints ints_of(const Json &attributes, const char *name) {
    return attributes.contains(name) ? Ints(attributes.at(name).get<Shape>()) : Ints();
}

template<typename T>
std::vector<T> list_of(const Json &values) {
    return values.is_array() ? values.get<std::vector<T>>() : std::vector<T>{values.get<T>()};
}

double number_of(const Json &value) {
    const double infinity = std::numeric_limits<double>::infinity();
    return value == "inf"    ? infinity
           : value == "-inf" ? -infinity
           : value == "nan"  ? std::numeric_limits<double>::quiet_NaN()
                             : value.get<double>();
}

// Extends the checksum of zip files by one byte.
std::uint32_t next_crc32(std::uint32_t crc, unsigned char byte) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1u ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    return crc;
}

} // namespace

void PrintTo(const Case &c, std::ostream *stream) { *stream << c.json.dump(); }

std::vector<Case> load_cases(const std::string &name) {
    // Not a std::ifstream, which C++ libraries without a file system lack.
    const std::string path = CONVTRANSPOSE_CASES + name;
    const std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(path.c_str(), "rb"), std::fclose);
    if (!file) throw std::runtime_error("cannot open " + path);
    std::vector<Case> cases;
    const Json all = Json::parse(file.get());
    for (const Json &c : all.at("cases")) {
        if (is_built(dtype_of(c.at("dtype")))) cases.push_back({c.at("name"), c});
    }
    return cases;
}

Problem problem_of(const Json &c) {
    Problem problem;
    problem.opset = c.at("opset");
    problem.dtype = dtype_of(c.at("dtype"));
    problem.x_shape = c.at("x_shape").get<Shape>();
    problem.w_shape = c.at("w_shape").get<Shape>();
    const Json attributes = c.value("attrs", Json::object());
    for (const auto &[name, value] : attributes.items()) {
        const bool known = name == "auto_pad" || name == "dilations" || name == "group" || name == "kernel_shape" ||
                           name == "output_padding" || name == "output_shape" || name == "pads" || name == "strides";
        if (!known) throw std::runtime_error("unknown attribute " + name);
    }
    Attributes &a = problem.attributes;
    if (attributes.contains("auto_pad")) a.auto_pad = attributes.at("auto_pad").get<std::string>();
    a.dilations = ints_of(attributes, "dilations");
    a.group = attributes.value("group", std::int64_t{1});
    a.kernel_shape = ints_of(attributes, "kernel_shape");
    a.output_padding = ints_of(attributes, "output_padding");
    a.output_shape = ints_of(attributes, "output_shape");
    a.pads = ints_of(attributes, "pads");
    a.strides = ints_of(attributes, "strides");
    if (c.value("bias", false)) {
        problem.b_shape = c.contains("b_shape") ? c.at("b_shape").get<Shape>() : Shape{problem.w_shape.at(1) * a.group};
    }
    if (c.contains("quant")) {
        const Json &quant = c.at("quant");
        problem.w_dtype = dtype_of(quant.at("w"));
        problem.y_dtype = dtype_of(quant.at("y"));
        Quantization q;
        q.x_scale = quant.at("x_scale");
        q.x_zero_point = quant.at("x_zero_point");
        q.w_scale = list_of<float>(quant.at("w_scale"));
        q.w_zero_point = list_of<std::int32_t>(quant.at("w_zero_point"));
        q.y_scale = quant.at("y_scale");
        q.y_zero_point = quant.at("y_zero_point");
        problem.quantization = q;
    }
    return problem;
}

Problem channels_last(Problem problem) {
    problem.layout = CONVT_CHANNELS_LAST;
    if (problem.x_shape.size() > 2) {
        problem.x_shape.push_back(problem.x_shape[1]);
        problem.x_shape.erase(problem.x_shape.begin() + 1);
    }
    return problem;
}

Tensor channels_last(const Tensor &tensor) {
    const Shape &shape = tensor.shape(); // (N, C, ...)
    Shape moved = shape;
    moved.push_back(moved[1]);
    moved.erase(moved.begin() + 1);
    Tensor result(tensor.dtype(), moved);
    const std::int64_t channels = shape[1], positions = element_count(Shape(shape.begin() + 2, shape.end()));
    for (std::int64_t n = 0; n < shape[0]; ++n) {
        for (std::int64_t channel = 0; channel < channels; ++channel) {
            for (std::int64_t p = 0; p < positions; ++p) {
                result.set((n * positions + p) * channels + channel,
                           tensor.get((n * channels + channel) * positions + p));
            }
        }
    }
    return result;
}

::testing::AssertionResult is_as_listed(const Json &c, const Tensor &y, bool channels_last) {
    const Shape shape = y_shape_of(c, channels_last);
    if (y.shape() != shape) {
        return ::testing::AssertionFailure() << "y has shape " << ::testing::PrintToString(y.shape()) << ", listed is "
                                             << ::testing::PrintToString(shape);
    }
    const std::int64_t channels = c.at("y_shape").at(1), batch = shape[0];
    const std::int64_t positions = batch * channels > 0 ? y.size() / (batch * channels) : 0;
    const std::size_t bytes = convt_dtype_size(y.dtype());
    const Json &listed = c.at("y");
    std::uint32_t crc = ~0u;
    for (std::int64_t i = 0; i < y.size(); ++i) { // in the order of the file
        const std::int64_t n = i / (channels * positions), channel = i / positions % channels, p = i % positions;
        const double value = y.get(channels_last ? (n * positions + p) * channels + channel : i);
        if (listed.is_array()) {
            const double expected = number_of(listed.at(static_cast<std::size_t>(i)));
            if (value == expected || (std::isnan(value) && std::isnan(expected))) continue;
            return ::testing::AssertionFailure() << "element " << i << " is " << value << ", listed is " << expected;
        }
        std::array<unsigned char, 8> memory = {};
        const double nan = std::numeric_limits<double>::quiet_NaN();
        store(y.dtype(), memory.data(), 0, std::isnan(value) ? nan : value + 0.0); // one NaN and one zero
        for (std::size_t b = 0; b < bytes; ++b) crc = next_crc32(crc, memory[b]);
    }
    if (listed.is_object() && ~crc != listed.at("crc32").get<std::uint32_t>()) {
        return ::testing::AssertionFailure() << "y has the CRC-32 " << ~crc << ", listed is " << listed.at("crc32");
    }
    return ::testing::AssertionSuccess();
}

void fill(const Json &literal, Tensor *tensor) {
    if (literal.is_array() && static_cast<std::int64_t>(literal.size()) != tensor->size()) {
        throw std::runtime_error("a literal of the wrong size");
    }
    for (std::int64_t i = 0; i < tensor->size(); ++i) {
        if (literal.is_array()) {
            tensor->set(i, literal.at(static_cast<std::size_t>(i)));
        } else {
            tensor->set(i, literal.contains("fill") ? literal.at("fill").get<double>()
                                                    : static_cast<double>(i) + literal.value("from", 0.0));
        }
    }
}

Inputs inputs_of(const Json &c, const Problem &problem) {
    const std::string values = c.at("values");
    Inputs inputs = draw(problem, c.value("seed", 0), values == "uniform" ? Values::uniform : Values::integers);
    if (values == "literal") {
        fill(c.at("literal").at("x"), &inputs.x);
        fill(c.at("literal").at("w"), &inputs.w);
        if (inputs.b) fill(c.at("literal").at("b"), &*inputs.b);
    }
    if (values == "extremes") {
        for (Tensor *tensor : {&inputs.x, &inputs.w}) {
            const double least = tensor->dtype() == CONVT_S8 ? -128 : 0;
            for (std::int64_t i = 0; i < tensor->size(); ++i) {
                tensor->set(i, tensor->get(i) < least + 128 ? least : least + 255);
            }
        }
    }
    for (const Json &poke : c.value("poke", Json::array())) {
        const std::string name = poke.at(0);
        Tensor &tensor = name == "X" ? inputs.x : name == "W" ? inputs.w : inputs.b.value();
        tensor.set(poke.at(1), number_of(poke.at(2)));
    }
    return inputs;
}

Shape y_shape_of(const Json &c, bool channels_last) {
    Shape shape = c.at("y_shape").get<Shape>();
    if (channels_last) {
        shape.push_back(shape[1]);
        shape.erase(shape.begin() + 1);
    }
    return shape;
}

Status status_of_error(const Json &c, const Problem &problem, const Options &options) {
    const std::vector<double> zeros(4096, 0);
    ConstTensorView x(zeros.data(), problem.dtype, problem.x_shape), w(zeros.data(), problem.dtype, problem.w_shape);
    if (c.contains("w_dtype")) w.dtype = dtype_of(c.at("w_dtype"));
    std::vector<double> y_data(4096, 0);
    TensorView y{y_data.data(), problem.dtype, {}, {}};
    Plan plan;
    Status status = infer_shape(problem, &y.shape);
    if (status) status = Plan::create(problem, options, nullptr, nullptr, &plan);
    if (!status) return status;
    const convt_tensor x_tensor = detail::view(x), w_tensor = detail::view(w), y_tensor = detail::view(y);
    const bool has_w = c.value("drop_input", "") != "W";
    return Status::from(
        convt_plan_run(plan.get(), &x_tensor, has_w ? &w_tensor : nullptr, nullptr, &y_tensor, nullptr));
}

} // namespace convtranspose::test
