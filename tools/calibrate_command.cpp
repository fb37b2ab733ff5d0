// The command `calibrate`: times random layers, and fits a cost profile to the times.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/clock.h"
#include "tools/commands.h"
#include "tools/error.h"
#include "tools/files.h"
#include "tools/text.h"
#include "tools/tune/cost_fit.h"
#include "tools/tune/kernel_builder.h"
#include "tools/tune/kernel_row.h"
#include "tools/tune/measurement_session.h"
#include "tools/tune/random_problems.h"
#include "tools/tune/search_log.h"

namespace convtranspose::tools {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char *kTimes = "times.jsonl";
constexpr std::uint32_t kSeed = 20261127;
constexpr double kShareOfTimes = 0.6;  // of the seconds; the rest is for fitting
constexpr double kNear = 3;            // times the least estimate, up to which candidates are timed
constexpr std::size_t kMostEach = 9;   // candidates of a layer
constexpr double kSecondsEach = 0.012; // to time each for
constexpr std::size_t kLeastLayers = 3;
constexpr double kLeastTime = 1e-9, kMostTime = 1e12; // milliseconds, whose ratios to estimates are finite

// Throws unless a time is one that can be fitted to.
double time_of(const std::string &problem, const std::string &candidate, const json &ms) {
    const double time = ms.is_number() ? ms.get<double>() : 0;
    if (time >= kLeastTime && time <= kMostTime) return time;
    throw Error("the time of " + candidate + " for " + problem + " is " + ms.dump() +
                " ms, must be a number from 1e-9 to 1e12");
}

// Returns the candidates to time: the choice, and others of low estimates.
std::vector<std::string> candidates_of(const json &layer) {
    const json &names = layer.at("candidates"), &cycles = layer.at("cycles");
    std::vector<std::pair<double, std::string>> sorted;
    for (std::size_t i = 0; i < names.size(); i++) {
        const auto name = names[i].get<std::string>();
        if (name.rfind("reference_", 0) != 0) sorted.emplace_back(cycles.at(i).get<double>(), name);
    }
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::string> list = {layer.at("variant").get<std::string>()};
    for (const auto &[estimate, name] : sorted) {
        if (list.size() < kMostEach && estimate <= kNear * sorted.front().first && name != list.front())
            list.push_back(name);
    }
    return list;
}

class Calibration {
  public:
    Calibration(const CalibrateOptions &options, const TuneOptions &worker, const Stamp &stamp)
        : options_(options), builder_(worker),
          log_(fs::path(worker.output) / kTimes, stamp, options.resume || options.fit_only,
               {{"problem"}, {"cpu"}, {"isa"}, {"threads", LineField::kNumber, true}}),
          progress_(2, true), begin_(now()) {
        // Lines of other programs, such as bench/cost/collect.py, are of one thread.
        for (const json &line : log_.lines()) {
            const double threads = line.value("threads", 1.0);
            if (threads != options.plan.threads)
                throw Error("the times that are kept are of --threads " + format("%g", threads) + ", not of " +
                            std::to_string(options.plan.threads) +
                            ": calibrate without --resume, or name another --output");
        }
    }

    // Times candidates of random layers, beside those that the log has.
    void collect() {
        progress_.step("times");
        std::mt19937 generator(kSeed);
        for (std::size_t i = 0; left(kShareOfTimes) > 0; i++) {
            const std::string problem = random_problem(&generator);
            if (i < log_.lines().size()) continue;
            progress_.detail("times: " + std::to_string(i) + " layers, " + format("%.0f s left", left(kShareOfTimes)));
            json line = times_of(problem);
            require_same_cpu(line);
            log_.add(std::move(line));
        }
    }

    // Fits the profile of the CPU to two of three layers, and returns the line to write, or null if it does not choose as well as
    // the profile that ships on the third of the layers that is held out.
    json fit_all() {
        const json kept = kept_line();
        std::vector<TimedLayer> layers, held_out;
        for (const json &line : log_.lines()) {
            TimedLayer layer = {line.at("problem"), line.at("isa"), times_in(line)};
            if (layer.ms.size() > 1)
                (layers.size() > 2 * held_out.size() ? held_out : layers).push_back(std::move(layer));
        }
        if (layers.size() + held_out.size() < kLeastLayers)
            throw Error(std::to_string(layers.size() + held_out.size()) + " layers were timed, of " +
                        std::to_string(kLeastLayers) + " that are needed: " +
                        (options_.fit_only ? "calibrate with --resume, to time more" : "allow more --seconds"));
        progress_.step("fit");
        worker_ = builder_.start_worker();
        const json shipped = ask({}, nullptr).at("profile");
        const json fitted = fit(
            layers, shipped, [&](const json &profile) { return estimates(layers, profile); },
            [&](double regret) {
                progress_.detail("fit: " + format("%.3f", 1 + regret) + " times the fastest, " +
                                 format("%.0f s left", left(1)));
                return left(1) > 0;
            });
        progress_.clear();
        const auto regret = [&](const json &profile) { return regret_of(held_out, estimates(held_out, profile)); };
        const double before = regret(shipped), after = regret(fitted);
        std::printf(
            "%zu layers fitted to, %zu held out; choices on the latter take, in times of the fastest candidate: "
            "generic profile %.3f, shipped %.3f, calibrated %.3f\n",
            layers.size(), held_out.size(), 1 + regret("generic"), 1 + before, 1 + after);
        if (!(after <= before)) return nullptr; // NaN is not better
        return {{"cpu", kept.at("cpu")}, {"isa", kept.at("isa")}, {"cost_profile", fitted}};
    }

