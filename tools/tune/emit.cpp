#include "tools/tune/emit.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "tools/error.h"
#include "tools/files.h"
#include "tools/kernel_name.h"
#include "tools/problem_line.h"
#include "tools/text.h"
#include "tools/tune/kernel_row.h"
#include "tools/tune/kernel_source.h"

namespace convtranspose::tools {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string quoted(const std::string &text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        result += c;
    }
    return result + "\"";
}

// True for kernels that every kernel of a type and ISA needs beside it: the reference, which weights with an Inf or a NaN take,
// copies of x, and post-ops.
bool belongs_with(const json &kernel, const std::string &type, const std::string &isa) {
    if (kernel.at("isa") != isa) return false;
    const auto name = kernel.at("name").get<std::string>();
    const auto kind = kernel.at("kind").get<std::string>();
    if (kind == "variant" && name.rfind("reference_", 0) != 0) return false;
    if (kind.rfind("winograd", 0) == 0) return false; // emitted libraries compute by the definition
    if (type[0] != 'i') return kernel_name(name).type == type;
    return kernel.at("component") == "quantized"; // sums that 8 bits do not hold are those of others
}

std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>> &values) {
    for (const auto &[place, value] : values) {
        for (std::size_t at = 0; (at = text.find(place, at)) != std::string::npos; at += value.size()) {
            text.replace(at, place.size(), value);
        }
    }
    return text;
}

constexpr const char *kConfig = R"(# Made by `convtranspose tune`: the target @NAME@::@NAME@.
@FIND@get_filename_component(_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET @NAME@::@NAME@)
    add_library(@NAME@::@NAME@ STATIC IMPORTED)
    set_target_properties(@NAME@::@NAME@ PROPERTIES
        IMPORTED_LOCATION "${_prefix}/lib/lib@NAME@.a"
        INTERFACE_INCLUDE_DIRECTORIES "${_prefix}/include"
        INTERFACE_COMPILE_FEATURES cxx_std_17
        INTERFACE_LINK_OPTIONS "@ASKS@" # for a linker must not find the empty tables of convtranspose_absent first
        INTERFACE_LINK_LIBRARIES
            "${_prefix}/lib/libconvtranspose_runtime.a;${_prefix}/lib/libconvtranspose_absent.a@LINK@")
endif()
)";

// The class of runtime/base/pool.h as names of functions have it, which an archive has if and only if it was built with threads.
constexpr const char *kPool = "convtranspose4Pool";
// A library with threads also asks the dynamic linker to keep it.
constexpr const char *kFindThreads = "include(CMakeFindDependencyMacro)\nfind_dependency(Threads)\n";
constexpr const char *kLinkThreads = ";Threads::Threads;${CMAKE_DL_LIBS}";

constexpr const char *kExampleBuild = R"(cmake_minimum_required(VERSION 3.16)
project(@NAME@_example CXX)
find_package(@NAME@ REQUIRED PATHS "${CMAKE_CURRENT_SOURCE_DIR}/.." NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
add_executable(@NAME@_example main.cpp)
target_link_libraries(@NAME@_example PRIVATE @NAME@::@NAME@)
)";

constexpr const char *kExample = R"(// Runs each layer on zeros, and says which kernel computes it.
#include <cstdio>
#include <vector>

#include "@NAME@.h"

