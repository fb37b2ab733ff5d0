// The command line of the generators for CPUs, as Halide's own has it; it writes FOLDER/NAME with the extension of each output.
//     oc_vectorized_generator -g GENERATOR -f FUNCTION -n NAME -e object[,llvm_assembly] -o FOLDER target=TARGET [PARAMETER=VALUE...]
// Halide's own main adds to each function a description of its arguments and a wrapper that takes them as an array, which the
// dispatcher does not use.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>

#include <Halide.h>

#include "llvm_options.h"
#include "numerics.h"

namespace {

struct Options {
    std::map<std::string, std::string> flags;      // by letter
    std::map<std::string, std::string> parameters; // of the generator
    std::string target;

    const std::string &flag(const std::string &letter) const {
        const auto found = flags.find(letter);
        if (found == flags.end()) throw std::invalid_argument("-" + letter + " is missing");
        return found->second;
    }
};

Options read_options(int argc, char **argv) {
    Options options;
    for (int i = 1; i < argc; i++) {
        const std::string word = argv[i];
        const std::size_t equals = word.find('=');
        if (word.size() == 2 && word[0] == '-' && i + 1 < argc) {
            options.flags[word.substr(1)] = argv[++i];
        } else if (word[0] != '-' && equals != std::string::npos) {
            const std::string name = word.substr(0, equals);
            (name == "target" ? options.target : options.parameters[name]) = word.substr(equals + 1);
        } else {
            throw std::invalid_argument("'" + word + "' is neither a flag with a value nor PARAMETER=VALUE");
        }
    }
    if (options.target.empty()) throw std::invalid_argument("target= is missing");
    return options;
}

// The files to write, for a comma-separated list of kinds of output.
std::map<Halide::OutputFileType, std::string> outputs(const Options &options, const Halide::Target &target) {
    std::map<Halide::OutputFileType, std::string> files;
    std::istringstream kinds(options.flag("e"));
    for (std::string kind; std::getline(kinds, kind, ',');) {
        bool found = false;
        for (const auto &[type, info] : Halide::Internal::get_output_info(target)) {
            if (info.name != kind) continue;
            files[type] = options.flag("o") + "/" + options.flag("n") + info.extension;
            found = true;
        }
        if (!found) throw std::invalid_argument("-e: there is no kind of output '" + kind + "'");
    }
    return files;
}

// Halide 21 knows dot products of bytes as a part of AVX-512 alone. A target of both avx512_zen4 and avxvnni stands for AVX2 with
// the dot products of AVX-VNNI: Halide takes it for AVX-512, and LLVM, which compiles a function for the CPU that the function's
// attributes name, is given others by a file for an option of its own. The file is there as long as the object is.
class CpuOfFunction {
  public:
    CpuOfFunction(const Options &options, const Halide::Target &target) {
        if (!convtranspose::takes_avx_vnni(target)) return;
        file_ = std::filesystem::relative(options.flag("o")) / (options.flag("n") + ".attributes.csv");
        const std::string file = file_.generic_string();
        for (const char c : file) {
            // Halide parts the options of LLVM at spaces.
            if (c == ' ') throw std::invalid_argument("-o '" + file + "': for AVX-VNNI it must hold no space");
        }
        std::ofstream lines(file_);
        lines << options.flag("f") << ",target-cpu=haswell\n"
              << options.flag("f") << ",target-features=+avx2,+fma,+f16c,+avxvnni\n";
        if (!lines.flush()) throw std::runtime_error(file + " cannot be written");
        convtranspose::add_llvm_option("-forceattrs-csv-path=" + file);
    }
    ~CpuOfFunction() {
        std::error_code ignored;
        if (!file_.empty()) std::filesystem::remove(file_, ignored);
    }
    CpuOfFunction(const CpuOfFunction &) = delete;
    CpuOfFunction &operator=(const CpuOfFunction &) = delete;

  private:
    std::filesystem::path file_;
};

// Has LLVM align no loops, and copy no block to the ends of those before it: most kernels are then smaller and as fast
// (docs/measurements/2026-11-29-one-nest.md). Those of depthwise layers have the shortest loops, and would be slower.
void prefer_small_code(const std::string &generator) {
    if (generator == "depthwise") return;
    convtranspose::add_llvm_option("-max-bytes-for-alignment=1");
    convtranspose::add_llvm_option("-tail-dup-placement=0");
}

void generate(const Options &options) {
    const Halide::Target target(options.target);
    prefer_small_code(options.flag("g"));
    const CpuOfFunction cpu(options, target);
    const auto generator =
        Halide::Internal::get_registered_generators().create(options.flag("g"), Halide::GeneratorContext(target));
    if (!generator) throw std::invalid_argument("there is no generator '" + options.flag("g") + "'");
    for (const auto &[name, value] : options.parameters) generator->set_generatorparam_value(name, value);
    Halide::Module module = generator->build_module(options.flag("f"));
    for (Halide::Internal::LoweredFunc &function : module.functions()) {
        if (function.linkage != Halide::LinkageType::Internal) function.linkage = Halide::LinkageType::External;
    }
    module.compile(outputs(options, target));
}

} // namespace

int main(int argc, char **argv) {
    std::string failure;
    try {
        generate(read_options(argc, argv));
        return 0;
    } catch (const Halide::Error &error) { // which is no std::exception
        failure = error.what();
    } catch (const std::exception &error) {
        failure = error.what();
    }
    std::fprintf(stderr, "%s: %s\n", argv[0], failure.c_str());
    return 1;
}
