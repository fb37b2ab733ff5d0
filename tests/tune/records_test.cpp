// `convtranspose tune` writes records, plans use them, and a search goes on where it was ended.
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/files.h"
#include "cli/process.h"
#include "convtranspose/convtranspose.h"
#include "json_lines.h"

namespace convtranspose::test {
namespace {

using nlohmann::json;

const std::string kLayer = "f32 nchw n1 g1 ic8 oc3 i9x20 k4x4 s2x2 p1x1_1x1 bias";
const std::string kWide = "f32 nchw n1 g1 ic32 oc16 i16x16 k4x4 s2x2 p1x1_1x1";
const std::string kNetworks = CONVTRANSPOSE_NETWORKS;

class Tune : public testing::Test {
  protected:
    std::string file(const std::string &name) const { return (folder_.path() / name).string(); }

    Outcome tune(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), {"tune", "--output", file("out"), "--budget", "0.2"});
        return convtranspose(arguments);
    }

    TemporaryFolder folder_;
};

TEST_F(Tune, ANetworkGivesARecordForEachOfItsLayers) {
    const Outcome outcome = tune({kNetworks + "/small_unet.onnx", kNetworks + "/small_generator.onnx"});
    ASSERT_EQ(outcome.status, 0) << outcome;
    const std::vector<json> records = lines_of(file("out/tuning.jsonl"));
    EXPECT_EQ(records.size(), 7u);
    for (const json &record : records) {
        EXPECT_EQ(record.at("package"), CONVT_VERSION);
        EXPECT_EQ(record.at("kernels"), convt_kernels_version());
        EXPECT_EQ(record.at("cpu"), convt_cpu_name());
        EXPECT_GT(record.at("ms").get<double>(), 0);
        EXPECT_LE(record.at("ms").get<double>(), record.at("default_ms").get<double>());
    }
    EXPECT_NE(outcome.out.find("small_unet: ConvTranspose"), std::string::npos) << outcome;
    EXPECT_EQ(read_text(file("out/report.txt")), outcome.out);
    // Every candidate that was tried is told, and none was wrong.
    const std::vector<json> tried = lines_of(file("out/search.jsonl"));
    EXPECT_GT(tried.size(), records.size());
    for (const json &line : tried) {
        const std::string error = line.value("error", "");
        EXPECT_EQ(error.find("wrong results"), std::string::npos) << line;
    }
}

TEST_F(Tune, InputsMayBeOfAnotherShape) {
    const Outcome outcome = tune({kNetworks + "/small_unet.onnx", "--input-shape", "x=2x3x32x32"});
    ASSERT_EQ(outcome.status, 0) << outcome;
    const std::vector<json> records = lines_of(file("out/tuning.jsonl"));
    ASSERT_EQ(records.size(), 4u) << outcome;
    EXPECT_EQ(records[0].at("problem"), "f32 nchw n2 g1 ic64 oc32 i4x4 k2x2 s2x2 p0x0_0x0 op0x0 d1x1 bias") << outcome;
}

TEST_F(Tune, TheEnvironmentVariableNamesRecordsThatPlansUse) {
    ASSERT_EQ(tune({kNetworks + "/small_unet.onnx"}).status, 0);
    const auto explain = [&] { return convtranspose({"explain", kNetworks + "/small_unet.onnx"}); };
    const auto occurrences = [](const std::string &text, const std::string &part) {
        std::size_t n = 0;
        for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at++) n++;
        return n;
    };
    EXPECT_EQ(occurrences(explain().out, "says a tuning record"), 0u);
    setenv("CONVTRANSPOSE_TUNING", file("out/tuning.jsonl").c_str(), 1);
    EXPECT_EQ(occurrences(explain().out, "says a tuning record"), 4u) << explain();
    // Records of other kernels are not used, and that is said.
    std::string text = read_text(file("out/tuning.jsonl"));
    const std::string version = convt_kernels_version();
    text.replace(text.find(version), version.size(), "0123456789ab");
    write_text(file("stale.jsonl"), text);
    setenv("CONVTRANSPOSE_TUNING", file("stale.jsonl").c_str(), 1);
    const Outcome stale = explain();
    setenv("CONVTRANSPOSE_TUNING", file("missing.jsonl").c_str(), 1);
    const Outcome missing = explain();
    setenv("CONVTRANSPOSE_TUNING", "/dev/zero", 1); // which has no end
    const Outcome endless = explain();
    unsetenv("CONVTRANSPOSE_TUNING");
    EXPECT_EQ(occurrences(stale.out, "is not used: line 1 of the tuning records: it is of kernels 0123456789ab"), 4u)
        << stale;
    EXPECT_EQ(occurrences(missing.out, "is not used: it cannot be opened"), 4u) << missing;
    EXPECT_EQ(occurrences(endless.out, "is not used: it is no regular file"), 4u) << endless;
}

