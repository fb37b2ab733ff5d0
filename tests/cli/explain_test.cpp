// `convtranspose explain`.
#include <string>

#include <gtest/gtest.h>

#include "convtranspose/convtranspose.h"
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

// The number behind `label`, on the line that starts with it.
double figure(const std::string &text, const std::string &label) {
    const std::size_t at = text.find("\n" + label);
    if (at == std::string::npos) return 0;
    const std::string line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
    return std::stod(line.substr(line.find_last_of(' ')));
}

TEST(Explain, SizesOfAllKernels) {
    const Outcome outcome = convtranspose({"explain", "--size"});
    ASSERT_EQ(outcome.status, 0) << outcome;
    double sum = figure(outcome.out, "dispatcher");
    EXPECT_GT(sum, 50) << outcome;
    for (std::size_t i = 0; i < convt_isa_count(); i++) {
        for (const char *type : {"bf16", "f16", "f32", "f64", "quantized"}) {
            std::string label = convt_isa_name(i);
            label.resize(13, ' ');
            sum += figure(outcome.out, label + type);
        }
    }
    EXPECT_GT(sum, 1000) << outcome;
    EXPECT_NEAR(figure(outcome.out, "all"), sum, 2) << outcome; // each is rounded
}

TEST(Explain, SizeOfWhatModelsNeed) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "layer.onnx").string();
    write(file, model());
    const Outcome outcome = convtranspose({"explain", "--size", file, "--variant", "reference_f32"});
    EXPECT_EQ(outcome.status, 0) << outcome;
    EXPECT_NE(outcome.out.find("CONVTRANSPOSE_TYPES=\"f32\" CONVTRANSPOSE_FAMILIES=\"\""), std::string::npos)
        << outcome;
    const Outcome chosen = convtranspose({"explain", "--size", file});
    EXPECT_EQ(chosen.out.find("CONVTRANSPOSE_FAMILIES=\"\""), std::string::npos) << chosen;
    std::string isa = convt_isa_name(convt_isa_count() - 1);
    isa.resize(13, ' ');
    EXPECT_GT(figure(chosen.out, "  " + isa), figure(outcome.out, "  " + isa)) << chosen;
}

TEST(Explain, NeedsAModelUnlessSizesAreAsked) {
    const Outcome outcome = convtranspose({"explain"});
    EXPECT_EQ(outcome.status, 2) << outcome;
    EXPECT_NE(outcome.err.find("error: PATH is required, or --size"), std::string::npos) << outcome;
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
