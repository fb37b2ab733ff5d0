// The command line. It reads the options, calls one of the commands and returns its exit status.
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <google/protobuf/stubs/logging.h>

#include "tools/commands.h"
#include "tools/error.h"
#include "tools/problem_line.h"
#include "tools/text.h"

namespace {

using convtranspose::layout_name;
using convtranspose::layout_of_name;
using convtranspose::PostOps;
using namespace convtranspose::tools;

constexpr const char *kRunHelp = R"(
Each PATH is one of
  FOLDER              an ONNX backend test folder: model.onnx, and in test_data_set_0, test_data_set_1, ...
                      the files input_0.pb, input_1.pb, ... for the graph inputs that are not initializers,
                      in their order. All data sets are run; the result of the first is written.
  MODEL.onnx FILE...  a model and its inputs in that order: TensorProtos (.pb) or NumPy arrays (.npy)
  MODEL.onnx          a model whose inputs lie beside it, as in a test folder or as input_0.pb (or .npy), ...
A model is one ConvTranspose node (f16, bf16, f32 or f64) or one QLinearConvTranspose node of domain
com.ms.internal.nhwc (u8 and s8). Cast, Identity, Reshape, Transpose and DequantizeLinear may stand behind constants,
and DynamicQuantizeLinear and DequantizeLinear before X where weights come through DequantizeLinear. Weights and bias
that are constants are packed when the model is planned; those that are graph inputs are passed with each run, as are
scales and zero points.

run computes what the model says: 8-bit weights of a layer whose x is quantized by each run are computed in integers
here, also where explain, bench and the ONNX Runtime provider take floats, which are faster for some layers.

Files hold x and y as the operator has them; with --layout they are rearranged before and after the computation.

Results are written to OUT/<name of the folder, or of the model file without .onnx>/output_0.pb. A model that
fails leaves no file there, and a line "error: <name>: <message>" on standard error.

--verify compares with output_0.pb: elementwise within tolerance_0.pb if there is one, else within
  (terms + 4) * u_acc * max|expected| + 4 * u * |expected|
(terms: products in a sum; u: unit roundoff of the type; u_acc: that of f32, of f64 for f64; 0 for integers,
which must be equal). Infinities and NaNs must agree. A test folder without output_0.pb says that its model
must be rejected: it passes if the model breaks a rule of the operator, and fails if a result comes out or if
anything else went wrong (a missing file, a valid model that is not supported).

Exit status: 0 all well, 1 some failed, 2 wrong options or arguments.)";

constexpr const char *kBenchHelp = R"(
Measures every ConvTranspose and QLinearConvTranspose node of the models, in If, Loop, Scan and functions too,
whose shapes ONNX's shape inference finds: --input-shape tells what the model leaves open. A ConvTranspose behind
DequantizeLinear is measured as the quantized layer that it is, and one of f32 whose constant weights come
through Cast from f16 or bf16, or through DequantizeLinear from 8 bits, as one of light weights. Weights, bias,
scales and zero points are constant, random data, x, y and the workspace allocated beforehand. GFLOP/s (Gop/s of
integers) count the multiply-adds of the definition (cropped ones left out), two operations each, at the best
time; peak % is their share of the multiply-add peak of as many threads with the same ISA, measured in the same
process: of floats of the type, or of 8-bit integers (16-bit ones where there is no VNNI).

Exit status: 0 all well, 1 some failed, 2 wrong options or arguments.)";

constexpr const char *kExplainHelp = R"(
Prints the plan of every ConvTranspose and QLinearConvTranspose node, in If, Loop, Scan and functions too, whose
shapes ONNX's shape inference finds (--input-shape tells what the model leaves open): extents, taps, the ten nearest
candidates with their estimated costs, choice and why, and what the others are refused for (--all: all candidates).
A ConvTranspose behind DequantizeLinear is planned as the quantized layer that it is, and one of f32 whose constant
weights come through Cast or DequantizeLinear as one of light weights. If weights, bias, scales
and zero points are all constant, they are planned with; otherwise the plan takes them with each run.

