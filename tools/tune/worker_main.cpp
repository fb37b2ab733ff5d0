// convtranspose-worker: plans, checks and times what `convtranspose tune` asks for, on the device that is tuned. One JSON object
// a line comes in, one goes out; a candidate that crashes or hangs takes only this process with it.
//
//     {"do": "plan", "problem": LINE, "isa": "" or a name, "threads": 1, "device": "" or "cuda" ...}
//         -> {"cpu": ..., "package": ..., "kernels": ..., "isa": that of records, "allowed_isa": that of the plan's options,
//             "problem": ..., "variant": the default choice, "candidates": [...], "cycles": [their estimates], "macs": ...,
//             "peak_gflops": ...}; with "measure": MS also "measured": the choice of a plan that measures for so long,
//             "planning_ms": how long it took
//     {"do": "load", "object": a shared object in base64, "rows": [rows of kernel_row.h]}           -> {}
//     {"do": "try", "variant": name}  -> {"ms": its first run}: it is planned, run once and checked, and kept to be timed
//     {"do": "time", "variants": [names], "seconds": of each}
//         -> {"results": [{"variant": ..., "ms": best} or {"variant": ..., "error": ...}, ...]}; none is kept any longer
//     {"do": "space", "search": "schedule" or "auto"}
//         -> {"candidates": [{"generator": ..., "object": name, "parameters": [...], "row": ...}, ...]}, best first:
//         kernels that could be made for the layer; several may share an object
//     {"do": "choose", "problems": [LINE, ...], "isa": "" or a name, or one for each problem, "threads": 1,
//         "profile": null or a "cost_profile" of tuning texts}
//         -> {"choices": [names], "profile": fields}: what plans choose by estimates of that profile; null: by those of the CPU's;
//         with "estimates": true also "estimates": [{candidate: its cycles}]
//     {"do": "kernels", "variant": name}  -> {"kernels": names of all variants that run then}
// Any may answer {"error": ...} instead.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/cpu/cpu.h"
#include "runtime/problem/geometry.h"
#include "runtime/selection/candidates.h"
#include "tools/clock.h"
#include "tools/compare.h"
#include "tools/device_session.h"
#include "tools/error.h"
#include "tools/fma_peak.h"
#include "tools/problem_line.h"
#include "tools/random_layer.h"
#include "tools/tune/base64.h"
#include "tools/tune/choose.h"
#include "tools/tune/kernel_row.h"
#include "tools/tune/schedule_candidates.h"

namespace convtranspose::tools {

namespace {

using nlohmann::json;

constexpr double kMostReferenceMacs = 2e8; // that the reference, which is slow, is waited for
constexpr double kFar = 3;                 // times as slow as the best: a few samples are enough of such a variant
constexpr int kLeastRounds = 3;            // of samples, as something else may have slowed the first ones

// Keeps plans from using tuning records, so that nothing but the candidate is measured.
class NoRecords {
  public:
    NoRecords() { throw_unless(Status::from(convt_tuning_read("", 0, &tuning_))); }
    ~NoRecords() { convt_tuning_destroy(tuning_); }
    NoRecords(const NoRecords &) = delete;
    NoRecords &operator=(const NoRecords &) = delete;
    const convt_tuning *get() const { return tuning_; }

  private:
    convt_tuning *tuning_ = nullptr;
};

// A kernel in a shared object, and the table that has it.
struct Loaded {
    std::deque<KernelRow> rows;
    std::vector<Variant> variants;
    convt_kernels table = {};
};

// A layer with its data and the expected result.
struct Contest {
    explicit Contest(const json &job)
        : layer(problem_of_line(job.at("problem").get<std::string>())), isa(job.at("isa").get<std::string>()) {
        options.threads = job.at("threads").get<int>();
        options.all_threads = 1; // as a record of so many threads says
        options.winograd = job.value("winograd", false) ? 1 : 0;
        options.isa = isa.empty() ? nullptr : isa.c_str();
        options.tuning = records.get();
        device = job.value("device", "");
        if (device.empty()) return;
        session = DeviceSession::open(device);
        on_device = options;
        on_device.device.name = device.c_str();
        on_device.device.context = session->context();
    }

    // Plans for the CPU, by name or by default.
    Plan plan_on_cpu(const std::string &variant) const { return plan(variant, options); }
    Plan plan(const std::string &variant) const { return plan(variant, session ? on_device : options); }
    Plan plan(const std::string &variant, Options o) const {
        o.variant = variant.empty() ? nullptr : variant.c_str();
        Plan made;
        throw_unless(Plan::create(layer.problem, o, layer.w.data.data(),
                                  layer.problem.b_shape ? layer.b.data.data() : nullptr, &made));
        return made;
    }

