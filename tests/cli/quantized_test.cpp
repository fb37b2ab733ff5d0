// The command line on QLinearConvTranspose nodes.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "files.h"
#include "models.h"
#include "process.h"

namespace fs = std::filesystem;

namespace convtranspose::test {
namespace {

// The nine inputs of a node, by the operator's names and in its order.
struct Layer {
    int x_type = Proto::UINT8, w_type = Proto::INT8, y_type = Proto::UINT8;
    std::vector<std::pair<std::string, Proto>> inputs;
    std::vector<std::string> run_time = {"x"}; // the others are initializers
    Storage storage = Storage::raw;

    Proto &input(const std::string &name) {
        for (auto &[own, tensor] : inputs)
            if (own == name) return tensor;
        throw std::logic_error(name);
    }
};

double zero_point(int type) { return type == Proto::UINT8 ? 131 : -3; }

Values channels_last(const Values &v) {
    Values to{{v.dims[0], v.dims[2], v.dims[3], v.dims[1]}, {}};
    const std::int64_t c = v.dims[1], positions = v.dims[2] * v.dims[3];
    for (std::int64_t n = 0; n < v.dims[0]; n++)
        for (std::int64_t p = 0; p < positions; p++)
            for (std::int64_t i = 0; i < c; i++) to.data.push_back(v.data[(n * c + i) * positions + p]);
    return to;
}

Values plus(Values v, double by) {
    for (double &value : v.data) value += by;
    return v;
}

constexpr double kXScale = 0.5, kWScale = 0.25, kYScale = 2; // whose product and quotient are exact

// The layer of the float tests, its integers as they are: zero points are added to them, and taken off again.
Layer layer(int x_type = Proto::UINT8, int w_type = Proto::INT8, int y_type = Proto::UINT8,
            Storage storage = Storage::raw) {
    Layer l{x_type, w_type, y_type, {}, {"x"}, storage};
    const Values one{{}, {0}};
    const auto scalar = [](double value) { return Values{{}, {value}}; };
    l.inputs = {{"x", tensor("x", x_type, plus(channels_last(kX), zero_point(x_type)), storage)},
                {"x_scale", tensor("x_scale", Proto::FLOAT, scalar(kXScale), storage)},
                {"x_zero_point", tensor("x_zero_point", x_type, scalar(zero_point(x_type)), storage)},
                {"w", tensor("w", w_type, plus(kW, zero_point(w_type)), storage)},
                {"w_scale", tensor("w_scale", Proto::FLOAT, scalar(kWScale), storage)},
                {"w_zero_point", tensor("w_zero_point", w_type, scalar(zero_point(w_type)), storage)},
                {"y_scale", tensor("y_scale", Proto::FLOAT, scalar(kYScale), storage)},
                {"y_zero_point", tensor("y_zero_point", y_type, scalar(zero_point(y_type)), storage)},
                {"B", tensor("B", Proto::INT32, kB, storage)}};
    return l;
}

Values quantized(const Values &sums, int y_type, const std::vector<double> &w_scales = {kWScale}) {
    Values y = channels_last(sums);
    const double least = y_type == Proto::UINT8 ? 0 : -128;
    for (std::size_t i = 0; i < y.data.size(); i++) {
        const double factor = kXScale * w_scales[i % w_scales.size()] / kYScale;
        y.data[i] = std::clamp(std::nearbyint(y.data[i] * factor) + zero_point(y_type), least, least + 255);
    }
    return y;
}

onnx::ModelProto model_of(const Layer &l, const Values &y) {
    onnx::ModelProto m;
    m.set_ir_version(10);
    m.add_opset_import()->set_version(13);
    onnx::OperatorSetIdProto *const domain = m.add_opset_import();
    domain->set_domain("com.ms.internal.nhwc");
    domain->set_version(1);
    onnx::NodeProto *const node = m.mutable_graph()->add_node();
    node->set_op_type("QLinearConvTranspose");
    node->set_domain("com.ms.internal.nhwc");
    node->add_output("y");
    add_ints(node, "strides", {kStride, kStride});
    for (const auto &[name, value] : l.inputs) {
        node->add_input(name);
        if (std::count(l.run_time.begin(), l.run_time.end(), name)) {
            const Dims dims(value.dims().begin(), value.dims().end());
            add_value(m.mutable_graph()->mutable_input(), name, value.data_type(), &dims);
        } else {
            *m.mutable_graph()->add_initializer() = value;
        }
    }
    add_value(m.mutable_graph()->mutable_output(), "y", l.y_type, &y.dims);
    return m;
}

class Quantized : public testing::Test {
  protected:
    void write_layer(const Layer &l, const Values &y) const {
        fs::remove_all(path());
        std::vector<Proto> inputs;
        for (const auto &[name, value] : l.inputs) {
            if (std::count(l.run_time.begin(), l.run_time.end(), name)) inputs.push_back(value);
        }
        write_test(path(), model_of(l, y), inputs, {tensor("y", l.y_type, y)});
    }

