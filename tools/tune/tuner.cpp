#include "tools/tune/tuner.h"

#include <algorithm>
#include <filesystem>

#include "tools/clock.h"
#include "tools/error.h"
#include "tools/files.h"

namespace convtranspose::tools {

using nlohmann::json;

namespace {

constexpr double kSelectSeconds = 2, kSearchSeconds = 60; // default budgets
constexpr double kFirstLook = 0.01;                       // seconds that a candidate is measured for at first
constexpr double kGain = 0.98;                            // less than that is noise: the default choice stays
constexpr double kLeastShare = 0.15;                      // of the budget: what is left for the last comparisons
constexpr std::size_t kFinalists = 6;
// A candidate whose first run takes so many times as long as the best first run is measured no further, and one that takes longer
// than that to be planned and checked, by so many seconds, is ended.
constexpr double kHopeless = 10, kGrace = 1;

} // namespace

bool is_of_search(const json &line, const json &layer, const TuneOptions &options) {
    for (const char *const field : {"problem", "cpu", "isa"})
        if (line.at(field) != layer.at(field)) return false;
    return line.at("threads") == options.plan.threads && line.value("search", "") == options.search &&
           line.value("winograd", false) == options.plan.winograd;
}

Tuner::Tuner(const TuneOptions &options, const KernelBuilder &builder, MeasurementSession *session, SearchLog *log)
    : options_(options), builder_(builder), session_(session), log_(log), begin_(now()),
      budget_(options.budget > 0           ? options.budget
              : options.search == "select" ? kSelectSeconds
                                           : kSearchSeconds),
      default_(session->layer().at("variant").get<std::string>()) {
    const json &layer = session->layer();
    for (const json &line : log->lines()) {
        if (!is_of_search(line, layer, options)) continue;
        const auto name = line.at("name").get<std::string>();
        results_[name] = {line.value("ratio", 0.0), line.value("ms", 0.0)};
        if (!line.contains("generator")) continue;
        made_++;
        ran_ = ran_ || line.contains("ms");
        if (first_error_.empty()) first_error_ = line.value("error", "");
    }
}

double Tuner::left() const { return begin_ + budget_ - now(); }

void Tuner::note(const Candidate &candidate, const Result &result, double default_ms, const std::string &error) {
    results_[candidate.name] = result;
    if (!candidate.generator.empty()) {
        made_++;
        if (!error.empty() && first_error_.empty()) first_error_ = error;
    }
    const json &layer = session_->layer();
    json line = {{"problem", layer.at("problem")},   {"cpu", layer.at("cpu")},    {"isa", layer.at("isa")},
                 {"threads", options_.plan.threads}, {"search", options_.search}, {"winograd", options_.plan.winograd},
                 {"name", candidate.name},           {"seconds", now() - begin_}};
    if (error.empty()) {
        line["ms"] = result.ms;
        line["ratio"] = result.ratio;
        line["default_ms"] = default_ms;
    } else {
        line["error"] = error;
    }
    if (!candidate.generator.empty()) {
        line["generator"] = candidate.generator;
        line["parameters"] = candidate.parameters;
    }
    log_->add(line);
}

// Measures candidates beside the default choice, whose time is that of the moment. Candidates that the budget leaves no time for
// are not tried.
void Tuner::measure(const std::vector<Candidate> &candidates, double seconds, double until) {
    const double begin = now();
    const Measured first = session_->try_out(default_, options_.timeout);
    if (!first.error.empty()) throw Error("the default choice: " + first.error);
    const double patience = kGrace + kHopeless * (now() - begin);
    if (best_first_ms_ == 0) best_first_ms_ = first.ms;
    std::vector<std::string> names = {default_};
    std::vector<const Candidate *> tried;
    for (const Candidate &c : candidates) {
        if (left() < until && &c != &candidates.front()) break;
        const Measured one = session_->try_out(c.name, patience);
        if (!one.error.empty()) {
            note(c, {}, 0, one.error);
            continue;
        }
        ran_ = ran_ || !c.generator.empty();
        if (one.ms > kHopeless * best_first_ms_) {
            note(c, {}, 0,
                 "far too slow: its first run took " + std::to_string(one.ms) + " ms, the best one " +
                     std::to_string(best_first_ms_));
            continue;
        }
        best_first_ms_ = std::min(best_first_ms_, one.ms);
        tried.push_back(&c);
        names.push_back(c.name);
    }
    const std::vector<Measured> measured = session_->measure(names, seconds);
    const double default_ms = measured.front().ms;
    if (default_ms == 0) throw Error("the default choice: " + measured.front().error);
    default_ms_ = default_ms_ == 0 ? default_ms : std::min(default_ms_, default_ms);
    for (std::size_t i = 0; i < tried.size(); i++) {
        const Measured &m = measured[i + 1];
        note(*tried[i], {m.ms > 0 ? m.ms / default_ms : 0, m.ms}, default_ms, m.error);
    }
    const std::vector<std::string> best = fastest(1);
    if (watch_ && *watch_)
        (*watch_)(results_.size(), best.empty() ? 1 : std::min(1.0, results_[best[0]].ratio), left());
}

std::vector<std::string> Tuner::fastest(std::size_t most) const {
    std::vector<std::string> names;
    for (const auto &[name, result] : results_) {
        if (result.ratio > 0) names.push_back(name);
    }
    std::sort(names.begin(), names.end(),
              [&](const std::string &a, const std::string &b) { return results_.at(a).ratio < results_.at(b).ratio; });
    names.resize(std::min(names.size(), most));
    return names;
}

// Measures all that is built in, in the order of estimates. The longer a candidate is among the fastest, the longer it is measured.
void Tuner::select(double until) {
    std::vector<Candidate> group;
    const auto finish_group = [&] {
        if (!group.empty()) measure(group, kFirstLook, until);
        group.clear();
    };
    for (const json &name : session_->layer().at("candidates")) {
        if (left() < until) break;
        Candidate c;
        c.name = name.get<std::string>();
        known_[c.name] = c;
        const bool hopeless = c.name.rfind("reference_", 0) == 0 && c.name != default_;
        if (c.name == default_ || hopeless || results_.count(c.name)) continue;
        group.push_back(c);
        if (group.size() == 8) finish_group();
    }
    finish_group();
}

// Compiles and loads candidates; those that cannot be are noted as failed.
std::vector<Candidate> Tuner::make(const std::vector<Candidate> &candidates) {
    const std::string folder = builder_.scratch().string();
    std::vector<Task> tasks;
    std::vector<std::string> objects; // that the tasks make
    for (const Candidate &c : candidates) {
        const bool is_new = std::find(objects.begin(), objects.end(), c.object) == objects.end();
        if (compiled_.count(c.object) || !is_new) continue;
        objects.push_back(c.object);
        tasks.push_back(builder_.generate(c.generator, c.object, c.row.at("function").get<std::string>(), c.target,
                                          c.parameters, folder));
    }
    std::vector<std::string> failures = run_all(tasks, builder_.jobs(), options_.timeout);
    for (std::size_t i = 0; i < tasks.size(); i++) {
        // Halide compiles even a kernel that it has proven to fail an assertion, and only says so.
        if (failures[i].empty() && read_file(tasks[i].log).find("guaranteed to fail") != std::string::npos)
            failures[i] = "a kernel that is bound to fail";
    }
    std::vector<Candidate> made;
    std::set<std::string> files;
    json rows = json::array();
    for (const Candidate &c : candidates) {
        const auto at = std::find(objects.begin(), objects.end(), c.object);
        if (at != objects.end() && !failures[static_cast<std::size_t>(at - objects.begin())].empty()) {
            note(c, {}, 0, failures[static_cast<std::size_t>(at - objects.begin())]);
            continue;
        }
        compiled_.insert(c.object);
        made.push_back(c);
        files.insert((std::filesystem::path(folder) / (c.object + ".o")).string());
        rows.push_back(c.row);
    }
    if (made.empty()) return made;
    const std::string shared = (std::filesystem::path(folder) / (made.front().name + ".so")).string();
    std::string error = run_all({builder_.link({files.begin(), files.end()}, shared)}, 1, options_.timeout).front();
    if (error.empty()) error = session_->add(shared, rows);
    if (error.empty()) return made;
    if (made.size() == 1) {
        note(made.front(), {}, 0, error);
        return {};
    }
    // One of them failed, so each is loaded on its own.
    std::vector<Candidate> loaded;
    for (const Candidate &c : made) {
        for (const Candidate &one : make({c})) loaded.push_back(one);
    }
    return loaded;
}

// Makes and measures kernels for the layer, in the order of the search space.
void Tuner::search(double until) {
    std::vector<Candidate> space;
    for (const json &item : session_->space(options_.search)) {
        Candidate c;
        c.row = item.at("row");
        c.name = c.row.at("name").get<std::string>();
        c.generator = item.at("generator").get<std::string>();
        c.object = item.at("object").get<std::string>();
        c.target = builder_.target(c.row.at("isa").get<std::string>());
        c.parameters = item.at("parameters");
        if (item.contains("autoscheduler")) {
            builder_.schedule_automatically(item.at("autoscheduler").get<std::string>(), options_.plan.threads,
                                            &c.parameters, &c.target);
        }
        if (c.target.empty()) throw Error("the package has no kernels for " + c.row.at("isa").get<std::string>());
        space.push_back(std::move(c));
    }
    std::vector<Candidate> group;
    for (const Candidate &c : space) {
        known_[c.name] = c;
        if (results_.count(c.name)) continue;
        group.push_back(c);
        if (group.size() < 2 * static_cast<std::size_t>(builder_.jobs()) && &c != &space.back()) continue;
        if (left() < until) return;
        measure(make(group), 2 * kFirstLook, until);
        group.clear();
    }
    if (!group.empty() && left() >= until) measure(make(group), 2 * kFirstLook, until);
}

// Returns the fastest candidates, loaded. Those that a resumed search no longer proposes are left out, and so is the default
// choice.
std::vector<Candidate> Tuner::finalists(std::size_t most) {
    std::vector<Candidate> list;
    for (const std::string &name : fastest(most)) {
        const auto found = known_.find(name);
        if (found != known_.end() && name != default_) list.push_back(found->second);
    }
    const auto is_absent = [&](const Candidate &c) { return !c.generator.empty() && !session_->has(c.name); };
    const auto has_failed = [&](const Candidate &c) { return results_[c.name].ratio == 0; };
    // Those that are added may make others leave, of which so many leave at once that none does the second time.
    for (int turn = 0; turn < 2; turn++) {
        for (const Candidate &c : list)
            if (is_absent(c) && !has_failed(c)) make({c});
    }
    list.erase(std::remove_if(list.begin(), list.end(), is_absent), list.end());
    return list;
}

json Tuner::tune(const Watch &watch) {
    watch_ = &watch;
    const double reserve = kLeastShare * budget_;
    select(options_.search == "select" ? reserve : 0.8 * budget_);
    if (options_.search != "select") search(reserve);
    if (made_ > 0 && !ran_) {
        throw Error("none of the " + std::to_string(made_) +
                    " kernels that were made could be compiled and run; the first: " + first_error_);
    }

    // The fastest are measured again, fewer of them and for longer each time. The last measurement decides.
    double seconds = std::min(4 * kFirstLook, budget_ / 100);
    std::string winner = default_;
    double ratio = 1;
    for (std::size_t most = kFinalists; most > 0 && (most == kFinalists || left() > 0); most /= 2, seconds *= 3) {
        const std::vector<Candidate> compared = finalists(most);
        if (compared.empty()) break;
        measure(compared, seconds, 0);
        // Candidates that were not measured now are out.
        for (auto &[name, result] : results_) {
            const auto is_it = [&n = name](const Candidate &c) { return c.name == n; };
            if (std::none_of(compared.begin(), compared.end(), is_it)) result.ratio = 0;
        }
    }
    if (default_ms_ == 0) measure({}, seconds, 0); // there was nothing to compare it with
    for (const std::string &name : fastest(1)) {
        if (results_[name].ratio >= kGain || !known_.count(name)) continue;
        // Among many candidates the luckiest looks best, so it is measured once more, by a new worker.
        session_->restart();
        measure({known_[name]}, std::max(seconds, 10 * kFirstLook), 0);
        if (results_[name].ratio == 0 || results_[name].ratio >= kGain) continue;
        winner = name;
        ratio = results_[name].ratio;
    }
    const json &layer = session_->layer();
    const json kernels = session_->kernels(winner);
    json record = {{"cpu", layer.at("cpu")},
                   {"isa", layer.at("isa")},
                   {"threads", options_.plan.threads},
                   {"problem", layer.at("problem")},
                   {"variant", winner},
                   {"ms", default_ms_ * ratio},
                   {"default", default_},
                   {"default_ms", default_ms_},
                   {"tried", results_.size()},
                   {"search", options_.search},
                   {"winograd", options_.plan.winograd},
                   {"macs", layer.at("macs")},
                   {"peak_gflops", layer.at("peak_gflops")},
                   {"runs", kernels}};
    const Candidate &c = known_[winner];
    if (!c.generator.empty()) {
        record["generator"] = c.generator;
        record["target"] = c.target;
        record["parameters"] = c.parameters;
        record["row"] = c.row;
    }
    return record;
}

} // namespace convtranspose::tools
