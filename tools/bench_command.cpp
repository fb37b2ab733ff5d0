// The command `bench`: times the layers of models.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include <nlohmann/json.hpp>

#include "tools/clock.h"
#include "tools/commands.h"
#include "tools/device_session.h"
#include "tools/each_layer.h"
#include "tools/error.h"
#include "tools/fma_peak.h"
#include "tools/input_shape.h"
#include "tools/job.h"
#include "tools/layer.h"
#include "tools/problem_line.h"
#include "tools/random_layer.h"
#include "tools/text.h"
#include "tools/tuning_note.h"

namespace convtranspose::tools {

namespace {

constexpr std::size_t kFewestRuns = 5;
constexpr double kBatch = 1e-3; // seconds of work that a device is given at a time: it is slow to start and to stop

struct Measurement {
    std::string name, file, node, variant, isa, device;
    std::string type;              // of x, and of weights that are lighter: "f32 ws8 dynamic"
    convt_dtype dtype = CONVT_F32; // of the products
    convt_layout layout = CONVT_CHANNELS_FIRST;
    Shape x_shape, w_shape, y_shape;
    int threads = 1;
    std::size_t runs = 0, workspace_bytes = 0, packed_bytes = 0;
    double best = 0, median = 0, plan = 0; // seconds
    double macs = 0, peak_gflops = 0;