    // The expected result is computed by the reference, or for large layers by the default choice, which the library's tests check.
    const Tensor &expected() {
        if (!expected_) {
            Plan by = plan_on_cpu(session ? "" : choice);
            if (by.macs() <= kMostReferenceMacs) {
                for (std::size_t i = 0; i < convt_plan_candidate_count(by.get()); i++) {
                    const std::string name = convt_plan_candidate(by.get(), i);
                    if (name.rfind("reference_", 0) != 0) continue;
                    by = plan_on_cpu(name);
                    break;
                }
            }
            expected_ = std::make_unique<Tensor>(layer.problem.y_dtype.value_or(layer.problem.dtype), by.y_shape());
            throw_unless(by.run(layer.x.data.data(), expected_->data.data()));
        }
        return *expected_;
    }

    RandomLayer layer;
    std::unique_ptr<DeviceSession> session; // null: the CPU
    std::string device;                     // empty: the CPU
    std::string isa, choice;                // the default one, by name: kernels that are loaded would be chosen too
    NoRecords records;
    Options options = {}, on_device = {};

  private:
    std::unique_ptr<Tensor> expected_;
};

// One variant under test. It has run once, and was right, when it is made.
class Contender {
  public:
    Contender(Contest *contest, const std::string &variant)
        : contest_(contest), plan_(contest->plan(variant)), workspace_(plan_.workspace_bytes()),
          y_(contest->expected().dtype, plan_.y_shape()) {
        for (std::size_t i = 0, n = y_.count(); i < n; i++) y_.set(i, is_integer(y_.dtype) ? 1 : 1e30);
        arguments_.x = contest->layer.x.view();
        arguments_.y = y_.view();
        arguments_.workspace = workspace_.data();
        if (DeviceSession *const session = contest->session.get()) {
            arguments_.x = x_there_.emplace(session, arguments_.x).view();
            arguments_.y = y_there_.emplace(session, y_.view()).mutable_view();
            arguments_.stream = session->stream();
        }
        first_ = sample();
        check();
    }

    // Runs and checks once more before the first sample that counts, because a second run may go wrong on what the first left.
    void prepare() {
        run();
        check();
        batch_ = std::max<std::size_t>(1, static_cast<std::size_t>(200e-6 / std::max(sample(), 1e-7)));
        best_ = kNever;
    }

    double sample() {
        const auto work = [this] {
            for (std::size_t i = 0; i < batch_; i++) run();
        };
        double seconds = 0;
        if (contest_->session) {
            seconds = contest_->session->seconds(work);
        } else {
            const double begin = now();
            work();
            seconds = now() - begin;
        }
        best_ = std::min(best_, seconds / static_cast<double>(batch_));
        return seconds;
    }

    double first() const { return first_; } // seconds
    double best() const { return best_; }

  private:
    static constexpr double kNever = 1e300;

    void run() { throw_unless(plan_.run(arguments_)); }

    void check() {
        if (y_there_) y_there_->download(&y_);
        // Each of the two may be off by the tolerance, which grows with the terms.
        const Comparison same = compare(y_, contest_->expected(), nullptr, 2 * contest_->layer.terms + 4);
        if (!same.passed) throw Error("wrong results: " + same.detail);
    }

    Contest *contest_;
    Plan plan_;
    Buffer workspace_;
    Tensor y_;
    std::optional<DeviceTensor> x_there_, y_there_;
    Arguments arguments_;
    std::size_t batch_ = 1;
    double first_ = 0, best_ = kNever;
};

class Worker {
  public:
    json answer(const json &job) {
        const auto what = job.at("do").get<std::string>();
        if (what == "plan") return plan(job);
        if (what == "load") return load(job);
        if (what == "try") return try_out(job);
        if (what == "time") return time(job);
        if (what == "kernels") return kernels(job);
        if (what == "choose") return choose(job);
        if (what == "space") return space(job.value("search", "schedule"));
        throw Error("there is no command '" + what + "'");
    }

