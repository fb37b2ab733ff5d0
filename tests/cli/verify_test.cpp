// `convtranspose run --verify`: is the result what output_0.pb says?
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "files.h"
#include "models.h"
#include "process.h"

namespace fs = std::filesystem;

namespace convtranspose::test {
namespace {

class Verify : public testing::Test {
  protected:
    fs::path layer() const { return folder_.path() / "layer"; }

    // The layer on kX, with what it should give and what is allowed.
    void write_expectation(const Values &y, const Values *tolerance = nullptr,
                           int type = onnx::TensorProto::FLOAT) const {
        ModelOptions options;
        options.data_type = type;
        write_test(layer(), options);
        write(layer() / "test_data_set_0" / "output_0.pb", tensor("Y", type, y));
        fs::remove(layer() / "test_data_set_0" / "tolerance_0.pb");
        if (tolerance)
            write(layer() / "test_data_set_0" / "tolerance_0.pb", tensor("t", onnx::TensorProto::FLOAT, *tolerance));
    }

    void expect(bool pass, const std::string &detail = "") const {
        const Outcome outcome = convtranspose({"run", "--verify", layer().string()});
        EXPECT_EQ(outcome.status, pass ? 0 : 1) << outcome;
        EXPECT_EQ(outcome.out.rfind(pass ? "PASS  layer" : "FAIL  layer", 0), 0u) << outcome;
        EXPECT_NE(outcome.out.find(detail), std::string::npos) << outcome;
        EXPECT_NE(outcome.out.find(pass ? "1 passed, 0 failed" : "0 passed, 1 failed"), std::string::npos) << outcome;
    }

