// Google Benchmark over workload files: a benchmark for each layer, by its name, with threads and layout as arguments.
//
//     layer_benchmark [--benchmark_filter=unet ...] [WORKLOAD.json ...]     default: all of bench/workloads
//
// f32, constant weights, x, y and workspace allocated beforehand. Before a layer is timed its result is compared with the
// reference of the tests, so the first run of a large layer takes seconds. Ends with 1 if a result is wrong.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "tests/reference/reference.h"
#include "tests/reference/tensor.h"
#include "tools/error.h"
#include "tools/fma_peak.h"
#include "tools/tensor.h"
#include "workload.h"

namespace {

using convtranspose::Options;
using convtranspose::Plan;
using convtranspose::Problem;
using convtranspose::bench::Layer;
using convtranspose::tools::throw_unless;

bool any_failed = false;

double now() {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

// Measured once for each combination that occurs.
double peak_gflops(const std::string &isa, int threads) {
    static std::map<std::pair<std::string, int>, double> known;
    const auto [entry, is_new] = known.emplace(std::make_pair(isa, threads), 0.0);
    if (is_new) entry->second = convtranspose::tools::fma_peak_gflops(isa, CONVT_F32, threads);
    return entry->second;
}

Problem in_layout(const Layer &layer, convt_layout layout) {
    Problem problem = layer.problem;
    problem.layout = layout;
    convtranspose::Shape &shape = problem.x_shape;
    if (layout == CONVT_CHANNELS_LAST) std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
    return problem;
}

// A tensor of the tests, which may lie anywhere, as one that begins on a cache line.
convtranspose::tools::Tensor aligned(const convtranspose::test::Tensor &tensor) {
    convtranspose::tools::Tensor copy(tensor.dtype(), tensor.shape());
    std::memcpy(copy.data.data(), tensor.data(), copy.data.size());
    return copy;
}

// A layer in a layout, with values and what comes of them.
struct Subject {
    Problem problem;
    convtranspose::test::Inputs inputs;
    convtranspose::test::Tensor y; // compared with the reference

    explicit Subject(const Problem &of) : problem(of), inputs(convtranspose::test::draw(of, 1)) {
        throw_unless(convtranspose::test::run(problem, inputs, Options{}, &y));
        const testing::AssertionResult agrees =
            convtranspose::test::agrees(y, convtranspose::test::reference(problem, inputs));
        if (!agrees) throw convtranspose::tools::Error(agrees.message());
    }
};

// That of the last call is kept: Google Benchmark calls several times to learn how often to repeat, and goes through the
// threads of one layout before it comes to the next.
const Subject &subject_of(const Layer &layer, convt_layout layout) {
    static std::map<std::pair<const Layer *, int>, Subject> last;
    const std::pair<const Layer *, int> key(&layer, layout);
    if (last.count(key) == 0) {
        last.clear();
        last.emplace(key, Subject(in_layout(layer, layout)));
    }
    return last.at(key);
}

void measure(benchmark::State &state, const Layer &layer) {
    const Subject &subject = subject_of(layer, state.range(1) != 0 ? CONVT_CHANNELS_LAST : CONVT_CHANNELS_FIRST);
    Options options{};
    options.threads = static_cast<int>(state.range(0));
    Plan plan;
    throw_unless(Plan::create(subject.problem, options, subject.inputs.w.data(), subject.inputs.b->data(), &plan));
    const convtranspose::tools::Tensor x = aligned(subject.inputs.x);
    convtranspose::tools::Tensor y(CONVT_F32, plan.y_shape());
    convtranspose::tools::Buffer workspace(plan.workspace_bytes());
    const convtranspose::ConstTensorView x_view = x.view();
    const convtranspose::TensorView y_view = y.view();
    const double peak = peak_gflops(plan.isa(), options.threads);

    throw_unless(plan.run(x_view, y_view, workspace.data()));
    if (std::memcmp(y.data.data(), subject.y.data(), y.data.size()) != 0) {
        throw convtranspose::tools::Error("the result is not that of one thread");
    }
    bool ran = true;
    const double begin = now();
    for ([[maybe_unused]] auto iteration : state) {
        ran = static_cast<bool>(plan.run(x_view, y_view, workspace.data())) && ran;
        benchmark::ClobberMemory();
    }
    const double seconds = (now() - begin) / static_cast<double>(state.iterations());
    if (!ran) throw convtranspose::tools::Error("a run failed");
    const double gflops = 2e-9 * plan.macs() / seconds;
    state.counters["GFLOP/s"] = gflops;
    state.counters["peak_percent"] = 100 * gflops / peak;
    state.SetLabel(plan.variant() + " " + plan.isa());
}

void measure_or_skip(benchmark::State &state, const Layer &layer) {
    try {
        measure(state, layer);
    } catch (const std::exception &e) {
        any_failed = true;
        state.SkipWithError(e.what());
    }
}

std::vector<std::filesystem::path> all_workloads() {
    std::vector<std::filesystem::path> files;
    for (const auto &entry : std::filesystem::directory_iterator(CONVTRANSPOSE_WORKLOADS)) {
        if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

} // namespace

int main(int argc, char **argv) {
    benchmark::Initialize(&argc, argv); // takes its own options away
    std::vector<Layer> layers;          // not moved any more once the first is registered
    try {
        std::vector<std::filesystem::path> files(argv + 1, argv + argc);
        if (files.empty()) files = all_workloads();
        for (const std::filesystem::path &file : files) {
            for (Layer &layer : convtranspose::bench::read_workload(file)) layers.push_back(std::move(layer));
        }
    } catch (const std::exception &e) {
        std::cerr << "error: " << e.what() << '\n';
        return 2;
    }
    std::vector<std::int64_t> threads = {1};
    if (std::thread::hardware_concurrency() > 1) threads.push_back(std::thread::hardware_concurrency());
    for (const Layer &layer : layers) {
        benchmark::RegisterBenchmark(layer.name.c_str(),
                                     [&layer](benchmark::State &state) { measure_or_skip(state, layer); })
            ->ArgNames({"threads", "channels_last"})
            ->ArgsProduct({threads, {0, 1}}) // the first changes fastest
            ->UseRealTime()
            ->Unit(benchmark::kMicrosecond);
    }
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return any_failed ? 1 : 0;
}
