// `convtranspose calibrate`, as short as it can be, with the real worker.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
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

class Calibrate : public testing::Test {
  protected:
    Outcome calibrate(const std::vector<std::string> &more) const {
        std::vector<std::string> arguments = {"calibrate", "--output", file_};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return convtranspose(arguments);
    }

    const TemporaryFolder folder_;
    std::size_t added_ = 0;
    const std::string file_ = (folder_.path() / "tuning.jsonl").string();
};

// A profile that is fitted to a few layers may be no better than the one that ships, which the command then says.
TEST_F(Calibrate, AddsAProfileThatPlansCanBeMadeWith) {
    const auto expect_outcome = [&](const Outcome &outcome) {
        ASSERT_EQ(outcome.status, 0) << outcome;
        EXPECT_NE(outcome.out.find(
                      "held out; choices on the latter take, in times of the fastest candidate: generic profile "),
                  std::string::npos)
            << outcome;
        const bool is_added = outcome.out.find("holds the profile") != std::string::npos;
        EXPECT_NE(is_added, outcome.out.find("stays as it is") != std::string::npos) << outcome;
        added_ += is_added;
        const std::vector<json> lines = lines_of(file_);
        ASSERT_EQ(lines.size(), added_);
        for (const json &line : lines) {
            EXPECT_EQ(line.at("cpu"), convt_cpu_name());
            EXPECT_TRUE(line.at("cost_profile").contains("latency"));
            const std::string text = line.dump();
            convt_tuning *tuning = nullptr;
            EXPECT_EQ(convt_tuning_read(text.data(), text.size(), &tuning), CONVT_OK) << convt_last_error();
            convt_tuning_destroy(tuning);
        }
    };
    expect_outcome(calibrate({"--seconds", "8"}));
    // The times are kept, to fit to them alone or to add to them.
    const std::string times = file_ + ".calibration/times.jsonl";
    const std::size_t timed = lines_of(times).size();
    EXPECT_GE(timed, 3u);
    expect_outcome(calibrate({"--seconds", "1", "--fit-only"}));
    EXPECT_EQ(lines_of(times).size(), timed);
    expect_outcome(calibrate({"--seconds", "4", "--resume"}));
    EXPECT_GT(lines_of(times).size(), timed);
    // Those of another ISA are not mixed with these.
    std::vector<json> lines = lines_of(times);
    std::ofstream changed(times);
    for (json &line : lines) {
        line["isa"] = "another";
        changed << line << '\n';
    }
    changed.close();
    const Outcome mixed = calibrate({"--seconds", "4", "--resume"});
    EXPECT_EQ(mixed.status, 1) << mixed;
    EXPECT_NE(mixed.err.find("kept are of the ISA another"), std::string::npos) << mixed;
    EXPECT_EQ(lines_of(times).size(), lines.size());
}

TEST_F(Calibrate, TimesThatAreKeptMustFit) {
    const json line = {{"package", CONVT_VERSION}, {"kernels", convt_kernels_version()},
                       {"cpu", "some CPU"},        {"isa", "avx2"},
                       {"problem", "a layer"},     {"ms", {{"a", 1}, {"b", 2}}}};
    const auto expect_refused = [&](const char *field, const json &value, const std::vector<std::string> &more,
                                    const std::string &why) {
        json changed = line;
        if (*field) changed[field] = value;
        std::string text;
        for (int i = 0; i < 3; i++) text += changed.dump() + "\n";
        write_text(file_ + ".calibration/times.jsonl", text);
        std::vector<std::string> arguments = {"--fit-only", "--seconds", "1", "--worker", "/no/worker"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const Outcome outcome = calibrate(arguments);
        EXPECT_EQ(outcome.status, 1) << outcome;
        EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome;
    };
    expect_refused("", nullptr, {}, "cannot run /no/worker"); // which is all that is wrong with it
    expect_refused("threads", 1, {"--isa", "avx2"}, "cannot run /no/worker");
    expect_refused("", nullptr, {"--isa", "avx512"}, "--isa avx512: the times that are kept are of the ISA avx2");
    expect_refused("threads", 2, {}, "the times that are kept are of --threads 2, not of 1");
    expect_refused("", nullptr, {"--threads", "2"}, "the times that are kept are of --threads 1, not of 2");
    expect_refused("threads", "2", {}, "its \"threads\" must be a number");
    for (const json &time : std::vector<json>{0, -1, 1e-310, 1e300, "1", nullptr}) {
        expect_refused("ms", {{"a", 1}, {"b", time}}, {},
                       "the time of b for a layer is " + time.dump() + " ms, must be a number from 1e-9 to 1e12");
    }
    expect_refused("ms", 1, {}, "the \"ms\" of a layer must be an object of numbers");
}

TEST_F(Calibrate, SaysWhatItCannotDo) {
    Outcome outcome = calibrate({"--fit-only"});
    EXPECT_EQ(outcome.status, 2) << outcome;
    EXPECT_NE(outcome.err.find("holds no times of an earlier calibration: calibrate without it first"),
              std::string::npos)
        << outcome;
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
    // A file of another kind stays as it is, with and without an end of its last line.
    for (const char *const bytes : {"\x08\x07 a model", "\x08\x07 a model\n"}) {
        write_text(file_, bytes);
        outcome = calibrate({});
        EXPECT_EQ(outcome.status, 1) << outcome;
        EXPECT_NE(outcome.err.find("tuning.jsonl, line 1: it is not JSON"), std::string::npos) << outcome;
        EXPECT_EQ(read_text(file_), bytes);
        EXPECT_FALSE(std::filesystem::exists(file_ + ".calibration"));
    }
    std::filesystem::remove(file_);
    const std::string times = file_ + ".calibration/times.jsonl";
    write_text(times, "");
    outcome = calibrate({"--fit-only"});
    EXPECT_EQ(outcome.status, 1) << outcome;
    EXPECT_NE(outcome.err.find("0 layers were timed, of 3 that are needed: calibrate with --resume, to time more"),
              std::string::npos)
        << outcome;
    EXPECT_FALSE(std::filesystem::exists(file_));
    outcome = calibrate({"--worker", "/no/worker"});
    EXPECT_EQ(outcome.status, 1) << outcome;
    outcome = calibrate({"--isa", "none", "--seconds", "2"});
    EXPECT_EQ(outcome.status, 1) << outcome;
    EXPECT_NE(outcome.err.find("none"), std::string::npos) << outcome;
    EXPECT_EQ(calibrate({"--seconds", "0"}).status, 2);
    EXPECT_EQ(convtranspose({"calibrate"}).status, 2);
    std::ofstream(file_) << "{\"package\": \"0.0.1\", \"kernels\": \"old\"}\n";
    outcome = calibrate({"--seconds", "2"});
    EXPECT_EQ(outcome.status, 1) << outcome;
    EXPECT_NE(outcome.err.find("stale"), std::string::npos) << outcome;
}

} // namespace
} // namespace convtranspose::test
