// Nodes in front of the weights compute constants to the last bit, and values of subgraphs have names of their own.
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "files.h"
#include "models.h"
#include "process.h"

namespace convtranspose::test {
namespace {

// A layer of one weight, whose y is that weight, which a node makes of the initializer "w".
class OneWeight : public testing::Test {
  protected:
    onnx::ModelProto model(int type, const onnx::TensorProto &w, int opset = 21) const {
        onnx::ModelProto m;
        m.set_ir_version(10);
        m.add_opset_import()->set_version(opset);
        onnx::GraphProto *const graph = m.mutable_graph();
        graph->set_name("one");
        add_value(graph->mutable_input(), "X", type, &kOne.dims);
        add_value(graph->mutable_output(), "Y", type, &kOne.dims);
        *graph->add_initializer() = w;
        return m;
    }

    Outcome verify(onnx::ModelProto m, int type, const std::vector<double> &y) const {
        add_node(m.mutable_graph(), "ConvTranspose", "up", {"X", "W"}, "Y");
        std::filesystem::remove_all(layer_);
        std::vector<onnx::TensorProto> outputs;
        const Dims dims = {1, 1, 1, static_cast<std::int64_t>(y.size())};
        if (!y.empty()) outputs.push_back(tensor("Y", type, {dims, y}));
        write_test(layer_, m, {tensor("X", type, kOne)}, outputs);
        const Values exact = {dims, std::vector<double>(y.size())};
        if (!y.empty()) write(layer_ + "/test_data_set_0/tolerance_0.pb", tensor("t", Proto::FLOAT, exact));
        return convtranspose({"run", "--verify", layer_});
    }

    static void set_type(onnx::NodeProto *cast, const std::string &type) {
        onnx::AttributeProto *const to = cast->add_attribute();
        to->set_name("to");
        to->set_type(onnx::AttributeProto::STRING);
        to->set_s(type);
    }

