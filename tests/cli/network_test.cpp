// Models as people have them: shapes that ONNX infers, nodes in subgraphs and functions, quantized layers between
// DequantizeLinear and QuantizeLinear, constants behind other nodes.
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "files.h"
#include "models.h"
#include "process.h"

namespace convtranspose::test {
namespace {

onnx::GraphProto *add_subgraph(onnx::NodeProto *node, const std::string &name) {
    onnx::AttributeProto *const attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::GRAPH);
    attribute->mutable_g()->set_name(name);
    return attribute->mutable_g();
}

// "X" of floats is the only input, "Y" the output; two channels, weights "W" of kW.
onnx::ModelProto network(const Dims &x_dims, int opset = 21) {
    onnx::ModelProto m;
    m.set_ir_version(10);
    m.add_opset_import()->set_version(opset);
    m.mutable_graph()->set_name("network");
    add_value(m.mutable_graph()->mutable_input(), "X", Proto::FLOAT, &x_dims);
    add_value(m.mutable_graph()->mutable_output(), "Y", Proto::FLOAT, nullptr);
    *m.mutable_graph()->add_initializer() = tensor("W", Proto::FLOAT, kW);
    return m;
}

class Network : public testing::Test {
  protected:
    std::string file(const std::string &name = "net.onnx") const { return (folder_.path() / name).string(); }

