// Plans that measure: candidates whose estimates are near the least are timed on the layer itself.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "algorithms/layer_plan.h"
#include "base/error.h"
#include "base/shape.h"
#include "plan/problem_plan.h"

namespace convtranspose {

namespace {

// Policy. These shares of the budget are spent when trials end, and when a winner that is ahead by less than kClear is compared
// with the choice by estimate once more.
constexpr double kForTrials = 0.55, kForFinals = 0.85, kClear = 0.9;
constexpr std::size_t kMostTrials = 24, kFinalists = 6;
constexpr std::size_t kMostPackedBytes = 64 << 20;             // of finalists, unless there is one alone
constexpr int kRounds = 15, kLeastRounds = 3, kFewSamples = 5; // samples of a contender
// A candidate whose first run takes kHopeless times as long as the best one's is out. So is one that is behind by kBehind after
// more runs, which it gets at once if they take less than kCheap of the budget, and a finalist that is behind by kFarBehind.
constexpr double kHopeless = 1.6, kBehind = 1.3, kFarBehind = 1.1, kCheap = 0.02;
// The choice by estimate stays unless another one takes less than this fraction of its time, after many samples and after few.
constexpr double kGain = 0.98, kGainOfFew = 0.93;
constexpr double kShortestSample = 20e-6; // seconds; shorter runs are repeated within a sample
constexpr double kTick = 1e-9;            // seconds that a sample takes at least, whatever a coarse clock says
constexpr double kCyclesPerSecond = 2e9;  // of slow machines, for the prediction of how long the first run takes

// The tensors of runs whose values do not matter.
class Tensors {
  public:
    // Allocates and fills them, so that the first run does not wait for memory.
    Status make(const LayerPlan &plan) {
        const Geometry &g = plan.geometry();
        const Allocator &from = plan.settings().allocator;
        TRY(get(from, g.x_bytes(), kNormal, "x", &x_));
        TRY(get(from, g.y_bytes(), 0, "y, which a measuring plan writes", &y_));
        if (g.post_ops.adds_residual) TRY(get(from, g.y_bytes(), kNormal, "the residual", &residual_));
        t_.x = {x_.data(), dense_strides(g.x_shape)};
        t_.y = {y_.data(), dense_strides(g.y_shape)};
        t_.residual = {residual_.data(), dense_strides(g.y_shape)};
        if (!plan.weights_at_run_time()) return Status();
        TRY(get(from, g.w_bytes(), kNormal, "weights", &w_));
        if (g.has_bias) TRY(get(from, g.b_bytes(), 0, "biases", &b_));
        t_.w = w_.data();
        t_.b = b_.data();
        if (plan.quantization()) values_ = *plan.quantization();
        if (g.quantized()) t_.quantization = &values_;
        return Status();
    }

    // Runs the plan so many times, and gives the seconds of one run.
    Status run(const LayerPlan &plan, int times, double *seconds) {
        using Clock = std::chrono::steady_clock;
        if (plan.workspace_bytes() > workspace_.size()) {
            TRY(get_block(plan.settings().allocator, plan.workspace_bytes(), "workspace", &workspace_));
            std::memset(workspace_.data(), 0, workspace_.size());
        }
        const Clock::time_point begin = Clock::now();
        for (int i = 0; i < times; i++) TRY(plan.run(t_, workspace_.data()));
        *seconds = std::max(std::chrono::duration<double>(Clock::now() - begin).count(), kTick) / times;
        return Status();
    }

  private:
    // Bytes of this value make normal numbers of all types, whose sums are normal too.
    static constexpr int kNormal = 0x3c;

    static Status get(const Allocator &from, std::uint64_t bytes, int fill, const char *what, Block *block) {
        TRY(get_block(from, bytes, what, block));
        std::memset(block->data(), fill, block->size());
        return Status();
    }

    Block x_, y_, residual_, w_, b_, workspace_;
    QuantizationValues values_;
    RunTensors t_;
};

struct Contender {
    std::shared_ptr<TuningRecord> record;
    std::unique_ptr<LayerPlan> plan;
    double seconds = std::numeric_limits<double>::infinity(); // the least of one run
    int samples = 0, times = 1;                               // times: runs within a sample
};

class Measurement {
  public:
    Measurement(const PlanSettings &settings, const LayerWeights &weights)
        : settings_(settings), weights_(weights), budget_(settings.measuring_ms * 1e-3) {}

