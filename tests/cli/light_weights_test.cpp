// Layers of f32 whose weights are kept in 16 or 8 bits: behind Cast and DequantizeLinear in models, and in lines of layers.
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "files.h"
#include "models.h"
#include "process.h"

namespace convtranspose::test {
namespace {

using Proto = onnx::TensorProto;

// X -> ConvTranspose -> Y with the weights kW, whose f32 another node makes of `type`.
struct Light {
    int type = Proto::INT8;
    Values scale = {{3}, {0.5, 0.25, 2}};
    double zero_point = 0; // 0: left out
    bool quantizes_x = false;
    std::string behind; // a node behind Y

    bool has_scale() const { return type == Proto::INT8 || type == Proto::UINT8; }

    onnx::ModelProto model() const {
        onnx::ModelProto m;
        m.set_ir_version(10);
        m.add_opset_import()->set_version(21);
        onnx::GraphProto *const graph = m.mutable_graph();
        graph->set_name("light");
        add_value(graph->mutable_input(), "X", Proto::FLOAT, &kX.dims);
        const Dims y_dims = y().dims;
        add_value(graph->mutable_output(), "Y", Proto::FLOAT, &y_dims);
        Values w = kW;
        for (double &value : w.data) value += zero_point;
        *graph->add_initializer() = tensor("w", type, w);
        *graph->add_initializer() = tensor("B", Proto::FLOAT, kB);
        if (has_scale()) {
            *graph->add_initializer() = tensor("scale", Proto::FLOAT, scale);
            std::vector<std::string> inputs = {"w", "scale"};
            if (zero_point != 0) {
                *graph->add_initializer() =
                    tensor("zero", type, {scale.dims, std::vector<double>(scale.data.size(), zero_point)});
                inputs.emplace_back("zero");
            }
            add_node(graph, "DequantizeLinear", "", inputs, "W");
        } else {
            add_int(add_node(graph, "Cast", "", {"w"}, "W"), "to", Proto::FLOAT);
        }
        if (quantizes_x) {
            onnx::NodeProto *const quantizer = add_node(graph, "DynamicQuantizeLinear", "", {"X"}, "xq");
            quantizer->add_output("x_scale");
            quantizer->add_output("x_zero");
            add_node(graph, "DequantizeLinear", "", {"xq", "x_scale", "x_zero"}, "x");
        }
        onnx::NodeProto *const up =
            add_node(graph, "ConvTranspose", "up", {quantizes_x ? "x" : "X", "W", "B"}, behind.empty() ? "Y" : "y");
        add_ints(up, "strides", {kStride, kStride});
        if (!behind.empty()) add_node(graph, behind, "", {"y"}, "Y");
        return m;
    }

    // The result if x holds multiples of its scale.
    Values y() const {
        Values w = kW;
        for (std::size_t i = 0; has_scale() && i < w.data.size(); i++) {
            w.data[i] *= scale.data[scale.data.size() == 1 ? 0 : i / 4 % 3]; // (2, 3, 2, 2)
        }
        return expected(kX, w, &kB);
    }
};

class LightWeights : public testing::Test {
  protected:
    void expect_result(const Light &light, const std::string &explained, const std::string &type) const {
        SCOPED_TRACE(explained);
        write_test(layer_, light.model(), {tensor("X", Proto::FLOAT, kX)}, {tensor("Y", Proto::FLOAT, light.y())});
        Outcome outcome = convtranspose({"run", "--verify", layer_});
        EXPECT_EQ(outcome.status, 0) << outcome;
        outcome = convtranspose({"explain", layer_});
        EXPECT_EQ(outcome.status, 0) << outcome;
        EXPECT_NE(outcome.out.find("ConvTranspose 'up': " + explained +
                                   ", opset 21, x 1x2x2x3, w 2x3x2x2 (constant), b 3, y 1x3x4x6\n"),
                  std::string::npos)
            << outcome;
        outcome = convtranspose({"bench", "--json", "--min-time", "0", layer_});
        ASSERT_EQ(outcome.status, 0) << outcome;
        EXPECT_EQ(nlohmann::json::parse(outcome.out).at(0).at("dtype"), type);
    }