    TemporaryFolder folder_;
};

TEST_F(Network, ShapesAreInferred) {
    onnx::ModelProto m = network({1, 2, 5, 7});
    onnx::GraphProto *const graph = m.mutable_graph();
    add_node(graph, "Relu", "act", {"X"}, "a");
    add_node(graph, "ConvTranspose", "up1", {"a", "W"}, "b");
    add_node(graph, "Concat", "join", {"b", "b"}, "c");
    add_int(graph->mutable_node(2), "axis", 1);
    *graph->add_initializer() = tensor("W2", Proto::FLOAT, counting({6, 1, 1, 1}));
    add_node(graph, "ConvTranspose", "up2", {"c", "W2"}, "Y");
    write(file(), m);
    for (const char *const command : {"explain", "bench"}) {
        std::vector<std::string> arguments = {command, file()};
        if (command == std::string("bench")) arguments.insert(arguments.end(), {"--min-time", "0", "--json"});
        const Outcome outcome = convtranspose(arguments);
        EXPECT_EQ(outcome.status, 0) << outcome;
        EXPECT_EQ(outcome.err, "");
        if (command != std::string("bench")) {
            expect_in("ConvTranspose 'up1': f32, opset 21, x 1x2x5x7, w 2x3x2x2", outcome);
            expect_in("ConvTranspose 'up2': f32, opset 21, x 1x6x6x8, w 6x1x1x1", outcome);
        } else {
            const nlohmann::json rows = nlohmann::json::parse(outcome.out);
            ASSERT_EQ(rows.size(), 2u) << outcome;
            EXPECT_EQ(rows[1].at("x_shape"), nlohmann::json({1, 6, 6, 8}));
        }
    }
    const Outcome table = convtranspose({"bench", file(), "--min-time", "0"});
    expect_in("net   ConvTranspose 'up2'  f32 ", table);
}

TEST_F(Network, SymbolicExtentsAreNamedWithTheOptionThatTellsThem) {
    onnx::ModelProto m = network({1, 2, 5, 7});
    onnx::GraphProto *const graph = m.mutable_graph();
    auto *const dims = graph->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
    dims->mutable_dim(0)->set_dim_param("batch");
    dims->mutable_dim(3)->set_dim_param("width");
    add_node(graph, "Relu", "act", {"X"}, "a");
    add_node(graph, "ConvTranspose", "up", {"a", "W"}, "Y");
    write(file(), m);
    const std::string why = "the shape of its input 'a' is not known (<batch>x2x5x<width>): "
                            "--input-shape X=<batch>x2x5x<width> tells it, with a number for each <>";
    for (const std::vector<std::string> &command : std::vector<std::vector<std::string>>{
             {"explain"}, {"bench", "--min-time", "0"}, {"tune", "--budget", "0.2", "--output", file("out")}}) {
        std::vector<std::string> arguments = command;
        arguments.push_back(file());
        const Outcome open = convtranspose(arguments);
        EXPECT_EQ(open.status, 1) << open;
        expect_in(why, open);
        expect_in("error: net: no such node has known shapes", open);
        if (command[0] == "tune") continue; // searches need the worker: tests/tune
        arguments.insert(arguments.end() - 1, {"--input-shape", "X=3x2x5x9"});
        const Outcome told = convtranspose(arguments);
        EXPECT_EQ(told.status, 0) << told;
        EXPECT_NE(told.out.find("3x2x5x9"), std::string::npos) << told;
    }
    const Outcome unknown = convtranspose({"explain", file(), "--input-shape", "X=3x2x5x9", "--input-shape", "x=1"});
    EXPECT_EQ(unknown.status, 1) << unknown;
    expect_in("error: --input-shape: no model has a graph input or computed value 'x'", unknown);
    const Outcome constant =
        convtranspose({"explain", file(), "--input-shape", "X=3x2x5x9", "--input-shape", "W=2x3x2x2"});
    EXPECT_EQ(constant.status, 1) << constant;
    expect_in("value 'W' (an initializer has the shape of its data)", constant);
    add_value(graph->mutable_input(), "W", Proto::FLOAT, &kW.dims); // as older models have it
    write(file("old.onnx"), m);
    const Outcome older =
        convtranspose({"explain", file("old.onnx"), "--input-shape", "X=3x2x5x9", "--input-shape", "W=2x3x2x2"});
    EXPECT_EQ(older.status, 1) << older;
    expect_in("value 'W' (an initializer has the shape of its data)", older);
    for (const char *const wrong : {"X", "X=", "X=1x", "X=1xb", "X=1x-2", "X=99999999999999999999", "=1x2"}) {
        const Outcome outcome = convtranspose({"bench", file(), "--input-shape", wrong});
        EXPECT_EQ(outcome.status, 2) << outcome;
        expect_in(std::string("--input-shape ") + wrong + " is not NAME=1x3x224x224", outcome);
    }
}

TEST_F(Network, ShapesThatAreToldReplaceWhatTheModelSays) {
    onnx::ModelProto m = network({1, 2, 5, 7});
    onnx::GraphProto *const graph = m.mutable_graph();
    add_node(graph, "Relu", "act", {"X"}, "a");
    add_node(graph, "ConvTranspose", "up", {"a", "W"}, "Y");
    const Dims inferred = {1, 2, 5, 7};
    add_value(graph->mutable_value_info(), "a", Proto::FLOAT, &inferred);
    write(file(), m);
    const Outcome outcome = convtranspose({"explain", file(), "--input-shape", "X=4x2x9x9"});
    EXPECT_EQ(outcome.status, 0) << outcome;
    expect_in("x 4x2x9x9", outcome);
}

TEST_F(Network, ValuesBehindUnknownOperatorsCanBeTold) {
    onnx::ModelProto m = network({1, 2, 5, 7});
    onnx::OperatorSetIdProto *const import = m.add_opset_import();
    import->set_domain("com.example");
    import->set_version(1);
    onnx::GraphProto *const graph = m.mutable_graph();
    add_node(graph, "Mystery", "what", {"X"}, "a")->set_domain("com.example");
    add_node(graph, "Relu", "act", {"a"}, "b");
    add_node(graph, "ConvTranspose", "up", {"b", "W"}, "Y");
    write(file(), m);
    const Outcome open = convtranspose({"explain", file()});
    EXPECT_EQ(open.status, 1) << open;
    expect_in("'b' is not known: --input-shape b=", open);
    const Outcome told = convtranspose({"explain", file(), "--input-shape", "a=1x2x6x6"});
    EXPECT_EQ(told.status, 0) << told;
    expect_in("x 1x2x6x6", told);
}

TEST_F(Network, NodesInSubgraphsAreFound) {
    onnx::ModelProto m = network({1, 2, 5, 7});
    onnx::GraphProto *const graph = m.mutable_graph();
    *graph->add_initializer() = tensor("trips", Proto::INT32, {{}, {2}});
    onnx::NodeProto *const cast = add_node(graph, "Cast", "", {"trips"}, "count");
    add_int(cast, "to", Proto::INT64);
    onnx::NodeProto *const condition = add_node(graph, "Cast", "", {"trips"}, "condition");
    add_int(condition, "to", Proto::BOOL);
    onnx::NodeProto *const either = add_node(graph, "If", "choice", {"condition"}, "Y");
    for (const char *const name : {"then_branch", "else_branch"}) {
        onnx::GraphProto *const branch = add_subgraph(either, name);
        add_node(branch, "Relu", "", {"X"}, "inner"); // of the same name in both branches
        onnx::NodeProto *const up = add_node(branch, "ConvTranspose", "up", {"inner", "W"}, "result");
        if (name == std::string("else_branch")) add_ints(up, "strides", {2, 2});
        add_value(branch->mutable_output(), "result", Proto::FLOAT, nullptr);
    }
    onnx::NodeProto *const loop = add_node(graph, "Loop", "again", {"count", "", "X"}, "looped");
    onnx::GraphProto *const body = add_subgraph(loop, "body");
    const Dims scalar = {};
    add_value(body->mutable_input(), "i", Proto::INT64, &scalar);
    add_value(body->mutable_input(), "go", Proto::BOOL, &scalar);
    add_value(body->mutable_input(), "x", Proto::FLOAT, nullptr);
    add_node(body, "Identity", "", {"go"}, "go_on");
    add_node(body, "ConvTranspose", "looping", {"x", "V"}, "x_next");
    add_value(body->mutable_output(), "go_on", Proto::BOOL, &scalar);
    add_value(body->mutable_output(), "x_next", Proto::FLOAT, nullptr);
    *body->add_initializer() = tensor("V", Proto::FLOAT, counting({2, 2, 1, 1}));
    write(file(), m);
    const Outcome outcome = convtranspose({"explain", file()});
    EXPECT_EQ(outcome.status, 0) << outcome;
    expect_in(
        "ConvTranspose 'up' in then_branch of If 'choice': f32, opset 21, x 1x2x5x7, w 2x3x2x2 (constant), y 1x3x6x8",
        outcome);
    expect_in(
        "ConvTranspose 'up' in else_branch of If 'choice': f32, opset 21, x 1x2x5x7, w 2x3x2x2 (constant), y 1x3x10x14",
        outcome);
    // A loop may change the shape of what it carries, so that only the user can tell it.
    expect_in("ConvTranspose 'looping' in body of Loop 'again' skipped", outcome);
    const Outcome told = convtranspose({"explain", file(), "--input-shape", "x=1x2x3x3"});
    expect_in("ConvTranspose 'looping' in body of Loop 'again': f32, opset 21, x 1x2x3x3, w 2x2x1x1 (constant)", told);
}

TEST_F(Network, NodesInScansAreFound) {
    onnx::ModelProto m = network({4, 1, 2, 5, 7});
    onnx::GraphProto *const graph = m.mutable_graph();
    *graph->add_initializer() = tensor("start", Proto::FLOAT, counting({1, 2, 3, 3}));
    onnx::NodeProto *const scan = add_node(graph, "Scan", "each", {"start", "X"}, "carried");
    scan->add_output("Y");
    add_int(scan, "num_scan_inputs", 1);
    onnx::GraphProto *const body = add_subgraph(scan, "body");
    add_value(body->mutable_input(), "state", Proto::FLOAT, nullptr);
    add_value(body->mutable_input(), "x", Proto::FLOAT, nullptr);
    add_node(body, "Relu", "", {"x"}, "positive");
    add_node(body, "ConvTranspose", "scanned", {"positive", "W"}, "y");
    add_node(body, "ConvTranspose", "stepping", {"state", "V"}, "next");
    add_value(body->mutable_output(), "next", Proto::FLOAT, nullptr);
    add_value(body->mutable_output(), "y", Proto::FLOAT, nullptr);
    *body->add_initializer() = tensor("V", Proto::FLOAT, counting({2, 2, 1, 1}));
    write(file(), m);
    // A step of the scan gets x without the axis that is scanned, and what it carries keeps its shape.
    const Outcome outcome = convtranspose({"explain", file()});
    EXPECT_EQ(outcome.status, 0) << outcome;
    expect_in(
        "ConvTranspose 'scanned' in body of Scan 'each': f32, opset 21, x 1x2x5x7, w 2x3x2x2 (constant), y 1x3x6x8",
        outcome);
    expect_in(
        "ConvTranspose 'stepping' in body of Scan 'each': f32, opset 21, x 1x2x3x3, w 2x2x1x1 (constant), y 1x2x3x3",
        outcome);
    const Outcome measured = convtranspose({"bench", file(), "--min-time", "0", "--json"});
    EXPECT_EQ(measured.status, 0) << measured;
    const nlohmann::json rows = nlohmann::json::parse(measured.out);
    ASSERT_EQ(rows.size(), 2u) << measured;
    EXPECT_EQ(rows[0].at("x_shape"), nlohmann::json({1, 2, 5, 7}));
    // The scanned axis may be another, and open: a step of the scan does not need it.
    add_ints(scan, "scan_input_axes", {1});
    auto *const dims = graph->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
    dims->mutable_dim(0)->set_dim_value(1);
    dims->mutable_dim(1)->set_dim_param("steps");
    write(file(), m);
    const Outcome along = convtranspose({"explain", file()});
    EXPECT_EQ(along.status, 0) << along;
    expect_in("ConvTranspose 'scanned' in body of Scan 'each': f32, opset 21, x 1x2x5x7", along);
}

TEST_F(Network, NodesInFunctionsAreFoundForEachCall) {
    onnx::ModelProto m = network({1, 2, 5, 7});
    onnx::OperatorSetIdProto *const import = m.add_opset_import();
    import->set_domain("local");
    import->set_version(1);
    onnx::FunctionProto *const function = m.add_functions();
    function->set_domain("local");
    function->set_name("Up");
    function->add_input("x");
    function->add_input("w");
    function->add_output("y");
    function->add_attribute("steps");
    function->add_opset_import()->set_version(21);
    onnx::NodeProto *const up = function->add_node();
    up->set_op_type("ConvTranspose");
    up->add_input("x");
    up->add_input("w");
    up->add_output("y");
    onnx::AttributeProto *const strides = up->add_attribute();
    strides->set_name("strides");
    strides->set_type(onnx::AttributeProto::INTS);
    strides->set_ref_attr_name("steps");
    onnx::GraphProto *const graph = m.mutable_graph();
    onnx::NodeProto *const first = add_node(graph, "Up", "first", {"X", "W"}, "a");
    first->set_domain("local");
    add_ints(first, "steps", {3, 3});
    *graph->add_initializer() = tensor("W2", Proto::FLOAT, counting({3, 1, 1, 1}));
    onnx::NodeProto *const second = add_node(graph, "Up", "second", {"a", "W2"}, "Y");
    second->set_domain("local");
    add_ints(second, "steps", {1, 1});
    write(file(), m);
    const Outcome outcome = convtranspose({"explain", file()});
    EXPECT_EQ(outcome.status, 0) << outcome;
    expect_in("x 1x2x5x7, w 2x3x2x2 (constant), y 1x3x14x20", outcome);
    expect_in("x 1x3x14x20, w 3x1x1x1 (constant), y 1x1x14x20", outcome);

    // Functions that call themselves end in a message, not in the stack.
    onnx::NodeProto *const itself = function->add_node();
    itself->set_op_type("Up");
    itself->set_domain("local");
    write(file(), m);
    const Outcome endless = convtranspose({"explain", file()});
    EXPECT_EQ(endless.status, 1) << endless;
    expect_in("function 'Up' calls itself", endless);
}

TEST_F(Network, ConstantsBehindIdentityAndCastAreConstants) {
    onnx::ModelProto m = network({1, 2, 5, 7});
    onnx::GraphProto *const graph = m.mutable_graph();
    *graph->mutable_initializer(0) = tensor("W16", Proto::FLOAT16, kW);
    add_node(graph, "Identity", "", {"W16"}, "same");
    add_int(add_node(graph, "Cast", "", {"same"}, "W"), "to", Proto::FLOAT);
    add_node(graph, "ConvTranspose", "up", {"X", "W"}, "Y");
    write(file(), m);
    const Outcome outcome = convtranspose({"explain", file()});
    EXPECT_EQ(outcome.status, 0) << outcome;
    expect_in("w 2x3x2x2 (constant)", outcome);
}

TEST_F(Network, NamesDefinedTwiceAreRejected) {
    std::vector<std::pair<std::string, onnx::ModelProto>> models;
    onnx::ModelProto m = network({1, 2, 5, 7});
    add_node(m.mutable_graph(), "ConvTranspose", "up", {"X", "W"}, "Y");
    models.emplace_back("by Relu 'act' and by ConvTranspose 'up'", m);
    add_node(models.back().second.mutable_graph(), "Relu", "act", {"X"}, "Y");
    models.back().second.mutable_graph()->mutable_node()->SwapElements(0, 1);
    models.emplace_back("by an initializer and by an initializer", m);
    *models.back().second.mutable_graph()->add_initializer() = tensor("W", Proto::FLOAT, kW);
    models.emplace_back("by a graph input and by a graph input", m);
    *models.back().second.mutable_graph()->add_input() = m.graph().input(0);
    for (const auto &[why, broken] : models) {
        write(file(), broken);
        for (const char *const command : {"explain", "bench", "run"}) {
            const Outcome outcome = convtranspose({command, file()});
            EXPECT_EQ(outcome.status, 1) << outcome;
            expect_in("is defined twice, " + why + "; names of a graph must be unique", outcome);
        }
    }
}

TEST_F(Network, BfloatsBelowOpset22AreRejected) {
    ModelOptions options;
    options.data_type = Proto::BFLOAT16;
    onnx::ModelProto m = model(options);
    m.mutable_opset_import(0)->set_version(21);
    write_test(folder_.path() / "layer", m, {tensor("X", Proto::BFLOAT16, kX)});
    for (const std::vector<std::string> &command :
         std::vector<std::vector<std::string>>{{"explain"}, {"bench"}, {"run"}}) {
        std::vector<std::string> arguments = command;
        arguments.push_back((folder_.path() / "layer").string());
        const Outcome outcome = convtranspose(arguments);
        EXPECT_EQ(outcome.status, 1) << outcome;
        expect_in("ConvTranspose: X is bf16, which the operator takes from opset 22 on; the model imports opset 21",
                  outcome);
        expect_in("ConvTranspose: ConvTranspose", outcome, 0);
    }
    // Which is a rule of the operator.
    EXPECT_EQ(convtranspose({"run", "--verify", (folder_.path() / "layer").string()}).status, 0);
}

TEST_F(Network, SparseWeightsSayWhatToDo) {
    onnx::ModelProto m = model();
    onnx::SparseTensorProto *const sparse = m.mutable_graph()->add_sparse_initializer();
    *sparse->mutable_values() = tensor("W", Proto::FLOAT, {{1}, {1}});
    sparse->mutable_indices()->set_data_type(Proto::INT64);
    sparse->mutable_indices()->add_dims(1);
    sparse->mutable_indices()->add_int64_data(0);
    for (const std::int64_t dim : kW.dims) sparse->add_dims(dim);
    m.mutable_graph()->mutable_initializer()->DeleteSubrange(0, 1);
    write_test(folder_.path() / "layer", m, {tensor("X", Proto::FLOAT, kX)});
    for (const std::vector<std::string> &command :
         std::vector<std::vector<std::string>>{{"explain"}, {"bench"}, {"run", "--verify"}}) {
        std::vector<std::string> arguments = command;
        arguments.push_back((folder_.path() / "layer").string());
        const Outcome outcome = convtranspose(arguments);
        EXPECT_EQ(outcome.status, 1) << outcome; // --verify, too: no rule is broken
        EXPECT_NE(
            outcome.err.find("'W' is a sparse initializer or constant, which is not supported: store it as a dense"),
            std::string::npos)
            << outcome;
    }
}

TEST_F(Network, FilesForInitializersAreRefusedWithWhatToDo) {
    onnx::ModelProto m = model();
    m.set_ir_version(3); // whose initializers are graph inputs
    add_value(m.mutable_graph()->mutable_input(), "W", Proto::FLOAT, &kW.dims);
    add_value(m.mutable_graph()->mutable_input(), "B", Proto::FLOAT, &kB.dims);
    const Values y = expected(kX, kW, &kB);
    const std::string layer = (folder_.path() / "layer").string();
    write_test(layer, m, {tensor("X", Proto::FLOAT, kX)}, {tensor("Y", Proto::FLOAT, y)});
    EXPECT_EQ(convtranspose({"run", "--verify", layer}).status, 0);
    write_test(layer, m, {tensor("X", Proto::FLOAT, kX), tensor("W", Proto::FLOAT, kW), tensor("B", Proto::FLOAT, kB)});
    const Outcome outcome = convtranspose({"run", layer});
    EXPECT_EQ(outcome.status, 1) << outcome;
    expect_in(
        "there are 3 input files, the model takes 1: graph inputs that have initializers ('W', 'B') are constants "
        "here, so leave their files out or drop the initializers",
        outcome);
}

} // namespace
} // namespace convtranspose::test