int main() {
    for (const @NAME@_layer &layer : @NAME@_layers) {
        convt_problem problem = layer.problem;
        const bool quantized = problem.dtype == CONVT_U8 || problem.dtype == CONVT_S8;
        const float scale = 1;
        const convt_quantization quantization = {sizeof(convt_quantization), scale, 0, &scale, 1, nullptr, 0, scale, 0, nullptr};
        if (quantized) problem.quantization = &quantization;
        const auto zeros = [](const convt_ints &shape) { // of at most 8 bytes each
            std::size_t count = 1;
            for (std::size_t d = 0; d < shape.size; d++) count *= static_cast<std::size_t>(shape.data[d]);
            return std::vector<double>(count);
        };
        std::vector<double> weights = zeros(problem.w_shape), biases = zeros(problem.b_shape), x = zeros(problem.x_shape);
        const convt_tensor w = {sizeof(convt_tensor), weights.data(), problem.w_dtype, problem.w_shape.data, nullptr,
                                problem.w_shape.size, CONVT_HOST_MEMORY};
        const convt_tensor b = {sizeof(convt_tensor), biases.data(), quantized ? CONVT_S32 : problem.dtype, problem.b_shape.data,
                                nullptr, 1, CONVT_HOST_MEMORY};
        convt_plan *plan = nullptr;
        convt_status status = convt_plan_create(&problem, &w, problem.b_shape.data ? &b : nullptr, nullptr, &plan);
        if (status == CONVT_OK) {
            std::vector<double> y = zeros({convt_plan_y_shape(plan), convt_plan_rank(plan)});
            const convt_tensor tx = {sizeof(convt_tensor), x.data(), problem.dtype, problem.x_shape.data, nullptr,
                                     problem.x_shape.size, CONVT_HOST_MEMORY};
            const convt_tensor ty = {sizeof(convt_tensor), y.data(), problem.y_dtype, convt_plan_y_shape(plan), nullptr,
                                     convt_plan_rank(plan), CONVT_HOST_MEMORY};
            status = convt_plan_run(plan, &tx, nullptr, nullptr, &ty, nullptr);
        }
        if (status != CONVT_OK) {
            std::fprintf(stderr, "%s: %s\n", layer.name, convt_last_error());
            return 1;
        }
        std::printf("%s: %s\n", layer.name, convt_plan_kernel(plan, 0));
        convt_plan_destroy(plan);
    }
    return 0;
}
)";

class Emitter {
  public:
    Emitter(const std::vector<TunedLayer> &layers, const TuneOptions &options, const KernelBuilder &builder)
        : layers_(layers), options_(options), builder_(builder), folder_(options.emit), name_(options.emit_name) {}

    void emit() {
        collect();
        build();
        write_file(folder_ / "include" / (name_ + ".h"), header());
        copy_package();
        write_file(folder_ / "lib" / "cmake" / name_ / (name_ + "Config.cmake"), config());
        write_file(folder_ / "example" / "CMakeLists.txt", example_build());
        write_file(folder_ / "example" / "main.cpp", example());
    }

  private:
    // A kernel to make, as kernels.json describes those of the package.
    void add(const json &kernel) { kernels_.emplace(kernel.at("function").get<std::string>(), kernel); }

    void collect() {
        for (const TunedLayer &layer : layers_) {
            const json &record = layer.record;
            const auto isa = record.at("isa").get<std::string>();
            for (const json &name : record.at("runs")) {
                const auto variant = name.get<std::string>();
                if (record.contains("row") && variant == record.at("variant")) {
                    add_made(record);
                } else {
                    add_built_in(variant, isa);
                }
            }
        }
    }

    // Adds a kernel of the package. If the ISA has no such kernel, it is that of the ISA that it adds to, or of one that adds to
    // it: records of floats name the ISA of floats, though kernels of bf16 and of sums in f16 are of others.
    void add_built_in(const std::string &variant, const std::string &isa) {
        const Isa own = isa_of(isa);
        std::vector<Isa> isas = {own};
        for (const IsaFacts &other : kIsas) {
            if (isa_of_floats(other.value) == isa_of_floats(own)) isas.push_back(other.value);
        }
        for (const Isa one : isas) {
            for (const json &kernel : builder_.kernels()) {
                if (kernel.at("name") != variant || kernel.at("isa") != isa_name(one)) continue;
                add(kernel);
                add_company(kernel_name(variant).type, isa_name(one));
                if (one == Isa::kAmx) { // what does not multiply is that of the ISAs that it adds to
                    const bool quantized = kernel.at("component") == "quantized";
                    add_company(quantized ? kernel_name(variant).type : "bf16",
                                isa_name(quantized ? facts_of(one).adds_to : isa_of_floats(one)));
                }
                return;
            }
        }
        throw Error("the package has no kernel " + variant + " for " + isa);
    }

    void add_made(const json &record) {
        const json &row = record.at("row");
        const bool quantized = row.at("arithmetic").get<std::string>().rfind("int", 0) == 0;
        add({{"component", quantized ? "quantized" : "float"},
             {"kind", "variant"},
             {"name", row.at("name")},
             {"generator", record.at("generator")},
             {"target", record.at("target")},
             {"function", row.at("function")},
             {"parameters", record.at("parameters")},
             {"row", row}});
        const std::string dtype = row.at("arithmetic") == "half" ? "h16" : row.at("dtype").get<std::string>();
        add_company(quantized ? "i8" : dtype, row.at("isa").get<std::string>());
    }

    void add_company(const std::string &type, const std::string &isa) {
        for (const json &kernel : builder_.kernels()) {
            if (belongs_with(kernel, type, isa)) add(kernel);
        }
    }

