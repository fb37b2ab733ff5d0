// `convtranspose tune` keeps or refuses the files that it finds. The worker plays candidates: fake_worker.cpp.
#include <cstdlib>
#include <filesystem>
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

const std::string kSmall = "f32 nchw n1 g1 ic4 oc4 i5x5 k2x2 s2x2";

class Resume : public testing::Test {
  protected:
    Resume() {
        const json candidates = {{{"name", "default"}, {"ms", 2.0}}, {{"name", "other"}, {"ms", 1.0}}};
        setenv("FAKE_WORKER", json{{"candidates", candidates}, {"log", file("questions")}}.dump().c_str(), 1);
    }

    std::string file(const std::string &name) const { return (folder_.path() / name).string(); }

    Outcome tune(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(),
                         {"tune", "--output", file("out"), "--budget", "0.2", "--worker", CONVTRANSPOSE_FAKE_WORKER});
        return convtranspose(arguments);
    }

    // A line of a profile, as calibrate writes it.
    static std::string profile(const std::string &kernels) {
        return json{{"package", CONVT_VERSION},
                    {"kernels", kernels},
                    {"cpu", "fake"},
                    {"isa", "none"},
                    {"cost_profile", {{"latency", 4}}}}
                   .dump() +
               "\n";
    }

    TemporaryFolder folder_;
};

TEST_F(Resume, ProfilesStayInTheFile) {
    const std::string own = profile(convt_kernels_version());
    write_text(file("out/tuning.jsonl"), profile("0123456789ab") + own + "no record\n");
    const Outcome anew = tune({kSmall});
    ASSERT_EQ(anew.status, 0) << anew;
    const std::string records = read_text(file("out/tuning.jsonl"));
    EXPECT_EQ(records.rfind(own, 0), 0u) << records;
    EXPECT_EQ(lines_of(file("out/tuning.jsonl")).size(), 2u); // one of other kernels would make the whole file unusable
    write_text(file("out/tuning.jsonl"), records + own);
    const Outcome resumed = tune({"--resume", kSmall});
    ASSERT_EQ(resumed.status, 0) << resumed;
    EXPECT_EQ(read_text(file("out/tuning.jsonl")), records + own);
    EXPECT_NE(resumed.out.find("geometric mean of the gain: 2.000"), std::string::npos) << resumed;
}

TEST_F(Resume, ResultsStayWhereThereIsNoLayer) {
    ASSERT_EQ(tune({kSmall}).status, 0);
    const std::string records = read_text(file("out/tuning.jsonl")), log = read_text(file("out/search.jsonl"));
    write_text(file("broken.onnx"), "no model");
    EXPECT_EQ(tune({file("broken.onnx")}).status, 1);
    EXPECT_EQ(read_text(file("out/tuning.jsonl")), records);
    EXPECT_EQ(read_text(file("out/search.jsonl")), log);
}

TEST_F(Resume, DamagedFieldsAreNamed) {
    ASSERT_EQ(tune({kSmall}).status, 0);
    const auto damage = [&](const std::string &name, const char *field, const json &value, const std::string &words) {
        const std::string good = read_text(file(name));
        json line = json::parse(good.substr(0, good.find('\n')));
        line[field] = value;
        write_text(file(name), line.dump() + "\n");
        const Outcome outcome = tune({"--resume", kSmall});
        EXPECT_EQ(outcome.status, 1) << outcome;
        EXPECT_NE(outcome.err.find(name + ", line 1: its \"" + field + "\" must be " + words), std::string::npos)
            << outcome;
        write_text(file(name), good);
    };
    damage("out/tuning.jsonl", "ms", 0, "a number above 0");
    damage("out/tuning.jsonl", "default_ms", 0, "a number above 0");
    damage("out/tuning.jsonl", "runs", "kernel", "a list of texts");
    damage("out/tuning.jsonl", "winograd", 1, "true or false");
    damage("out/search.jsonl", "ratio", "none", "a number, at least 0");
    damage("out/search.jsonl", "error", 3, "a text");
    damage("out/search.jsonl", "search", nullptr, "a text");
}

TEST_F(Resume, AReportThatCannotBeWrittenIsAFailure) {
    std::filesystem::create_directories(file("out/report.txt"));
    const Outcome outcome = tune({kSmall});
    EXPECT_EQ(outcome.status, 1) << outcome;
    EXPECT_NE(outcome.err.find("report.txt' cannot be written"), std::string::npos) << outcome;
}

TEST_F(Resume, LayersMayBeLongerThanNamesOfFiles) {
    const Outcome outcome = tune({"f32 nchw " + std::string(5000, ' ') + kSmall.substr(9)});
    EXPECT_EQ(outcome.status, 0) << outcome;
}

} // namespace
} // namespace convtranspose::test
