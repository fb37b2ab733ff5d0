#include "conformance/cases.h"

#include <cmath>
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

} // namespace

void PrintTo(const Case &c, std::ostream *stream) { *stream << c.json.dump(); }

std::vector<Case> load_cases() {
    // Not a std::ifstream, which C++ libraries without a file system lack.
    const std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(CONVTRANSPOSE_CASES, "rb"), std::fclose);
    if (!file) throw std::runtime_error("cannot open " CONVTRANSPOSE_CASES);
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
        const Json &value = poke.at(2);
        const double infinity = std::numeric_limits<double>::infinity();
        tensor.set(poke.at(1), value == "inf"    ? infinity
                               : value == "-inf" ? -infinity
                               : value == "nan"  ? std::nan("")
                                                 : value.get<double>());
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
