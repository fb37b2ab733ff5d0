// `convtranspose explain`.
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

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

// A name could end the text or forge a line, as of an error.
TEST(Explain, NamesPrintNoControlCharacters) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "layer.onnx").string();
    onnx::ModelProto named = model();
    named.mutable_graph()->mutable_node(0)->set_name(std::string("a\x1b[31m\nerror: no\0\x7f\xc3\xa4", 20));
    write(file, named);
    const Outcome outcome = convtranspose({"explain", file});
    EXPECT_EQ(outcome.status, 0) << outcome;
    EXPECT_EQ(outcome.out.rfind("ConvTranspose 'a?[31m?error: no??\xc3\xa4': ", 0), 0u) << outcome;
    EXPECT_NE(outcome.out.find("x 1x2x2x3, w 2x3x2x2 (constant), b 3, y 1x3x4x6\n"), std::string::npos) << outcome;
}

TEST(Explain, MeasuresWhenAsked) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "layer.onnx").string();
    write(file, model());
    for (const char *const option : {"--measure", "--measure=3"}) {
        const Outcome outcome = convtranspose({"explain", option, file});
        EXPECT_EQ(outcome.status, 0) << outcome;
        EXPECT_NE(outcome.out.find("measured to be the fastest of "), std::string::npos) << outcome;
    }
    for (const char *const wrong :
         {"--measure=-1", "--measure=0", "--measure=0.5", "--measure=3600001", "--measure=99999999999"}) {
        const Outcome outcome = convtranspose({"explain", wrong, file});
        EXPECT_EQ(outcome.status, 2) << wrong << outcome;
        EXPECT_NE(outcome.err.find("--measure"), std::string::npos) << outcome;
        EXPECT_NE(outcome.err.find(" 3600000"), std::string::npos) << outcome;
    }
}

TEST(Explain, DividesEstimatesIntoParts) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "layer.onnx").string();
    write(file, model());
    Outcome outcome = convtranspose({"explain", file, "--json", "--features", "--cost-profile", "generic"});
    ASSERT_EQ(outcome.status, 0) << outcome;
    const auto layers = nlohmann::json::parse(outcome.out);
    ASSERT_EQ(layers.size(), 1u);
    EXPECT_EQ(layers[0].at("cost_profile").at("latency"), 4);
    ASSERT_FALSE(layers[0].at("candidates").empty());
    for (const auto &candidate : layers[0].at("candidates")) {
        double sum = 0;
        for (const auto &part : candidate.at("parts")) sum += part.get<double>();
        EXPECT_NEAR(sum, candidate.at("cycles").get<double>(), 1e-6 * sum) << candidate;
        EXPECT_GE(sum, candidate.at("parts").at("other").get<double>()) << candidate;
    }
    outcome = convtranspose({"explain", file, "--json"});
    ASSERT_EQ(outcome.status, 0) << outcome;
    EXPECT_FALSE(nlohmann::json::parse(outcome.out)[0].at("candidates")[0].contains("parts"));

    outcome = convtranspose({"explain", file, "--cost-profile", "pentium"});
    EXPECT_EQ(outcome.status, 2) << outcome;
    EXPECT_NE(outcome.err.find("--cost-profile: there is no cost profile \"pentium\"; there are"), std::string::npos)
        << outcome;
    EXPECT_EQ(convtranspose({"explain", file, "--features"}).status, 2);
}

// Returns the sum of the parts on the line of estimated cycles, and what the line of the choice says.
std::pair<double, double> parts_and_whole(const std::string &text) {
    const std::regex line("\n  estimated cycles: ([^\n]*)\n"), part("(^|; )(-?[0-9.e+]+) "),
        choice("\n  \\* [^ ]+ +([0-9.e+]+)");
    std::smatch parts, whole;
    if (!std::regex_search(text, parts, line) || !std::regex_search(text, whole, choice)) return {0, -1};
    const std::string list = parts[1];
    double sum = 0;
    for (auto p = std::sregex_iterator(list.begin(), list.end(), part); p != std::sregex_iterator(); ++p)
        sum += std::stod((*p)[2]);
    return {sum, std::stod(whole[1])};
}

TEST(Explain, SaysWhatTheEstimateOfTheChoiceAddsUp) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "layer.onnx").string();
    write(file, model());
    for (const std::string &variant : {std::string(), std::string("reference_f32"), std::string("col2im")}) {
        std::vector<std::string> arguments = {"explain", file};
        if (!variant.empty()) arguments.insert(arguments.end(), {"--variant", variant});
        const Outcome outcome = convtranspose(arguments);
        ASSERT_EQ(outcome.status, 0) << outcome;
        const auto [sum, whole] = parts_and_whole(outcome.out);
        EXPECT_NEAR(sum, whole, 0.02 * whole) << outcome; // each is rounded to three digits
        const char *const word = variant == "col2im" ? " in its layers; " : " to multiply and add; ";
        EXPECT_NE(outcome.out.find(word), std::string::npos) << outcome;
    }
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
        for (const char *type : {"bf16", "f16", "f32", "f64", "light", "quantized"}) {
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

// A layer of 16 bits may be computed by a kernel of f32, whose results a kernel of the type rounds; and a build of such a type has
// f32 too.
TEST(Explain, SizeOfLayersOf16Bits) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "layer.onnx").string();
    for (const auto &[type, name] : {std::pair<int, std::string>{Proto::FLOAT16, "f16"}, {Proto::BFLOAT16, "bf16"}}) {
        ModelOptions options;
        options.data_type = type;
        write(file, model(options));
        const Outcome outcome = convtranspose({"explain", "--size", file});
        ASSERT_EQ(outcome.status, 0) << outcome;
        EXPECT_NE(outcome.out.find("CONVTRANSPOSE_TYPES=\"" + name + ";f32\""), std::string::npos) << outcome;
    }
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

