#include "algorithms/layer_plan.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <tuple>

#include "base/error.h"
#include "base/shape.h"
#include "cost/cost.h"
#include "cpu/cpu.h"
#include "kernels/kernel_tables.h"

namespace convtranspose {

namespace {

// Returns the algorithm of that name. Any other name, that of a kernel or none, stands for the direct algorithm.
const Algorithm *algorithm_of(const std::string &name) {
    const Algorithm *const algorithm = find_algorithm(name);
    return algorithm ? algorithm : find_algorithm("direct");
}

bool cannot(const Status &status) { return status.code() == CONVT_UNSUPPORTED || status.code() == CONVT_OVERFLOW; }

} // namespace

struct LayerPlan::Proposal {
    const Algorithm *algorithm;
    std::unique_ptr<AlgorithmPlan> plan; // null: the layer is not supported
    UnsupportedReason unsupported;
};

double LayerPlan::estimate(const Geometry &geometry, const PlanSettings &settings) {
    double least = std::numeric_limits<double>::infinity();
    for (const Proposal &p : consider({geometry, settings})) {
        if (p.plan) least = std::min(least, p.plan->cycles());
    }
    return least;
}

LayerPlan::LayerPlan(const Geometry &geometry, const PlanSettings &settings, bool constant_weights)
    : geometry_(geometry), constant_weights_(constant_weights), asked_(settings), settings_(settings),
      workspaces_(settings.allocator) {}

std::string LayerPlan::measuring_key() const {
    const PlanSettings &s = asked_;
    std::size_t tables = 0; // kernels that are added later are to be measured too
    for_each_kernel_table([&](const KernelTable &) { tables++; });
    const char *const sums = !facts_ ? "" : !facts_->fits_int32 ? " 64 bits" : !facts_->fits_int8 ? " 16 bits" : "";
    return concat(tuning_key(geometry_), " ", isa_name(s.isa), " ", s.parallel.threads,
                  constant_weights_ ? " constant" : "", s.may_change_rounding ? " winograd" : "",
                  s.sums_in_f16 ? " sums in f16" : "", s.all_threads ? " all threads" : "", sums, " of ", tables);
}

const char *LayerPlan::recorded_isa() const {
    return isa_name(geometry_.quantized() ? asked_.isa : isa_of_floats(asked_.isa));
}

// Finds the record to follow. A tuning record comes first, so that what is measured can be overruled and repeated.
void LayerPlan::find_record(std::shared_ptr<const TuningRecord> trial) {
    if (!settings_.variant.empty()) return;
    record_ =
        tuning_record(settings_.tuning, geometry_, cpu_name(), recorded_isa(), asked_.parallel.threads, &record_note_);
    if (!record_) {
        measured_ = std::move(trial);
        if (!measured_ && settings_.measuring_ms) measured_ = remembered(measuring_key());
        record_ = measured_.get();
    }
    if (!record_) return;
    const Algorithm *const algorithm = find_algorithm(record_->variant);
    if (algorithm && algorithm->changes_rounding && !settings_.may_change_rounding) {
        record_note_ = concat("a tuning record names ", record_->variant,
                              ", which is allowed only where the option winograd is set");
        record_ = nullptr;
    }
}

// Chooses how many of the allowed threads are used: those of a record that was measured with so many, else what the direct
// algorithm's estimate is worth. All candidates are compared on that number.
void LayerPlan::choose_threads() {
    int &threads = settings_.parallel.threads;
    if (threads <= 1 || settings_.all_threads) return;
    if (record_ && (record_->threads || record_->on_threads)) {
        if (record_->on_threads) threads = std::min(threads, record_->on_threads);
        return;
    }
    UnsupportedReason unsupported;
    cycles_on_one_thread_ = propose_direct(problem(settings_), &unsupported)->cycles();
    threads = threads_worth(*cycles_on_one_thread_, threads, *settings_.profile);
}

AlgorithmProblem LayerPlan::problem(const PlanSettings &settings) const {
    AlgorithmProblem problem = {geometry_, settings};
    problem.quantization = quantization();
    problem.constant_weights = constant_weights_;
    if (facts_) problem.facts = *facts_;
    problem.record = record_;
    return problem;
}

// Asks each algorithm that is not excluded, or only the given one. The first one returned, that of least cycles, is chosen, unless
// another is wanted.
std::vector<LayerPlan::Proposal> LayerPlan::consider(AlgorithmProblem problem, const Algorithm *only) {
    const PlanSettings &settings = problem.settings;
    const Algorithm *const direct = find_algorithm("direct");
    std::vector<Proposal> proposals;
    const auto ask = [&](const Algorithm &algorithm) {
        if (settings.excluded & bit_of(algorithm)) return;
        Proposal proposal = {&algorithm, nullptr, {}};
        if (algorithm.changes_rounding && !settings.may_change_rounding) {
            proposal.unsupported = {
                "it rounds differently from the definition, which is allowed only where the option winograd is set"};
        } else {
            proposal.plan = algorithm.propose(problem, &proposal.unsupported);
            if (proposal.plan) proposal.unsupported = {};
        }
        proposals.push_back(std::move(proposal));
    };
    if (only) {
        ask(*only);
        return proposals;
    }
    ask(*direct);
    const bool one_is_named =
        find_algorithm(settings.variant) || (problem.record && find_algorithm(problem.record->variant));
    if (!one_is_named) problem.limit = proposals.front().plan->cycles() * (settings.measuring_ms ? kNearEstimates : 1);
    for (const Algorithm &algorithm : algorithms()) {
        if (&algorithm != direct) ask(algorithm);
    }
    const auto rank = [&](const Proposal &p) {
        return std::tuple(!p.plan, p.plan ? p.plan->cycles() : 0, p.algorithm != direct,
                          std::string_view(p.algorithm->name));
    };
    std::sort(proposals.begin(), proposals.end(),
              [&](const Proposal &a, const Proposal &b) { return rank(a) < rank(b); });
    return proposals;
}

// Returns true if the plan, of the algorithm that record_ names or that has the kernel that it names, does what it says.
bool LayerPlan::follows_record(const AlgorithmPlan &plan) const {
    return find_algorithm(record_->variant) || plan.follows_record();
}

// Returns the algorithm that is asked for or recorded, or null.
const Algorithm *LayerPlan::named() const {
    if (!settings_.variant.empty()) return algorithm_of(settings_.variant);
    return record_ ? algorithm_of(record_->variant) : nullptr;
}

// Builds the first of the proposals that can be built.
Status LayerPlan::build_first(const std::vector<Proposal> &proposals, const LayerWeights &weights) {
    Status failure(CONVT_UNSUPPORTED, "no algorithm is allowed");
    for (const Proposal &proposal : proposals) {
        Status status =
            proposal.plan ? proposal.plan->build(weights) : Status(CONVT_UNSUPPORTED, to_string(proposal.unsupported));
        if (status) algorithm_ = proposal.algorithm;
        if (!cannot(status)) return status;
        if (proposal.algorithm == algorithm_of("") || proposals.size() == 1) failure = std::move(status);
    }
    return failure;
}

// Builds the algorithm that is named, the only one that is asked. Returns nothing if the choice is to be made by estimate.
std::optional<Status> LayerPlan::choose_named(const LayerWeights &weights) {
    const Algorithm *const first = named();
    if (!first) return std::nullopt;
    std::vector<Proposal> proposals = consider(problem(settings_), first);
    const bool is_excluded = proposals.empty(), is_recorded = settings_.variant.empty();
    if (is_recorded && (is_excluded || !proposals.front().plan || !follows_record(*proposals.front().plan))) {
        if (find_algorithm(record_->variant)) // if it names a kernel, the direct algorithm says why that is not used
            record_note_ = concat("a tuning record names ", record_->variant, ", which cannot",
                                  is_excluded ? std::string() : ": " + to_string(proposals.front().unsupported));
        return std::nullopt;
    }
    Status status = build_first(proposals, weights);
    if (is_recorded) record_note_.clear(); // the record can be read, whatever else cannot
    if (is_recorded && cannot(status)) return std::nullopt;
    if (cannot(status) && find_algorithm(settings_.variant)) // the message about a kernel names it
        return Status(status.code(), concat(settings_.variant, " cannot compute this problem: ", status.message()));
    TRY(status);
    candidates_ = proposals.front().plan->take_candidates();
    chosen_ = std::move(proposals.front().plan);
    // Weights of infinities and NaNs may have made it take another kernel than the record's.
    set_reason(!is_recorded ? ChosenBy::kName : follows_record(*chosen_) ? ChosenBy::kRecord : ChosenBy::kEstimate);
    return status;
}

// Builds the best algorithm that can be built.
Status LayerPlan::choose_by_estimate(const LayerWeights &weights) {
    std::vector<Proposal> proposals = consider(problem(settings_));
    TRY(build_first(proposals, weights));
    considered_.get([&] { return considered_of(proposals); });
    for (Proposal &proposal : proposals) {
        if (proposal.algorithm == algorithm_) chosen_ = std::move(proposal.plan);
    }
    set_reason(ChosenBy::kEstimate);
    return Status();
}

void LayerPlan::set_reason(ChosenBy by) {
    const std::string summary = chosen_->summary(), why = by == ChosenBy::kName     ? kByName
                                                          : by == ChosenBy::kRecord ? record_->reason
                                                                                    : chosen_->why_least();
    reason_ =
        with_note(concat(summary, summary.empty() ? "" : ": ", why), by == ChosenBy::kEstimate ? record_note_ : "");
    chosen_by_ = by;
}

void LayerPlan::follow(std::shared_ptr<const TuningRecord> record) {
    measured_ = std::move(record);
    record_ = measured_.get();
    set_reason(ChosenBy::kRecord);
}

TuningRecord LayerPlan::record() const {
    const char *const kernel = chosen_->own_kernel();
    const int most = asked_.parallel.threads;
    return {cpu_name(),
            recorded_isa(),
            tuning_key(geometry_),
            kernel ? kernel : algorithm(),
            most,
            threads() < most ? threads() : 0,
            chosen_by_ == ChosenBy::kRecord ? record_->ms : 0,
            ""};
}

// Takes the candidates from the proposals.
LayerPlan::Considered LayerPlan::considered_of(const std::vector<Proposal> &proposals) const {
    Considered all = {{}, candidates_};
    for (const Proposal &proposal : proposals) {
        const AlgorithmPlan *const plan = proposal.plan.get();
        std::vector<Candidate> candidates = plan ? proposal.plan->take_candidates() : std::vector<Candidate>();
        if (candidates.empty()) {
            all.estimates.push_back(
                {proposal.algorithm->name, proposal.unsupported, plan ? plan->estimated_cycles() : EstimatedCycles()});
        } else if (all.candidates.empty()) {
            all.candidates = std::move(candidates);
        }
    }
    return all;
}

Status LayerPlan::finish() {
    TRY(find_post_ops(geometry_, settings_.isa, &post_ops_));
    return check_workspace(chosen_->workspace_bytes());
}

Status LayerPlan::create(const Geometry &geometry, const PlanSettings &settings, const LayerWeights &weights,
                         std::unique_ptr<LayerPlan> *plan, std::shared_ptr<const TuningRecord> trial) {
    std::unique_ptr<LayerPlan> p(new LayerPlan(geometry, settings, weights.w != nullptr));
    if (weights.quantization) p->quantization_ = *weights.quantization;
    if (weights.w && geometry.quantized()) {
        Block counts;
        TRY(get_block(settings.allocator, examination_bytes(geometry), "sums of weights", &counts));
        p->facts_ = examine_weights(geometry, *weights.quantization, weights.w, weights.b, counts.data());
    }
    p->find_record(std::move(trial));
    p->choose_threads();
    const std::optional<Status> named = p->choose_named(weights);
    TRY(named ? *named : p->choose_by_estimate(weights));
    TRY(p->finish());
    *plan = std::move(p);
    return Status();
}

Status LayerPlan::reshape(const Geometry &geometry, const Parallel &parallel, std::unique_ptr<LayerPlan> *plan) const {
    PlanSettings settings = asked_;
    settings.parallel = parallel;
    std::unique_ptr<LayerPlan> p(new LayerPlan(geometry, settings, constant_weights_));
    p->quantization_ = quantization_;
    p->facts_ = facts_;
    p->find_record(nullptr);
    p->choose_threads();
    p->algorithm_ = algorithm_;
    TRY(chosen_->reshape(p->problem(p->settings_), &p->chosen_));
    TRY(p->finish());
    p->candidates_ = p->chosen_->take_candidates();
    const bool is_other = p->record_ && p->named() != algorithm_;
    if (is_other)
        p->record_note_ =
            concat("a tuning record names ", p->record_->variant, ", for which weights are packed in another order");
    p->set_reason(!settings_.variant.empty()                                  ? ChosenBy::kName
                  : p->record_ && !is_other && p->follows_record(*p->chosen_) ? ChosenBy::kRecord
                                                                              : ChosenBy::kEstimate);
    *plan = std::move(p);
    return Status();
}

Status LayerPlan::replan(const LayerWeights &weights, std::unique_ptr<LayerPlan> *plan) const {
    std::unique_ptr<LayerPlan> p(new LayerPlan(geometry_, asked_, true));
    p->find_record(nullptr);
    p->settings_.parallel = settings_.parallel;
    p->cycles_on_one_thread_ = cycles_on_one_thread_;
    p->algorithm_ = algorithm_;
    p->reason_ = reason_;
    p->chosen_by_ = chosen_by_;
    p->chosen_ = chosen_->replan(p->problem(p->settings_));
    if (p->chosen_) {
        TRY(p->chosen_->build(weights));
        TRY(p->finish());
    } else {
        TRY(create(geometry_, asked_, weights, &p));
    }
    *plan = std::move(p);
    return Status();
}

bool LayerPlan::shares_weights_of(const LayerPlan &other) const {
    return algorithm_ == other.algorithm_ && chosen_->shares_weights_of(*other.chosen_);
}

const LayerPlan::Considered &LayerPlan::considered() const {
    return considered_.get([this] {
        PlanSettings settings = settings_;
        if (!find_algorithm(settings.variant))
            settings.variant.clear(); // all kernels are listed beside one that is named
        return considered_of(consider(problem(settings)));
    });
}

const LayerPlan::Listed &LayerPlan::listed() const {
    return listed_.get([this] {
        Listed all = {{}, able_of(candidates())};
        chosen_->for_each_kernel([&all](const char *name) {
            const auto same = [name](const char *other) { return std::strcmp(name, other) == 0; };
            if (std::none_of(all.kernels.begin(), all.kernels.end(), same)) all.kernels.push_back(name);
        });
        // The chosen algorithm goes first, the others behind the best kernel.
        std::ptrdiff_t behind = all.able.empty() ? 0 : 1;
        for (const AlgorithmEstimate &e : estimates()) {
            if (e.unsupported.text) continue;
            all.able.insert(all.able.begin() + (e.name == algorithm_->name ? 0 : behind), {e.name, e.cycles.all()});
            behind++;
        }
        return all;
    });
}

Status LayerPlan::run(const RunTensors &t, void *workspace) const {
    if (volume(geometry_.y_shape) == 0) return Status();
    return workspaces_.lend(workspace, chosen_->workspace_bytes(), [&](char *given) {
        TRY(chosen_->run(t, given));
        if (post_ops_.run && !chosen_->applies_post_ops()) finish_whole(t);
        return Status();
    });
}

// Applies the post-ops to all of y, for an algorithm that does not apply them itself.
void LayerPlan::finish_whole(const RunTensors &t) const {
    const Shape &shape = geometry_.y_shape;
    JointBox box;
    for (std::size_t i = 0; i < shape.size(); i++)
        box.add(shape[i], t.y.strides[i], t.residual.data ? t.residual.strides[i] : t.y.strides[i]);
    run_post_ops(post_ops_, box, t.y.data, t.residual.data);
}

} // namespace convtranspose