  private:
    double left(double share) const { return begin_ + share * options_.seconds - now(); }

    // Returns a line of the CPU and the ISA that the profile is for. Throws Error if there is none of the ISA that is asked for.
    json kept_line() const {
        const std::string &isa = options_.plan.isa;
        std::string others;
        for (const json &line : log_.lines()) {
            const auto of = line.at("isa").get<std::string>();
            if (isa.empty() || of == isa || of == isa_name(isa_of_floats(isa_of(isa)))) return line;
            others = of;
        }
        if (others.empty()) return nullptr; // there are too few layers then
        throw Error("--isa " + isa + ": the times that are kept are of the ISA " + others +
                    ": calibrate without --fit-only, or name another --output");
    }

    // Throws unless a line is of the CPU and the ISA of those that the log has.
    void require_same_cpu(const json &line) const {
        if (log_.lines().empty()) return;
        const json &kept = log_.lines().front();
        for (const auto &[field, name] : {std::pair("cpu", "CPU"), std::pair("isa", "ISA")}) {
            if (line.at(field) != kept.at(field))
                throw Error(std::string("the times that are kept are of the ") + name + " " +
                            kept.at(field).get<std::string>() + ", these of " + line.at(field).get<std::string>() +
                            ": calibrate without --resume, or name another --output");
        }
    }

    json times_of(const std::string &problem) {
        MeasurementSession session(builder_, problem, options_.plan, options_.timeout);
        const json &layer = session.layer();
        json ms = json::object();
        // Each by itself, as layers run: in turns, each with a y of its own, they would all find y far.
        for (const std::string &name : candidates_of(layer)) {
            const Measured measured = session.measure({name}, kSecondsEach).front();
            if (measured.error.empty()) ms[name] = time_of(problem, name, measured.ms);
        }
        return {{"problem", problem},
                {"cpu", layer.at("cpu")},
                {"isa", layer.at("isa")},
                {"threads", options_.plan.threads},
                {"ms", ms}};
    }

    // Returns what times_of() has noted.
    static std::map<std::string, double> times_in(const json &line) {
        const auto problem = line.at("problem").get<std::string>();
        const json ms = line.value("ms", json());
        if (!ms.is_object()) throw Error("the \"ms\" of " + problem + " must be an object of numbers");
        std::map<std::string, double> times;
        for (const auto &[name, value] : ms.items()) times[name] = time_of(problem, name, value);
        return times;
    }

    json ask(const std::vector<TimedLayer> &layers, const json &profile) {
        json problems = json::array(), isas = json::array();
        for (const TimedLayer &layer : layers) {
            problems.push_back(layer.problem);
            isas.push_back(layer.isa);
        }
        const json question = {{"do", "choose"},
                               {"problems", problems},
                               {"isa", layers.empty() ? json(options_.plan.isa) : isas},
                               {"threads", options_.plan.threads},
                               {"estimates", true},
                               {"profile", profile}};
        json answer = json::parse(worker_->ask(question.dump(), options_.timeout * 10));
        if (answer.contains("error")) throw Error("the worker: " + answer["error"].get<std::string>());
        return answer;
    }
    std::vector<EstimatedLayer> estimates(const std::vector<TimedLayer> &layers, const json &profile) {
        const json answer = ask(layers, profile);
        std::vector<EstimatedLayer> list;
        for (std::size_t i = 0; i < layers.size(); i++)
            list.push_back({answer.at("choices").at(i), answer.at("estimates").at(i)});
        return list;
    }

    const CalibrateOptions &options_;
    KernelBuilder builder_;
    SearchLog log_;
    Progress progress_;
    double begin_;
    std::unique_ptr<Subprocess> worker_;
};

} // namespace

int calibrate_command(const CalibrateOptions &options) {
    if (options.output.empty() || fs::is_directory(options.output))
        throw UsageError("--output: '" + options.output + "' is not a file; name one, or one to be made");
    TuneOptions worker;
    worker.output = options.output + ".calibration";
    worker.runner = options.runner;
    worker.worker = options.worker;
    worker.package = options.package;
    worker.plan = options.plan;
    if (options.fit_only && !fs::exists(fs::path(worker.output) / kTimes))
        throw UsageError("--fit-only: '" + worker.output +
                         "' holds no times of an earlier calibration: calibrate without it first");
    const Stamp stamp = {CONVT_VERSION, convt_kernels_version()};
    std::optional<SearchLog> records;
    if (fs::exists(options.output)) records.emplace(options.output, stamp, true); // refuses a file of another kind
    make_folder(worker.output, "--output");
    Calibration calibration(options, worker, stamp);
    if (!options.fit_only) calibration.collect();
    const json line = calibration.fit_all();
    if (line.is_null()) {
        std::cout << "the profile that ships chooses better: " << options.output << " stays as it is\n";
        return kSuccess;
    }
    if (!records) records.emplace(options.output, stamp, true);
    records->add(line);
    std::cout << options.output
              << " holds the profile: set CONVTRANSPOSE_TUNING to it, or give it to convt_tuning_read\n";
    return kSuccess;
}

} // namespace convtranspose::tools
