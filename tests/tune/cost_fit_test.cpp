// Fitting a cost profile to times: regret, and least squares.
#include <algorithm>
#include <cmath>
#include <cstddef>
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

const std::vector<TimedLayer> kLayers = {{"a", "", {{"slow", 3}, {"fast", 2}}},
                                         {"b", "", {{"slow", 1}, {"fast", 1}}},
                                         {"c", "", {{"slow", 2}, {"fast", 1}}},
                                         {"d", "", {{"slow", 6}, {"fast", 4}}}};

std::vector<EstimatedLayer> choices(const std::vector<std::string> &names) {
    std::vector<EstimatedLayer> list;
    list.reserve(names.size());
    for (const std::string &name : names) list.push_back({name, {}});
    return list;
}

TEST(Regret, IsHowMuchLongerChoicesTake) {
    EXPECT_EQ(regret_of(kLayers, choices({"fast", "slow", "fast", "fast"})), 0);
    EXPECT_NEAR(regret_of(kLayers, choices({"slow", "fast", "fast", "slow"})), std::sqrt(1.5) - 1, 1e-12);
    EXPECT_NEAR(regret_of(kLayers, choices({"unknown", "fast", "fast", "fast"})), std::pow(1.5, 0.25) - 1, 1e-12)
        << "as the slowest";
    EXPECT_EQ(regret_of({}, {}), 0);
}

// Candidates of a machine that takes so many cycles for a step, a store and a far load, and 100 for each layer. Each candidate has
// other numbers of them.
class Machine {
  public:
    Machine(double latency, double store, double per_load) : latency_(latency), store_(store), per_load_(per_load) {}

    std::vector<EstimatedLayer> layers(int count) const {
        std::mt19937 chance(11);
        std::vector<EstimatedLayer> list(static_cast<std::size_t>(count));
        for (EstimatedLayer &layer : list) {
            double least = INFINITY;
            for (const char *const name : {"a", "b", "c", "d"}) {
                const auto of = [&](unsigned most) { return static_cast<double>(chance() % most); };
                const double steps = 50 + of(1000), stores = of(1000), loads = of(2000);
                const double cycles = 100 + latency_ * steps + store_ * stores + per_load_ * loads;
                layer.cycles[name] = cycles;
                if (cycles < least) layer.choice = name;
                least = std::min(least, cycles);
            }
        }
        return list;
    }

    std::vector<TimedLayer> timed(int count) const {
        std::vector<TimedLayer> list;
        for (const EstimatedLayer &layer : layers(count)) list.push_back({"", "", layer.cycles});
        return list;
    }

  private:
    double latency_, store_, per_load_;
};

constexpr int kCount = 60;

std::vector<EstimatedLayer> estimate(const json &profile) {
    return Machine(profile.at("latency"), profile.at("store"), profile.at("per_load")).layers(kCount);
}

const json kBefore = {{"latency", 4},           {"store", 4},      {"per_load", 0}, {"loads", 2},
                      {"far_from", "infinite"}, {"near", 1 << 20}, {"unknown", 3}};

TEST(Fit, FindsWhatTheMachineTakes) {
    const std::vector<TimedLayer> layers = Machine(9, 2, 1.5).timed(kCount);
    EXPECT_GT(regret_of(layers, estimate(kBefore)), 0.05);
    const json after = fit(layers, kBefore, estimate, [](double) { return true; });
    const double times = after.at("latency").get<double>() / 9; // only the ratios of estimates matter
    EXPECT_NEAR(after.at("store").get<double>() / times, 2, 0.1);
    EXPECT_NEAR(after.at("per_load").get<double>() / times, 1.5, 0.1);
    EXPECT_LT(regret_of(layers, estimate(after)), 1e-3);
    for (const char *const name : {"loads", "far_from", "near", "unknown"})
        EXPECT_EQ(after.at(name), kBefore.at(name)) << name;
}

TEST(Fit, StaysInTheRangesOfFields) {
    const auto by_rate = [](const json &profile) {
        return Machine(9, 2, 4000 / profile.at("memory_rate").get<double>()).layers(kCount);
    };
    const json after =
        fit(Machine(9, 2, 0).timed(kCount), {{"memory_rate", 3000}}, by_rate, [](double) { return true; });
    EXPECT_EQ(after.at("memory_rate"), 4096) << "which is 4100 to three digits";
}

TEST(Fit, StaysWhereItBegan) {
    std::size_t asked = 0;
    const Estimate counted = [&](const json &profile) {
        asked++;
        return estimate(profile);
    };
    EXPECT_EQ(fit(Machine(9, 2, 1.5).timed(kCount), kBefore, counted, [](double) { return false; }), kBefore)
        << "the time is up";
    EXPECT_EQ(asked, 0u);
    EXPECT_EQ(fit(
                  {}, kBefore, [](const json &) { return std::vector<EstimatedLayer>(); }, [](double) { return true; }),
              kBefore)
        << "no layers";
    // A candidate that estimates lack, one that is estimated to take no cycles, and a layer of one candidate say nothing.
    const std::vector<TimedLayer> odd = {{"", "", {{"a", 1}, {"lacks", 2}, {"zero", 3}}}, {"", "", {{"a", 3}}}};
    const auto of_odd = [](const json &profile) {
        return std::vector<EstimatedLayer>{{"a", {{"a", profile.at("latency")}, {"zero", 0}}},
                                           {"a", {{"a", profile.at("latency")}}}};
    };
    EXPECT_EQ(fit(odd, kBefore, of_odd, [](double) { return true; }), kBefore);
}

TEST(Fit, EndsInTimeWithTheBestSoFar) {
    const std::vector<TimedLayer> layers = Machine(9, 2, 1.5).timed(kCount);
    int left = 8; // one step, of four fields
    const json after = fit(layers, kBefore, estimate, [&](double regret) {
        EXPECT_GE(regret, 0);
        return left-- > 0;
    });
    EXPECT_NE(after, kBefore);
    EXPECT_LT(regret_of(layers, estimate(after)), regret_of(layers, estimate(kBefore)));
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