  private:
    json plan(const json &job) {
        kept_.clear();
        contest_ = std::make_unique<Contest>(job);
        const Plan plan = contest_->plan("");
        std::vector<std::string> candidates;
        std::vector<double> cycles;
        for (std::size_t i = 0; i < convt_plan_candidate_count(plan.get()); i++) {
            candidates.emplace_back(convt_plan_candidate(plan.get(), i));
            cycles.push_back(convt_plan_candidate_cycles(plan.get(), i));
        }
        contest_->choice = choice_of(plan);
        const DeviceSession *const session = contest_->session.get();
        const convt_dtype dtype = contest_->layer.problem.dtype;
        json answer = {{"cpu", session ? convt_device_description(contest_->device.c_str(), 0) : convt_cpu_name()},
                       {"package", CONVT_VERSION},
                       {"kernels", convt_kernels_version()},
                       {"isa", record_isa()},
                       {"allowed_isa", allowed_isa()},
                       {"problem", convt_plan_problem(plan.get())},
                       {"variant", contest_->choice},
                       {"candidates", candidates},
                       {"cycles", cycles},
                       {"macs", plan.macs()},
                       {"peak_gflops", session ? session->fma_peak_gflops(dtype)
                                               : fma_peak_gflops(plan.isa(), dtype, contest_->options.threads)}};
        if (job.contains("measure")) {
            Options measuring = contest_->options;
            measuring.planning = CONVT_MEASURE;
            measuring.planning_ms = job.at("measure").get<int>();
            const double begin = now();
            const Plan made = contest_->plan("", measuring);
            answer["planning_ms"] = (now() - begin) * 1e3;
            answer["measured"] = choice_of(made);
        }
        return answer;
    }

    json kernels(const json &job) const {
        if (!contest_) throw Error("nothing is planned yet");
        const Plan plan = contest_->plan(job.at("variant").get<std::string>());
        json names = json::array();
        for (std::size_t i = 0; i < convt_plan_kernel_count(plan.get()); i++) {
            names.push_back(convt_plan_kernel(plan.get(), i));
        }
        return {{"kernels", names}};
    }

    json space(const std::string &search) const {
        if (!contest_) throw Error("nothing is planned yet");
        if (contest_->session) throw Error("kernels of devices are not searched for: only --search select");
        const Problem &problem = contest_->layer.problem;
        Geometry geometry;
        throw_unless(resolve(detail::view(problem), &geometry));
        json list = json::array();
        if (geometry.axes.size() > 3) return {{"candidates", list}}; // sums of such layers
        const std::string name = record_isa();
        const SpatialProblem core = spatial_problem(geometry, geometry.quantized() ? CONVT_U8 : geometry.y_dtype, true);
        if (search == "auto") return {{"candidates", autoscheduled(core, name)}};
        for (const ScheduleCandidate &c : schedule_candidates(core, isa_of(name))) {
            Variant row;
            BuiltIn built_in;
            c.complete(&row, &built_in);
            // Candidates that differ in the dispatcher alone share a kernel.
            std::string object = c.name;
            constexpr const char kInPlace[] = "_in_place";
            const std::size_t end = object.size() - (sizeof kInPlace - 1);
            if (object.size() > sizeof kInPlace && object.compare(end, std::string::npos, kInPlace) == 0)
                object.resize(end);
            std::string function = "convt_";
            function.append(object).append("_").append(name);
            list.push_back({{"generator", c.generator},
                            {"object", object},
                            {"parameters", c.parameters},
                            {"row", json_of(row, function)}});
        }
        return {{"candidates", list}};
    }

    // One candidate stands for every autoscheduler; the one that compiles it names the scheduler.
    static json autoscheduled(const SpatialProblem &problem, const std::string &isa) {
        json list = json::array();
        const std::vector<std::string> parameters = auto_parameters(problem);
        if (parameters.empty()) return list;
        Variant row = {};
        for (const Candidate &c : candidates(problem, isa_of(isa), profile_of_cpu(isa_of(isa)))) {
            if (c.variant->family == Family::kReference && !c.unsupported.text) row = *c.variant;
        }
        row.tile_oc = static_cast<int>(problem.oc()); // all channels in a call
        for (const char *const scheduler : {"Adams2019", "Mullapudi2016", "Li2018"}) {
            const std::string name = std::string("auto_") + convt_dtype_name(row.dtype) + "_" + scheduler;
            row.name = name.c_str();
            list.push_back({{"generator", "auto"},
                            {"object", name},
                            {"autoscheduler", scheduler},
                            {"parameters", parameters},
                            {"row", json_of(row, "convt_" + name)}});
        }
        return list;
    }

    // The ISA as records have it.
    std::string record_isa() const {
        if (contest_->session) return contest_->device;
        const std::string name = allowed_isa();
        return is_integer(contest_->layer.problem.dtype) ? name : isa_name(isa_of_floats(isa_of(name)));
    }