--cost-profile NAME shows what would be chosen on another machine, of the ISAs that this CPU runs. --json prints an
array of layers, each with its candidates and their estimates; with --features an estimate is also divided into the
cycles that each field of the cost profile accounts for.

--size prints what the kernels cost instead, in bytes of code: all that are built in, or with models what a
build for these layers needs, as planned here.)";

constexpr const char *kTuneHelp = R"(
Each PATH is a model, whose ConvTranspose and QLinearConvTranspose nodes are tuned where ONNX's shape inference
finds their shapes (--input-shape tells what the model leaves open), or a layer as a line,
"f32 nchw n1 g1 ic64 oc3 i32x32 k4x4 s2x2 p1x1_1x1 bias" (tools/problem_line.h). Layers of light weights, such as
"... bias wf16" and "... bias ws8 dynamic", take kernels that are built in, by --search select.

--search select times the kernels that are built in: seconds, and nothing else is needed. schedule makes kernels
for each layer, with its shape built in, by the generators and a linker. auto makes them by Halide's own
autoschedulers, to compare with. Each candidate must compute what the reference kernel computes before it is
timed; one that does not compile, crashes or hangs costs only itself.

DIR gets tuning.jsonl, the records: set CONVTRANSPOSE_TUNING to it, or give it to convt_tuning_read; search.jsonl,
every candidate's result; report.txt; scratch/, the worker's log and objects of candidates, which you may delete.
--resume goes on where a search was ended, and refuses what other kernels were measured for. --emit makes a library of
exactly these layers: archive, header, CMake package, example.

A device is tuned by the worker built for it: --package names that build, --runner what runs its programs here
(qemu-aarch64 -L /usr/aarch64-linux-gnu; adb shell; ssh phone), --worker where the worker is on the device.

--device cuda, or opencl, finds which kernel for a GPU is the fastest for a layer, with tensors in its memory: with --search
select only, and without --emit.

Exit status: 0 all well, 1 some failed, 2 wrong options or arguments.)";

constexpr const char *kCalibrateHelp = R"(
Times candidates of random layers on this machine, or on one that --runner and --worker reach as for tune, and fits a
cost profile to them: the numbers that plans estimate by which candidate is the fastest. A line with the profile is added
to FILE, which may hold tuning records too: set CONVTRANSPOSE_TUNING to it, or give it to convt_tuning_read. It counts for
the CPU and the ISA that were measured (--isa), where no record decides.

FILE.calibration/ keeps the times. --resume adds to those of an earlier calibration; --fit-only fits to them alone.

Exit status: 0 all well, 1 it failed, 2 wrong options or arguments.)";

constexpr int kMostMilliseconds = 3600 * 1000;
constexpr int kMostThreads = 4096; // as in the C interface

// Returns what CLI::Range checks, and refuses nan, which Range lets pass.
CLI::Validator number_in(double least, double most) {
    CLI::Range range(least, most);
    const auto check = [range](std::string &text) {
        double number = 0;
        const bool is_nan = CLI::detail::lexical_cast(text, number) && std::isnan(number);
        return is_nan ? "Value " + text + " is not a number" : range(text);
    };
    return CLI::Validator(check, range.get_description());
}

// Refuses an empty name of a folder, which would stand for none.
CLI::Validator not_empty() {
    const auto check = [](std::string &text) { return std::string(text.empty() ? "'' names no folder" : ""); };
    return CLI::Validator(check, "");
}

// Adds the options that say what of the CPU is used.
void add_cpu_options(CLI::App *command, PlanOptions *options) {
    command
        ->add_option("--threads", options->threads,
                     "The most threads that a layer uses; explain says how many it does use, and why")
        ->check(CLI::Range(1, kMostThreads))
        ->capture_default_str();
    command->add_option("--isa", options->isa, "Force an ISA (see targets); default: the best that this CPU runs");
}

