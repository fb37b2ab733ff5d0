// The search space of kernels for one layer: every candidate can compute its problem and no other, and those that are sampled
// compile, load and compute what the definition says.
#include "tools/tune/schedule_candidates.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reference/descriptor.h"
#include "reference/effort.h"
#include "reference/reference.h"
#include "runtime/cpu/cpu.h"
#include "runtime/kernels/kernel_tables.h"

namespace convtranspose::test {
namespace {

namespace fs = std::filesystem;

// Paths that tap_offset_order, ow_vectorized, oc_vectorized and depthwise take: phases together and one after the other, tails,
// dilation, three axes, one axis read in place between its ends, batches and groups.
const std::vector<std::string> kProblems = {
    "f32 nchw n1 g1 ic4 oc3 i9x32 k4x4 s2x2 p1x1_1x1 op0x0 d1x1",
    "f32 nchw n2 g1 ic6 oc1 i5x33 k5x5 s3x3 p2x2_2x2 op2x2 d1x1",
    "f32 nchw n1 g1 ic4 oc2 i6x16 k3x2 s2x3 p0x0_0x1 op0x0 d1x1",
    "f32 nchw n1 g1 ic4 oc2 i7x20 k3x3 s2x1 p1x2_1x2 op1x0 d1x2",
    "f32 nchw n1 g1 ic4 oc1 i4096 k8 s4 p0_0 op0 d1",
    "f32 nchw n1 g21 ic21 oc21 i6x17 k8x8 s4x4 p2x2_2x2 op0x0 d1x1",
    "f32 nchw n2 g5 ic5 oc5 i7x40 k4x4 s2x2 p1x1_1x1 op0x0 d1x1",
    "f32 nchw n1 g1 ic16 oc48 i4x5x16 k2x2x2 s2x2x2 p0x0x0_0x0x0 op0x0x0 d1x1x1",
    "f32 nchw n1 g2 ic8 oc64 i7x9 k3x3 s2x2 p1x1_1x1 op1x1 d1x1",
    "f32 nhwc n1 g1 ic8 oc64 i7x9 k4x4 s2x2 p1x1_1x1 op0x0 d1x1",
    "f32 nhwc n1 g40 ic40 oc40 i7x9 k4x4 s2x2 p1x1_1x1 op0x0 d1x1",
    "f16 nchw n1 g1 ic4 oc3 i9x32 k4x4 s2x2 p1x1_1x1 op0x0 d1x1",
    "f64 nchw n1 g1 ic8 oc16 i8x16 k3x3 s1x1 p1x1_1x1 op0x0 d1x1",
};

SpatialProblem core_of(const Problem &problem) {
    const Geometry geometry = geometry_of(problem);
    return spatial_problem(geometry, geometry.y_dtype, true);
}

std::vector<Isa> isas() {
    std::vector<Isa> list;
    for (const Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kX86_64, Isa::kNeon}) {
        if (isa_supported(isa)) list.push_back(isa);
    }
    return list;
}

class ScheduleCandidates : public testing::TestWithParam<std::string> {};

TEST_P(ScheduleCandidates, CanComputeTheProblemInOrderOfTheirEstimates) {
    const SpatialProblem problem = core_of(parse_problem(GetParam()));
    for (const Isa isa : isas()) {
        const std::vector<ScheduleCandidate> list = schedule_candidates(problem, isa);
        ASSERT_FALSE(list.empty()) << isa_name(isa);
        ASSERT_LE(list.size(), 200u);
        std::set<std::string> names;
        double cost = 0;
        for (const ScheduleCandidate &c : list) {
            Variant row;
            BuiltIn layer;
            c.complete(&row, &layer);
            EXPECT_EQ(candidate(row, problem, profile_of_cpu(row.isa)).unsupported.text, nullptr) << c.name;
            EXPECT_TRUE(names.insert(c.name).second) << c.name;
            EXPECT_GE(c.cost, cost);
            cost = c.cost;
        }
    }
}

TEST_P(ScheduleCandidates, RefuseOtherProblems) {
    const Problem problem = parse_problem(GetParam());
    std::vector<Problem> others(3, problem);
    for (Problem &other : others) other.b_shape.reset();
    others[0].x_shape[problem.layout == CONVT_CHANNELS_FIRST ? 1 : others[0].x_shape.size() - 1] *= 2; // channels
    others[0].w_shape[0] *= 2;
    others[0].attributes.group =
        problem.attributes.group == problem.w_shape[0] ? problem.attributes.group * 2 : problem.attributes.group;
    others[1].w_shape.back() += 1; // the kernel's last extent
    others[1].attributes.kernel_shape.reset();
    others[2].attributes.pads->front() += 1;
    const SpatialProblem own = core_of(problem);
    for (const ScheduleCandidate &c : schedule_candidates(own, isas().front())) {
        Variant row;
        BuiltIn layer;
        c.complete(&row, &layer);
        for (std::size_t i = 0; i < others.size(); i++) {
            // More groups of the same; and what is not built in.
            if (i == 0 && own.ic() == 1) continue;
            if (i == 1 && !layer.axes[0].table && !layer.axes[0].count) continue;
            if (i == 2 && !layer.axes[own.geometry.axes.size() - 1].table) continue;
            EXPECT_NE(candidate(row, core_of(others[i]), profile_of_cpu(row.isa)).unsupported.text, nullptr)
                << c.name << ": " << describe(others[i]);
        }
    }
}

// The target that the package's kernels for an ISA are compiled for.
std::string target_of(Isa isa) {
    std::ifstream file(CONVTRANSPOSE_BUILD "/kernels.json");
    const nlohmann::json package = nlohmann::json::parse(file);
    for (const nlohmann::json &kernel : package.at("kernels")) {
        if (kernel.at("isa") == isa_name(isa) && kernel.at("generator") == "oc_vectorized") return kernel.at("target");
    }
    return "";
}

// Returns the kinds that there are, each with its first candidate.
std::map<std::string, const ScheduleCandidate *> kinds(const std::vector<ScheduleCandidate> &list) {
    std::map<std::string, const ScheduleCandidate *> first;
    for (const ScheduleCandidate &c : list) {
        std::string kind =
            c.generator + ' ' + convt_dtype_name(c.variant.dtype) + (c.built_in.x_in_place ? " in place" : "");
        for (const std::string &p : c.parameters) {
            if (c.variant.dtype != CONVT_F32 && !tries_all()) break; // loops are the same; loads and stores differ
            if (p.rfind("unrolled", 0) == 0 || p == "tap_offset_order=true" || p == "x_stays=true") kind += " " + p;
        }
        kind += c.variant.stride_h ? " h" : c.variant.stride_w ? " w" : "";
        first.emplace(kind, &c);
    }
    return first;
}

// Tries the first candidate of each kind: in two problems that have it, or in each if all is tried.
TEST_P(ScheduleCandidates, CompileAndComputeTheDefinition) {
    const Problem problem = parse_problem(GetParam());
    const Isa isa = isas().front();
    const std::vector<ScheduleCandidate> list = schedule_candidates(core_of(problem), isa);
    std::map<std::string, int> tried; // by earlier problems
    for (const std::string &earlier : kProblems) {
        if (earlier == GetParam()) break;
        for (const auto &[kind, c] : kinds(schedule_candidates(core_of(parse_problem(earlier)), isa))) tried[kind]++;
    }
    std::vector<const ScheduleCandidate *> sample;
    for (const auto &[kind, c] : kinds(list)) {
        if (tried[kind] < 2 || tries_all() || c == &list.front()) sample.push_back(c);
    }
    const fs::path folder =
        fs::temp_directory_path() / ("schedule_candidates_" + std::to_string(std::hash<std::string>()(GetParam())) +
                                     "_" + std::to_string(::getpid()));
    fs::create_directories(folder);
    // Added kernels stay: so what the table refers to does, too.
    static std::vector<std::unique_ptr<BuiltIn>> layers;
    static std::vector<std::unique_ptr<std::vector<Variant>>> rows;
    static std::vector<std::unique_ptr<KernelTable>> tables;
    static std::vector<std::unique_ptr<ScheduleCandidate>> kept;
    auto &table_rows = *rows.emplace_back(std::make_unique<std::vector<Variant>>());
    for (const ScheduleCandidate *c : sample) {
        const std::string object = (folder / (c->name + ".o")).string(), shared = (folder / (c->name + ".so")).string();
        std::string command = std::string(CONVTRANSPOSE_GENERATORS "/") + c->generator + "_generator -g " +
                              c->generator + " -f kernel -n " + c->name + " -e object -o " + folder.string() +
                              " target=" + target_of(isa);
        for (const std::string &p : c->parameters) command += " " + p;
        ASSERT_EQ(std::system((command + " 2> " + (folder / "log").string()).c_str()), 0) << command;
        std::ifstream log(folder / "log");
        const std::string words((std::istreambuf_iterator<char>(log)), std::istreambuf_iterator<char>());
        EXPECT_EQ(words.find("guaranteed to fail"), std::string::npos) << command << "\n" << words;
        std::string link = CONVTRANSPOSE_CXX " -shared -o ";
        link.append(shared).append(" ").append(object);
        ASSERT_EQ(std::system(link.c_str()), 0);
        void *const handle = dlopen(shared.c_str(), RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(handle, nullptr) << dlerror();
        kept.push_back(std::make_unique<ScheduleCandidate>(*c));
        layers.push_back(std::make_unique<BuiltIn>());
        Variant row;
        kept.back()->complete(&row, layers.back().get());
        row.run = reinterpret_cast<ConvFunction>(dlsym(handle, "kernel"));
        ASSERT_NE(row.run, nullptr);
        table_rows.push_back(row);
    }
    tables.push_back(std::make_unique<KernelTable>());
    tables.back()->version = kernels_version();
    tables.back()->variants = table_rows.data();
    tables.back()->variant_count = table_rows.size();
    const Status added = add_kernels(tables.back().get());
    ASSERT_TRUE(added) << added.message();
    for (const ScheduleCandidate *c : sample) {
        for (const int threads : {1, 3}) {
            Options options{};
            options.threads = threads;
            options.all_threads = 1;
            options.isa = isa_name(isa);
            options.variant = c->name.c_str();
            expect_agreement(problem, 7, Values::uniform, options);
        }
    }
    fs::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Problems, ScheduleCandidates, testing::ValuesIn(kProblems),
                         [](const testing::TestParamInfo<std::string> &c) {
                             std::string name = c.param;
                             std::replace_if(
                                 name.begin(), name.end(),
                                 [](char ch) { return !std::isalnum(static_cast<unsigned char>(ch)); }, '_');
                             return name;
                         });

} // namespace
} // namespace convtranspose::test
