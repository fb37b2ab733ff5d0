// Command lines that make no sense, help, and targets.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/stat.h>
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
        {"run", a, "--output-dir", ""},
        {"explain", "--size", "--isa", "avx2"},
        {"explain", "--size", "--input-shape", "X=1x2x3x4"},
        {"explain", "--size", "--cost-profile", "zen3"},
        {"explain", "--size", "--json", "--features"},
        {"explain", "--size", "a.onnx", "--device", "opencl"},
        {"tune", "f32 nchw i5x5 k3x3", "--output", b, "--layout", "nhwc"},
        {"tune", a, "--output", b, "--emit", ""},
        {"tune", a, "--output", b, "--rows", ""},
        {"bench", a, "--layout", "chwn"},
        {"bench", a, "--min-time", "-1"},
        {"bench", a, "--min-time", "nan"},
        {"bench", a, "--min-time", "inf"},
        {"bench", a, "--min-time", "1e400"},
        {"bench", a, "--measure=nan"},
        {"tune", a, "--output", b, "--budget", "-nan"},
        {"tune", a, "--output", b, "--timeout", "NAN"},
        {"tune", a, "--output", file},
        {"tune", a, "--output", b, "--variant", "reference_f32"},
        {"bench", a, "--candidates", "2", "--variant", "reference_f32"},
        {"bench", a, "--candidates", "2", "--measure"},
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

TEST(Usage, WordsThatAreNoCommandAreNamed) {
    expect_in("a command is required: run, explain,", convtranspose({}));
    expect_in("not expected: --fast", convtranspose({"--fast"}));
    expect_in("explan", convtranspose({"explan", "layer.onnx"}));
}

TEST(Usage, LibrariesAreNamedByTheirFolder) {
    const TemporaryFolder folder;
    const std::string out = (folder.path() / "out").string();
    for (const char *const name : {"my-net", "my-net/", "my-net/."}) {
        const Outcome outcome =
            convtranspose({"tune", "f32 nchw i5x5 k3x3", "--output", out, "--emit", (folder.path() / name).string()});
        EXPECT_EQ(outcome.status, 2) << outcome;
        expect_in("--emit-name: 'my-net' is not a C identifier", outcome);
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

TEST(Usage, TuningThatCannotBeUsedIsNoted) {
    const TemporaryFolder folder;
    const std::string layer = (folder.path() / "layer").string(), garbage = (folder.path() / "garbage").string(),
                      large = (folder.path() / "large").string(), fifo = (folder.path() / "fifo").string();
    write_test(layer);
    write_text(garbage, "no record\n");
    write_text(large, "");
    std::filesystem::resize_file(large, (64 << 20) + 1);
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    const std::vector<std::pair<std::string, std::string>> files = {
        {"/nowhere/file", "it cannot be opened: No such file or directory"},
        {folder.path().string(), "it is no regular file"},
        {fifo, "it is no regular file"},
        {garbage, "line 1 of the tuning records: it is not a JSON object of strings and numbers"},
        {large, "it has more than 67108864 bytes"},
    };
    for (const auto &[file, why] : files) {
        setenv("CONVTRANSPOSE_TUNING", file.c_str(), 1);
        std::string note = "note: CONVTRANSPOSE_TUNING=";
        note.append(file).append(" is not used: ").append(why);
        for (const std::vector<std::string> &command :
             std::vector<std::vector<std::string>>{{"run"}, {"bench", "--min-time", "0"}, {"explain", "--json"}}) {
            std::vector<std::string> arguments = command;
            arguments.push_back(layer);
            const Outcome outcome = convtranspose(arguments);
            EXPECT_EQ(outcome.status, 0) << outcome;
            EXPECT_EQ(outcome.err, note + "\n") << outcome;
            if (file != "/nowhere/file") break; // once is enough
        }
        const Outcome explained = convtranspose({"explain", layer});
        EXPECT_NE(explained.out.find(note.substr(6)), std::string::npos) << explained;
        EXPECT_EQ(explained.err, "") << explained;
    }
    unsetenv("CONVTRANSPOSE_TUNING");
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