    // plan: by estimate; receives the one that is measured to be the fastest.
    Status choose(std::unique_ptr<LayerPlan> *plan) {
        by_estimate_.plan = std::move(*plan);
        by_estimate_.record = std::make_shared<TuningRecord>(by_estimate_.plan->record());
        TRY(tensors_.make(*by_estimate_.plan));
        TRY(sample(&by_estimate_));
        by_estimate_.times = static_cast<int>(std::clamp(kShortestSample / by_estimate_.seconds, 1.0, 1000.0));
        if (by_estimate_.seconds < kCheap * budget_) { // as in try_out()
            by_estimate_.seconds = std::numeric_limits<double>::infinity();
            TRY(sample(&by_estimate_));
        }
        for (const AbleCandidate &candidate : near()) {
            if (!try_out(candidate)) break;
        }
        try_other_threads();
        TRY(play());
        Contender *winner = best();
        if (winner != &by_estimate_ && winner->seconds > kClear * by_estimate_.seconds) {
            TRY(compare_again(winner));
            if (winner->seconds > kGain * by_estimate_.seconds) winner = &by_estimate_;
        }
        finish(winner);
        *plan = std::move(winner->plan);
        return Status();
    }

  private:
    // Returns what can compute the layer, besides the choice, by rising estimates near the least.
    std::vector<AbleCandidate> near() const {
        std::vector<AbleCandidate> all = by_estimate_.plan->able();
        const auto is_less = [](const AbleCandidate &a, const AbleCandidate &b) { return a.cycles < b.cycles; };
        std::stable_sort(all.begin(), all.end(), is_less);
        const double most = all.empty() ? 0 : kNearEstimates * all.front().cycles;
        const auto is_out = [&](const AbleCandidate &c) {
            return c.cycles > most || by_estimate_.record->variant == c.name;
        };
        all.erase(std::remove_if(all.begin(), all.end(), is_out), all.end());
        all.resize(std::min(all.size(), kMostTrials), AbleCandidate{});
        return all;
    }

    Status sample(Contender *c) {
        double seconds = 0;
        TRY(tensors_.run(*c->plan, c->times, &seconds));
        spent_ += seconds * c->times;
        c->seconds = std::min(c->seconds, seconds);
        c->samples++;
        return Status();
    }

    double best_seconds() const {
        double least = by_estimate_.seconds;
        for (const Contender &c : finalists_) least = std::min(least, c.seconds);
        return least;
    }

    // Returns false if there is no time left for this candidate, nor for slower ones.
    bool try_out(const AbleCandidate &candidate) {
        const double expected = by_estimate_.seconds * candidate.cycles / by_estimate_.plan->cycles();
        if (spent_ + expected > kForTrials * budget_) return false;
        auto record = std::make_shared<TuningRecord>(*by_estimate_.record);
        record->variant = candidate.name;
        try_out(std::move(record));
        return true;
    }

    // Adds a contender to the finalists, if it can compute the layer and is not much slower than they are.
    void try_out(std::shared_ptr<TuningRecord> record) {
        Contender c;
        c.record = std::move(record);
        const Geometry &g = by_estimate_.plan->geometry();
        if (!LayerPlan::create(g, settings_, weights_, &c.plan, c.record)) return;
        if (c.plan->is_by_estimate() || !sample(&c)) return; // by estimate: it cannot do what the record says
        tried_++;
        if (c.seconds > kHopeless * best_seconds()) return;
        c.times = by_estimate_.times;
        if (4 * c.seconds * c.times < kCheap * budget_) { // the first run did not find its code and weights near
            if (!sample(&by_estimate_) || !sample(&c) || !sample(&c)) return;
        }
        if (c.seconds > kBehind * best_seconds()) return;
        c.samples = 0;
        finalists_.push_back(std::move(c));
        while (finalists_.size() > 1 && (finalists_.size() > kFinalists || packed_bytes() > kMostPackedBytes))
            finalists_.erase(std::max_element(finalists_.begin(), finalists_.end(), is_faster));
    }

    std::size_t packed_bytes() const {
        std::size_t bytes = 0;
        for (const Contender &c : finalists_) bytes += c.plan->packed_bytes();
        return bytes;
    }

    static bool is_faster(const Contender &a, const Contender &b) { return a.seconds < b.seconds; }

