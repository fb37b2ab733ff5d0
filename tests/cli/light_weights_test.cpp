// Layers of f32 whose weights are kept in 16 or 8 bits: behind Cast and DequantizeLinear in models, and in lines of layers. Layers
// of 8 bits between DequantizeLinear and QuantizeLinear.
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "files.h"
#include "models.h"
#include "process.h"

namespace convtranspose::test {
namespace {

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

TEST_F(LightWeights, NeedKernelsOfTheirOwnOrOfF32) {
    Light light;
    for (const int type : {Proto::INT8, Proto::FLOAT16}) {
        light.type = type;
        write_test(layer_, light.model(), {tensor("X", Proto::FLOAT, kX)});
        const Outcome chosen = convtranspose({"explain", layer_}),
                      outcome = convtranspose({"explain", "--size", layer_});
        const std::string types =
            chosen.out.find("computed by oc_vectorized_f32_") == std::string::npos ? "f32" : "f32;light";
        EXPECT_NE(outcome.out.find("CONVTRANSPOSE_TYPES=\"" + types + "\""), std::string::npos) << chosen << outcome;
    }
    light.type = Proto::INT8;
    light.quantizes_x = true;
    light.behind = "Relu"; // y is f32, and so is what follows
    write_test(layer_, light.model(), {tensor("X", Proto::FLOAT, kX)});
    const Outcome outcome = convtranspose({"explain", "--size", layer_});
    EXPECT_NE(outcome.out.find("CONVTRANSPOSE_TYPES=\"f32;quantized\""), std::string::npos) << outcome;
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

// X -> QuantizeLinear -> DequantizeLinear -> ConvTranspose -> QuantizeLinear -> DequantizeLinear -> Y.
struct Qdq {
    Values w_scale = {{3}, {0.5, 0.25, 0.125}};
    int w_axis = 1;
    std::int64_t group = 1;
    std::vector<std::string> consumers = {"QuantizeLinear"};
    double b_scale = 1; // times what it must be
    double b_zero = 0;
    std::int64_t stride = 2;
    int computed = Proto::FLOAT;
    int w_type = Proto::INT8;

    onnx::ModelProto model() const {
        onnx::ModelProto m;
        m.set_ir_version(10);
        m.add_opset_import()->set_version(computed == Proto::FLOAT ? 21 : 23);
        onnx::GraphProto *const graph = m.mutable_graph();
        graph->set_name("network");
        const Dims x_dims = {1, 2 * group, 5, 7};
        add_value(graph->mutable_input(), "X", Proto::FLOAT, &x_dims);
        add_value(graph->mutable_output(), "Y", Proto::FLOAT, nullptr);
        const auto add = [&](const std::string &name, int type, const Values &values) {
            *graph->add_initializer() = tensor(name, type, values);
        };
        add("s", Proto::FLOAT, {{}, {0.5}});
        add("z", Proto::UINT8, {{}, {128}});
        add("wq", w_type, counting({2 * group, 3, 2, 2}, -11));
        add("ws", Proto::FLOAT, w_scale);
        add("bq", Proto::INT32, counting({3 * group}));
        Values bs{{3 * group}, {}};
        for (std::int64_t i = 0; i < 3 * group; i++) {
            bs.data.push_back(0.5 * b_scale * w_scale.data[static_cast<std::size_t>(i) % w_scale.data.size()]);
        }
        add("bs", Proto::FLOAT, bs);
        add_node(graph, "QuantizeLinear", "", {"X", "s", "z"}, "xq");
        add_node(graph, "DequantizeLinear", "", {"xq", "s", "z"}, "x");
        add_int(add_node(graph, "DequantizeLinear", "", {"wq", "ws"}, "w"), "axis", w_axis);
        add("bz", Proto::INT32, {bs.dims, std::vector<double>(bs.data.size(), b_zero)});
        add_int(add_node(graph, "DequantizeLinear", "", {"bq", "bs", "bz"}, "b"), "axis", 0);
        onnx::NodeProto *const up = add_node(graph, "ConvTranspose", "up", {"x", "w", "b"}, "y");
        add_ints(up, "strides", {stride, stride});
        add_int(up, "group", group);
        std::string last = "y";
        for (const std::string &consumer : consumers) {
            const bool quantizes = consumer == "QuantizeLinear", is_last = &consumer == &consumers.back();
            const std::string next = quantizes ? "yq" : is_last ? "Y" : last + "'";
            std::vector<std::string> inputs = {last};
            if (quantizes) inputs.insert(inputs.end(), {"s", "z"});
            if (consumer == "Clip") inputs.insert(inputs.end(), {"", "six"});
            add_node(graph, consumer, quantizes ? "" : "after", inputs, next);
            last = next;
        }
        add("six", Proto::FLOAT, {{}, {6}});
        if (last != "Y") add_node(graph, "DequantizeLinear", "", {last, "s", "z"}, "Y");
        for (onnx::NodeProto &node : *graph->mutable_node()) {
            const bool is_operand = node.op_type() == "DequantizeLinear" && node.output(0) != "Y";
            if (computed != Proto::FLOAT && is_operand) add_int(&node, "output_dtype", computed);
        }
        return m;
    }
};

class Chain : public testing::Test {
  protected:
    std::string file() const { return (folder_.path() / "net.onnx").string(); }

    TemporaryFolder folder_;
};

TEST_F(Chain, LayersBetweenDequantizeAndQuantizeAreQuantized) {
    write(file(), Qdq().model());
    Outcome outcome = convtranspose({"explain", file()});
    EXPECT_EQ(outcome.status, 0) << outcome;
    expect_in("ConvTranspose 'up': DequantizeLinear -> ConvTranspose -> QuantizeLinear, u8, opset 21, x 1x2x5x7, "
              "w 2x3x2x2 (constant), b 3, y 1x3x10x14",
              outcome);
    expect_in("QLinearConvTranspose u8 x, s8 w, u8 y, channels first", outcome);
    expect_in("x_scale 0.5, x_zero_point 128; w_scale 0.125 .. 0.5 (3 output channels), w_zero_point 0; y_scale 0.5, "
              "y_zero_point 128",
              outcome);
    outcome = convtranspose({"bench", "--json", "--min-time", "0", file()});
    EXPECT_EQ(outcome.status, 0) << outcome;
    EXPECT_EQ(nlohmann::json::parse(outcome.out)[0].at("dtype"), "u8") << outcome;
    EXPECT_EQ(outcome.err, "");

    // A Relu or Clip in between clamps y, as a part of the layer.
    Qdq clamped;
    for (const char *const clamp : {"Relu", "Clip"}) {
        clamped.consumers = {clamp, "QuantizeLinear"};
        write(file(), clamped.model());
        outcome = convtranspose({"explain", file()});
        EXPECT_EQ(outcome.status, 0) << outcome;
        expect_in("QLinearConvTranspose u8 x, s8 w, u8 y, channels first", outcome);
        expect_in(clamp == std::string("Relu") ? "; y in 128 .. 255" : "; y in 0 .. 140", outcome);
    }

    Qdq groups;
    groups.group = 2;
    write(file(), groups.model());
    outcome = convtranspose({"explain", file()});
    EXPECT_EQ(outcome.status, 0) << outcome;
    expect_in("w_scale 0.125 .. 0.5 (6 output channels)", outcome);
}

TEST_F(Chain, LayersOfFloatsAreSaidToBeSo) {
    const auto expect = [&](const Qdq &qdq, const std::string &kind, const std::string &why, const std::string &layer,
                            const std::string &type) {
        write(file(), qdq.model());
        const Outcome explained = convtranspose({"explain", file()});
        EXPECT_EQ(explained.status, 0) << explained;
        expect_in("\na " + kind + ": " + why + "\n", explained);
        // Behind DequantizeLinear, weights are constant all the same.
        expect_in("up': " + layer + ", opset 2", explained);
        expect_in("w 2x3x2x2 (constant)", explained);
        const Outcome measured = convtranspose({"bench", "--json", "--min-time", "0", file()});
        EXPECT_EQ(nlohmann::json::parse(measured.out)[0].at("dtype"), type) << measured;
        expect_in("note: net: ConvTranspose 'up' is a " + kind + ": " + why, measured);
    };
    Qdq qdq;
    qdq.w_axis = 0;
    qdq.w_scale = {{2}, {0.5, 0.25}};
    expect(qdq, "float layer", "its weights have scales along axis 0, and not only along that of output channels",
           "f32", "f32");
    qdq = {};
    qdq.computed = Proto::FLOAT16;
    expect(qdq, "float layer", "X is dequantized to FLOAT16", "f16", "f16");
    qdq = {};
    qdq.w_type = Proto::INT16;
    expect(qdq, "float layer", "its weights are quantized to INT16, not to 8 bits", "f32", "f32");
    qdq = {};
    qdq.stride = 5; // a kernel of 2 leaves phases without a tap
    expect(qdq, "float layer", "with 3 output channels in a group and a stride of 5 floats are faster",
           "f32 with weights of s8", "f32 ws8");

    const std::string kind = "quantized layer whose y is f32", layer = "DequantizeLinear -> ConvTranspose, u8";
    for (const char *const consumer : {"Relu", "Identity"}) {
        qdq = {};
        qdq.consumers = {consumer};
        expect(qdq, kind,
               consumer == std::string("Relu") ? "its output goes to no QuantizeLinear alone"
                                               : "its output goes to Identity 'after', and to no QuantizeLinear",
               layer, "u8");
    }
    qdq = {};
    qdq.b_scale = 3;
    expect(qdq, kind, "the scale of its bias is not that of X times that of its weights", layer, "u8");
    qdq = {};
    qdq.b_zero = 1;
    expect(qdq, kind, "its bias has a zero point other than 0", layer, "u8");
}

TEST_F(Chain, LayersAreCheckedBeforeTheirDataAreDrawn) {
    onnx::ModelProto m = Qdq().model();
    m.mutable_graph()->mutable_node(4)->mutable_attribute(1)->set_i(std::int64_t{1} << 31); // group
    write(file(), m);
    const Outcome outcome = convtranspose({"bench", file()});
    EXPECT_EQ(outcome.status, 1) << outcome;
    expect_in("error: net: ConvTranspose 'up': ", outcome);
    expect_in("2147483648", outcome);
    expect_in("out of memory", outcome, 0);
}

} // namespace
} // namespace convtranspose::test