    // Builds a table for each component that has kernels, and puts all into one archive.
    void build() {
        const fs::path objects = builder_.scratch() / "emit";
        fs::remove_all(objects);
        fs::create_directories(objects);
        std::vector<Task> tasks;
        std::vector<std::string> members;
        for (const auto &[function, kernel] : kernels_) {
            tasks.push_back(builder_.generate(kernel.at("generator").get<std::string>(), function, function,
                                              kernel.at("target").get<std::string>(), kernel.at("parameters"),
                                              objects.string()));
            members.push_back((objects / (function + ".o")).string());
        }
        for (const std::string component : {"float", "quantized"}) {
            const auto is_its = [&](const auto &entry) { return entry.second.at("component") == component; };
            if (std::none_of(kernels_.begin(), kernels_.end(), is_its)) continue;
            components_.push_back(component);
            const std::string text = table(component);
            const fs::path source = objects / (component + ".cpp");
            write_file(source, text);
            Task task;
            task.command = builder_.compiler();
            const std::string object = (objects / (component + ".o")).string();
            task.command.insert(task.command.end(),
                                {"-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden", "-I", builder_.sources().string(),
                                 "-I", builder_.headers().parent_path().string(), "-c", source.string(), "-o", object});
            task.log = object + ".log";
            tasks.push_back(task);
            members.push_back(object);
        }
        check(run_all(tasks, builder_.jobs(), options_.timeout));
        fs::create_directories(folder_ / "lib");
        const fs::path archive = folder_ / "lib" / ("lib" + name_ + ".a");
        fs::remove(archive);
        Task task;
        task.command = words_of(options_.archiver);
        task.command.insert(task.command.end(), {"rcs", archive.string()});
        task.command.insert(task.command.end(), members.begin(), members.end());
        task.log = archive.string() + ".log";
        check(run_all({task}, 1, options_.timeout));
        fs::remove(task.log);
    }

    static void check(const std::vector<std::string> &failures) {
        for (const std::string &failure : failures) {
            if (!failure.empty()) throw Error(failure);
        }
    }

    std::string table(const std::string &component) const {
        std::vector<json> kernels;
        for (const auto &[function, kernel] : kernels_) {
            if (kernel.at("component") == component) kernels.push_back(kernel);
        }
        std::string records;
        for (const TunedLayer &layer : layers_) {
            const convt_dtype dtype = problem_of_line(layer.record.at("problem").get<std::string>()).dtype;
            if ((dtype == CONVT_U8 || dtype == CONVT_S8) != (component == "quantized")) continue;
            json record;
            for (const char *const key : {"package", "kernels", "isa", "threads", "problem", "variant", "ms"}) {
                record[key] = layer.record.at(key);
            }
            record["cpu"] = "*"; // whoever ships these kernels wants them used
            records += "    " + quoted(record.dump()) + "\n    \"\\n\"\n";
        }
        const auto version = layers_.front().record.at("kernels").get<std::string>();
        return "// Made by `convtranspose tune`.\n#define CONVTRANSPOSE_KERNELS_VERSION " + quoted(version) + "\n" +
               marks(component) + KernelSource(builder_.source()).table(component, kernels, records);
    }

    // A linker takes the first table of a component and leaves out others without a word. So each library has a symbol of its own
    // that programs ask for, beside one of the same name in all, by which a second library is a second definition.
    std::string marks(const std::string &component) const {
        if (component != components_.front()) return "";
        std::string text = "extern \"C\" {\n";
        for (const std::string &symbol : {name_ + "_kernels", std::string("convt_link_one_emitted_library_only")}) {
            text.append("extern const char ").append(symbol).append(";\nconst char ").append(symbol).append(" = 0;\n");
        }
        return text + "}\n\n";
    }

    void copy_package() const {
        for (const std::string archive : {"convtranspose_runtime", "convtranspose_absent"}) {
            const fs::path from = builder_.archive(archive);
            fs::copy_file(from, folder_ / "lib" / from.filename(), fs::copy_options::overwrite_existing);
        }
        fs::create_directories(folder_ / "include" / "convtranspose");
        for (const char *const header : {"convtranspose.h", "convtranspose.hpp"}) {
            fs::copy_file(builder_.headers() / header, folder_ / "include" / "convtranspose" / header,
                          fs::copy_options::overwrite_existing);
        }
    }