    void expect_result(const Layer &l, const Values &y) const {
        write_layer(l, y);
        const fs::path out = folder_.path() / "out";
        Outcome outcome = convtranspose({"run", path().string(), "--output-dir", out.string()});
        ASSERT_EQ(outcome.status, 0) << outcome;
        const Proto result = read_tensor(out / "layer" / "output_0.pb");
        EXPECT_EQ(result.data_type(), l.y_type);
        EXPECT_EQ(values_of(result), y);
        outcome = convtranspose({"run", "--verify", path().string()});
        EXPECT_EQ(outcome.status, 0) << outcome;
        Values wrong = y;
        wrong.data[5] += wrong.data[5] > 0 ? -1 : 1;
        write(path() / "test_data_set_0" / "output_0.pb", tensor("y", l.y_type, wrong));
        outcome = convtranspose({"run", "--verify", path().string()});
        EXPECT_EQ(outcome.status, 1) << "integers must be equal\n" << outcome;
        EXPECT_NE(outcome.out.find("1 of 72 elements outside, first at 5"), std::string::npos) << outcome;
    }

    void expect_refused(const Layer &l, const std::string &why) const {
        write_layer(l, quantized(sums_, l.y_type));
        const Outcome outcome = convtranspose({"run", path().string()});
        EXPECT_EQ(outcome.status, 1) << outcome;
        EXPECT_NE(outcome.err.find(why), std::string::npos) << "expected: " << why << '\n' << outcome;
    }

    fs::path path() const { return folder_.path() / "layer"; }

