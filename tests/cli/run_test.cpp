// `convtranspose run`: models and inputs in, output_0.pb out.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "files.h"
#include "models.h"
#include "process.h"

namespace fs = std::filesystem;

namespace convtranspose::test {
namespace {

class Run : public testing::Test {
  protected:
    fs::path in(const std::string &name) const { return folder_.path() / "in" / name; }
    fs::path out(const std::string &name) const { return folder_.path() / "out" / name / "output_0.pb"; }

    Outcome run(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), "run");
        arguments.insert(arguments.end(), {"--output-dir", (folder_.path() / "out").string()});
        return convtranspose(arguments);
    }

    void expect_output(const Outcome &outcome, const std::string &name, const Values &values,
                       int data_type = onnx::TensorProto::FLOAT) const {
        SCOPED_TRACE(outcome);
        EXPECT_EQ(outcome.status, 0);
        EXPECT_EQ(outcome.err, "");
        ASSERT_TRUE(fs::exists(out(name)));
        const onnx::TensorProto y = read_tensor(out(name));
        EXPECT_EQ(y.name(), "Y");
        EXPECT_EQ(y.data_type(), data_type);
        EXPECT_EQ(values_of(y), values);
    }

    TemporaryFolder folder_;
    const Values with_bias_ = expected(kX, kW, &kB);
};

TEST_F(Run, WritesTheOutputOfATestFolder) {
    write_test(in("layer"));
    const Outcome outcome = run({in("layer").string()});
    expect_output(outcome, "layer", with_bias_);
    EXPECT_NE(outcome.out.find("layer  f32 1x2x2x3 -> 1x3x4x6"), std::string::npos) << outcome;
}

TEST_F(Run, ComputesInTheOtherLayout) {
    write_test(in("layer"));
    const Outcome outcome = run({in("layer").string(), "--layout", "nhwc"});
    expect_output(outcome, "layer", with_bias_);
    EXPECT_NE(outcome.out.find("layer  f32 1x2x3x2 -> 1x4x6x3"), std::string::npos) << outcome;
}

TEST_F(Run, TakesEveryTypeAndWayOfStoringIt) {
    std::vector<std::string> folders;
    for (const int type : {onnx::TensorProto::FLOAT16, onnx::TensorProto::BFLOAT16, onnx::TensorProto::FLOAT,
                           onnx::TensorProto::DOUBLE}) {
        for (const Storage storage : {Storage::raw, Storage::typed}) {
            const std::string name = std::to_string(type) + (storage == Storage::raw ? "raw" : "typed");
            ModelOptions options;
            options.data_type = type;
            options.storage = storage;
            write_test(in(name), options);
            folders.push_back(in(name).string());
        }
    }
    const Outcome outcome = run(folders);
    for (const std::string &folder : folders) {
        const std::string name = fs::path(folder).filename().string();
        expect_output(outcome, name, with_bias_, std::stoi(name));
    }
}

TEST_F(Run, TakesWeightsAndBiasFromInputsOrInitializers) {
    for (const bool bias : {true, false}) {
        for (const bool constant_w : {true, false}) {
            for (const bool constant_b : {true, false}) {
                if (!bias && constant_b) continue;
                ModelOptions options;
                options.bias = bias;
                options.constant_w = constant_w;
                options.constant_b = constant_b;
                const std::string name =
                    std::string(bias ? "b" : "-") + (constant_w ? "w" : "-") + (constant_b ? "c" : "-");
                write_test(in(name), options);
                expect_output(run({in(name).string()}), name, expected(kX, kW, bias ? &kB : nullptr));
            }
        }
    }
}

TEST_F(Run, TakesWeightsAndBiasFromConstantNodes) {
    onnx::ModelProto m = model();
    onnx::GraphProto *const graph = m.mutable_graph();
    graph->clear_initializer();
    onnx::NodeProto *const w = graph->add_node();
    w->set_op_type("Constant");
    w->add_output("W");
    onnx::AttributeProto *const value = w->add_attribute();
    value->set_name("value");
    value->set_type(onnx::AttributeProto::TENSOR);
    *value->mutable_t() = tensor("", onnx::TensorProto::FLOAT, kW);
    onnx::NodeProto *const b = graph->add_node();
    b->set_op_type("Constant");
    b->add_output("B");
    onnx::AttributeProto *const floats = b->add_attribute();
    floats->set_name("value_floats");
    floats->set_type(onnx::AttributeProto::FLOATS);
    for (const double element : kB.data) floats->add_floats(float(element));
    write_test(in("layer"), m, {tensor("X", onnx::TensorProto::FLOAT, kX)});
    expect_output(run({in("layer").string()}), "layer", with_bias_);
}