    std::string header() const {
        std::ostringstream text;
        const std::string guard = name_ + "_LAYERS_H_";
        text << "/* Made by `convtranspose tune`: the layers that lib" << name_ << ".a has kernels for.\n"
             << " *\n *     convt_plan_create(&" << name_ << "_layers[0].problem, &w, &b, NULL, &plan);\n"
             << " *\n * The quantization and post_ops of a problem are for the program to set. */\n"
             << "#ifndef " << guard << "\n#define " << guard << "\n\n#include \"convtranspose/convtranspose.h\"\n\n"
             << "typedef struct " << name_ << "_layer {\n    const char *name; /* of the node, and what it is */\n"
             << "    convt_problem problem;\n} " << name_ << "_layer;\n\n";
        std::ostringstream rows;
        std::size_t i = 0;
        for (const TunedLayer &layer : layers_) {
            // The layer as it was given is valid, while the padding that an output shape amounts to need not be.
            const Problem p = problem_of_line(layer.line);
            const std::string prefix = name_ + "_" + std::to_string(i++) + "_";
            const auto ints = [&](const char *what, const Ints &values) -> std::string {
                if (!values) return "{0, 0}";
                text << "static const int64_t " << prefix << what << "[] = {";
                for (const std::int64_t value : *values) text << value << ", ";
                text << "};\n";
                return "{" + prefix + what + ", " + std::to_string(values->size()) + "}";
            };
            const auto dtype = [](convt_dtype d) {
                std::string name = std::string("CONVT_") + convt_dtype_name(d);
                std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
                return name;
            };
            const Attributes &a = p.attributes;
            const std::string dilations = ints("dilations", a.dilations),
                              padding = ints("output_padding", a.output_padding),
                              extents = ints("output_shape", a.output_shape), pads = ints("pads", a.pads),
                              strides = ints("strides", a.strides), x = ints("x_shape", p.x_shape),
                              w = ints("w_shape", p.w_shape), b = ints("b_shape", p.b_shape);
            std::string names;
            for (const std::string &name : layer.names) names += (names.empty() ? "" : ", ") + name;
            text << "static const convt_attributes " << prefix << "attributes = {sizeof(convt_attributes), "
                 << (a.auto_pad ? quoted(*a.auto_pad) : "0") << ", " << dilations << ", " << a.group << ", {0, 0}, "
                 << padding << ", " << extents << ", " << pads << ", " << strides << "};\n";
            rows << "    {" << quoted(printable(names)) << ",\n     {sizeof(convt_problem), " << p.opset << ", "
                 << dtype(p.dtype) << ", " << dtype(p.w_dtype.value_or(p.dtype)) << ", "
                 << dtype(p.y_dtype.value_or(p.dtype)) << ", "
                 << (p.layout == CONVT_CHANNELS_LAST ? "CONVT_CHANNELS_LAST" : "CONVT_CHANNELS_FIRST") << ",\n      "
                 << x << ", " << w << ", " << b << ", &" << prefix << "attributes, 0, 0, 0}},\n";
        }
        text << "\nenum { " << name_ << "_layer_count = " << layers_.size() << " };\nstatic const " << name_
             << "_layer " << name_ << "_layers[] = {\n"
             << rows.str() << "};\n\n#endif /* " << guard << " */\n";
        return text.str();
    }

    std::string config() const {
        const std::string ask = "LINKER:-u,$<$<PLATFORM_ID:Darwin>:_>";
        std::string asks = ask + name_ + "_kernels";
        for (const std::string &component : components_) {
            asks.append(";").append(ask).append("convt_").append(component).append("_kernels");
        }
        const bool has_threads =
            read_file(folder_ / "lib" / "libconvtranspose_runtime.a").find(kPool) != std::string::npos;
        return filled(kConfig, {{"@FIND@", has_threads ? kFindThreads : ""},
                                {"@LINK@", has_threads ? kLinkThreads : ""},
                                {"@NAME@", name_},
                                {"@ASKS@", asks}});
    }

    std::string example_build() const { return filled(kExampleBuild, {{"@NAME@", name_}}); }
    std::string example() const { return filled(kExample, {{"@NAME@", name_}}); }

    const std::vector<TunedLayer> &layers_;
    const TuneOptions &options_;
    const KernelBuilder &builder_;
    fs::path folder_;
    std::string name_;
    std::map<std::string, json> kernels_; // by function
    std::vector<std::string> components_;
};

} // namespace

void emit(const std::vector<TunedLayer> &layers, const TuneOptions &options, const KernelBuilder &builder) {
    if (layers.empty()) throw Error("there is no layer to emit");
    Emitter(layers, options, builder).emit();
}

} // namespace convtranspose::tools