TEST_F(Tune, ResumeMeasuresNothingAgain) {
    ASSERT_EQ(tune({kLayer}).status, 0);
    const std::string records = read_text(file("out/tuning.jsonl")), log = read_text(file("out/search.jsonl"));
    const Outcome again = tune({"--resume", kLayer});
    ASSERT_EQ(again.status, 0) << again;
    EXPECT_EQ(read_text(file("out/tuning.jsonl")), records);
    EXPECT_EQ(read_text(file("out/search.jsonl")), log);
    // Ended in the middle of a line, before there was a record: what is whole counts.
    write_text(file("out/tuning.jsonl"), "");
    const std::size_t third = log.find('\n', log.find('\n', log.find('\n') + 1) + 1) + 1;
    write_text(file("out/search.jsonl"), log.substr(0, third) + log.substr(third, 40));
    const Outcome rest = tune({"--resume", kLayer});
    ASSERT_EQ(rest.status, 0) << rest;
    EXPECT_EQ(lines_of(file("out/tuning.jsonl")).size(), 1u);
    EXPECT_EQ(read_text(file("out/search.jsonl")).substr(0, third), log.substr(0, third));
    // A search that may take Winograd's algorithm has other results.
    ASSERT_EQ(tune({"--resume", "--winograd", kLayer}).status, 0);
    const std::vector<json> both = lines_of(file("out/tuning.jsonl"));
    ASSERT_EQ(both.size(), 2u);
    EXPECT_EQ(both[0].at("winograd"), false);
    EXPECT_EQ(both[1].at("winograd"), true);
    // Without --resume all begins anew.
    ASSERT_EQ(tune({"f32 nchw n1 g1 ic4 oc4 i5x5 k2x2 s2x2"}).status, 0);
    EXPECT_EQ(lines_of(file("out/tuning.jsonl")).size(), 1u);
}

TEST_F(Tune, ALayerOfOneCandidateHasATimeToo) {
    const Outcome outcome = tune({"f32 nchw n1 g1 ic3 oc4 i0x6 k3x3"}); // which only the reference kernel computes
    ASSERT_EQ(outcome.status, 0) << outcome;
    EXPECT_NE(outcome.out.find("geometric mean of the gain: 1.000"), std::string::npos) << outcome;
    EXPECT_GT(lines_of(file("out/tuning.jsonl")).at(0).at("ms").get<double>(), 0);
}

TEST_F(Tune, ResumeRefusesWhatIsStale) {
    ASSERT_EQ(tune({kLayer}).status, 0);
    std::string text = read_text(file("out/tuning.jsonl"));
    const std::string version = convt_kernels_version();
    text.replace(text.find(version), version.size(), "0123456789ab");
    write_text(file("out/tuning.jsonl"), text);
    const Outcome outcome = tune({"--resume", kLayer});
    EXPECT_EQ(outcome.status, 1) << outcome;
    EXPECT_NE(
        outcome.err.find("tuning.jsonl, line 1: it is stale, of version " CONVT_VERSION " and kernels 0123456789ab"),
        std::string::npos)
        << outcome;
    EXPECT_EQ(read_text(file("out/tuning.jsonl")), text); // which is still there
}

TEST_F(Tune, ResumeRefusesWhatIsDamaged) {
    ASSERT_EQ(tune({kLayer}).status, 0);
    for (const std::string name : {"out/tuning.jsonl", "out/search.jsonl"}) {
        const std::string good = read_text(file(name));
        std::vector<std::pair<std::string, std::string>> damages = {{"[1]", "it is no record"},
                                                                    {"3", "it is no record"}};
        const auto damage = [&](const char *field, const json &value, const std::string &words) {
            json line = json::parse(good.substr(0, good.find('\n')));
            line[field] = value;
            damages.emplace_back(line.dump(), words);
        };
        damage("package", 1, "it is stale, of version ?");
        damage("problem", nullptr, "its \"problem\" must be a text");
        damage("threads", "two", "its \"threads\" must be a number, at least 0");
        if (name == "out/tuning.jsonl") damage("default_ms", -1, "its \"default_ms\" must be a number above 0");
        for (const auto &[line, words] : damages) {
            write_text(file(name), line + "\n");
            const Outcome outcome = tune({"--resume", kLayer});
            EXPECT_EQ(outcome.status, 1) << line << outcome;
            EXPECT_NE(outcome.err.find(".jsonl, line 1: " + words), std::string::npos) << line << outcome;
        }
        write_text(file(name), good);
    }
}

// Records that others wrote stay as they are, byte for byte.
TEST_F(Tune, ResumeLeavesWhatIsThere) {
    ASSERT_EQ(tune({kLayer}).status, 0);
    std::string records = read_text(file("out/tuning.jsonl"));
    records.insert(1, " \"note\": [1,  2],");
    write_text(file("out/tuning.jsonl"), records.substr(0, records.size() - 1)); // without the last newline
    ASSERT_EQ(tune({"--resume", kLayer, "f32 nchw n1 g1 ic4 oc4 i5x5 k2x2 s2x2"}).status, 0);
    EXPECT_EQ(read_text(file("out/tuning.jsonl")).rfind(records, 0), 0u);
    EXPECT_EQ(lines_of(file("out/tuning.jsonl")).size(), 2u);
}