// The weights as `from`, of which `nodes` make W, the graph's first initializer.
onnx::ModelProto folded(const onnx::TensorProto &from, const std::vector<onnx::NodeProto> &nodes) {
    onnx::ModelProto m = model();
    onnx::GraphProto *const graph = m.mutable_graph();
    const onnx::NodeProto layer = graph->node(0);
    graph->clear_node();
    *graph->mutable_initializer(0) = from;
    for (const onnx::NodeProto &node : nodes) *graph->add_node() = node;
    *graph->add_node() = layer;
    return m;
}

onnx::NodeProto node(const std::string &op, const std::vector<std::string> &inputs, const std::string &output) {
    onnx::GraphProto graph;
    return *add_node(&graph, op, "", inputs, output);
}

TEST_F(Run, FoldsWhatNodesMakeOfConstants) {
    Proto integers = tensor("w", Proto::INT32, kW, Storage::typed);
    integers.set_data_type(Proto::INT64);
    integers.clear_int32_data();
    for (const double value : kW.data) integers.add_int64_data(int64_t(value));
    Proto bytes = integers;
    bytes.clear_int64_data();
    bytes.set_raw_data(std::string(reinterpret_cast<const char *>(integers.int64_data().data()), 8 * kW.data.size()));
    onnx::NodeProto cast = node("Cast", {"w"}, "W"), moved = node("Transpose", {"w"}, "W");
    add_int(&cast, "to", Proto::FLOAT);
    add_ints(&moved, "perm", {1, 0, 3, 2});
    // Both permutations are their own inverses.
    Values w_moved{{3, 2, 2, 2}, {}}, w_reversed{{2, 2, 3, 2}, {}};
    for (int i = 0; i < 24; i++) w_moved.data.push_back(kW.data[i / 4 % 2 * 12 + i / 8 * 4 + i % 2 * 2 + i / 2 % 2]);
    for (int i = 0; i < 24; i++)
        w_reversed.data.push_back(kW.data[i % 2 * 12 + i / 2 % 3 * 4 + i / 6 % 2 * 2 + i / 12]);
    const Values flat{{24}, kW.data};
    onnx::NodeProto same_and_rest = node("Constant", {}, "dims");
    onnx::AttributeProto *const dims = same_and_rest.add_attribute();
    dims->set_name("value");
    dims->set_type(onnx::AttributeProto::TENSOR);
    *dims->mutable_t() = integers;
    dims->mutable_t()->clear_dims();
    dims->mutable_t()->add_dims(4);
    dims->mutable_t()->clear_int64_data();
    for (const int64_t dim : {0, -1, 2, 2}) dims->mutable_t()->add_int64_data(dim);
    const onnx::NodeProto reshape = node("Reshape", {"w", "dims"}, "W");
    onnx::NodeProto as_ints = node("Constant", {}, "dims");
    add_ints(&as_ints, "value_ints", {0, -1, 2, 2});
    const std::vector<onnx::ModelProto> models = {
        folded(integers, {cast}),
        folded(bytes, {cast}),
        folded(tensor("w", Proto::FLOAT, w_moved), {moved}),
        folded(tensor("w", Proto::FLOAT, w_reversed), {node("Transpose", {"w"}, "W")}),
        folded(tensor("w", Proto::FLOAT, {{2, 12}, kW.data}), {same_and_rest, reshape}),
        folded(tensor("w", Proto::FLOAT, {{2, 12}, kW.data}), {as_ints, reshape}),
    };
    for (const onnx::ModelProto &m : models) {
        write_test(in("layer"), m, {tensor("X", Proto::FLOAT, kX)});
        expect_output(run({in("layer").string()}), "layer", with_bias_);
    }
    // Neither 24 nor 0 x 12 elements can have the shape.
    for (const Values &wrong : {flat, Values{{0, 12}, {}}}) {
        write_test(in("layer"), folded(tensor("w", Proto::FLOAT, wrong, Storage::typed), {same_and_rest, reshape}),
                   {tensor("X", Proto::FLOAT, kX)});
        const Outcome outcome = run({in("layer").string()});
        EXPECT_EQ(outcome.status, 1) << outcome;
        EXPECT_NE(outcome.err.find("cannot have shape 0x-1x2x2"), std::string::npos) << outcome;
    }
    add_ints(&moved, "perm", {});
    moved.mutable_attribute()->DeleteSubrange(0, 1);
    write_test(in("layer"), folded(tensor("w", Proto::FLOAT, w_moved), {moved}), {tensor("X", Proto::FLOAT, kX)});
    const Outcome outcome = run({in("layer").string()});
    EXPECT_NE(outcome.err.find("perm must name each of the 4 axes"), std::string::npos) << outcome;
}