    TemporaryFolder folder_;
    const std::string layer_ = (folder_.path() / "layer").string();
};

TEST_F(LightWeights, AreKeptBehindCast) {
    Light light;
    light.type = Proto::FLOAT16;
    expect_result(light, "f32 with weights of f16", "f32 wf16");
    light.type = Proto::BFLOAT16;
    expect_result(light, "f32 with weights of bf16", "f32 wbf16");
    light.type = Proto::INT32; // which are made f32 once
    expect_result(light, "f32", "f32");
}

TEST_F(LightWeights, AreKeptBehindDequantizeLinear) {
    Light light;
    expect_result(light, "f32 with weights of s8", "f32 ws8");
    light.zero_point = -7;
    expect_result(light, "f32 with weights of s8", "f32 ws8");
    light = {Proto::UINT8, {{}, {0.125}}, 100, false, ""};
    expect_result(light, "f32 with weights of u8", "f32 wu8");
    light.scale = {{3}, {1, -1, 0}};
    expect_result(light, "f32", "f32");
}

TEST_F(LightWeights, GoWithAnXThatEachRunQuantizes) {
    Light light;
    light.quantizes_x = true;
    const std::string explained = "f32 with weights of s8, x quantized by each run";
    // x is -5 .. 6, and off by up to half a 255th of 11. An output is the sum of two products, with weights of up to 24.
    write_test(layer_, light.model(), {tensor("X", Proto::FLOAT, kX)}, {tensor("Y", Proto::FLOAT, light.y())});
    const Values tolerance{light.y().dims, std::vector<double>(light.y().data.size(), 2 * 24 * 11 / 510.0)};
    write(folder_.path() / "layer" / "test_data_set_0" / "tolerance_0.pb", tensor("t", Proto::FLOAT, tolerance));
    Outcome outcome = convtranspose({"run", "--verify", layer_});
    EXPECT_EQ(outcome.status, 0) << outcome;
    outcome = convtranspose({"explain", layer_});
    EXPECT_NE(outcome.out.find("'up': " + explained + ", opset 21"), std::string::npos) << outcome;
    outcome = convtranspose({"bench", "--json", "--min-time", "0", layer_});
    EXPECT_EQ(nlohmann::json::parse(outcome.out).at(0).at("dtype"), "f32 ws8 dynamic") << outcome;

    // Weights of f32 are not for integers.
    light.type = Proto::FLOAT;
    write_test(layer_, light.model(), {tensor("X", Proto::FLOAT, kX)});
    outcome = convtranspose({"run", layer_});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.err.find("DynamicQuantizeLinear"), std::string::npos) << outcome;
}

TEST_F(LightWeights, OtherNodesAreRefusedByRun) {
    Light light;
    light.behind = "Relu";
    write_test(layer_, light.model(), {tensor("X", Proto::FLOAT, kX)});
    const Outcome outcome = convtranspose({"run", layer_});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.err.find("it has ConvTranspose, DequantizeLinear, Relu"), std::string::npos) << outcome;
}

TEST_F(LightWeights, AreTunedByTheKernelsThatAreThere) {
    const std::string out = (folder_.path() / "out").string(), emitted = (folder_.path() / "emitted").string();
    for (const std::string types : {"wf16", "wbf16", "wu8", "ws8", "ws8 dynamic"}) {
        const std::string line = "f32 nchw n1 g1 ic8 oc4 i5x5 k2x2 s2x2 bias " + types;
        const Outcome outcome = convtranspose({"tune", line, "--output", out, "--budget", "0.1"});
        EXPECT_EQ(outcome.status, 0) << outcome;
        EXPECT_NE(outcome.out.find(line), std::string::npos) << outcome;
    }
    const std::string line = "f32 nchw n1 g1 ic8 oc4 i5x5 k2x2 s2x2 wf16";
    for (const std::vector<std::string> &options :
         std::vector<std::vector<std::string>>{{"--search", "schedule"}, {"--emit", emitted}, {"--rows", emitted}}) {
        std::vector<std::string> arguments = {"tune", line, "--output", out};
        arguments.insert(arguments.end(), options.begin(), options.end());
        const Outcome outcome = convtranspose(arguments);
        EXPECT_EQ(outcome.status, 1) << outcome;
        EXPECT_NE(outcome.err.find("no kernels are made for light weights: --search select"), std::string::npos)
            << outcome;
    }
    const Outcome outcome = convtranspose({"tune", "f32 nchw n1 g1 ic8 oc4 i5x5 k2x2 wf16 dynamic", "--output", out});
    EXPECT_NE(outcome.err.find("quantizes_x = 1 is for x of f32 and w of u8 or s8"), std::string::npos) << outcome;
}

} // namespace
} // namespace convtranspose::test