TEST_F(Tune, SchedulesAreSearchedAndEmittedWithTheirLayer) {
    const Outcome outcome =
        convtranspose({"tune", kWide, "u8 nhwc n1 g1 ic64 oc64 i16x16 k3x3 s2x2 ws8 yu8", "--output", file("out"),
                       "--search", "schedule", "--budget", "6", "--compiler", CONVTRANSPOSE_COMPILER});
    ASSERT_EQ(outcome.status, 0) << outcome;
    std::size_t made = 0, wrong = 0, failed = 0;
    for (const json &line : lines_of(file("out/search.jsonl"))) {
        if (!line.contains("generator")) continue;
        const std::string error = line.value("error", "");
        made += error.empty();
        failed += !error.empty();
        wrong += error.find("wrong results") != std::string::npos;
    }
    EXPECT_GT(made, 0u) << outcome;
    EXPECT_EQ(wrong, 0u) << outcome;
    EXPECT_LE(failed, made) << outcome;
}

TEST_F(Tune, WhatIsNoLayerIsRefused) {
    const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
        {{"missing.onnx"}, "'missing.onnx' is neither a file nor a layer"},
        {{"f32 nchw i5x5 k3x3 v99999999999"},
         "\"v99999999999\" in the problem \"f32 nchw i5x5 k3x3 v99999999999\" must be 1 .. "},
        {{"f32 nchw i5x5 k3x3 v0"}, "must be 1 .. 2147483647"},
        {{"f32 nchw i5x99999999999999999999 k3x3"}, "\"i5x99999999999999999999\""},
        {{"f32 nchw i5x5 k3x3 nonsense"}, "\"nonsense\""},
        {{"f32 nchw i5x5 k3"}, "i and k must have the same number of axes"},
        {{kLayer, "--input-shape", "x=1xbx3"}, "--input-shape x=1xbx3 is not NAME=1x3x224x224"},
        {{kLayer, "--input-shape", "x"}, "--input-shape x is not NAME=1x3x224x224"},
        {{kLayer, "--emit", "/dev/null/my-layers"}, "--emit-name: 'my-layers' is not a C identifier"},
        {{kLayer, "--search", "luck"}, "--search"},
    };
    for (const auto &[arguments, message] : cases) {
        const Outcome outcome = tune(arguments);
        EXPECT_EQ(outcome.status, 2) << outcome;
        EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome;
    }
    const Outcome rejected = tune({"f32 nchw n1 g1 ic4 oc4 i5x5 k2x2 s0x2"});
    EXPECT_EQ(rejected.status, 1) << rejected;
    EXPECT_NE(rejected.err.find("strides[0] = 0 must be positive"), std::string::npos) << rejected;
    const Outcome huge = tune({"u8 nchw n1 g2147483648 ic2147483648 oc4294967296 i5x5 k2x2"});
    EXPECT_EQ(huge.status, 1) << huge;
    EXPECT_NE(huge.err.find("exceed"), std::string::npos) << huge; // and not the memory
}

// The package of the library asks for threads under the same condition.
TEST(Emit, LinksThreadsIfTheLibraryHasThem) {
    namespace fs = std::filesystem;
    const TemporaryFolder folder;
    const fs::path own = fs::path(CONVTRANSPOSE_COMMAND).parent_path(), package = folder.path() / "package";
    write_text(package / "runtime" / "libconvtranspose_absent.a", "");
    fs::copy_file(own.parent_path() / "runtime" / "kernels.json", package / "runtime" / "kernels.json");
    for (const bool has_threads : {true, false}) {
        write_text(package / "runtime" / "libconvtranspose_runtime.a",
                   has_threads ? "_ZN13convtranspose4Pool3runEv" : "");
        const fs::path emitted = folder.path() / (has_threads ? "with" : "without");
        const Outcome outcome = convtranspose(
            {"tune", "f32 nchw n1 g1 ic4 oc4 i5x5 k2x2 s2x2", "--budget", "0.1", "--package", package.string(),
             "--worker", (own / "convtranspose-worker").string(), "--compiler", CONVTRANSPOSE_COMPILER, "--output",
             (folder.path() / "out").string(), "--emit", emitted.string(), "--emit-name", "layers"});
        ASSERT_EQ(outcome.status, 0) << outcome;
        const std::string config = read_text(emitted / "lib" / "cmake" / "layers" / "layersConfig.cmake");
        for (const char *const text : {"find_dependency(Threads)", ".a;Threads::Threads;${CMAKE_DL_LIBS}\")"})
            EXPECT_EQ(config.find(text) != std::string::npos, has_threads) << config;
        EXPECT_NE(config.find("libconvtranspose_absent.a"), std::string::npos) << config;
    }
}

} // namespace
} // namespace convtranspose::test