// X and W are constant, so that nothing quantizes y.
TEST_F(Run, QuantizedConstantsGiveFloats) {
    onnx::ModelProto m = model();
    onnx::GraphProto *const graph = m.mutable_graph();
    const onnx::NodeProto layer = graph->node(0);
    graph->clear_node();
    graph->clear_input();
    *graph->mutable_initializer(0) = tensor("w", onnx::TensorProto::INT8, kW);
    *graph->add_initializer() = tensor("x", onnx::TensorProto::INT8, kX);
    *graph->add_initializer() = tensor("scale", onnx::TensorProto::FLOAT, {{}, {0.25}});
    *graph->add_node() = node("DequantizeLinear", {"x", "scale"}, "X");
    *graph->add_node() = node("DequantizeLinear", {"w", "scale"}, "W");
    *graph->add_node() = layer;
    write_test(in("layer"), m, {});
    Values x = kX, w = kW;
    for (Values *const v : {&x, &w})
        for (double &value : v->data) value /= 4;
    expect_output(run({in("layer").string()}), "layer", expected(x, w, &kB));
}

TEST_F(Run, NoNameOfAModelLeavesTheOutputDirectory) {
    onnx::ModelProto m = model();
    *m.mutable_graph()->add_initializer() = tensor("X", onnx::TensorProto::FLOAT, kX);
    m.mutable_graph()->clear_input();
    for (const char *const name : {"...onnx", "..onnx"}) {
        write(in(name), m);
        EXPECT_EQ(run({in(name).string()}).status, 0);
        EXPECT_TRUE(fs::exists(folder_.path() / "out" / name / "output_0.pb"));
        for (const char *const other : {"output_0.pb", "out/output_0.pb"})
            EXPECT_FALSE(fs::exists(folder_.path() / other));
    }
}

TEST_F(Run, EachConstantIsComputedOnce) {
    // As many ways lead to the bias as 45 doublings give.
    onnx::ModelProto m = model();
    onnx::GraphProto *const graph = m.mutable_graph();
    const onnx::NodeProto layer = graph->node(0);
    graph->clear_node();
    const Values ones{{3}, {1, 1, 1}};
    *graph->mutable_initializer(1) = tensor("b0", onnx::TensorProto::FLOAT, ones);
    constexpr int kSteps = 45;
    for (int i = 0; i < kSteps; i++) {
        const std::string from = "b" + std::to_string(i), to = i + 1 < kSteps ? "b" + std::to_string(i + 1) : "B";
        add_int(add_node(graph, "DequantizeLinear", "", {from, from}, to), "axis", 0);
    }
    *graph->add_node() = layer;
    write_test(in("layer"), m, {tensor("X", onnx::TensorProto::FLOAT, kX)});
    expect_output(run({in("layer").string()}), "layer", expected(kX, kW, &ones));
}

TEST_F(Run, AnEmptyBiasNameIsNoBias) {
    ModelOptions options;
    options.bias = false;
    onnx::ModelProto m = model(options);
    m.mutable_graph()->mutable_node(0)->add_input("");
    write_test(in("layer"), m, {tensor("X", onnx::TensorProto::FLOAT, kX)});
    expect_output(run({in("layer").string()}), "layer", expected(kX, kW, nullptr));
}

TEST_F(Run, InitializersThatAreAlsoGraphInputsAreNotFed) {
    onnx::ModelProto m = model();
    m.set_ir_version(3);
    m.mutable_opset_import(0)->set_version(6);
    add_value(m.mutable_graph()->mutable_input(), "W", onnx::TensorProto::FLOAT, &kW.dims);
    add_value(m.mutable_graph()->mutable_input(), "B", onnx::TensorProto::FLOAT, &kB.dims);
    write_test(in("layer"), m, {tensor("X", onnx::TensorProto::FLOAT, kX)});
    expect_output(run({in("layer").string()}), "layer", with_bias_);
}

