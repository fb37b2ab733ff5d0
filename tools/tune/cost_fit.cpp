#include "tools/tune/cost_fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "tools/cost_field.h"

namespace convtranspose::tools {

using nlohmann::json;

namespace {

// A candidate that is slower than the fastest, and estimated to be, counts less: by this power of the lesser of both ratios.
constexpr double kPower = 4;
constexpr double kPull = 2e-4;                       // what a field that is changed by e times costs, for each layer
constexpr double kMostResidual = 1, kMostSlope = 20; // of logarithms, so that no single candidate decides
constexpr double kLeastGain = 0.01;                  // of the sum of squares that a step must save, or it is the last

using Vector = std::vector<double>;

// A field that is fitted, and how its value depends on a number that begins at 0: the logarithm of its factor, or, of a field that
// is 0 itself, a multiple of `unit`.
struct Fitted {
    const CostField *field;
    double value, unit;

    double at(double step) const {
        return std::clamp(value > 0 ? value * std::exp(step) : unit * std::max(step, 0.0), field->least, field->most);
    }
    // The step by which a slope is measured, and the greatest that is taken at once.
    double small() const { return value > 0 ? 0.05 : 0.25; }
    double most() const { return value > 0 ? 0.7 : 1.5; }
};

std::vector<Fitted> fitted_fields(const json &profile) {
    std::vector<Fitted> list;
    for (const CostField &field : kCostFields) {
        if (!value_without_effect(field) || !profile.contains(field.name) || !profile[field.name].is_number()) continue;
        const double unit = std::strcmp(field.unit, "cycles") == 0 ? 0.4 : 0.04;
        list.push_back({&field, profile[field.name].get<double>(), unit});
    }
    return list;
}

// Values are rounded to three digits, for people to read them, and stay in the range of the field.
double rounded(double value, const CostField &field) {
    if (value == 0) return 0;
    const double scale = std::pow(10, 2 - std::floor(std::log10(value)));
    return std::clamp(std::round(value * scale) / scale, field.least, field.most);
}

// The candidates of all layers that were timed, one after the other.
class Samples {
  public:
    explicit Samples(const std::vector<TimedLayer> &layers) : layers_(layers) {}

    // The logarithms of the estimates, relative to those of the times.
    Vector logarithms(const std::vector<EstimatedLayer> &estimated) const {
        Vector all;
        for (std::size_t i = 0; i < layers_.size(); i++) {
            for (const auto &[name, ms] : layers_[i].ms) {
                const auto found = estimated[i].cycles.find(name);
                const bool known = found != estimated[i].cycles.end() && found->second > 0;
                all.push_back(known ? std::log(found->second / ms) : NAN); // an algorithm that is no longer proposed
            }
        }
        return all;
    }

    // The square roots of what each sample counts.
    Vector weights(const Vector &logarithms) const {
        Vector all;
        for (const TimedLayer &layer : layers_) {
            double fastest = INFINITY, least = INFINITY;
            std::size_t k = all.size();
            for (const auto &[name, ms] : layer.ms) {
                fastest = std::min(fastest, std::log(ms));
                least = std::fmin(least, logarithms[k++] + std::log(ms));
            }
            for (const auto &[name, ms] : layer.ms) {
                const double time = std::log(ms), estimate = logarithms[all.size()] + time;
                const double behind = std::min(time - fastest, estimate - least);
                all.push_back(std::isnan(estimate) ? 0 : std::exp(-kPower / 2 * behind));
            }
        }
        return all;
    }

    // Weighted differences from the means of layers.
    Vector residuals(const Vector &logarithms, const Vector &weights) const {
        Vector all;
        for (const TimedLayer &layer : layers_) {
            double sum = 0, count = 0;
            for (std::size_t k = all.size(); k < all.size() + layer.ms.size(); k++) {
                if (weights[k] == 0 || std::isnan(logarithms[k])) continue;
                sum += weights[k] * weights[k] * logarithms[k];
                count += weights[k] * weights[k];
            }
            for (std::size_t i = 0; i < layer.ms.size(); i++) {
                const std::size_t k = all.size();
                const bool counts = weights[k] > 0 && !std::isnan(logarithms[k]);
                all.push_back(counts ? weights[k] * (logarithms[k] - sum / count) : 0);
            }
        }
        return all;
    }

  private:
    const std::vector<TimedLayer> &layers_;
};

double dot(const Vector &a, const Vector &b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); i++) sum += a[i] * b[i];
    return sum;
}

Vector clamped(Vector values, const Vector &weights, double most) {
    for (std::size_t i = 0; i < values.size(); i++)
        values[i] = std::clamp(values[i], -most * weights[i], most * weights[i]);
    return values;
}

// Solves a * x = b for a symmetric, positive definite a, by Cholesky's decomposition in place.
Vector solved(std::vector<Vector> a, Vector b) {
    const std::size_t n = b.size();
    for (std::size_t i = 0; i < n; i++) {
        for (std::size_t j = 0; j <= i; j++) {
            double sum = a[i][j];
            for (std::size_t k = 0; k < j; k++) sum -= a[i][k] * a[j][k];
            a[i][j] = i == j ? std::sqrt(sum) : sum / a[j][j];
        }
    }
    for (std::size_t i = 0; i < n; i++) {
        for (std::size_t k = 0; k < i; k++) b[i] -= a[i][k] * b[k];
        b[i] /= a[i][i];
    }
    for (std::size_t i = n; i-- > 0;) {
        for (std::size_t k = i + 1; k < n; k++) b[i] -= a[k][i] * b[k];
        b[i] /= a[i][i];
    }
    return b;
}