    double gflops() const { return 2e-9 * macs / best; }
    double peak_percent() const { return 100 * gflops() / peak_gflops; }
    // Not every device tells what its peak follows from.
    std::string peak_text() const { return std::isnan(peak_gflops) ? "-" : format("%.1f", peak_percent()); }
};

// The peak is measured once per process for each combination that occurs.
double peak_gflops(const std::string &isa, convt_dtype dtype, int threads) {
    static std::map<std::tuple<std::string, int, int>, double> known;
    const int kind = is_integer(dtype) ? 2 : dtype == CONVT_F64 ? 1 : 0;
    const auto [entry, is_new] = known.emplace(std::make_tuple(isa, kind, threads), 0.0);
    if (is_new) entry->second = fma_peak_gflops(isa, dtype, threads);
    return entry->second;
}

// The seconds of each run, sorted. The last y is checked.
std::vector<double> times_on_cpu(const Plan &plan, const Arguments &arguments, double min_time, const Tensor &y) {
    for (int warm_up = 0; warm_up < 3; warm_up++) throw_unless(plan.run(arguments));
    require_plausible(y, plan.macs());
    std::vector<double> times;
    const double begin = now();
    for (double last = begin; times.size() < kFewestRuns || last - begin < min_time;) {
        const double run_begin = now();
        const Status status = plan.run(arguments);
        last = now();
        throw_unless(status);
        times.push_back(last - run_begin);
    }
    std::sort(times.begin(), times.end());
    return times;
}

// The same for tensors in the device's memory. Each time is the mean of a batch of runs.
std::vector<double> times_on_device(const Plan &plan, Arguments arguments, DeviceSession *session, double min_time,
                                    Tensor *y) {
    const DeviceTensor x_there(session, arguments.x), y_there(session, arguments.y);
    std::optional<DeviceTensor> residual_there;
    if (arguments.residual) arguments.residual = residual_there.emplace(session, *arguments.residual).view();
    arguments.x = x_there.view();
    arguments.y = y_there.mutable_view();
    arguments.stream = session->stream();
    const auto seconds = [&](std::size_t runs) {
        return session->seconds([&] {
            for (std::size_t i = 0; i < runs; i++) throw_unless(plan.run(arguments));
        });
    };
    seconds(2); // kernels are compiled and loaded
    y_there.download(y);
    require_plausible(*y, plan.macs());
    std::size_t batch = 1;
    double spent = seconds(batch);
    for (; spent < kBatch; spent = seconds(batch)) batch *= 2;
    std::vector<double> times;
    for (double sum = 0; times.size() < kFewestRuns || sum < min_time; sum += spent) {
        spent = seconds(batch);
        times.push_back(spent / static_cast<double>(batch));
    }
    std::sort(times.begin(), times.end());
    return times;
}

// Plans by what `candidate` names, or, if that is empty, by choice. session: null on the CPU.
Plan plan_of(const RandomLayer &layer, const BenchOptions &options, const std::string &candidate,
             DeviceSession *session) {
    Options plan_options = options.plan.view();
    if (!candidate.empty()) plan_options.variant = candidate.c_str();
    if (session) plan_options.device.context = session->context();
    const void *const b = layer.problem.b_shape ? layer.b.data.data() : nullptr;
    Plan plan;
    throw_unless(Plan::create(layer.problem, plan_options, layer.w.data.data(), b, &plan));
    return plan;
}

// Measures what plan_of() plans.
Measurement measure(RandomLayer *layer_data, const BenchOptions &options, const std::string &candidate,
                    DeviceSession *session) {
    const Problem &problem = layer_data->problem;
    const Tensor &x = layer_data->x;

    Measurement m;
    const double plan_begin = now();
    const Plan plan = plan_of(*layer_data, options, candidate, session);
    m.plan = now() - plan_begin;

    Tensor y(problem.y_dtype.value_or(problem.dtype), plan.y_shape());
    Buffer workspace(plan.workspace_bytes());
    Arguments arguments;
    arguments.x = x.view();
    arguments.y = y.view();
    arguments.workspace = workspace.data();
    Tensor residual;
    if (problem.post_ops.adds_residual) {
        residual = layer_data->like(y);
        arguments.residual = residual.view();
    }
    const std::vector<double> times = session ? times_on_device(plan, arguments, session, options.min_time, &y)
                                              : times_on_cpu(plan, arguments, options.min_time, y);
    m.dtype = problem.quantizes_x ? CONVT_U8 : problem.dtype;
    m.type = convt_dtype_name(problem.dtype);
    if (is_light(problem)) m.type += std::string(" w") + convt_dtype_name(*problem.w_dtype);
    if (problem.quantizes_x) m.type += " dynamic";
    m.peak_gflops =
        session ? session->fma_peak_gflops(m.dtype) : peak_gflops(plan.isa(), m.dtype, options.plan.threads);
    m.best = times.front();
    m.median = times[times.size() / 2];
    m.runs = times.size();

    m.layout = problem.layout;
    m.x_shape = plan.x_shape();
    m.w_shape = problem.w_shape;
    m.y_shape = plan.y_shape();
    m.variant = candidate.empty() ? plan.variant() : candidate;
    m.isa = plan.isa();
    m.device = session ? convt_device_description(options.plan.device.c_str(), 0) : "cpu";
    m.threads = options.plan.threads;
    m.workspace_bytes = plan.workspace_bytes();
    m.packed_bytes = plan.packed_bytes();
    m.macs = plan.macs();
    return m;
}

// Returns the names of what is to be measured. An empty name leaves the choice to the plan.
std::vector<std::string> candidates_of(const RandomLayer &layer_data, const BenchOptions &options,
                                       DeviceSession *session) {
    if (options.candidates == 0) return {""};
    const Plan plan = plan_of(layer_data, options, "", session);
    std::vector<std::string> names;
    const std::size_t count =
        std::min(convt_plan_candidate_count(plan.get()), static_cast<std::size_t>(options.candidates));
    for (std::size_t i = 0; i < count; i++) names.emplace_back(convt_plan_candidate(plan.get(), i));
    return names;
}

void print_json(const std::vector<Measurement> &measurements) {
    std::cout << '[';
    for (const Measurement &m : measurements) {
        const nlohmann::ordered_json row = {{"name", m.name},
                                            {"file", m.file},
                                            {"node", m.node},
                                            {"dtype", m.type},
                                            {"layout", layout_name(m.layout)},
                                            {"x_shape", m.x_shape},
                                            {"w_shape", m.w_shape},
                                            {"y_shape", m.y_shape},
                                            {"best_ms", m.best * 1e3},
                                            {"median_ms", m.median * 1e3},
                                            {"runs", m.runs},
                                            {"gflops", m.gflops()},
                                            {"peak_gflops", m.peak_gflops},
                                            {"peak_percent", m.peak_percent()},
                                            {"variant", m.variant},
                                            {"isa", m.isa},
                                            {"device", m.device},
                                            {"threads", m.threads},
                                            {"workspace_bytes", m.workspace_bytes},
                                            {"packed_bytes", m.packed_bytes},
                                            {"plan_ms", m.plan * 1e3}};
        // Names come from files and models, and must not end the program if they are not UTF-8.
        std::cout << (&m == &measurements.front() ? "\n  " : ",\n  ")
                  << row.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    }
    std::cout << "\n]\n";
}

void print_text(const std::vector<Measurement> &measurements) {
    std::vector<std::vector<std::string>> rows = {{"name", "node", "type", "x", "y", "variant", "isa", "threads",
                                                   "best ms", "median ms", "GFLOP/s", "peak %", "workspace",
                                                   "plan ms"}};
    for (const Measurement &m : measurements) {
        rows.push_back({m.name, m.node, m.type, to_string(m.x_shape), to_string(m.y_shape), m.variant, m.isa,
                        std::to_string(m.threads), format("%.4f", m.best * 1e3), format("%.4f", m.median * 1e3),
                        format("%.1f", m.gflops()), m.peak_text(), bytes_to_string(m.workspace_bytes),
                        format("%.3f", m.plan * 1e3)});
    }
    print_table(std::cout, rows, {7, 8, 9, 10, 11, 12, 13});
    std::map<double, std::string> peaks;
    for (const Measurement &m : measurements) {
        if (std::isnan(m.peak_gflops)) continue;
        peaks[m.peak_gflops] = format("%.1f GFLOP/s for ", m.peak_gflops) +
                               (is_integer(m.dtype)    ? "integers"
                                : m.dtype == CONVT_F64 ? "f64"
                                : m.isa == "amx"       ? "bf16"
                                                       : "f32") +
                               " on " + m.isa;
    }
    for (const auto &[peak, text] : peaks) std::cout << "multiply-add peak: " << text << '\n';
}

} // namespace

int bench_command(const BenchOptions &options) {
    if (options.candidates > 0 && (options.plan.measuring_ms > 0 || !options.plan.variant.empty()))
        throw UsageError("--measure and --variant do not go with --candidates, which measures those of least estimate");
    const std::vector<Job> jobs = jobs_from(options.paths);
    const std::vector<InputShape> shapes = input_shapes_from(options.input_shapes);
    note_unusable_tuning();
    std::vector<Measurement> measurements;
    std::unique_ptr<DeviceSession> session; // opened for the first layer; kernels stay loaded in its context
    Progress progress(jobs.size(), true);   // the table comes at the end
    const auto act = [&](const Job &job, const Model &, const Layer &layer) {
        note_floats(job, layer.node, &progress);
        Problem problem = layer.problem;
        problem.post_ops = options.post_ops;
        RandomLayer layer_data(problem);
        if (options.plan.on_device() && !session) session = DeviceSession::open(options.plan.device);
        for (const std::string &candidate : candidates_of(layer_data, options, session.get())) {
            try {
                Measurement m = measure(&layer_data, options, candidate, session.get());
                m.file = job.path.string();
                m.name = job.name;
                m.node = layer.node.label;
                measurements.push_back(m);
            } catch (const std::exception &e) {
                if (candidate.empty()) throw;
                tell("note", job, layer.node.label + " by " + candidate + ": " + e.what(), &progress);
            }
        }
    };
    const int failed = for_each_layer(jobs, shapes, options.layout, &progress, act);
    progress.clear();
    if (options.json) {
        print_json(measurements);
    } else if (!measurements.empty()) {
        print_text(measurements);
    }
    require_all_used(shapes);
    return failed == 0 ? kSuccess : kFailure;
}

} // namespace convtranspose::tools