    // The estimate may be wrong about how many threads the layer is worth.
    void try_other_threads() {
        const int threads = settings_.parallel.threads, estimated = by_estimate_.plan->threads();
        if (threads <= 1 || settings_.all_threads) return;
        const auto fastest = std::min_element(finalists_.begin(), finalists_.end(), is_faster);
        const bool is_other = fastest != finalists_.end() && fastest->seconds < by_estimate_.seconds;
        const TuningRecord record = is_other ? *fastest->record : *by_estimate_.record;
        for (int n = threads; n >= 1; n /= 2) {
            if (n == estimated) continue;
            if (spent_ + 4 * best_seconds() * std::max(1, estimated / n) > kForFinals * budget_) return;
            auto other = std::make_shared<TuningRecord>(record);
            other->on_threads = n < threads ? n : 0;
            try_out(std::move(other));
        }
    }

    // Samples the choice by estimate and the finalists in turns.
    Status play() {
        for (int round = 0; round < kRounds && !finalists_.empty(); round++) {
            double turn = by_estimate_.seconds * by_estimate_.times;
            for (const Contender &c : finalists_) turn += c.seconds * c.times;
            if (spent_ + turn > kForFinals * budget_) break;
            TRY(sample(&by_estimate_));
            for (Contender &c : finalists_) TRY(sample(&c));
            const double least = best_seconds();
            const auto is_out = [&](const Contender &c) {
                return c.samples >= kFewSamples && c.seconds > kFarBehind * least;
            };
            finalists_.erase(std::remove_if(finalists_.begin(), finalists_.end(), is_out), finalists_.end());
        }
        return Status();
    }

    // Samples the winner and the choice by estimate anew, as far as there is time, because the luckiest of many looks best.
    Status compare_again(Contender *winner) {
        const double turn = by_estimate_.seconds * by_estimate_.times + winner->seconds * winner->times;
        const int rounds = static_cast<int>(std::min<double>((budget_ - spent_) / turn, kRounds));
        if (rounds < kLeastRounds) return Status();
        by_estimate_.seconds = winner->seconds = std::numeric_limits<double>::infinity();
        for (int round = 0; round < rounds; round++) {
            TRY(sample(&by_estimate_));
            TRY(sample(winner));
        }
        return Status();
    }

    Contender *best() {
        const auto fastest = std::min_element(finalists_.begin(), finalists_.end(), is_faster);
        if (fastest == finalists_.end()) return &by_estimate_;
        const double gain = std::min(fastest->samples, by_estimate_.samples) >= kFewSamples ? kGain : kGainOfFew;
        return fastest->seconds < gain * by_estimate_.seconds ? &*fastest : &by_estimate_;
    }

    void finish(Contender *winner) {
        TuningRecord &record = *winner->record;
        record.ms = winner->seconds * 1e3;
        record.reason = concat("measured to be the fastest of ", tried_ + 1, ": ", record.ms, " ms");
        if (winner != &by_estimate_) {
            record.reason +=
                concat("; ", by_estimate_.record->variant, ", by estimate, took ", by_estimate_.seconds * 1e3, " ms");
        }
        // Weights of infinities and NaNs may have left only the reference kernel, which is not to serve others.
        if (winner->plan->geometry().quantized() || winner->plan->direct().variant().family != Family::kReference)
            remember(winner->plan->measuring_key(), winner->record);
        winner->plan->follow(winner->record);
    }

    const PlanSettings &settings_;
    const LayerWeights &weights_;
    const double budget_; // seconds of runs
    double spent_ = 0;
    int tried_ = 0;
    Tensors tensors_;
    Contender by_estimate_;
    std::vector<Contender> finalists_;
};

} // namespace

Status plan_by_measuring(const Geometry &geometry, const PlanSettings &settings, const LayerWeights &weights,
                         std::unique_ptr<LayerPlan> *plan) {
    std::unique_ptr<LayerPlan> made;
    TRY(LayerPlan::create(geometry, settings, weights, &made));
    const bool is_open = made->is_by_estimate() && volume(geometry.y_shape) > 0;
    if (is_open && std::isfinite(made->cycles()) &&
        3 * made->cycles() < settings.measuring_ms * 1e-3 * kCyclesPerSecond)
        TRY(Measurement(settings, weights).choose(&made));
    *plan = std::move(made);
    return Status();
}

} // namespace convtranspose
