// How `convtranspose tune` goes about its candidates, with a worker that plays them: fake_worker.cpp.
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/files.h"
#include "cli/process.h"
#include "json_lines.h"

namespace convtranspose::test {
namespace {

using nlohmann::json;

constexpr std::size_t kCount = 20;

class Select : public testing::Test {
  protected:
    // All alike but for the one that is the fastest, in the last place.
    Select() {
        for (std::size_t i = 0; i < kCount; i++) candidates_.push_back({{"name", name(i)}, {"ms", 2.0}});
        candidates_.back()["ms"] = 1.0;
    }

    static std::string name(std::size_t i) { return "candidate_" + std::to_string(i); }
    std::string file(const std::string &name) const { return (folder_.path() / name).string(); }

    // Runs the search, which must choose the fastest and have tried all the others once. Their errors, by name.
    std::vector<std::pair<std::string, std::string>> errors(const std::string &budget) const {
        setenv("FAKE_WORKER", json{{"candidates", candidates_}, {"log", file("questions")}}.dump().c_str(), 1);
        const Outcome outcome =
            convtranspose({"tune", "f32 nchw n1 g1 ic4 oc4 i5x5 k2x2 s2x2", "--output", file("out"), "--budget", budget,
                           "--timeout", "30", "--worker", CONVTRANSPOSE_FAKE_WORKER});
        EXPECT_EQ(outcome.status, 0) << outcome;
        const std::vector<json> records = lines_of(file("out/tuning.jsonl"));
        EXPECT_EQ(records.size(), 1u) << outcome;
        for (const json &record : records) EXPECT_EQ(record.at("variant"), name(kCount - 1)) << outcome;
        std::vector<std::pair<std::string, std::string>> list;
        std::size_t tried = 0;
        for (const json &line : lines_of(file("out/search.jsonl"))) {
            tried++;
            if (line.contains("error")) list.emplace_back(line.at("name"), line.at("error"));
        }
        EXPECT_GE(tried, kCount - 1) << outcome;
        return list;
    }

    // How often the worker was asked to do that with the candidate.
    std::size_t asked(const std::string &what, const std::string &candidate) const {
        std::size_t count = 0;
        for (const json &question : lines_of(file("questions"))) {
            if (question.at("do") != what) continue;
            if (what == "try") count += question.at("variant") == candidate;
            if (what != "time") continue;
            for (const json &variant : question.at("variants")) count += variant == candidate;
        }
        return count;
    }

    std::vector<json> candidates_;
    TemporaryFolder folder_;
};

TEST_F(Select, GoesOnAfterCandidatesThatCrash) {
    candidates_[1]["try"] = candidates_[7]["try"] = candidates_[12]["try"] = "crash";
    const auto list = errors("20");
    ASSERT_EQ(list.size(), 3u);
    for (const auto &[candidate, error] : list) EXPECT_EQ(error, "it was ended by signal Killed") << candidate;
    EXPECT_EQ(list[2].first, name(12));
    EXPECT_EQ(asked("try", name(7)), 1u);
}

TEST_F(Select, GoesOnAfterOneThatCrashesWhileItIsTimed) {
    candidates_[10]["time"] = "crash";
    const auto list = errors("20");
    ASSERT_EQ(list.size(), 1u);
    EXPECT_EQ(list[0].first, name(10));
}

TEST_F(Select, WaitsOnceForOneThatHangs) {
    candidates_[10]["try"] = "hang";
    const auto list = errors("20");
    ASSERT_EQ(list.size(), 1u);
    EXPECT_EQ(list[0].first, name(10));
    EXPECT_NE(list[0].second.find("it did not answer in 1 s"), std::string::npos) << list[0].second;
    EXPECT_EQ(asked("try", name(10)), 1u);
}

TEST_F(Select, DropsWhatIsFarSlowerAfterItsFirstRun) {
    candidates_[5]["ms"] = 1000.0;
    const auto list = errors("20");
    ASSERT_EQ(list.size(), 1u);
    EXPECT_EQ(list[0].first, name(5));
    EXPECT_NE(list[0].second.find("far too slow: its first run took 1000"), std::string::npos) << list[0].second;
    EXPECT_EQ(asked("try", name(5)), 1u);
    EXPECT_EQ(asked("time", name(5)), 0u);
    EXPECT_GT(asked("time", name(6)), 0u);
}

} // namespace
} // namespace convtranspose::test
