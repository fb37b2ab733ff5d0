// The subcommands: one function each, from options to an exit status.
#ifndef CONVTRANSPOSE_TOOLS_COMMANDS_H_
#define CONVTRANSPOSE_TOOLS_COMMANDS_H_

#include <optional>
#include <string>
#include <vector>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose::tools {

constexpr int kSuccess = 0, kFailure = 1, kUsage = 2; // exit statuses

struct PlanOptions {
    int threads = 1;
    std::string variant, isa; // empty: chosen by the plan
    std::string device;       // empty: the CPU

    Options view() const {
        Options options{};
        options.threads = threads;
        options.variant = variant.empty() ? nullptr : variant.c_str();
        options.isa = isa.empty() ? nullptr : isa.c_str();
        options.device.name = device.empty() ? nullptr : device.c_str();
        return options;
    }
};

struct RunOptions {
    std::vector<std::string> paths;
    std::string output_dir; // empty: results are not written
    bool verify = false;
    PlanOptions plan;
};

struct ExplainOptions {
    std::vector<std::string> paths;
    std::optional<convt_layout> layout; // none: as the operator has it
    bool size = false;                  // of the kernels, instead
    PlanOptions plan;
};

struct BenchOptions {
    std::vector<std::string> paths;
    std::optional<convt_layout> layout; // none: as the operator has it
    double min_time = 0.5;              // seconds per node
    PostOps post_ops = {};              // added to every node
    bool json = false;
    PlanOptions plan;
};

int run_command(const RunOptions &options);
int explain_command(const ExplainOptions &options);
int bench_command(const BenchOptions &options);
int targets_command();

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_COMMANDS_H_
