// Each subcommand is one function, from options to an exit status.
#ifndef CONVTRANSPOSE_TOOLS_COMMANDS_H_
#define CONVTRANSPOSE_TOOLS_COMMANDS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose::tools {

constexpr int kSuccess = 0, kFailure = 1, kUsage = 2; // exit statuses

struct PlanOptions {
    int threads = 1;
    std::string variant, isa; // empty: chosen by the plan
    std::string device;       // empty or "cpu": the CPU
    bool winograd = false;
    int measuring_ms = 0;                       // 0: the plan chooses by estimate
    std::shared_ptr<const convt_tuning> tuning; // null: that of the environment

    bool on_device() const { return !device.empty() && device != "cpu"; }
    Options view() const {
        Options options{};
        options.threads = threads;
        options.variant = variant.empty() ? nullptr : variant.c_str();
        options.isa = isa.empty() ? nullptr : isa.c_str();
        options.winograd = winograd ? 1 : 0;
        options.planning = measuring_ms ? CONVT_MEASURE : CONVT_ESTIMATE;
        options.planning_ms = measuring_ms;
        options.tuning = tuning.get();
        options.device.name = device.empty() ? nullptr : device.c_str();
        return options;
    }
};

struct RunOptions {
    std::vector<std::string> paths;
    std::string output_dir; // empty: results are not written
    bool verify = false;
    std::optional<convt_layout> layout; // none: as the operator has it; files have that in any case
    PlanOptions plan;
};

struct ExplainOptions {
    std::vector<std::string> paths;
    std::optional<convt_layout> layout;    // none: as the operator has it
    bool size = false;                     // of the kernels, instead
    bool all = false;                      // candidates and refusals
    bool json = false;                     // an array of layers
    bool features = false;                 // the parts of each estimate
    std::string cost_profile;              // one that ships; empty: this CPU's
    std::vector<std::string> input_shapes; // NAME=1x3x224x224
    PlanOptions plan;
};

struct BenchOptions {
    std::vector<std::string> paths;
    std::optional<convt_layout> layout; // none: as the operator has it
    double min_time = 0.5;              // seconds per node
    PostOps post_ops = {};              // added to every node
    bool json = false;
    int candidates = 0;                    // so many of the cheapest by estimate are timed; 0: the chosen one
    std::vector<std::string> input_shapes; // NAME=1x3x224x224
    PlanOptions plan;
};

struct TuneOptions {
    std::vector<std::string> paths; // models, and layers as lines (problem_line.h)
    std::string output;             // folder
    std::string search = "select";
    double budget = 0;   // seconds for a layer; 0: as long as the search is worth
    double timeout = 60; // seconds that a candidate may take to compile, or to answer
    bool resume = false;
    std::string emit;             // folder for a library of these layers; empty: none
    std::string emit_name;        // of that library
    std::string rows;             // folder for what schedules/tuned takes; empty: none
    std::string runner;           // command in front of the worker's
    std::string worker;           // its path on the device; empty: that of the package
    std::string package;          // folder of the library for the device, built or installed; empty: this program's
    std::string generators;       // folder; empty: this program's
    std::string compiler = "c++"; // which links kernels, and compiles the table of an emitted library
    std::string archiver = "ar";
    std::string target;                    // Halide's arch-bits-os; empty: the package's
    std::vector<std::string> input_shapes; // NAME=1x3x224x224
    std::optional<convt_layout> layout;
    PlanOptions plan;
};

struct CalibrateOptions {
    std::string output;    // file of records and profiles, which a line is added to
    double seconds = 120;  // for all
    double timeout = 60;   // seconds that a candidate may take to answer
    bool resume = false;   // keep the times of an earlier calibration, and add to them
    bool fit_only = false; // add none
    std::string runner;    // command in front of the worker's
    std::string worker;    // its path on the device; empty: that of the package
    std::string package;   // folder of the library for the device; empty: this program's
    PlanOptions plan;
};

int run_command(const RunOptions &options);
int explain_command(const ExplainOptions &options);
int bench_command(const BenchOptions &options);
int targets_command();
int tune_command(const TuneOptions &options);
int calibrate_command(const CalibrateOptions &options);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_COMMANDS_H_