// Adds the options of everything that is planned, named or not.
void add_machine_options(CLI::App *command, PlanOptions *options) {
    add_cpu_options(command, options);
    command->add_option("--device", options->device,
                        "cpu, or a device whose kernels are built in: cuda, opencl (see targets)");
    command->add_flag("--winograd", options->winograd,
                      "Allow Winograd's algorithm, faster and of other rounding errors, for f32 and f64");
}

void add_plan_options(CLI::App *command, PlanOptions *options) {
    add_machine_options(command, options);
    command->add_option("--variant", options->variant, "Force a variant (see targets); default: chosen by the plan");
}

void add_measure(CLI::App *command, PlanOptions *options) {
    command
        ->add_flag(
            "--measure{50}", options->measuring_ms,
            "Choose what is fastest by running candidates for 50 ms a layer, or --measure=MS; default: by estimate")
        ->check(CLI::Range(1, kMostMilliseconds));
}

CLI::Option *add_paths(CLI::App *command, std::vector<std::string> *paths, const char *description) {
    return command->add_option("PATH", *paths, description)->required();
}

void add_input_shapes(CLI::App *command, std::vector<std::string> *shapes) {
    command
        ->add_option(
            "--input-shape", *shapes,
            "Shape of a graph input, or of another value that no shape is known of, in place of what the model says")
        ->allow_extra_args(false) // models may follow
        ->type_name("NAME=1x3x224x224");
}

void add_layout(CLI::App *command, std::optional<convt_layout> *layout) {
    command
        ->add_option_function<std::string>(
            "--layout", [layout](const std::string &name) { *layout = layout_of_name(name); },
            "Layout of x and y; default: the operator's, nchw for ConvTranspose and nhwc for QLinearConvTranspose")
        ->check(CLI::IsMember({layout_name(CONVT_CHANNELS_FIRST), layout_name(CONVT_CHANNELS_LAST)}));
}

void add_post_ops(CLI::App *command, PostOps *post_ops) {
    static const std::map<std::string, PostOps> kActivations = {
        {"relu", {0, CONVT_RELU, 0, 0}}, {"leaky_relu", {0, CONVT_LEAKY_RELU, 0.01f, 0}},
        {"clip", {0, CONVT_CLIP, 0, 6}}, {"sigmoid", {0, CONVT_SIGMOID, 0, 0}},
        {"tanh", {0, CONVT_TANH, 0, 0}},
    };
    command
        ->add_option_function<std::string>(
            "--activation",
            [post_ops](const std::string &name) {
                const int adds_residual = post_ops->adds_residual;
                *post_ops = kActivations.at(name);
                post_ops->adds_residual = adds_residual;
            },
            "Fuse an activation into every layer (leaky_relu: of slope 0.01; clip: to 0 .. 6)")
        ->check(CLI::IsMember(kActivations));
    command->add_flag_callback(
        "--residual", [post_ops] { post_ops->adds_residual = 1; },
        "Add a residual in every layer, before the activation");
}

CLI::App *add_run(CLI::App *app, RunOptions *options) {
    CLI::App *const command = app->add_subcommand("run", "Compute models on their inputs, and verify the results");
    add_paths(command, &options->paths, "Models, each with its input files, and test folders");
    command->add_option("--output-dir", options->output_dir, "Write results to OUT/<name>/output_0.pb")
        ->check(not_empty())
        ->type_name("OUT");
    command->add_flag("--verify", options->verify, "Compare results with output_0.pb");
    add_layout(command, &options->layout);
    add_plan_options(command, &options->plan);
    add_measure(command, &options->plan);
    command->footer(kRunHelp);
    return command;
}

