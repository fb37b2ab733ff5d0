// The cases of cases.json through the public interface, in both layouts.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reference/descriptor.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

using Json = nlohmann::json;

struct Case {
    std::string name;
    Json json;
};

void PrintTo(const Case &c, std::ostream *stream) { *stream << c.json.dump(); }

std::vector<Case> load_cases() {
    // Not a std::ifstream, which C++ libraries without a file system lack.
    const std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(CONVTRANSPOSE_CASES, "rb"), std::fclose);
    if (!file) throw std::runtime_error("cannot open " CONVTRANSPOSE_CASES);
    std::vector<Case> cases;
    const Json all = Json::parse(file.get());
    for (const Json &c : all.at("cases")) cases.push_back({c.at("name"), c});
    return cases;
}

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

// The same node with x and y the other way round.
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

class Conformance : public testing::TestWithParam<Case> {};

TEST_P(Conformance, Case) {
    const Json &c = GetParam().json;
    const Problem first = problem_of(c);
    for (const bool last : {false, true}) {
        SCOPED_TRACE(last ? "channels last" : "channels first");
        const Problem problem = last ? channels_last(first) : first;

        if (c.value("expect", "ok") == "error") {
            // What is wrong may be the node, the type of w, or that there is no w at all: then the run must fail.
            const std::vector<double> zeros(4096, 0);
            ConstTensorView x(zeros.data(), problem.dtype, problem.x_shape),
                w(zeros.data(), problem.dtype, problem.w_shape);
            if (c.contains("w_dtype")) w.dtype = dtype_of(c.at("w_dtype"));
            std::vector<double> y_data(4096, 0);
            TensorView y{y_data.data(), problem.dtype, {}, {}};
            Status status = infer_shape(problem, &y.shape);
            if (status) {
                Plan plan;
                status = Plan::create(problem, Options{}, nullptr, nullptr, &plan);
                const convt_tensor x_tensor = detail::view(x), w_tensor = detail::view(w), y_tensor = detail::view(y);
                if (status) {
                    const bool has_w = c.value("drop_input", "") != "W";
                    status = Status::from(convt_plan_run(plan.get(), &x_tensor, has_w ? &w_tensor : nullptr, nullptr,
                                                         &y_tensor, nullptr));
                }
            }
            EXPECT_NE(status.code(), CONVT_OK);
            EXPECT_NE(status.code(), CONVT_INTERNAL) << status.message();
            EXPECT_NE(status.message(), "");
            continue;
        }

        SCOPED_TRACE(describe(problem));
        Inputs inputs = inputs_of(c, first);
        if (last) inputs.x = channels_last(inputs.x);
        Shape y_shape = c.at("y_shape").get<Shape>();
        if (last) {
            y_shape.push_back(y_shape[1]);
            y_shape.erase(y_shape.begin() + 1);
        }
        Tensor y;
        const Status status = run(problem, inputs, Options{}, &y);
        ASSERT_TRUE(status) << status.message();
        EXPECT_EQ(y.shape(), y_shape);
        EXPECT_TRUE(agrees(y, reference(problem, inputs)));
    }
}

INSTANTIATE_TEST_SUITE_P(Cases, Conformance, testing::ValuesIn(load_cases()),
                         [](const testing::TestParamInfo<Case> &c) { return c.param.name; });

// Values that are published with the node's documentation: x = 0..8, w = 1, no attributes.
TEST(Published, ConvTranspose) {
    const Problem problem = parse_problem("f32 nchw n1 g1 ic1 oc2 i3x3 k3x3");
    Inputs inputs = draw(problem, 1);
    fill(Json::parse("{\"arange\": true}"), &inputs.x);
    fill(Json::parse("{\"fill\": 1}"), &inputs.w);
    Tensor y;
    const Status status = run(problem, inputs, Options{}, &y);
    ASSERT_TRUE(status) << status.message();
    const std::vector<double> expected = {0,  1,  3, 3,  2,  3,  8,  15, 12, 7,  9,  21, 36,
                                          27, 15, 9, 20, 33, 24, 13, 6,  13, 21, 15, 8};
    for (std::int64_t i = 0; i < y.size(); ++i) EXPECT_EQ(y.get(i), expected[static_cast<std::size_t>(i) % 25]) << i;
}

// Likewise: strides 3 and 2, pads 1, 2, 1, 2.
TEST(Published, ConvTransposePads) {
    const Problem problem = parse_problem("f32 nchw n1 g1 ic1 oc2 i3x3 k3x3 s3x2 p1x2_1x2");
    Inputs inputs = draw(problem, 1);
    fill(Json::parse("{\"arange\": true}"), &inputs.x);
    fill(Json::parse("{\"fill\": 1}"), &inputs.w);
    Tensor y;
    const Status status = run(problem, inputs, Options{}, &y);
    ASSERT_TRUE(status) << status.message();
    const std::vector<double> expected = {1, 1, 3, 1, 1, 3, 7, 4, 9, 7, 4, 9, 7, 4, 9, 13, 7, 15, 13, 7, 15};
    ASSERT_EQ(y.shape(), (Shape{1, 2, 7, 3}));
    for (std::int64_t i = 0; i < y.size(); ++i) EXPECT_EQ(y.get(i), expected[static_cast<std::size_t>(i) % 21]) << i;
}

} // namespace
} // namespace convtranspose::test