// Gauss and Newton's method for the sum of the squares of the residuals and of the steps of all fields.
class LeastSquares {
  public:
    LeastSquares(const std::vector<TimedLayer> &layers, json profile, const Estimate &estimate,
                 const std::function<bool(double)> &watch)
        : layers_(layers), samples_(layers), profile_(std::move(profile)), estimate_(estimate), watch_(watch),
          fields_(fitted_fields(profile_)), steps_(fields_.size()), pull_(kPull * static_cast<double>(layers.size())) {}

    json run() {
        if (const auto first = ask(steps_)) {
            last_ = *first;
            while (improve()) {
            }
        }
        for (std::size_t i = 0; i < fields_.size(); i++) {
            const CostField &field = *fields_[i].field;
            if (steps_[i] != 0) profile_[field.name] = rounded(fields_[i].at(steps_[i]), field);
        }
        return profile_;
    }

  private:
    // The logarithms of estimates with fields changed by steps, and their regret; nothing if the time is up.
    struct Answer {
        Vector logarithms;
        double regret;
    };
    std::optional<Answer> ask(const Vector &steps) const {
        if (!watch_(last_.regret)) return std::nullopt;
        json profile = profile_;
        for (std::size_t i = 0; i < fields_.size(); i++) {
            if (steps[i] != 0) profile[fields_[i].field->name] = fields_[i].at(steps[i]);
        }
        const std::vector<EstimatedLayer> estimated = estimate_(profile);
        return Answer{samples_.logarithms(estimated), regret_of(layers_, estimated)};
    }

    double sum_of_squares(const Vector &residuals, const Vector &weights, const Vector &steps) const {
        const Vector r = clamped(residuals, weights, kMostResidual);
        return dot(r, r) + pull_ * dot(steps, steps);
    }

    // Returns whether it changed the fields, and may do so again.
    bool improve() {
        const Vector weights = samples_.weights(last_.logarithms),
                     residuals = samples_.residuals(last_.logarithms, weights);
        std::vector<std::size_t> matter; // fields that change an estimate
        std::vector<Vector> slopes;
        for (std::size_t i = 0; i < fields_.size(); i++) {
            if (without_effect_.count(fields_[i].field)) continue;
            Vector steps = steps_;
            steps[i] += fields_[i].small();
            const auto answer = ask(steps);
            if (!answer) return false;
            Vector slope = samples_.residuals(answer->logarithms, weights);
            for (std::size_t k = 0; k < slope.size(); k++) slope[k] = (slope[k] - residuals[k]) / fields_[i].small();
            slope = clamped(std::move(slope), weights, kMostSlope);
            if (dot(slope, slope) == 0) {
                without_effect_.insert(fields_[i].field);
                continue;
            }
            matter.push_back(i);
            slopes.push_back(std::move(slope));
        }
        if (matter.empty()) return false;
        const Vector toward = clamped(residuals, weights, kMostResidual);
        std::vector<Vector> normal(matter.size(), Vector(matter.size()));
        Vector right(matter.size());
        for (std::size_t i = 0; i < matter.size(); i++) {
            for (std::size_t j = 0; j <= i; j++) normal[i][j] = dot(slopes[i], slopes[j]);
            normal[i][i] += pull_;
            right[i] = -dot(slopes[i], toward) - pull_ * steps_[matter[i]];
        }
        return step_along(matter, solved(std::move(normal), std::move(right)), weights,
                          sum_of_squares(residuals, weights, steps_));
    }

    // Goes as far in a direction as the sum of squares becomes less than it was.
    bool step_along(const std::vector<std::size_t> &matter, const Vector &direction, const Vector &weights,
                    double before) {
        for (const double share : {1.0, 0.5, 0.25}) {
            Vector steps = steps_;
            for (std::size_t i = 0; i < matter.size(); i++)
                steps[matter[i]] +=
                    std::clamp(share * direction[i], -fields_[matter[i]].most(), fields_[matter[i]].most());
            const auto answer = ask(steps);
            if (!answer) return false;
            const double after = sum_of_squares(samples_.residuals(answer->logarithms, weights), weights, steps);
            if (!(after < before)) continue; // NaN is no gain
            steps_ = std::move(steps);
            last_ = *answer;
            return before - after >= kLeastGain * before;
        }
        return false;
    }

    const std::vector<TimedLayer> &layers_;
    const Samples samples_;
    json profile_;
    const Estimate &estimate_;
    const std::function<bool(double)> &watch_;
    const std::vector<Fitted> fields_;
    std::set<const CostField *> without_effect_;
    Vector steps_; // of fields_
    const double pull_;
    Answer last_ = {{}, 0};
};

} // namespace

double regret_of(const std::vector<TimedLayer> &layers, const std::vector<EstimatedLayer> &estimated) {
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < layers.size() && i < estimated.size(); i++) {
        double least = INFINITY, most = 0;
        for (const auto &[name, ms] : layers[i].ms) {
            least = std::min(least, ms);
            most = std::max(most, ms);
        }
        if (most == 0) continue;
        const auto chosen = layers[i].ms.find(estimated[i].choice);
        sum += std::log((chosen == layers[i].ms.end() ? most : chosen->second) / least);
        count++;
    }
    return count > 0 ? std::exp(sum / count) - 1 : 0;
}

json fit(const std::vector<TimedLayer> &layers, json profile, const Estimate &estimate,
         const std::function<bool(double regret)> &watch) {
    return LeastSquares(layers, std::move(profile), estimate, watch).run();
}

} // namespace convtranspose::tools