    TemporaryFolder folder_;
    const Values right_ = expected(kX, kW, &kB);
    const Values zero_{right_.dims, std::vector<double>(right_.data.size(), 0.0)};
};

TEST_F(Verify, PassesARightResult) {
    for (const int type : {onnx::TensorProto::FLOAT16, onnx::TensorProto::BFLOAT16, onnx::TensorProto::FLOAT,
                           onnx::TensorProto::DOUBLE}) {
        write_expectation(right_, nullptr, type);
        expect(true, "max error 0");
    }
}

TEST_F(Verify, PassesWithinAndFailsBeyondTheDefaultTolerance) {
    Values y = right_;
    y.data[7] *= 1 + 1e-6;
    write_expectation(y);
    expect(true, "allowed");
    y.data[7] = right_.data[7] + 0.01;
    write_expectation(y);
    expect(false, "1 of 72 elements outside, first at 7");
}

TEST_F(Verify, AppliesAToleranceFileByElement) {
    Values y = right_, tolerance = zero_;
    y.data[7] += 5;
    tolerance.data[7] = 5;
    write_expectation(y, &tolerance);
    expect(true);
    tolerance.data[7] = 0;
    tolerance.data[8] = 5;
    write_expectation(y, &tolerance);
    expect(false, "first at 7");
    tolerance = Values{{1}, {100}};
    write_expectation(y, &tolerance);
    expect(false, "tolerance is f32 1");
}

TEST_F(Verify, FailsAnotherShapeOrType) {
    Values y = right_;
    y.dims = {1, 3, 6, 4};
    write_expectation(y);
    expect(false, "expected f32 1x3x6x4");
    write_expectation(right_);
    write(layer() / "test_data_set_0" / "output_0.pb", tensor("Y", onnx::TensorProto::DOUBLE, right_));
    expect(false, "expected f64");
}

TEST_F(Verify, InfinitiesAndNansMustAgree) {
    // One element of x reaches the kernel's 2x2 outputs of every output channel.
    Values x = kX;
    x.data[0] = std::numeric_limits<double>::infinity();
    x.data[5] = std::nan("");
    const Values y = expected(x, kW, &kB);
    write_test(layer(), model(), {tensor("X", onnx::TensorProto::FLOAT, x)},
               {tensor("Y", onnx::TensorProto::FLOAT, y)});
    expect(true);
    for (const double wrong : {1.0, -y.data[0], double(std::nan(""))}) {
        Values other = y;
        other.data[0] = wrong;
        write(layer() / "test_data_set_0" / "output_0.pb", tensor("Y", onnx::TensorProto::FLOAT, other));
        expect(false, "1 of 72 elements outside, first at 0");
    }
}

TEST_F(Verify, ChecksEveryDataSet) {
    write_expectation(right_);
    Values wrong = right_;
    wrong.data[0] += 1;
    write(layer() / "test_data_set_1" / "input_0.pb", tensor("X", onnx::TensorProto::FLOAT, kX));
    write(layer() / "test_data_set_1" / "output_0.pb", tensor("Y", onnx::TensorProto::FLOAT, wrong));
    const Outcome outcome = convtranspose({"run", "--verify", layer().string()});
    EXPECT_EQ(outcome.status, 1) << outcome;
    EXPECT_NE(outcome.out.find("PASS  layer/test_data_set_0"), std::string::npos) << outcome;
    EXPECT_NE(outcome.out.find("FAIL  layer/test_data_set_1"), std::string::npos) << outcome;
}

TEST_F(Verify, AModelThatMustBeRejectedPassesIfItIs) {
    onnx::ModelProto m = model();
    add_ints(m.mutable_graph()->mutable_node(0), "dilations", {0, 1});
    write_test(layer(), m, {tensor("X", onnx::TensorProto::FLOAT, kX)});
    expect(true, "rejected");
}

TEST_F(Verify, AModelThatMustBeRejectedMayHaveSeveralDataSets) {
    onnx::ModelProto m = model();
    add_ints(m.mutable_graph()->mutable_node(0), "dilations", {0, 1});
    write_test(layer(), m, {tensor("X", onnx::TensorProto::FLOAT, kX)});
    write(layer() / "test_data_set_1" / "input_0.pb", tensor("X", onnx::TensorProto::FLOAT, kX));
    expect(true, "rejected");
    // One result that is expected says that the model is right.
    write(layer() / "test_data_set_1" / "output_0.pb", tensor("Y", onnx::TensorProto::FLOAT, right_));
    expect(false, "dilations");
    fs::remove(layer() / "test_data_set_1" / "output_0.pb");
    write(layer() / "test_data_set_0" / "output_0.pb", tensor("Y", onnx::TensorProto::FLOAT, right_));
    expect(false, "dilations");
}

TEST_F(Verify, WhatIsNotSupportedIsNoBrokenRule) {
    // y of 1 x 3 x 2147483650 x 6: too long for the library, but not for ONNX.
    onnx::ModelProto m = model();
    m.mutable_graph()->mutable_node(0)->clear_attribute();
    add_ints(m.mutable_graph()->mutable_node(0), "strides", {2147483648, 2});
    m.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
    write_test(layer(), m, {tensor("X", onnx::TensorProto::FLOAT, kX)});
    expect(false, "exceeds 2147483647");
    // No tensor of ONNX is as long as this.
    m.mutable_graph()->mutable_node(0)->clear_attribute();
    add_ints(m.mutable_graph()->mutable_node(0), "dilations", {int64_t{1} << 62, 1});
    add_ints(m.mutable_graph()->mutable_node(0), "strides", {int64_t{1} << 62, 1});
    write(layer() / "model.onnx", m);
    expect(true, "rejected");
    // Outputs beside that of the node are fine for ONNX.
    m = model();
    add_value(m.mutable_graph()->mutable_output(), "X", onnx::TensorProto::FLOAT, &kX.dims);
    write(layer() / "model.onnx", m);
    expect(false, "which is not supported");
    // Weights that are computed from types which the program does not read; the second node lacks its input.
    for (const bool lacks_input : {false, true}) {
        m = model();
        onnx::GraphProto *const graph = m.mutable_graph();
        const onnx::NodeProto node = graph->node(0);
        graph->clear_node();
        onnx::TensorProto *const w = graph->mutable_initializer(0);
        *w = tensor("w", onnx::TensorProto::INT32, kW, Storage::typed);
        w->set_data_type(onnx::TensorProto::BOOL);
        if (lacks_input) {
            add_node(graph, "Identity", "", {"", "w"}, "W");
        } else {
            add_int(add_node(graph, "Cast", "", {"w"}, "W"), "to", onnx::TensorProto::FLOAT);
        }
        *graph->add_node() = node;
        write(layer() / "model.onnx", m);
        expect(lacks_input, lacks_input ? "lacks an input" : "its input of type BOOL is not supported");
    }
}

TEST_F(Verify, AModelThatMustBeRejectedFailsIfItIsComputed) {
    write_test(layer(), model(), {tensor("X", onnx::TensorProto::FLOAT, kX)});
    expect(false, "must be rejected");
}

TEST_F(Verify, AModelThatMustBeRejectedFailsForAnyOtherReason) {
    write_test(layer(), model(), {}); // its input file is missing
    expect(false, "input files");
    // An input that is broken is no fault of the model.
    const fs::path input = layer() / "test_data_set_0" / "input_0.pb";
    onnx::TensorProto x = tensor("X", onnx::TensorProto::FLOAT, kX);
    x.mutable_raw_data()->pop_back();
    write(input, x);
    expect(false, "input_0.pb': tensor 'X' holds 47 bytes");
    x.set_data_type(onnx::TensorProto::INT64);
    write(input, x);
    expect(false, "input_0.pb': tensor 'X' has type INT64");
    fs::remove(input);
    write_text(layer() / "test_data_set_0" / "input_0.npy", npy("<f4", {1, 2, -2, 3}, ""));
    expect(false, "input_0.npy': shape 1x2x-2x3 has a negative extent");
    fs::remove(layer() / "test_data_set_0" / "input_0.npy");
    onnx::ModelProto m = model();
    m.mutable_graph()->mutable_node(0)->set_domain("com.example");
    write_test(layer(), m, {tensor("X", onnx::TensorProto::FLOAT, kX)});
    expect(false, "not supported");
}

TEST_F(Verify, InputsThatNoNodeReadsMayBeOfAnyType) {
    onnx::ModelProto m = model();
    add_value(m.mutable_graph()->mutable_input(), "N", onnx::TensorProto::INT64, nullptr);
    onnx::TensorProto n = tensor("N", onnx::TensorProto::FLOAT, kX);
    n.set_data_type(onnx::TensorProto::INT64);
    write_test(layer(), m, {tensor("X", onnx::TensorProto::FLOAT, kX), n},
               {tensor("Y", onnx::TensorProto::FLOAT, right_)});
    expect(true);
}

TEST_F(Verify, NamesForgeNoResults) {
    onnx::ModelProto m = model();
    m.mutable_graph()->mutable_node(0)->set_input(1, "V\nPASS  another");
    write_test(layer(), m, {tensor("X", onnx::TensorProto::FLOAT, kX)});
    expect(true, "its input 'V?PASS  another' is not an input");
}

TEST_F(Verify, AnErrorIsAFailureWhereAResultIsExpected) {
    write_expectation(right_);
    onnx::ModelProto m = model();
    add_ints(m.mutable_graph()->mutable_node(0), "dilations", {0, 1});
    write(layer() / "model.onnx", m);
    expect(false, "dilations");
}

} // namespace
} // namespace convtranspose::test
