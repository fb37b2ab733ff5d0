// `convtranspose bench`: that it measures what it says, not how fast that is.
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "files.h"
#include "models.h"
#include "process.h"

namespace convtranspose::test {
namespace {

class Bench : public testing::Test {
  protected:
    std::string file(const std::string &name) const { return (folder_.path() / name).string(); }

    TemporaryFolder folder_;
};

TEST_F(Bench, PrintsJson) {
    for (const int type : {onnx::TensorProto::FLOAT16, onnx::TensorProto::BFLOAT16, onnx::TensorProto::FLOAT,
                           onnx::TensorProto::DOUBLE}) {
        ModelOptions options;
        options.data_type = type;
        write(file("layer.onnx"), model(options));
        const Outcome outcome =
            convtranspose({"bench", "--json", "--min-time", "0.01", "--threads", "2", file("layer.onnx")});
        ASSERT_EQ(outcome.status, 0) << outcome;
        const nlohmann::json rows = nlohmann::json::parse(outcome.out);
        ASSERT_EQ(rows.size(), 1u) << outcome;
        const nlohmann::json &row = rows[0];
        EXPECT_EQ(row.at("name"), "layer");
        EXPECT_EQ(row.at("threads"), 2);
        EXPECT_EQ(row.at("x_shape"), nlohmann::json(kX.dims));
        EXPECT_EQ(row.at("y_shape"), nlohmann::json({1, 3, 4, 6}));
        EXPECT_GT(row.at("best_ms").get<double>(), 0);
        EXPECT_GE(row.at("median_ms").get<double>(), row.at("best_ms").get<double>());
        EXPECT_GE(row.at("plan_ms").get<double>(), 0);
        EXPECT_GE(row.at("workspace_bytes").get<double>(), 0);
        EXPECT_FALSE(row.at("variant").get<std::string>().empty());
        EXPECT_FALSE(row.at("isa").get<std::string>().empty());
        // 2 channels in, 3 out, 2x3 positions, 2x2 kernel elements, nothing cropped.
        const double gflop = 2e-9 * 2 * 3 * 6 * 4;
        EXPECT_NEAR(row.at("gflops").get<double>() * row.at("best_ms").get<double>() / 1e3, gflop, 1e-6 * gflop);
        EXPECT_GT(row.at("peak_percent").get<double>(), 0);
        EXPECT_LT(row.at("peak_percent").get<double>(), 100);
    }
}

TEST_F(Bench, FusesWhatItIsTold) {
    write(file("layer.onnx"), model());
    for (const char *const activation : {"relu", "leaky_relu", "clip", "sigmoid", "tanh"}) {
        Outcome outcome =
            convtranspose({"bench", "--json", "--min-time", "0", "--activation", activation, file("layer.onnx")});
        EXPECT_EQ(outcome.status, 0) << outcome;
        outcome = convtranspose(
            {"bench", "--json", "--min-time", "0", "--residual", "--activation", activation, file("layer.onnx")});
        EXPECT_EQ(outcome.status, 0) << outcome;
    }
    const Outcome outcome = convtranspose({"bench", "--activation", "softmax", file("layer.onnx")});
    EXPECT_EQ(outcome.status, 2) << outcome;
}

TEST_F(Bench, MeasuresCandidates) {
    write(file("layer.onnx"), model());
    const Outcome outcome =
        convtranspose({"bench", "--json", "--min-time", "0", "--candidates", "4", file("layer.onnx")});
    ASSERT_EQ(outcome.status, 0) << outcome;
    std::set<std::string> names;
    for (const nlohmann::json &row : nlohmann::json::parse(outcome.out)) {
        EXPECT_GT(row.at("best_ms").get<double>(), 0);
        names.insert(row.at("variant").get<std::string>());
    }
    EXPECT_EQ(names.size(), 4u) << outcome;
    EXPECT_EQ(convtranspose({"bench", "--candidates", "0", file("layer.onnx")}).status, 2);
}

TEST_F(Bench, PrintsATable) {
    write(file("layer.onnx"), model());
    const Outcome outcome = convtranspose({"bench", "--min-time", "0", "--layout", "nhwc", file("layer.onnx")});
    EXPECT_EQ(outcome.status, 0) << outcome;
    EXPECT_EQ(outcome.out.rfind("name ", 0), 0u) << outcome;
    EXPECT_NE(outcome.out.find("\nlayer  ConvTranspose  f32   1x2x3x2  1x4x6x3 "), std::string::npos) << outcome;
    EXPECT_NE(outcome.out.find("multiply-add peak: "), std::string::npos) << outcome;
    EXPECT_EQ(outcome.err, "") << "no progress unless a terminal shows it";
}

TEST_F(Bench, MeasuresEveryNodeOfKnownShape) {
    onnx::ModelProto m = model();
    onnx::NodeProto node = m.graph().node(0);
    for (const char *x : {"known", "unknown", "symbolic"}) {
        node.set_name(x);
        node.set_input(0, x);
        node.set_output(0, std::string(x) + "_y");
        *m.mutable_graph()->add_node() = node;
    }
    const Dims known = {1, 2, 5, 5}, symbolic = {-1, 2, 5, 5};
    add_value(m.mutable_graph()->mutable_value_info(), "known", onnx::TensorProto::FLOAT, &known);
    add_value(m.mutable_graph()->mutable_value_info(), "symbolic", onnx::TensorProto::FLOAT, &symbolic);
    write(file("net.onnx"), m);
    const Outcome outcome = convtranspose({"bench", "--json", "--min-time", "0", file("net.onnx")});
    EXPECT_EQ(outcome.status, 0) << outcome;
    const nlohmann::json rows = nlohmann::json::parse(outcome.out);
    ASSERT_EQ(rows.size(), 2u) << outcome;
    EXPECT_EQ(rows[1].at("node"), "ConvTranspose 'known'");
    EXPECT_NE(outcome.err.find("'unknown' skipped"), std::string::npos) << outcome;
    EXPECT_NE(outcome.err.find("'symbolic' skipped"), std::string::npos) << outcome;
}

TEST_F(Bench, ReportsFailuresAndMeasuresTheRest) {
    write(file("good.onnx"), model());
    onnx::ModelProto m = model();
    m.mutable_graph()->mutable_node(0)->set_op_type("Relu");
    write(file("none.onnx"), m);
    const Outcome outcome = convtranspose(
        {"bench", "--json", "--min-time", "0", file("none.onnx"), file("good.onnx"), file("absent.onnx")});
    EXPECT_EQ(outcome.status, 1) << outcome;
    EXPECT_EQ(nlohmann::json::parse(outcome.out).size(), 1u) << outcome;
    EXPECT_NE(outcome.err.find("error: none: the model has no ConvTranspose or QLinearConvTranspose node"),
              std::string::npos)
        << outcome;
    EXPECT_NE(outcome.err.find("error: absent: "), std::string::npos) << outcome;
}

TEST_F(Bench, PrintsAnEmptyArrayWhereNothingWasMeasured) {
    const Outcome outcome = convtranspose({"bench", "--json", file("absent.onnx")});
    EXPECT_EQ(outcome.status, 1) << outcome;
    EXPECT_EQ(nlohmann::json::parse(outcome.out), nlohmann::json::array()) << outcome;
}

// An activation may take the few elements of a small y to one value, and a layer of an empty x without bias is all zeros.
TEST_F(Bench, MeasuresLayersWhoseResultsAreAlike) {
    ModelOptions options;
    options.bias = options.shapes = false;
    for (const Dims &x : {Dims{1, 2, 0, 3}, Dims{1, 2, 1, 1}}) {
        onnx::ModelProto m = model(options);
        m.mutable_graph()->mutable_node(0)->clear_attribute(); // with stride 1 an empty x has outputs
        m.mutable_graph()->mutable_input()->Clear();
        add_value(m.mutable_graph()->mutable_input(), "X", onnx::TensorProto::FLOAT, &x);
        write(file("layer.onnx"), m);
        const Outcome outcome =
            convtranspose({"bench", "--json", "--min-time", "0", "--activation", "clip", file("layer.onnx")});
        EXPECT_EQ(outcome.status, 0) << outcome;
        EXPECT_EQ(nlohmann::json::parse(outcome.out).size(), 1u) << outcome;
    }
}

} // namespace
} // namespace convtranspose::test
