#include "cost_fit.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "tools/cost_field.h"

namespace convtranspose::tools {

using nlohmann::json;

namespace {

constexpr double kWorthIt = 2.5e-3; // of regret, that a change must save

double value_of(const json &value) { return value.is_string() ? INFINITY : value.get<double>(); }

// Values are rounded to three digits, for people to read them.
double rounded(double value) {
    if (value == 0) return 0;
    const double scale = std::pow(10, 2 - std::floor(std::log10(value)));
    return std::round(value * scale) / scale;
}

// Returns the values to try in place of one, within the field's bounds: the largest, the least, then those between.
std::vector<double> others(const CostField &field, double value) {
    const auto is = [&](const char *unit) { return std::strcmp(field.unit, unit) == 0; };
    std::vector<double> list;
    if (is("cycles")) {
        list = value == 0
                   ? std::vector<double>{0.1, 0.3, 1, 3, 10}
                   : std::vector<double>{0, value / 3, value / 1.5, value / 1.2, value * 1.2, value * 1.5, value * 3};
    } else if (is("factor")) {
        list = {1, value / 1.2, value / 1.06, value / 1.02, value * 1.02, value * 1.06, value * 1.2, value * 1.6};
    } else if (is("added factor")) {
        list = {0, 0.01, 0.03, 0.06};
    } else if (is("bytes")) {
        list = {256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20};
    } else if (is("tiles")) {
        list = {0, 4, 8, 16, 32, 64};
    } else {
        list = {value / 2, value / 1.4, value / 1.15, value * 1.15, value * 1.4, value * 2};
    }
    for (double &other : list) other = std::clamp(is("bytes") ? other : rounded(other), field.least, field.most);
    list.erase(std::remove(list.begin(), list.end(), value), list.end());
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    if (!list.empty()) std::rotate(list.begin(), list.end() - 1, list.end()); // the extremes first
    return list;
}

} // namespace

Regret regret_of(const std::vector<TimedLayer> &layers, const std::vector<std::string> &choices) {
    double sums[2] = {}, counts[2] = {};
    for (std::size_t i = 0; i < layers.size() && i < choices.size(); i++) {
        double least = INFINITY, most = 0;
        for (const auto &[name, ms] : layers[i].ms) {
            least = std::min(least, ms);
            most = std::max(most, ms);
        }
        if (most == 0) continue;
        const auto chosen = layers[i].ms.find(choices[i]);
        sums[i % 2] += std::log((chosen == layers[i].ms.end() ? most : chosen->second) / least);
        counts[i % 2]++;
    }
    const auto mean = [](double sum, double count) { return count > 0 ? std::exp(sum / count) - 1 : 0; };
    return {mean(sums[0] + sums[1], counts[0] + counts[1]), mean(sums[0], counts[0]), mean(sums[1], counts[1])};
}

json fit(const std::vector<TimedLayer> &layers, json profile, const Choose &choose,
         const std::function<bool(double regret)> &watch) {
    std::vector<std::string> chosen = choose(profile);
    Regret least = regret_of(layers, chosen);
    for (bool is_better = true; std::exchange(is_better, false);) {
        for (const CostField &field : kCostFields) {
            if (!profile.contains(field.name)) continue;
            const json before = profile[field.name];
            json best = before;
            std::size_t tried = 0, same = 0;
            for (const double other : others(field, value_of(before))) {
                if (tried++ == 2 && same == 2) break; // the extremes choose the same, so the field does not matter
                if (!watch(least.all)) {
                    profile[field.name] = best;
                    return profile;
                }
                profile[field.name] = other;
                std::vector<std::string> choices = choose(profile);
                same += choices == chosen;
                const Regret regret = regret_of(layers, choices);
                if (regret.all > least.all - kWorthIt || regret.even > least.even || regret.odd > least.odd) continue;
                least = regret;
                chosen = std::move(choices);
                best = other;
                is_better = true;
            }
            profile[field.name] = best;
        }
    }
    return profile;
}

} // namespace convtranspose::tools