TEST(Explain, NamesShapesThatNobodyKnowsByTheirPlaceInTheLayer) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "layer.onnx").string();
    ModelOptions options;
    options.shapes = options.constant_w = options.constant_b = false;
    write(file, model(options));
    const Outcome open = convtranspose({"explain", file});
    EXPECT_EQ(open.status, 1) << open;
    EXPECT_NE(
        open.err.find("--input-shape X=<batch>x<channels>x<height>x<width> --input-shape W=<input channels>x<output "
                      "channels>x<height>x<width> --input-shape B=<output channels> tells it, with a number for "
                      "each <>"),
        std::string::npos)
        << open;
    const Outcome told = convtranspose(
        {"explain", file, "--input-shape", "X=1x2x2x3", "--input-shape", "W=2x3x2x2", "--input-shape", "B=3"});
    EXPECT_EQ(told.status, 0) << told;
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

TEST(Explain, OneBadModelAmongGoodOnesIsAFailure) {
    const TemporaryFolder folder;
    const std::string good = (folder.path() / "good.onnx").string(), bad = (folder.path() / "bad.onnx").string(),
                      last = (folder.path() / "last.onnx").string();
    write(good, model());
    write(last, model());
    onnx::ModelProto m = model();
    add_ints(m.mutable_graph()->mutable_node(0), "output_padding", {7, 7});
    write(bad, m);
    const Outcome outcome = convtranspose({"explain", good, bad, last});
    EXPECT_EQ(outcome.status, 1) << outcome;
    EXPECT_NE(outcome.out.find("good: ConvTranspose: f32"), std::string::npos) << outcome;
    EXPECT_NE(outcome.out.find("last: ConvTranspose: f32"), std::string::npos) << outcome;
    EXPECT_NE(outcome.err.find("error: bad: ConvTranspose: output_padding"), std::string::npos) << outcome;
    EXPECT_EQ(convtranspose({"explain", good, last}).status, 0);
}

TEST(Explain, PrintsJsonWhateverNamesAre) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "a\xff.onnx").string();
    onnx::ModelProto m = model();
    m.mutable_graph()->mutable_node(0)->set_name("\xfe");
    write(file, m);
    Outcome outcome = convtranspose({"explain", "--json", file});
    EXPECT_EQ(outcome.status, 0) << outcome;
    EXPECT_EQ(nlohmann::json::parse(outcome.out).at(0).at("model"), "a\uFFFD") << outcome;

    outcome = convtranspose({"explain", "--json", file, "--input-shape", "absent=1"});
    EXPECT_EQ(outcome.status, 1) << outcome;
    EXPECT_EQ(nlohmann::json::parse(outcome.out).size(), 1u) << outcome;
}

std::size_t lines_with(const std::string &text, const std::string &begin) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find("\n" + begin, at)) != std::string::npos; at++) found++;
    return found;
}

TEST(Explain, ListsTheNearestCandidatesAndWhatOthersAreRefusedFor) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "layer.onnx").string();
    write(file, model());
    std::size_t kernels = 0; // of the type and the ISA, which are those that are listed
    const Outcome whole = convtranspose({"explain", "--all", file});
    ASSERT_EQ(whole.status, 0) << whole;
    const std::string heading = "candidates, by estimated cycles:\n";
    const std::string list = whole.out.substr(whole.out.find(heading) + heading.size() - 1);
    const std::size_t able = lines_with(list, "    ") + lines_with(list, "  * ");
    EXPECT_EQ(lines_with(list, "  * "), 1u) << whole;
    EXPECT_GT(able, 11u) << whole;
    EXPECT_NE(list.find("\n  no: y is channels first: oc_vectorized_f32_channels_"), std::string::npos) << whole;
    EXPECT_EQ(list.find(" more"), std::string::npos) << whole;
    for (std::size_t at = list.find("\n  no: "); (at = list.find("f32_", at)) != std::string::npos; at++) kernels++;

    const Outcome nearest = convtranspose({"explain", file});
    ASSERT_EQ(nearest.status, 0) << nearest;
    const std::string shown = nearest.out.substr(nearest.out.find(heading) + heading.size() - 1);
    EXPECT_EQ(shown.compare(0, shown.find("\n    and "), list, 0, shown.find("\n    and ")), 0)
        << "the same, but fewer";
    EXPECT_NE(shown.find("\n    and " + std::to_string(able - 10) + " more (--all lists them)\n"), std::string::npos)
        << nearest;
    // Each refusal tells of how many kernels it is.
    std::size_t named = 0;
    for (std::size_t at = shown.find("\n  no: "); (at = shown.find("f32_", at)) != std::string::npos; at++) named++;
    const std::regex more("  no: .* and (\\d+) more\n");
    for (std::sregex_iterator at(shown.begin(), shown.end(), more), end; at != end; ++at) {
        named += std::stoul(at->str(1));
    }
    EXPECT_EQ(named, kernels) << nearest << whole;
    EXPECT_EQ(lines_with(shown, "  no: "), lines_with(list, "  no: "));
}

} // namespace
} // namespace convtranspose::test