TEST_F(Run, GraphInputsMayLackShapes) {
    ModelOptions options;
    options.shapes = false;
    write_test(in("layer"), options);
    expect_output(run({in("layer").string()}), "layer", with_bias_);
}

TEST_F(Run, ReadsExternalData) {
    onnx::ModelProto m = model();
    onnx::TensorProto *const w = m.mutable_graph()->mutable_initializer(0);
    write_text(in("layer") / "data" / "weights.bin", "12345678" + w->raw_data() + "more");
    const std::string length = std::to_string(w->raw_data().size());
    w->clear_raw_data();
    w->set_data_location(onnx::TensorProto::EXTERNAL);
    const std::vector<std::pair<std::string, std::string>> entries = {
        {"location", "data/weights.bin"}, {"offset", "8"}, {"length", length}};
    for (const auto &[key, value] : entries) {
        onnx::StringStringEntryProto *const entry = w->add_external_data();
        entry->set_key(key);
        entry->set_value(value);
    }
    write_test(in("layer"), m, {tensor("X", onnx::TensorProto::FLOAT, kX)});
    expect_output(run({in("layer").string()}), "layer", with_bias_);
}

TEST_F(Run, TensorsMayShareAFileWithoutLengths) {
    onnx::ModelProto m = model();
    std::string bytes;
    for (onnx::TensorProto &tensor : *m.mutable_graph()->mutable_initializer()) {
        const std::vector<std::pair<std::string, std::string>> entries = {{"location", "weights.bin"},
                                                                          {"offset", std::to_string(bytes.size())}};
        for (const auto &[key, value] : entries) {
            onnx::StringStringEntryProto *const entry = tensor.add_external_data();
            entry->set_key(key);
            entry->set_value(value);
        }
        bytes += tensor.raw_data();
        tensor.clear_raw_data();
        tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    }
    write_text(in("layer") / "weights.bin", bytes);
    fs::resize_file(in("layer") / "weights.bin", std::uintmax_t{1} << 40); // too much to read
    write_test(in("layer"), m, {tensor("X", onnx::TensorProto::FLOAT, kX)});
    expect_output(run({in("layer").string()}), "layer", with_bias_);
}

TEST_F(Run, ReadsExternalDataBehindLinks) {
    onnx::ModelProto m = model();
    onnx::TensorProto *const w = m.mutable_graph()->mutable_initializer(0);
    write_text(in("blobs") / "f00d", w->raw_data());
    w->clear_raw_data();
    w->set_data_location(onnx::TensorProto::EXTERNAL);
    onnx::StringStringEntryProto *const entry = w->add_external_data();
    entry->set_key("location");
    entry->set_value("model.onnx_data");
    write_test(in("layer"), m, {tensor("X", onnx::TensorProto::FLOAT, kX)});
    std::filesystem::create_symlink("../blobs/f00d", in("layer") / "model.onnx_data");
    const Outcome alone = run({in("layer").string()});
    EXPECT_EQ(alone.status, 1) << alone;
    EXPECT_NE(alone.err.find("leaves the model's folder"), std::string::npos) << alone;
    // The links of a cache lead to one folder.
    std::filesystem::rename(in("layer") / "model.onnx", in("blobs") / "beef");
    std::filesystem::create_symlink("../blobs/beef", in("layer") / "model.onnx");
    expect_output(run({in("layer").string()}), "layer", with_bias_);
}

TEST_F(Run, TakesAModelFileAndTensorFiles) {
    ModelOptions options;
    options.constant_w = false;
    write(in("layer.onnx"), model(options));
    write(in("x.pb"), tensor("any name", onnx::TensorProto::FLOAT, kX));
    write_text(in("w.npy"), npy("<f4", kW.dims, tensor("", onnx::TensorProto::FLOAT, kW).raw_data()));
    const Outcome outcome = run({in("layer.onnx").string(), in("x.pb").string(), in("w.npy").string()});
    expect_output(outcome, "layer", with_bias_);
}