CLI::App *add_explain(CLI::App *app, ExplainOptions *options) {
    CLI::App *const command = app->add_subcommand("explain", "Print how models would be computed, and why so");
    add_paths(command, &options->paths, "Models, or folders with a model.onnx")->required(false);
    command->add_flag("--size", options->size, "Print the bytes that kernels take");
    command->add_flag("--all", options->all, "List all candidates and refusals");
    command->add_option("--cost-profile", options->cost_profile,
                        "Estimate by a cost profile that ships (runtime/cost/profiles); default: that of this CPU");
    CLI::Option *const json = command->add_flag("--json", options->json, "Print a JSON array of layers and candidates");
    command->add_flag("--features", options->features, "Print the parts of each estimate, in cycles")->needs(json);
    add_input_shapes(command, &options->input_shapes);
    add_layout(command, &options->layout);
    add_plan_options(command, &options->plan);
    add_measure(command, &options->plan);
    command->footer(kExplainHelp);
    return command;
}

CLI::App *add_bench(CLI::App *app, BenchOptions *options) {
    CLI::App *const command = app->add_subcommand("bench", "Measure the speed of the layers of models");
    add_paths(command, &options->paths, "Models, or folders with a model.onnx");
    command->add_option("--min-time", options->min_time, "Seconds to measure each layer for, at least")
        ->check(number_in(0, 3600))
        ->capture_default_str();
    command->add_flag("--json", options->json, "Print a JSON array instead of a table");
    command
        ->add_option("--candidates", options->candidates,
                     "Measure so many of the candidates, by rising estimated cost, instead of the one that is chosen")
        ->check(CLI::Range(1, 1000000));
    add_input_shapes(command, &options->input_shapes);
    add_layout(command, &options->layout);
    add_post_ops(command, &options->post_ops);
    add_plan_options(command, &options->plan);
    add_measure(command, &options->plan);
    command->footer(kBenchHelp);
    return command;
}

// options: TuneOptions or CalibrateOptions.
template<typename Options>
void add_worker(CLI::App *command, Options *options) {
    command
        ->add_option("--package", options->package, "The library for the device, built or installed; default: this one")
        ->type_name("DIR");
    command->add_option("--runner", options->runner, "Command that runs programs of the device")->type_name("CMD");
    command->add_option("--worker", options->worker,
                        "convtranspose-worker, as the runner finds it; default: the package's");
}

CLI::App *add_tune(CLI::App *app, TuneOptions *options) {
    CLI::App *const command =
        app->add_subcommand("tune", "Find the fastest kernels for layers, on this machine or another");
    add_paths(command, &options->paths, "Models, folders with a model.onnx, and layers as lines");
    command->add_option("--output", options->output, "Folder for records, results and what is made")
        ->type_name("DIR")
        ->required();
    command->add_option("--search", options->search, "What is tried")
        ->check(CLI::IsMember({"select", "schedule", "auto"}))
        ->capture_default_str();
    command->add_option("--budget", options->budget, "Seconds for each layer; default: 2 to select, else 60")
        ->check(number_in(0.1, 1e6));
    command->add_option("--timeout", options->timeout, "Seconds that a candidate may take to compile, or to answer")
        ->check(number_in(0.1, 1e6))
        ->capture_default_str();
    command->add_flag("--resume", options->resume, "Go on with the search that DIR holds");
    command->add_option("--emit", options->emit, "Make a library of these layers in a folder")
        ->check(not_empty())
        ->type_name("DIR");
    command->add_option("--emit-name", options->emit_name, "Its name, a C identifier; default: that of the folder")
        ->needs("--emit");
    command
        ->add_option("--rows", options->rows,
                     "Write a file for each layer that gained, for schedules/tuned of the sources")
        ->check(not_empty())
        ->type_name("DIR");
    add_input_shapes(command, &options->input_shapes);
    add_worker(command, options);
    command->add_option("--generators", options->generators, "Folder of the generators; default: those of this program")
        ->type_name("DIR");
    command->add_option("--compiler", options->compiler, "C++ compiler and linker for the device")
        ->capture_default_str();
    command->add_option("--archiver", options->archiver, "ar for the device")->capture_default_str();
    command->add_option("--target", options->target,
                        "Halide's arch-bits-os, such as arm-64-android; default: the package's");
    add_layout(command, &options->layout);
    add_machine_options(command, &options->plan);
    command->footer(kTuneHelp);
    return command;
}

