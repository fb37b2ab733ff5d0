// The command `tune`: finds the fastest kernels for layers, and writes records, libraries and rows of them.
#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "tools/commands.h"
#include "tools/each_layer.h"
#include "tools/error.h"
#include "tools/files.h"
#include "tools/input_shape.h"
#include "tools/job.h"
#include "tools/problem_line.h"
#include "tools/random_layer.h"
#include "tools/text.h"
#include "tools/tune/emit.h"
#include "tools/tune/kernel_builder.h"
#include "tools/tune/measurement_session.h"
#include "tools/tune/search_log.h"
#include "tools/tune/tuner.h"

namespace convtranspose::tools {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A layer to tune, and the nodes that it is.
struct Work {
    std::string line;
    std::vector<std::string> names;
};

void require_identifier(const std::string &name) {
    bool is_one = !name.empty() && !(name[0] >= '0' && name[0] <= '9');
    for (const char c : name) {
        is_one = is_one && (c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'));
    }
    if (!is_one) throw UsageError("--emit-name: '" + name + "' is not a C identifier");
}

void add(const std::string &line, const std::string &name, std::vector<Work> *all) {
    for (Work &work : *all) {
        if (work.line != line) continue;
        work.names.push_back(name);
        return;
    }
    all->push_back({line, {name}});
}

// The layers that the paths name, each once. *failed gets the number of errors. Throws UsageError for a path that is neither a file
// nor a layer.
std::vector<Work> all_work(const TuneOptions &options, int *failed) {
    std::vector<Work> all;
    const std::vector<InputShape> shapes = input_shapes_from(options.input_shapes);
    for (const std::string &path : options.paths) {
        std::error_code code; // of a line that is too long for a name
        if (!fs::exists(path, code)) {
            try {
                const Problem problem = problem_of_line(path);
                if (options.layout) throw UsageError("--layout does not go with a layer, whose line has its layout");
                add(to_line(problem), to_line(problem), &all);
            } catch (const std::invalid_argument &e) {
                throw UsageError("'" + path + "' is neither a file nor a layer: " + e.what());
            }
            continue;
        }
        *failed += for_each_layer(jobs_from({path}), shapes, options.layout, nullptr,
                                  [&](const Job &job, const Model &, const Layer &layer) {
                                      require_valid(layer.problem);
                                      note_floats(job, layer.node, nullptr);
                                      add(to_line(layer.problem), job.name + ": " + layer.node.label, &all);
                                  });
    }
    require_all_used(shapes);
    return all;
}

// The fields of results of candidates, and of records, as tuner.cpp writes them.
std::vector<LineField> fields_of_search() {
    return {{"problem"},
            {"cpu"},
            {"isa"},
            {"name"},
            {"threads", LineField::kNumber},
            {"search", LineField::kText, true},
            {"winograd", LineField::kFlag, true},
            {"ms", LineField::kNumber, true},
            {"ratio", LineField::kNumber, true},
            {"error", LineField::kText, true},
            {"generator", LineField::kText, true}};
}

std::vector<LineField> fields_of_records() {
    return {{"problem"},
            {"cpu"},
            {"isa"},
            {"search"},
            {"default"},
            {"variant"},
            {"threads", LineField::kNumber},
            {"macs", LineField::kNumber},
            {"tried", LineField::kNumber},
            {"ms", LineField::kTime},
            {"default_ms", LineField::kTime},
            {"runs", LineField::kTexts},
            {"winograd", LineField::kFlag, true}};
}

// Returns the table of one layer or more.
std::string report(const std::vector<TunedLayer> &layers) {
    std::vector<std::vector<std::string>> rows = {{"layer", "default", "ms", "tuned", "ms", "gain", "peak %", "tried"}};
    double logs = 0;
    for (const TunedLayer &layer : layers) {
        const json &r = layer.record;
        const double ms = r.at("ms").get<double>(), before = r.at("default_ms").get<double>();
        const double gflops = 2e-6 * r.at("macs").get<double>() / ms;
        const json peak = r.value("peak_gflops", json()); // null: a device does not tell
        rows.push_back({layer.names.front() + (layer.names.size() > 1 ? " ..." : ""),
                        r.at("default").get<std::string>(), format("%.4f", before), r.at("variant").get<std::string>(),
                        format("%.4f", ms), format("%.2f", before / ms),
                        peak.is_number() ? format("%.1f", 100 * gflops / peak.get<double>()) : "-",
                        std::to_string(r.at("tried").get<std::size_t>())});
        logs += std::log(before / ms);
    }
    std::ostringstream text;
    print_table(text, rows, {2, 4, 5, 6, 7});
    text << "geometric mean of the gain: " << format("%.3f", std::exp(logs / static_cast<double>(layers.size())))
         << '\n';
    return text.str();
}

} // namespace

int tune_command(const TuneOptions &options) {
    int failed = 0;
    if (!options.emit.empty()) require_identifier(options.emit_name);
    if (options.plan.winograd && !options.emit.empty())
        throw UsageError("--winograd does not go with --emit, whose libraries compute by the definition");
    if (options.plan.on_device()) {
        if (options.search != "select") throw UsageError("--device goes with --search select only");
        if (!options.emit.empty() || !options.rows.empty())
            throw UsageError("--device does not go with --emit and --rows, whose kernels are for a CPU");
        if (options.plan.threads != 1) throw UsageError("--device does not go with --threads");
    }
    const std::vector<Work> all = all_work(options, &failed);
    if (all.empty()) return kFailure; // earlier results stay
    make_folder(options.output, "--output");
    if (!options.emit.empty()) make_folder(options.emit, "--emit");
    if (!options.rows.empty()) make_folder(options.rows, "--rows");
    const KernelBuilder builder(options);
    const Stamp stamp = {CONVT_VERSION, convt_kernels_version()};
    SearchLog log(fs::path(options.output) / "search.jsonl", stamp, options.resume, fields_of_search());
    SearchLog records(fs::path(options.output) / "tuning.jsonl", stamp, options.resume, fields_of_records());

    std::vector<TunedLayer> tuned;
    Progress progress(all.size(), true);
    for (const Work &work : all) {
        const std::string &name = work.names.front();
        progress.step(name);
        try {
            if (is_light(problem_of_line(work.line)) &&
                (options.search != "select" || !options.emit.empty() || !options.rows.empty())) {
                throw Error("no kernels are made for light weights: --search select, without --emit and --rows, finds "
                            "the fastest of those that are built in");
            }
            MeasurementSession session(builder, work.line, options.plan, options.timeout);
            const json &layer = session.layer();
            const auto is_done = [&](const json &record) { return is_of_search(record, layer, options); };
            const auto done = std::find_if(records.lines().begin(), records.lines().end(), is_done);
            if (done == records.lines().end()) {
                Tuner tuner(options, builder, &session, &log);
                records.add(tuner.tune([&](std::size_t tried, double best, double seconds) {
                    progress.detail(name + ": " + std::to_string(tried) + " tried, best " + format("%.2f", 1 / best) +
                                    " times as fast as the default, " + format("%.0f s left", std::max(seconds, 0.0)));
                }));
                tuned.push_back({work.names, work.line, records.lines().back()});
            } else {
                tuned.push_back({work.names, work.line, *done});
            }
        } catch (const std::exception &e) {
            progress.clear();
            print_message("error", name + ": " + message_of(e));
            failed++;
        }
    }
    progress.clear();
    if (tuned.empty()) return kFailure; // each layer's error was printed, and earlier results stay
    const std::string text = report(tuned);
    write_file(fs::path(options.output) / "report.txt", text);
    std::cout << text << std::flush;
    if (!options.emit.empty()) {
        emit(tuned, options, builder);
        std::cout << options.emit << " holds a library of these layers, with an example that links it\n";
    }
    if (!options.rows.empty()) {
        std::cout << options.rows << " holds files of " << write_rows(tuned, options.rows)
                  << " layers, for schedules/tuned of the sources\n";
    }
    return failed == 0 ? kSuccess : kFailure;
}

} // namespace convtranspose::tools