    TemporaryFolder folder_;
    const Values sums_ = expected(kX, kW, &kB);
};

TEST_F(Quantized, TakesEveryCombinationOfTypes) {
    for (const int x : {Proto::UINT8, Proto::INT8}) {
        for (const int w : {Proto::UINT8, Proto::INT8}) {
            for (const int y : {Proto::UINT8, Proto::INT8}) {
                for (const Storage storage : {Storage::raw, Storage::typed}) {
                    SCOPED_TRACE(testing::Message() << "x " << x << " w " << w << " y " << y);
                    expect_result(layer(x, w, y, storage), quantized(sums_, y));
                }
            }
        }
    }
}

TEST_F(Quantized, TakesAnyInputAtRunTime) {
    const std::vector<std::vector<std::string>> choices = {
        {"x", "w"},
        {"x", "B"},
        {"x", "x_scale", "x_zero_point"},
        {"x", "y_scale", "y_zero_point"},
        {"x", "w_zero_point"},
        {"x", "x_scale", "x_zero_point", "w", "w_scale", "w_zero_point", "y_scale", "y_zero_point", "B"}};
    for (const std::vector<std::string> &choice : choices) {
        Layer l = layer();
        l.run_time = choice;
        SCOPED_TRACE(choice.back());
        expect_result(l, quantized(sums_, l.y_type));
    }
}

TEST_F(Quantized, ScalesOfALaterDataSetAreItsOwn) {
    Layer l = layer();
    l.run_time = {"x", "x_scale"};
    write_layer(l, quantized(sums_, l.y_type));
    Values halved = channels_last(sums_);
    for (double &value : halved.data) {
        value = std::clamp(std::nearbyint(value * kXScale / 2 * kWScale / kYScale) + 131, 0.0, 255.0);
    }
    const fs::path set = path() / "test_data_set_1";
    write(set / "input_0.pb", l.input("x"));
    write(set / "input_1.pb", tensor("x_scale", Proto::FLOAT, {{}, {kXScale / 2}}));
    write(set / "output_0.pb", tensor("y", l.y_type, halved));
    const Outcome outcome = convtranspose({"run", "--verify", path().string()});
    EXPECT_EQ(outcome.status, 0) << outcome;
    EXPECT_NE(outcome.out.find("2 passed"), std::string::npos) << outcome;
}

TEST_F(Quantized, TakesAScaleAndAZeroPointPerOutputChannel) {
    Layer l = layer();
    const std::vector<double> scales = {0.25, 0.125, 1}, zeros = {3, -4, 0};
    l.input("w_scale") = tensor("w_scale", Proto::FLOAT, {{3}, scales});
    l.input("w_zero_point") = tensor("w_zero_point", Proto::INT8, {{3}, zeros});
    Values w = kW;
    for (std::size_t i = 0; i < w.data.size(); i++) w.data[i] += zeros[i / 4 % 3]; // (2, 3, 2, 2)
    l.input("w") = tensor("w", Proto::INT8, w);
    expect_result(l, quantized(sums_, l.y_type, scales));
}

TEST_F(Quantized, TakesListsOfOneForNumbersAndNoBias) {
    Layer l = layer();
    for (const char *name : {"x_scale", "x_zero_point", "w_scale", "w_zero_point", "y_scale", "y_zero_point"}) {
        l.input(name).add_dims(1);
    }
    l.inputs.pop_back();
    expect_result(l, quantized(expected(kX, kW, nullptr), l.y_type));
}

TEST_F(Quantized, RefusesWhatBreaksTheOperatorsRules) {
    const auto with = [](const char *name, int type, const Values &values) {
        Layer l = layer();
        l.input(name) = tensor(name, type, values);
        return l;
    };
    expect_refused(with("w_zero_point", Proto::UINT8, {{}, {3}}), "w_zero_point is u8, must be s8, the type of w");
    expect_refused(with("x_zero_point", Proto::INT8, {{}, {3}}), "x_zero_point is s8, must be u8, the type of x");
    expect_refused(with("x_scale", Proto::DOUBLE, {{}, {1}}), "x_scale is f64, must be f32");
    expect_refused(with("x_scale", Proto::FLOAT, {{2}, {1, 1}}), "x_scale has shape 2, must be one number");
    expect_refused(with("w_scale", Proto::FLOAT, {{2}, {1, 1}}), "w_scale has 2 elements, needs 1 or 3");
    expect_refused(with("w_scale", Proto::FLOAT, {{1, 1}, {1}}), "w_scale has shape 1x1");
    expect_refused(with("w_scale", Proto::FLOAT, {{0}, {}}), "w_scale has shape 0, must be one number or one for each");
    expect_refused(with("w_zero_point", Proto::INT8, {{2}, {3, 3}}), "w_zero_point has 2 elements, needs 1 or 3");
    expect_refused(with("w_scale", Proto::FLOAT, {{}, {0}}), "w_scale[0] = 0 must be positive and finite");
    expect_refused(with("y_scale", Proto::FLOAT, {{}, {-1}}), "y_scale = -1 must be positive and finite");
    expect_refused(with("B", Proto::INT32, {{4}, {1, 2, 3, 4}}), "b_shape = (4) must be (3)");
    expect_refused(with("B", Proto::FLOAT, kB), "B is f32, must be s32");
    expect_refused(with("x", Proto::INT16, channels_last(kX)), "has type INT16");
    expect_refused(with("x", Proto::FLOAT, channels_last(kX)), "x is f32; the operator takes u8 and s8");
    expect_refused(with("w", Proto::INT32, kW), "w is s32; the operator takes u8 and s8");
    expect_refused(with("y_zero_point", Proto::FLOAT, {{}, {0}}), "is f32; the operator takes u8 and s8");

    write_layer(layer(), quantized(sums_, Proto::UINT8));
    onnx::ModelProto m = model_of(layer(), quantized(sums_, Proto::UINT8));
    m.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(Proto::INT8);
    write(path() / "model.onnx", m);
    const Outcome outcome = convtranspose({"run", path().string()});
    EXPECT_NE(outcome.err.find("'y' is declared INT8, but y_zero_point is u8"), std::string::npos) << outcome;
}

TEST_F(Quantized, NamesAMissingInput) {
    const Layer l = layer();
    const Values y = quantized(sums_, l.y_type);
    for (std::size_t i = 0; i < 8; i++) { // all but B
        for (const bool cut : {false, true}) {
            onnx::ModelProto m = model_of(l, y);
            onnx::NodeProto *const node = m.mutable_graph()->mutable_node(0);
            if (cut) {
                node->mutable_input()->DeleteSubrange(int(i), 9 - int(i));
            } else {
                node->set_input(int(i), "");
            }
            write_test(path(), m, {l.inputs[0].second});
            const Outcome outcome = convtranspose({"run", path().string()});
            EXPECT_EQ(outcome.status, 1) << outcome;
            EXPECT_NE(outcome.err.find("required input " + l.inputs[i].first + " is missing"), std::string::npos)
                << outcome;
        }
    }
}

TEST_F(Quantized, AnEmptyBiasNameIsNoBias) {
    Layer l = layer();
    l.inputs.pop_back();
    const Values y = quantized(expected(kX, kW, nullptr), l.y_type);
    onnx::ModelProto m = model_of(l, y);
    m.mutable_graph()->mutable_node(0)->add_input("");
    write_test(path(), m, {l.input("x")}, {tensor("y", l.y_type, y)});
    const Outcome outcome = convtranspose({"run", "--verify", path().string()});
    EXPECT_EQ(outcome.status, 0) << outcome;
}

TEST_F(Quantized, IsChannelsLastAtAnyRank) {
    for (const std::size_t rank : {3, 4, 5}) {
        SCOPED_TRACE(rank);
        // One channel to two. Two positions along the last axis, whose two taps do not meet: y[2 * i + k][m] is
        // x[i] * w[m][k].
        Dims x_dims(rank, 1), w_dims(rank, 1), y_dims(rank, 1), strides(rank - 2, 1);
        x_dims[rank - 2] = 2, w_dims[1] = 2, w_dims[rank - 1] = 2, strides.back() = 2;
        y_dims[rank - 2] = 4, y_dims[rank - 1] = 2;
        const Values x{x_dims, {3, -2}}, w{w_dims, {1, 2, 11, 12}};
        Values y{y_dims, {}};
        for (std::size_t i = 0; i < 2; i++)
            for (std::size_t k = 0; k < 2; k++)
                for (std::size_t m = 0; m < 2; m++) y.data.push_back(x.data[i] * w.data[m * 2 + k] + 131);
        Layer l = layer();
        l.inputs.pop_back();
        l.input("x") = tensor("x", l.x_type, plus(x, zero_point(l.x_type)));
        l.input("w") = tensor("w", l.w_type, plus(w, zero_point(l.w_type)));
        l.input("y_scale") = tensor("y_scale", Proto::FLOAT, {{}, {kXScale * kWScale}});
        onnx::ModelProto m = model_of(l, y);
        m.mutable_graph()->mutable_node(0)->clear_attribute();
        add_ints(m.mutable_graph()->mutable_node(0), "strides", strides);
        write_test(path(), m, {l.input("x")}, {tensor("y", l.y_type, y)});
        const Outcome outcome = convtranspose({"run", "--verify", path().string()});
        EXPECT_EQ(outcome.status, 0) << outcome;
    }
}

TEST_F(Quantized, AppliesAToleranceFile) {
    const Layer l = layer();
    Values y = quantized(sums_, l.y_type);
    y.data[5] -= 2;
    write_layer(l, y);
    for (const double allowed : {2.0, 1.0}) {
        Values tolerance{y.dims, std::vector<double>(y.data.size(), 0.0)};
        tolerance.data[5] = allowed;
        write(path() / "test_data_set_0" / "tolerance_0.pb", tensor("t", Proto::FLOAT, tolerance));
        const Outcome outcome = convtranspose({"run", "--verify", path().string()});
        EXPECT_EQ(outcome.status, allowed == 2.0 ? 0 : 1) << outcome;
    }
}

TEST_F(Quantized, TakesConstantNodesAndAnyVersionOfItsDomain) {
    const Layer l = layer();
    const Values y = quantized(sums_, l.y_type);
    for (const int version : {1, 2, 23}) {
        onnx::ModelProto m = model_of(l, y);
        m.mutable_opset_import(1)->set_version(version);
        for (const onnx::TensorProto &initializer : m.graph().initializer()) {
            onnx::NodeProto *const node = m.mutable_graph()->add_node();
            node->set_op_type("Constant");
            node->add_output(initializer.name());
            onnx::AttributeProto *const value = node->add_attribute();
            value->set_name("value");
            value->set_type(onnx::AttributeProto::TENSOR);
            *value->mutable_t() = initializer;
        }
        m.mutable_graph()->clear_initializer();
        write_test(path(), m, {l.inputs[0].second}, {tensor("y", l.y_type, y)});
        const Outcome outcome = convtranspose({"run", "--verify", path().string()});
        EXPECT_EQ(outcome.status, 0) << outcome;
    }
}

TEST_F(Quantized, IsAnotherOperatorInOtherDomains) {
    const Layer l = layer();
    const std::string file = (folder_.path() / "m.onnx").string();
    for (const char *domain : {"", "com.microsoft"}) {
        onnx::ModelProto m = model_of(l, quantized(sums_, l.y_type));
        m.mutable_graph()->mutable_node(0)->set_domain(domain);
        write(file, m);
        for (const char *command : {"run", "explain", "bench"}) {
            const Outcome outcome = convtranspose({command, file});
            EXPECT_EQ(outcome.status, 1) << outcome;
            EXPECT_NE(outcome.err.find("QLinearConvTranspose of domain '" + std::string(domain) +
                                       "' is not supported, only that of domain com.ms.internal.nhwc"),
                      std::string::npos)
                << command << '\n'
                << outcome;
        }
    }
}

TEST_F(Quantized, TypesAreCheckedWithoutRunning) {
    const std::string file = (folder_.path() / "m.onnx").string();
    const std::vector<std::tuple<const char *, Proto::DataType, std::string>> wrong = {
        {"B", Proto::FLOAT, "B is f32, must be s32"},
        {"B", Proto::UINT8, "B is u8, must be s32"}, // fewer bytes than there would be
        {"w", Proto::FLOAT, "w is f32; the operator takes u8 and s8"},
        {"x", Proto::FLOAT, "x is f32; the operator takes u8 and s8"},
    };
    for (const auto &[name, type, why] : wrong) {
        Layer l = layer();
        l.input(name).set_data_type(type);
        if (name == std::string("B")) l.input(name) = tensor(name, type, kB);
        write(file, model_of(l, quantized(sums_, l.y_type)));
        for (const char *command : {"explain", "bench"}) {
            const Outcome outcome = convtranspose({command, file});
            EXPECT_EQ(outcome.status, 1) << outcome;
            EXPECT_NE(outcome.err.find(why), std::string::npos) << "expected: " << why << '\n' << outcome;
        }
    }
}

TEST_F(Quantized, TakesNumPyFiles) {
    for (const int type : {Proto::UINT8, Proto::INT8}) {
        Layer l = layer(type);
        l.run_time = {"x", "B"};
        const Values y = quantized(sums_, l.y_type);
        write(folder_.path() / "m.onnx", model_of(l, y));
        const std::string x = (folder_.path() / "x.npy").string(), b = (folder_.path() / "b.npy").string();
        write_text(x, npy(type == Proto::UINT8 ? "|u1" : "|i1", channels_last(kX).dims, l.input("x").raw_data()));
        write_text(b, npy("<i4", kB.dims, l.input("B").raw_data()));
        const fs::path out = folder_.path() / "out";
        const Outcome outcome =
            convtranspose({"run", (folder_.path() / "m.onnx").string(), x, b, "--output-dir", out.string()});
        ASSERT_EQ(outcome.status, 0) << outcome;
        EXPECT_EQ(values_of(read_tensor(out / "m" / "output_0.pb")), y);
    }
}

TEST_F(Quantized, IsExplained) {
    const std::string file = (folder_.path() / "m.onnx").string();
    Layer l = layer();
    const Values y = quantized(sums_, l.y_type);
    write(file, model_of(l, y));
    Outcome outcome = convtranspose({"explain", file});
    EXPECT_EQ(outcome.status, 0) << outcome;
    for (const char *text : {"u8, opset 1, x 1x2x3x2, w 2x3x2x2 (constant), b 3, y 1x4x6x3\n", "channels last",
                             "x_scale 0.5, x_zero_point 131", "w_scale 0.25, w_zero_point -3",
                             "y_scale 2, y_zero_point 131", "sums are at most"}) {
        EXPECT_NE(outcome.out.find(text), std::string::npos) << text << '\n' << outcome;
    }
    l.input("w_scale") = tensor("w_scale", Proto::FLOAT, {{3}, {0.25, 0.125, 1}});
    write(file, model_of(l, y));
    outcome = convtranspose({"explain", file});
    EXPECT_NE(outcome.out.find("w_scale 0.125"), std::string::npos) << outcome;
    outcome = convtranspose({"explain", file, "--layout", "nchw"});
    EXPECT_NE(outcome.out.find("x 1x2x2x3"), std::string::npos) << outcome;
    l.run_time = {"x", "x_scale"};
    write(file, model_of(l, y));
    outcome = convtranspose({"explain", file});
    EXPECT_EQ(outcome.status, 0) << outcome;
    EXPECT_NE(outcome.out.find("scales and zero points with each run"), std::string::npos) << outcome;
}

TEST_F(Quantized, IsMeasured) {
    const std::string file = (folder_.path() / "m.onnx").string();
    const Layer l = layer();
    write(file, model_of(l, quantized(sums_, l.y_type)));
    for (const std::string layout : {"", "nhwc", "nchw"}) {
        std::vector<std::string> arguments = {"bench", "--json", "--min-time", "0.01", file};
        if (!layout.empty()) arguments.insert(arguments.end(), {"--layout", layout});
        const Outcome outcome = convtranspose(arguments);
        ASSERT_EQ(outcome.status, 0) << outcome;
        const nlohmann::json row = nlohmann::json::parse(outcome.out).at(0);
        EXPECT_EQ(row.at("dtype"), "u8");
        EXPECT_EQ(row.at("layout"), layout.empty() ? "nhwc" : layout);
        EXPECT_EQ(row.at("x_shape"), nlohmann::json(layout == "nchw" ? kX.dims : channels_last(kX).dims));
        EXPECT_GT(row.at("peak_gflops").get<double>(), 0);
        EXPECT_LT(row.at("peak_percent").get<double>(), 110);
    }
}

} // namespace
} // namespace convtranspose::test
