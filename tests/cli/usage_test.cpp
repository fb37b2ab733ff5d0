// Command lines that make no sense, help, and targets.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/wait.h>

#include <gtest/gtest.h>

#include "convtranspose/convtranspose.h"
#include "files.h"
#include "models.h"
#include "process.h"

namespace convtranspose::test {
namespace {

TEST(Usage, WrongUsageExitsWithTwo) {
    const TemporaryFolder folder;
    const std::string a = (folder.path() / "a" / "layer").string(), b = (folder.path() / "b" / "layer").string();
    const std::string file = (folder.path() / "x.pb").string();
    write_test(a);
    write_test(b);
    write(file, tensor("X", onnx::TensorProto::FLOAT, kX));
    const std::vector<std::vector<std::string>> command_lines = {
        {},
        {"compute"},
        {"run"},
        {"bench"},
        {"explain"},
        {"run", a, "--no-such-option"},
        {"run", a, "--threads", "0"},
        {"run", a, "--threads", "many"},
        {"run", a, "--output-dir"},
        {"bench", a, "--layout", "chwn"},
        {"bench", a, "--min-time", "-1"},
        {"bench", a, "--min-time", "nan"},
        {"bench", a, "--min-time", "inf"},
        {"bench", a, "--min-time", "1e400"},
        {"bench", a, "--measure=nan"},
        {"tune", a, "--output", b, "--budget", "-nan"},
        {"tune", a, "--output", b, "--timeout", "NAN"},
        {"tune", a, "--output", file},
        {"tune", a, "--output", ""},
        {"tune", a, "--output", b, "--emit", file, "--emit-name", "x"},
        {"tune", a, "--output", b, "--rows", file},
        {"calibrate", "--output", file, "--seconds", "nan"},
        {"calibrate", "--output", a}, // a folder
        {"calibrate", "--output", ""},
        {"run", file},                    // a tensor without a model
        {"run", a, file},                 // a test folder has inputs of its own
        {"run", a, b, "--output-dir", a}, // both would write to layer/output_0.pb
    };
    for (const std::vector<std::string> &command_line : command_lines) {
        const Outcome outcome = convtranspose(command_line);
        EXPECT_EQ(outcome.status, 2) << (command_line.empty() ? "" : command_line.back()) << '\n' << outcome;
        EXPECT_NE(outcome.err, "") << outcome;
    }
}

TEST(Usage, HelpAndVersionSucceed) {
    for (const std::vector<std::string> &command_line : std::vector<std::vector<std::string>>{
             {"--help"}, {"run", "--help"}, {"explain", "--help"}, {"bench", "--help"}, {"targets", "--help"}}) {
        const Outcome outcome = convtranspose(command_line);
        EXPECT_EQ(outcome.status, 0) << outcome;
        EXPECT_NE(outcome.out.find("Usage"), std::string::npos) << outcome;
    }
    const Outcome version = convtranspose({"--version"});
    EXPECT_EQ(version.status, 0) << version;
    EXPECT_EQ(version.out, CONVT_VERSION "\n");
}

TEST(Usage, OutputThatIsLostIsAFailure) {
    if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no full device";
    for (const std::string arguments : {"targets", "explain --size", "--help"}) {
        const int status = std::system((CONVTRANSPOSE_COMMAND " " + arguments + " >/dev/full 2>/dev/null").c_str());
        EXPECT_EQ(WEXITSTATUS(status), 1) << arguments;
    }
}

TEST(Targets, ListsIsasAlgorithmsAndVariants) {
    const Outcome outcome = convtranspose({"targets"});
    EXPECT_EQ(outcome.status, 0) << outcome;
    ASSERT_GT(convt_isa_count(), 0u);
    for (std::size_t i = 0; i < convt_isa_count(); i++) {
        const std::size_t at = outcome.out.find(std::string("  ") + convt_isa_name(i) + " ");
        ASSERT_NE(at, std::string::npos) << outcome;
        const std::string line = outcome.out.substr(at, outcome.out.find('\n', at) - at);
        EXPECT_EQ(line.find("not supported") == std::string::npos, convt_isa_supported(i) != 0) << line;
    }
    ASSERT_GT(convt_algorithm_count(), 1u);
    EXPECT_EQ(convt_algorithm_name(convt_algorithm_count()), nullptr);
    for (std::size_t i = 0; i < convt_algorithm_count(); i++) {
        const std::string name = convt_algorithm_name(i);
        EXPECT_EQ(outcome.out.find("  " + name + "\n") != std::string::npos, name != "direct") << outcome;
    }
    ASSERT_GT(convt_variant_count(), 0u);
    for (std::size_t i = 0; i < convt_variant_count(); i++) {
        EXPECT_NE(outcome.out.find(std::string("  ") + convt_variant_name(i) + "\n"), std::string::npos) << outcome;
    }
}

} // namespace
} // namespace convtranspose::test
