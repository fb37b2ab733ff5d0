// The tools that tuning needs: the worker on the device, and to make kernels also the generators, a linker, and how the package's
// own kernels were made.
#ifndef CONVTRANSPOSE_TOOLS_TUNE_KERNEL_BUILDER_H_
#define CONVTRANSPOSE_TOOLS_TUNE_KERNEL_BUILDER_H_

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/commands.h"
#include "tools/tune/subprocess.h"

namespace convtranspose::tools {

class KernelBuilder {
  public:
    explicit KernelBuilder(const TuneOptions &options);

    std::unique_ptr<Subprocess> start_worker() const;

    // These throw Error if a part is missing, and say which.
    const std::filesystem::path &generators() const; // the folder
    const nlohmann::json &kernels() const; // of the package, as kernels/generate.py lists them in kernels.json
    const nlohmann::json &source() const;  // the templates of their tables, beside them
    std::filesystem::path archive(const std::string &name) const; // "convtranspose_runtime": libconvtranspose_runtime.a
    std::filesystem::path headers() const;                        // the folder that holds convtranspose/
    std::filesystem::path sources() const;                        // the folder that holds kernel_contract/

    // The command that makes an object file, and the one that makes a shared object of several.
    Task generate(const std::string &generator, const std::string &name, const std::string &function,
                  const std::string &target, const nlohmann::json &parameters, const std::string &folder) const;
    Task link(const std::vector<std::string> &objects, const std::string &shared) const;
    std::vector<std::string> compiler() const;

    // Changes parameters and target into those of a kernel that one of Halide's autoschedulers schedules. Such kernels allocate
    // and run threads, so Halide's runtime comes with them.
    void schedule_automatically(const std::string &scheduler, int threads, nlohmann::json *parameters,
                                std::string *target) const;

    // Halide's target for an ISA of the package, or nothing if there is none. It begins with what --target names.
    std::string target(const std::string &isa) const;

    const std::filesystem::path &scratch() const { return scratch_; } // for what is made on the way
    int jobs() const { return jobs_; }

  private:
    // The places where a file of the package may be, built or installed.
    std::vector<std::filesystem::path> in_package(const std::filesystem::path &file) const;
    const nlohmann::json &kernels_file() const;
    std::filesystem::path first_that_exists(const std::vector<std::filesystem::path> &places, const char *what) const;

    TuneOptions options_;
    std::filesystem::path program_folder_, package_, scratch_;
    mutable std::filesystem::path generators_;
    mutable nlohmann::json kernels_file_;
    int jobs_;
};

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNE_KERNEL_BUILDER_H_