CLI::App *add_calibrate(CLI::App *app, CalibrateOptions *options) {
    CLI::App *const command = app->add_subcommand("calibrate", "Fit the cost profile of a machine to measurements");
    command->add_option("--output", options->output, "File that gets the profile")->type_name("FILE")->required();
    command->add_option("--seconds", options->seconds, "Seconds for all of it")
        ->check(number_in(1, 1e6))
        ->capture_default_str();
    command->add_option("--timeout", options->timeout, "Seconds that a candidate may take to answer")
        ->check(number_in(0.1, 1e6))
        ->capture_default_str();
    command->add_flag("--resume", options->resume, "Keep the times of an earlier calibration, and add to them");
    command->add_flag("--fit-only", options->fit_only,
                      "Fit to the times of an earlier calibration, without timing more");
    add_worker(command, options);
    add_cpu_options(command, &options->plan);
    command->footer(kCalibrateHelp);
    return command;
}

std::string name_of_folder(const std::string &folder) {
    // "my_net/" and "." have no file name of their own.
    const auto plain = std::filesystem::absolute(folder).lexically_normal();
    return (plain.has_filename() ? plain : plain.parent_path()).filename().string();
}

int run_main(int argc, char **argv) {
    CLI::App app("Transposed convolution (ConvTranspose, QLinearConvTranspose) from the command line", "convtranspose");
    app.set_version_flag("--version", CONVT_VERSION);
    app.require_subcommand(0, 1); // a word that is no command is refused by name, which a required command would not
    RunOptions run;
    const CLI::App *const run_app = add_run(&app, &run);
    ExplainOptions explain;
    const CLI::App *const explain_app = add_explain(&app, &explain);
    BenchOptions bench;
    const CLI::App *const bench_app = add_bench(&app, &bench);
    TuneOptions tune;
    const CLI::App *const tune_app = add_tune(&app, &tune);
    CalibrateOptions calibrate;
    const CLI::App *const calibrate_app = add_calibrate(&app, &calibrate);
    const CLI::App *const targets_app =
        app.add_subcommand("targets", "List the ISAs, algorithms and variants that are built in");

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &e) {
        return app.exit(e) == 0 ? kSuccess : kUsage; // 0: --help and --version
    }
    if (run_app->parsed()) return run_command(run);
    if (explain_app->parsed()) return explain_command(explain);
    if (bench_app->parsed()) return bench_command(bench);
    if (tune_app->parsed()) {
        if (tune.emit_name.empty() && !tune.emit.empty()) tune.emit_name = name_of_folder(tune.emit);
        return tune_command(tune);
    }
    if (calibrate_app->parsed()) return calibrate_command(calibrate);
    if (targets_app->parsed()) return targets_command();
    std::string commands;
    for (const CLI::App *const command : app.get_subcommands([](const CLI::App *) { return true; }))
        commands += (commands.empty() ? "" : ", ") + command->get_name();
    throw UsageError("a command is required: " + commands + "; --help says more");
}

// Returns the status of a command, or a failure if what it printed was not written, as on a full disk.
int with_output_written(int status) {
    std::cout.flush();
    const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    if (written || status != kSuccess) return status;
    std::fprintf(stderr, "error: what was printed could not be written to standard output\n");
    return kFailure;
}

} // namespace

int main(int argc, char **argv) {
    google::protobuf::SetLogHandler(nullptr); // our own messages name the file
    try {
        return with_output_written(run_main(argc, argv));
    } catch (const UsageError &e) {
        print_message("error", e.what());
        return kUsage;
    } catch (const std::exception &e) {
        print_message("error", e.what());
        return kFailure;
    }
}