    TemporaryFolder folder_;
    const std::string layer_ = (folder_.path() / "layer").string();
    const Values kOne = {{1, 1, 1, 1}, {1}};
};

// A little more than the middle of two numbers of f16 is the middle itself in f32.
TEST_F(OneWeight, DoublesAreRoundedOnce) {
    const double middle = 1 + std::ldexp(1, -11), little = std::ldexp(1, -30);
    for (const double sign : {1.0, -1.0}) {
        for (const auto &[w, y] :
             {std::pair(middle + little, 1 + std::ldexp(1, -10)), {middle, 1.0}, {middle - little, 1.0}}) {
            onnx::ModelProto m = model(Proto::FLOAT16, tensor("w", Proto::DOUBLE, {kOne.dims, {sign * w}}));
            add_int(add_node(m.mutable_graph(), "Cast", "", {"w"}, "W"), "to", Proto::FLOAT16);
            const Outcome outcome = verify(m, Proto::FLOAT16, {sign * y});
            EXPECT_EQ(outcome.status, 0) << outcome;
        }
    }
}

TEST_F(OneWeight, DifferencesAreRoundedBeforeTheyAreScaled) {
    onnx::ModelProto m = model(Proto::FLOAT, tensor("w", Proto::INT32, {kOne.dims, {16777217}}));
    *m.mutable_graph()->add_initializer() = tensor("scale", Proto::FLOAT, {{}, {3}});
    add_node(m.mutable_graph(), "DequantizeLinear", "", {"w", "scale"}, "W");
    const Outcome outcome = verify(m, Proto::FLOAT, {3 * 16777216.0});
    EXPECT_EQ(outcome.status, 0) << outcome;
}

// Programs that keep the bits in 16-bit integers write those of negative halves as negative numbers.
TEST_F(OneWeight, BitsOfHalvesMayBeNegative) {
    onnx::TensorProto w = tensor("W", Proto::FLOAT16, {kOne.dims, {-2}}, Storage::typed);
    w.set_int32_data(0, static_cast<std::int16_t>(w.int32_data(0)));
    const Outcome outcome = verify(model(Proto::FLOAT16, w), Proto::FLOAT16, {-2});
    EXPECT_EQ(outcome.status, 0) << outcome;
}

struct ShortIntegers {
    int type;
    std::vector<int> units; // bytes of two integers, or integers of 16 bits
    std::vector<double> numbers;
};

TEST_F(OneWeight, MayComeFromIntegersOf16And4Bits) {
    const std::vector<ShortIntegers> all = {{Proto::INT16, {-3, 7, -8}, {-3, 7, -8}},
                                            {Proto::UINT16, {65533, 7, 65528}, {65533, 7, 65528}},
                                            {Proto::INT4, {0x7d, 0xf8}, {-3, 7, -8}},
                                            {Proto::UINT4, {0x7d, 0xf8}, {13, 7, 8}}};
    for (const auto &[type, units, numbers] : all) {
        onnx::TensorProto typed, raw;
        for (const std::int64_t extent : {1, 1, 1, 3}) typed.add_dims(extent);
        typed.set_name("w");
        typed.set_data_type(type);
        raw = typed;
        for (const int unit : units) {
            typed.add_int32_data(unit);
            raw.mutable_raw_data()->push_back(static_cast<char>(unit));
            if (units.size() == numbers.size()) raw.mutable_raw_data()->push_back(static_cast<char>(unit >> 8));
        }
        for (const onnx::TensorProto &w : {typed, raw}) {
            onnx::ModelProto m = model(Proto::FLOAT, w);
            m.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
            onnx::ModelProto scaled = m;
            add_int(add_node(m.mutable_graph(), "Cast", "", {"w"}, "W"), "to", Proto::FLOAT);
            const Outcome cast = verify(m, Proto::FLOAT, numbers);
            EXPECT_EQ(cast.status, 0) << type << '\n' << cast;
            *scaled.mutable_graph()->add_initializer() = tensor("scale", Proto::FLOAT, {{}, {1}});
            add_node(scaled.mutable_graph(), "DequantizeLinear", "", {"w", "scale"}, "W");
            const Outcome dequantized = verify(scaled, Proto::FLOAT, numbers);
            EXPECT_EQ(dequantized.status, 0) << type << '\n' << dequantized;
        }
        typed.set_int32_data(0, 1 << 17);
        onnx::ModelProto m = model(Proto::FLOAT, typed);
        add_int(add_node(m.mutable_graph(), "Cast", "", {"w"}, "W"), "to", Proto::FLOAT);
        const Outcome outcome = verify(m, Proto::FLOAT, {});
        EXPECT_NE(outcome.out.find("holds 131072, which its type"), std::string::npos) << outcome;
    }
}

TEST_F(OneWeight, ZeroPointsHaveTheTypeOfWhatTheyAreOf) {
    struct Case {
        int w, zero;
        const char *message;
    };
    for (const Case &c :
         {Case{Proto::INT32, Proto::UINT8, "its zero point is UINT8, its input INT32; they must have"},
          Case{Proto::INT16, Proto::UINT16, "its zero point is UINT16, its input INT16; they must have"},
          Case{Proto::INT16, Proto::INT32, "its zero point is INT32, its input INT16; they must have"}}) {
        onnx::TensorProto w = tensor("w", Proto::INT32, kOne, Storage::typed),
                          zero = tensor("zero", Proto::INT32, {{}, {0}}, Storage::typed);
        w.set_data_type(c.w);
        zero.set_data_type(c.zero);
        onnx::ModelProto m = model(Proto::FLOAT, w);
        *m.mutable_graph()->add_initializer() = tensor("scale", Proto::FLOAT, {{}, {1}});
        *m.mutable_graph()->add_initializer() = zero;
        add_node(m.mutable_graph(), "DequantizeLinear", "", {"w", "scale", "zero"}, "W");
        const Outcome outcome = verify(m, Proto::FLOAT, {});
        EXPECT_EQ(outcome.status, 0) << outcome;
        EXPECT_NE(outcome.out.find(c.message), std::string::npos) << outcome;
    }
}

TEST_F(OneWeight, TypesOfOldCastsAreNames) {
    const onnx::TensorProto w = tensor("w", Proto::INT32, {kOne.dims, {5}});
    onnx::ModelProto m = model(Proto::FLOAT, w, 5);
    set_type(add_node(m.mutable_graph(), "Cast", "", {"w"}, "W"), "FLOAT");
    const Outcome named = verify(m, Proto::FLOAT, {5});
    EXPECT_EQ(named.status, 0) << named;
    // Types that tensors here cannot have are no fault of the model; names and numbers of no type are.
    const std::vector<std::pair<std::string, std::string>> others = {
        {"UINT16", "its result has type UINT16, which is not supported"},
        {"FLAT", "its attribute to is 'FLAT', which is no type"}};
    for (const auto &[type, why] : others) {
        m = model(Proto::FLOAT, w, 5);
        set_type(add_node(m.mutable_graph(), "Cast", "", {"w"}, "W"), type);
        const Outcome outcome = verify(m, Proto::FLOAT, {});
        EXPECT_EQ(outcome.status, type == "UINT16" ? 1 : 0) << outcome;
        EXPECT_NE(outcome.out.find(why), std::string::npos) << outcome;
    }
    m = model(Proto::FLOAT, w);
    add_int(add_node(m.mutable_graph(), "Cast", "", {"w"}, "W"), "to", (std::int64_t{1} << 32) + Proto::FLOAT);
    const Outcome number = verify(m, Proto::FLOAT, {});
    EXPECT_EQ(number.status, 0) << number;
    EXPECT_NE(number.out.find("its attribute to is 4294967297, which is the number of no type"), std::string::npos)
        << number;
}

TEST_F(OneWeight, ValuesOfSubgraphsAreNotTakenForOthers) {
    onnx::ModelProto m = model(Proto::FLOAT, tensor("n.then_branch/v", Proto::FLOAT, kOne));
    onnx::GraphProto *const graph = m.mutable_graph();
    add_value(graph->mutable_input(), "condition", Proto::BOOL, &kOne.dims);
    onnx::NodeProto *const branches = add_node(graph, "If", "n", {"condition"}, "chosen");
    for (const char *const name : {"then_branch", "else_branch"}) {
        onnx::AttributeProto *const attribute = branches->add_attribute();
        attribute->set_name(name);
        attribute->set_type(onnx::AttributeProto::GRAPH);
        attribute->mutable_g()->set_name(name);
        add_node(attribute->mutable_g(), "Identity", "", {"X"}, "v");
        add_value(attribute->mutable_g()->mutable_output(), "v", Proto::FLOAT, &kOne.dims);
    }
    add_node(graph, "ConvTranspose", "up", {"X", "n.then_branch/v"}, "Y");
    write(layer_ + "/model.onnx", m);
    const Outcome outcome = convtranspose({"explain", layer_});
    EXPECT_EQ(outcome.status, 0) << outcome;
    EXPECT_NE(outcome.out.find("w 1x1x1x1 (constant)"), std::string::npos) << outcome;
}

} // namespace
} // namespace convtranspose::test