    std::string allowed_isa() const { return contest_->isa.empty() ? best_isa() : contest_->isa; }

    static std::string best_isa() {
        for (std::size_t i = 0; i < convt_isa_count(); i++) {
            if (convt_isa_supported(i)) return convt_isa_name(i);
        }
        throw Error("this CPU runs none of the ISAs that are built in");
    }

    json load(const json &job) {
        Loaded &loaded = loaded_.emplace_back();
        void *const library = open(from_base64(job.at("object").get<std::string>()));
        for (const json &description : job.at("rows")) {
            KernelRow &row = loaded.rows.emplace_back();
            read_kernel_row(description, &row);
            void *const function = dlsym(library, row.function.c_str());
            if (!function) throw Error("the shared object has no " + row.function);
            row.variant.run = reinterpret_cast<ConvFunction>(function);
            loaded.variants.push_back(row.variant);
        }
        loaded.table.version = convt_kernels_version();
        loaded.table.variants = loaded.variants.data();
        loaded.table.variant_count = loaded.variants.size();
        throw_unless(Status::from(convt_add_kernels(&loaded.table)));
        return json::object();
    }

    static void *open(const std::string &object) {
        const char *const folder = std::getenv("TMPDIR");
        std::string path = std::string(folder && *folder ? folder : P_tmpdir) + "/convtranspose-XXXXXX";
        const int file = mkstemp(path.data());
        if (file < 0) throw Error("cannot make a file " + path);
        std::size_t written = 0;
        while (written < object.size()) {
            const ssize_t n = write(file, object.data() + written, object.size() - written);
            if (n <= 0) break;
            written += static_cast<std::size_t>(n);
        }
        close(file);
        void *const library = written == object.size() ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
        const char *const why = library ? nullptr : dlerror();
        unlink(path.c_str());
        if (!library) throw Error(std::string("cannot load the kernel: ") + (why ? why : "writing it failed"));
        return library;
    }

    json try_out(const json &job) {
        if (!contest_) throw Error("nothing is planned yet");
        const auto variant = job.at("variant").get<std::string>();
        auto contender = std::make_unique<Contender>(contest_.get(), variant);
        const double first = contender->first();
        kept_[variant] = std::move(contender);
        return {{"ms", first * 1e3}};
    }

    json time(const json &job) {
        if (!contest_) throw Error("nothing is planned yet");
        const std::map<std::string, std::unique_ptr<Contender>> kept = std::move(kept_);
        kept_.clear();
        json results = json::array();
        std::vector<Contender *> contenders;
        for (const json &variant : job.at("variants")) {
            const auto name = variant.get<std::string>();
            results.push_back({{"variant", name}});
            contenders.push_back(nullptr);
            try {
                if (!kept.count(name)) throw Error("it was not tried");
                kept.at(name)->prepare();
                contenders.back() = kept.at(name).get();
            } catch (const std::exception &e) {
                results.back()["error"] = e.what();
            }
        }
        // Candidates take turns, so that something that slows the machine for a while slows all of them.
        const double seconds = job.at("seconds").get<double>();
        double least = std::numeric_limits<double>::infinity();
        double spent = 0;
        for (int round = 0; round < kLeastRounds || spent < seconds; round++) {
            double longest = 0;
            for (Contender *const contender : contenders) {
                if (!contender || (round >= kLeastRounds && contender->best() > kFar * least)) continue;
                longest = std::max(longest, contender->sample());
            }
            if (longest == 0) break; // none is left
            for (const Contender *const contender : contenders) {
                if (contender) least = std::min(least, contender->best());
            }
            spent += longest;
        }
        for (std::size_t i = 0; i < contenders.size(); i++) {
            if (contenders[i]) results[i]["ms"] = contenders[i]->best() * 1e3;
        }
        return {{"results", results}};
    }

    std::unique_ptr<Contest> contest_;
    std::map<std::string, std::unique_ptr<Contender>> kept_; // which are of the contest
    std::deque<Loaded> loaded_;                              // which the library points to
};

int work() {
    Worker worker;
    for (std::string line; std::getline(std::cin, line);) {
        json answer;
        try {
            answer = worker.answer(json::parse(line));
        } catch (const std::exception &e) {
            answer = {{"error", e.what()}};
        }
        std::cout << answer.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
    }
    return 0;
}

} // namespace

} // namespace convtranspose::tools

int main() { return convtranspose::tools::work(); }