TEST_F(Run, TakesEveryNpyTypeAndVersion) {
    const std::vector<std::pair<std::string, int>> types = {{"<f2", onnx::TensorProto::FLOAT16},
                                                            {"<V2", onnx::TensorProto::BFLOAT16},
                                                            {"<f4", onnx::TensorProto::FLOAT},
                                                            {"<f8", onnx::TensorProto::DOUBLE}};
    for (const auto &[descr, type] : types) {
        ModelOptions options;
        options.data_type = type;
        write(in("layer.onnx"), model(options));
        for (const int version : {1, 2, 3}) {
            write_text(in("x.npy"), npy(descr, kX.dims, tensor("", type, kX).raw_data(), version));
            expect_output(run({in("layer.onnx").string(), in("x.npy").string()}), "layer", with_bias_, type);
        }
    }
}

TEST_F(Run, FindsInputsBesideAModelFile) {
    write(in("layer.onnx"), model());
    write(in("input_0.pb"), tensor("X", onnx::TensorProto::FLOAT, kX));
    expect_output(run({in("layer.onnx").string()}), "layer", with_bias_);
}

TEST_F(Run, AModelFileInATestFolderIsThatFolder) {
    write_test(in("layer"));
    expect_output(run({in("layer/model.onnx").string()}), "layer", with_bias_);
}

TEST_F(Run, FoldersMayEndInASlash) {
    write_test(in("layer"));
    expect_output(run({in("layer").string() + "/"}), "layer", with_bias_);
}

TEST_F(Run, ComputesAnEmptyBatch) {
    const Values x{{0, 2, 2, 3}, {}};
    ModelOptions options;
    options.shapes = false;
    for (const bool constant : {true, false}) {
        options.constant_w = constant;
        std::vector<onnx::TensorProto> inputs = {tensor("X", onnx::TensorProto::FLOAT, x)};
        if (!constant) inputs.push_back(tensor("W", onnx::TensorProto::FLOAT, kW));
        write_test(in("layer"), model(options), inputs);
        expect_output(run({in("layer").string()}), "layer", Values{{0, 3, 4, 6}, {}});
    }
}

TEST_F(Run, WritesTheFirstOfSeveralDataSets) {
    ModelOptions options;
    options.shapes = false;
    write_test(in("layer"), options);
    const Values wider = counting({3, 2, 4, 5}, -7);
    write(in("layer/test_data_set_1/input_0.pb"), tensor("X", onnx::TensorProto::FLOAT, wider));
    write(in("layer/test_data_set_10/input_0.pb"), tensor("X", onnx::TensorProto::FLOAT, kX));
    const Outcome outcome = run({in("layer").string()});
    expect_output(outcome, "layer", with_bias_);
    EXPECT_NE(outcome.out.find("layer/test_data_set_1  f32 3x2x4x5 -> 3x3x8x10"), std::string::npos) << outcome;
    EXPECT_NE(outcome.out.find("3 computed, 0 failed"), std::string::npos) << outcome;
}

TEST_F(Run, AFailingDataSetFailsTheWholeModel) {
    ModelOptions options;
    options.shapes = false;
    write_test(in("layer"), options);
    write(in("layer/test_data_set_1/input_0.pb"), tensor("X", onnx::TensorProto::FLOAT, counting({1, 3, 2, 2})));
    const Outcome outcome = run({in("layer").string()});
    EXPECT_EQ(outcome.status, 1) << outcome;
    EXPECT_FALSE(fs::exists(out("layer").parent_path()));
}

TEST_F(Run, AFailedModelDoesNotStopTheOthers) {
    write_test(in("a"));
    onnx::ModelProto broken = model();
    add_ints(broken.mutable_graph()->mutable_node(0), "dilations", {0, 1});
    write_test(in("b"), broken, {tensor("X", onnx::TensorProto::FLOAT, kX)});
    write_test(in("c"));
    const Outcome outcome = run({in("a").string(), in("b").string(), in("c").string()});
    EXPECT_EQ(outcome.status, 1) << outcome;
    EXPECT_EQ(outcome.err.rfind("error: b: ", 0), 0u) << outcome;
    EXPECT_TRUE(fs::exists(out("a")));
    EXPECT_FALSE(fs::exists(out("b")));
    EXPECT_FALSE(fs::exists(out("b").parent_path()));
    EXPECT_TRUE(fs::exists(out("c")));
}

