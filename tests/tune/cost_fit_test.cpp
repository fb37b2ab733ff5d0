// Fitting a cost profile to times: regret, and the search for a profile of less.
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/problem_line.h"
#include "tools/tune/cost_fit.h"
#include "tools/tune/random_problems.h"

namespace convtranspose::test {
namespace {

using nlohmann::json;
using namespace convtranspose::tools;

const std::vector<TimedLayer> kLayers = {{"a", {{"slow", 3}, {"fast", 2}}},
                                         {"b", {{"slow", 1}, {"fast", 1}}},
                                         {"c", {{"slow", 2}, {"fast", 1}}},
                                         {"d", {{"slow", 6}, {"fast", 4}}}};

TEST(Regret, IsHowMuchLongerChoicesTake) {
    Regret regret = regret_of(kLayers, {"fast", "slow", "fast", "fast"});
    EXPECT_EQ(regret.all, 0);
    regret = regret_of(kLayers, {"slow", "fast", "fast", "slow"});
    EXPECT_NEAR(regret.all, std::sqrt(1.5) - 1, 1e-12);
    EXPECT_NEAR(regret.even, std::sqrt(1.5) - 1, 1e-12);
    EXPECT_NEAR(regret.odd, std::sqrt(1.5) - 1, 1e-12);
    EXPECT_GT(regret_of(kLayers, {"unknown", "fast", "fast", "fast"}).even, 0.2) << "as the slowest";
    EXPECT_EQ(regret_of({}, {}).all, 0);
}

TEST(Fit, ChangesWhatHelpsAndNothingElse) {
    std::size_t asked = 0;
    // A long latency makes the fast candidates look fast, but for layer a, whose weights must look far too.
    const Choose choose = [&](const json &profile) {
        asked++;
        const bool long_latency = profile.at("latency") > 5, far = profile.at("far_weights_from") < 1e6;
        std::vector<std::string> choices(kLayers.size(), long_latency ? "fast" : "slow");
        if (!far) choices[0] = "slow";
        return choices;
    };
    const json before = {{"latency", 4}, {"loads", 2}, {"far_from", "infinite"}, {"far_weights_from", 2 << 20}};
    double last = 1;
    const json after = fit(kLayers, before, choose, [&](double regret) {
        EXPECT_LE(regret, last);
        last = regret;
        return true;
    });
    EXPECT_GT(after.at("latency"), 5);
    EXPECT_LT(after.at("far_weights_from"), 1e6);
    EXPECT_EQ(after.at("loads"), 2);
    EXPECT_EQ(after.at("far_from"), "infinite");
    EXPECT_EQ(regret_of(kLayers, choose(after)).all, 0);

    asked = 0;
    EXPECT_EQ(fit(kLayers, before, choose, [](double) { return false; }), before) << "the time is up";
    EXPECT_EQ(asked, 1u);
}

TEST(Fit, RejectsWhatMakesOneHalfWorse) {
    // With more loads layers a and c, of one half, gain more than b and d lose.
    const std::vector<TimedLayer> layers = {{"a", {{"x", 9}, {"y", 1}}}, {"b", {{"x", 1}, {"y", 2}}}};
    const json before = {{"loads", 2}};
    const json after = fit(
        layers, before,
        [](const json &profile) { return std::vector<std::string>(2, profile.at("loads") > 2 ? "y" : "x"); },
        [](double) { return true; });
    EXPECT_EQ(after, before);
}

TEST(RandomProblems, AreValidAndTheSameEachTime) {
    std::mt19937 one(7), other(7);
    std::set<std::string> lines;
    for (int i = 0; i < 200; i++) {
        const std::string line = random_problem(&one);
        EXPECT_EQ(line, random_problem(&other));
        EXPECT_NO_THROW(problem_of_line(line)) << line;
        lines.insert(line);
    }
    EXPECT_GT(lines.size(), 190u);
}

} // namespace
} // namespace convtranspose::test
