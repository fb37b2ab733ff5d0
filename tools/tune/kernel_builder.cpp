#include "tools/tune/kernel_builder.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "tools/error.h"

namespace convtranspose::tools {

namespace fs = std::filesystem;

namespace {

fs::path folder_of_this_program() {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    return error ? fs::current_path() : program.parent_path();
}

} // namespace

KernelBuilder::KernelBuilder(const TuneOptions &options)
    : options_(options), program_folder_(folder_of_this_program()),
      package_(options.package.empty() ? program_folder_ / ".." : fs::path(options.package)),
      scratch_(fs::path(options.output) / "scratch"),
      jobs_(static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))) {
    fs::create_directories(scratch_);
}

std::vector<fs::path> KernelBuilder::in_package(const fs::path &file) const {
    std::vector<fs::path> places = {package_ / "runtime" / file.filename(), package_ / "lib" / file};
    if (fs::is_directory(package_ / "lib")) {
        for (const auto &entry : fs::directory_iterator(package_ / "lib")) {
            places.push_back(entry.path() / file); // lib/x86_64-linux-gnu
        }
    }
    return places;
}

fs::path KernelBuilder::first_that_exists(const std::vector<fs::path> &places, const char *what) const {
    for (const fs::path &place : places) {
        if (fs::exists(place)) return place;
    }
    std::string looked;
    for (const fs::path &place : places) looked += (looked.empty() ? "" : ", ") + place.string();
    throw Error(std::string("there is no ") + what + ": looked for " + looked);
}

std::unique_ptr<Subprocess> KernelBuilder::start_worker() const {
    std::vector<std::string> command = words_of(options_.runner);
    std::string worker = options_.worker;
    if (worker.empty()) {
        worker = first_that_exists({package_ / "bin" / "convtranspose-worker"}, "worker (--worker names one)").string();
    }
    command.push_back(worker);
    setenv("HL_NUM_THREADS", std::to_string(options_.plan.threads).c_str(),
           1); // of Halide's runtime in autoscheduled kernels
    return std::make_unique<Subprocess>(command, (scratch_ / "worker.log").string());
}

const fs::path &KernelBuilder::generators() const {
    if (generators_.empty()) {
        const fs::path file = "oc_vectorized_generator";
        std::vector<fs::path> places = {program_folder_ / file,
                                        program_folder_ / ".." / "libexec" / "convtranspose" / file};
        if (!options_.generators.empty()) places = {fs::path(options_.generators) / file};
        generators_ = first_that_exists(places, "generator (--generators names their folder)").parent_path();
    }
    return generators_;
}

const nlohmann::json &KernelBuilder::kernels_file() const {
    if (kernels_file_.is_null()) {
        const std::vector<fs::path> places = in_package(fs::path("cmake") / "ConvTranspose" / "kernels.json");
        const fs::path file = first_that_exists(places, "list of kernels (--package names the library's folder)");
        std::ifstream stream(file);
        kernels_file_ = nlohmann::json::parse(stream);
    }
    return kernels_file_;
}

const nlohmann::json &KernelBuilder::kernels() const { return kernels_file().at("kernels"); }

const nlohmann::json &KernelBuilder::source() const { return kernels_file().at("source"); }

fs::path KernelBuilder::archive(const std::string &name) const {
    const std::string file = "lib" + name + ".a";
    return first_that_exists(in_package(file), file.c_str());
}

fs::path KernelBuilder::headers() const {
    return first_that_exists({package_ / "include" / "convtranspose", fs::path(CONVTRANSPOSE_SOURCE_HEADERS)},
                             "headers");
}

fs::path KernelBuilder::sources() const {
    const fs::path header = fs::path("kernel_contract") / "kernel_table.h";
    const std::vector<fs::path> places = {generators() / "include" / header, fs::path(CONVTRANSPOSE_SOURCES) / header};
    return first_that_exists(places, "kernel_table.h").parent_path().parent_path();
}

std::string KernelBuilder::target(const std::string &isa) const {
    for (const nlohmann::json &kernel : kernels()) {
        if (kernel.at("isa") != isa || kernel.at("kind") != "variant") continue;
        auto target = kernel.at("target").get<std::string>();
        if (options_.target.empty()) return target;
        // arch-bits-os come first.
        std::size_t end = 0;
        for (int i = 0; i < 3 && end != std::string::npos; i++) end = target.find('-', end + (i > 0));
        return options_.target + (end == std::string::npos ? "" : target.substr(end));
    }
    return "";
}

Task KernelBuilder::generate(const std::string &generator, const std::string &name, const std::string &function,
                             const std::string &target, const nlohmann::json &parameters,
                             const std::string &folder) const {
    Task task;
    task.command = {(generators() / (generator + "_generator")).string(),
                    "-g",
                    generator,
                    "-f",
                    function,
                    "-n",
                    name,
                    "-e",
                    "object",
                    "-o",
                    folder,
                    "target=" + target};
    for (const nlohmann::json &parameter : parameters) task.command.push_back(parameter.get<std::string>());
    task.log = (fs::path(folder) / (name + ".log")).string();
    return task;
}

void KernelBuilder::schedule_automatically(const std::string &scheduler, int threads, nlohmann::json *parameters,
                                           std::string *target) const {
    std::string file = "libautoschedule_" + scheduler + ".so";
    std::transform(file.begin(), file.end(), file.begin(), [](unsigned char c) { return std::tolower(c); });
    const fs::path plugin =
        first_that_exists({generators() / file, fs::path(CONVTRANSPOSE_HALIDE_PLUGINS) / file}, "autoscheduler");
    parameters->insert(parameters->end(), {"-p", plugin.string(), "autoscheduler=" + scheduler});
    // The autoschedulers want to know the machine. The rest is their own default.
    parameters->push_back("autoscheduler.parallelism=" + std::to_string(threads));
    const std::string without = "-no_runtime";
    if (const std::size_t at = target->find(without); at != std::string::npos) target->erase(at, without.size());
}

std::vector<std::string> KernelBuilder::compiler() const { return words_of(options_.compiler); }

Task KernelBuilder::link(const std::vector<std::string> &objects, const std::string &shared) const {
    Task task;
    task.command = compiler();
    task.command.insert(task.command.end(), {"-shared", "-o", shared});
    task.command.insert(task.command.end(), objects.begin(), objects.end());
    task.log = shared + ".log";
    return task;
}

} // namespace convtranspose::tools