TEST_F(Run, AFailedModelLosesTheResultOfAnEarlierRun) {
    write_test(in("layer"));
    ASSERT_EQ(run({in("layer").string()}).status, 0);
    ASSERT_TRUE(fs::exists(out("layer")));
    write_text(in("layer/model.onnx"), "no longer a model");
    EXPECT_EQ(run({in("layer").string()}).status, 1);
    EXPECT_FALSE(fs::exists(out("layer")));
}

TEST_F(Run, AResultNeverTakesThePlaceOfAFileThatIsRead) {
    write(in("layer/model.onnx"), model());
    write(in("layer/input_0.pb"), tensor("X", onnx::TensorProto::FLOAT, kX));
    const fs::path expected_file = in("layer/output_0.pb");
    write(expected_file, tensor("Y", onnx::TensorProto::FLOAT, with_bias_));
    const std::string before = read_text(expected_file);
    const auto refused = [&](const std::vector<std::string> &paths, const fs::path &output_dir, const fs::path &file) {
        std::vector<std::string> arguments = {"run", "--verify", "--output-dir", output_dir.string()};
        arguments.insert(arguments.end(), paths.begin(), paths.end());
        const Outcome outcome = convtranspose(arguments);
        EXPECT_EQ(outcome.status, 2) << outcome;
        EXPECT_NE(outcome.err.find("--output-dir: the result of 'layer' would replace '" + file.string() + "'"),
                  std::string::npos)
            << outcome;
        EXPECT_EQ(outcome.out, "") << outcome;
        EXPECT_EQ(read_text(expected_file), before);
    };
    const fs::path parent = folder_.path() / "in";
    refused({in("layer").string()}, parent, expected_file);
    refused({in("layer").string()}, parent / "layer" / "..", expected_file);
    fs::create_directory_symlink(parent, folder_.path() / "link");
    refused({in("layer").string()}, folder_.path() / "link", expected_file);
    // The input of one job, under the name of another's result.
    write_test(in("other/layer"));
    write(in("m.onnx"), model());
    refused({in("other/layer").string(), in("m.onnx").string(), expected_file.string()}, parent, expected_file);
    // Where there is no model, too, and where the result would be found before the expectation.
    fs::remove(in("layer/model.onnx"));
    refused({in("layer").string()}, parent, expected_file);
    fs::rename(expected_file, in("kept.pb"));
    write_text(in("layer/output_0.npy"), npy("<f4", with_bias_.dims, ""));
    const Outcome outcome = convtranspose({"run", "--output-dir", parent.string(), in("layer").string()});
    EXPECT_EQ(outcome.status, 2) << outcome;
    EXPECT_NE(outcome.err.find("output_0.npy'"), std::string::npos) << outcome;
}

TEST_F(Run, AnUnwritableResultIsAnError) {
    write_test(in("layer"));
    write_text(folder_.path() / "out" / "layer", "a file where the folder should be");
    const Outcome outcome = run({in("layer").string()});
    EXPECT_EQ(outcome.status, 1) << outcome;
    EXPECT_NE(outcome.err.find("error: layer: "), std::string::npos) << outcome;
}

TEST_F(Run, WritesNothingWithoutAnOutputDirectory) {
    write_test(in("layer"));
    const Outcome outcome = convtranspose({"run", in("layer").string()});
    EXPECT_EQ(outcome.status, 0) << outcome;
    std::size_t files = 0;
    for (const fs::directory_entry &entry : fs::recursive_directory_iterator(folder_.path())) {
        files += entry.is_regular_file() ? 1 : 0;
    }
    EXPECT_EQ(files, 3u) << "model.onnx, input_0.pb and output_0.pb were there before";
}

TEST_F(Run, ThreadsDoNotChangeTheResult) {
    write_test(in("layer"));
    expect_output(run({in("layer").string(), "--threads", "3"}), "layer", with_bias_);
}

TEST_F(Run, AnUnknownVariantOrIsaIsAnError) {
    write_test(in("layer"));
    for (const char *option : {"--variant", "--isa"}) {
        const Outcome outcome = run({in("layer").string(), option, "no-such-name"});
        EXPECT_EQ(outcome.status, 1) << outcome;
        EXPECT_NE(outcome.err.find("no-such-name"), std::string::npos) << outcome;
        EXPECT_NE(outcome.err.find("`convtranspose targets`"), std::string::npos) << outcome;
    }
}

} // namespace
} // namespace convtranspose::test
