// `convtranspose explain`.
#include <string>

#include <gtest/gtest.h>

#include "files.h"
#include "models.h"
#include "process.h"

namespace convtranspose::test {
namespace {

TEST(Explain, PrintsShapesAndThePlan) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "layer.onnx").string();
    write(file, model());
    Outcome outcome = convtranspose({"explain", file});
    EXPECT_EQ(outcome.status, 0) << outcome;
    EXPECT_NE(outcome.out.find("f32, opset 22, x 1x2x2x3, w 2x3x2x2 (constant), b 3, y 1x3x4x6\n"), std::string::npos)
        << outcome;
    EXPECT_GT(outcome.out.size(), outcome.out.find('\n') + 1) << "the plan's own explanation follows\n" << outcome;

    outcome = convtranspose({"explain", file, "--layout", "nhwc", "--threads", "2"});
    EXPECT_EQ(outcome.status, 0) << outcome;
    EXPECT_NE(outcome.out.find("x 1x2x3x2, w 2x3x2x2 (constant), b 3, y 1x4x6x3\n"), std::string::npos) << outcome;
}

TEST(Explain, TakesWeightsThatAreInputs) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "layer.onnx").string();
    ModelOptions options;
    options.constant_w = false;
    write(file, model(options));
    const Outcome outcome = convtranspose({"explain", file});
    EXPECT_EQ(outcome.status, 0) << outcome;
    EXPECT_NE(outcome.out.find("w 2x3x2x2 (run-time)"), std::string::npos) << outcome;
}

TEST(Explain, SkipsNodesOfUnknownShape) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "net.onnx").string();
    onnx::ModelProto m = model();
    onnx::NodeProto second = m.graph().node(0);
    second.set_name("up2");
    second.set_input(0, "Y2");
    second.set_output(0, "Z");
    *m.mutable_graph()->add_node() = second;
    write(file, m);
    Outcome outcome = convtranspose({"explain", file});
    EXPECT_EQ(outcome.status, 0) << outcome;
    EXPECT_NE(outcome.out.find("ConvTranspose #1: "), std::string::npos) << outcome;
    EXPECT_NE(outcome.err.find("note: net: ConvTranspose 'up2' skipped: the shape of its input 'Y2' is not known"),
              std::string::npos)
        << outcome;

    m.mutable_graph()->mutable_node()->DeleteSubrange(0, 1);
    write(file, m);
    outcome = convtranspose({"explain", file});
    EXPECT_EQ(outcome.status, 1) << outcome;
    EXPECT_NE(outcome.err.find("error: net: "), std::string::npos) << outcome;
}

TEST(Explain, ReportsRejectedModels) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "layer.onnx").string();
    onnx::ModelProto m = model();
    add_ints(m.mutable_graph()->mutable_node(0), "output_padding", {7, 7});
    write(file, m);
    const Outcome outcome = convtranspose({"explain", file});
    EXPECT_EQ(outcome.status, 1) << outcome;
    EXPECT_NE(outcome.err.find("output_padding"), std::string::npos) << outcome;
}

} // namespace
} // namespace convtranspose::test
