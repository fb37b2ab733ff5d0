// How rows of the C++ tables are written: by kernels/generate.py for the build, of files of schedules/tuned too, which
// `convtranspose tune --rows` writes; and by the command for the libraries that it emits. It is the same text.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reference/descriptor.h"
#include "reference/reference.h"
#include "tools/tune/kernel_row.h"
#include "tools/tune/kernel_source.h"
#include "tools/tune/schedule_candidates.h"
#include "tools/tune/tuned_layer.h"

namespace convtranspose::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string read(const fs::path &file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// The string literals of a table's tuning records.
std::string records_of(const std::string &table) {
    const std::string begin = "const char kRecords[] =\n", end = "    ;\n";
    const std::size_t at = table.find(begin);
    if (at == std::string::npos) return "";
    return table.substr(at + begin.size(), table.find(end, at) - at - begin.size());
}

class Shipped : public testing::Test {
  protected:
    void SetUp() override {
        const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
        folder_ = fs::temp_directory_path() / ("shipped_test_" + test + "_" + std::to_string(::getpid()));
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }

    tools::TunedLayer layer(const ScheduleCandidate &c, const std::string &problem) const {
        Variant row;
        BuiltIn built_in;
        c.complete(&row, &built_in);
        return {{"some.onnx: ConvTranspose 'up\xff'"}, // which is no UTF-8
                problem,
                {{"problem", problem},
                 {"isa", "avx512"},
                 {"cpu", "some CPU"},
                 {"threads", 1},
                 {"variant", c.name},
                 {"default", "oc_vectorized_f32_planar_1x1"},
                 {"default_ms", 2.0},
                 {"ms", 1.0},
                 {"generator", c.generator},
                 {"parameters", c.parameters},
                 {"row", tools::json_of(row, "convt_" + c.name + "_avx512")}}};
    }

    // The table of floats for AVX-512 that a build would have with those files.
    std::string by_script(const fs::path &tuned) const {
        const fs::path out = folder_ / "out";
        const std::string command =
            std::string("cd " CONVTRANSPOSE_SOURCE " && " CONVTRANSPOSE_PYTHON " -E -B -m kernels.generate") +
            " --system Linux --processor x86_64 --isas avx512 --output " + out.string() + " --tuned " + tuned.string();
        EXPECT_EQ(std::system(command.c_str()), 0) << command;
        return read(out / "float_kernels.cpp");
    }

    fs::path folder_;
};

TEST_F(Shipped, TheCommandWritesTheTablesOfTheBuild) {
    const json file = json::parse(read(CONVTRANSPOSE_BUILD "/kernels.json"));
    for (const std::string component : {"float", "quantized"}) {
        std::vector<json> kernels;
        for (const json &kernel : file.at("kernels")) {
            if (kernel.at("component") == component) kernels.push_back(kernel);
        }
        ASSERT_FALSE(kernels.empty());
        const std::string built = read(CONVTRANSPOSE_BUILD "/" + component + "_kernels.cpp");
        EXPECT_EQ(tools::KernelSource(file.at("source")).table(component, kernels, records_of(built)), built);
    }
}

TEST_F(Shipped, RowsAreThoseOfTheSearch) {
    const json source = json::parse(read(CONVTRANSPOSE_BUILD "/kernels.json")).at("source");
    for (const char *const text : {"f32 nchw n1 g1 ic8 oc3 i9x32 k4x4 s2x2 p1x1_1x1 op0x0 d1x1 bias",
                                   "f64 nhwc n1 g1 ic8 oc16 i8x16 k3x3 s1x1 p1x1_1x1 op0x0 d1x1",
                                   "f16 nchw n1 g5 ic5 oc5 i7x40 k4x4 s2x2 p1x1_1x1 op0x0 d1x1"}) {
        SCOPED_TRACE(text);
        const Geometry geometry = geometry_of(parse_problem(text));
        const std::vector<ScheduleCandidate> list =
            schedule_candidates(spatial_problem(geometry, geometry.y_dtype, true), Isa::kAvx512, 12);
        ASSERT_FALSE(list.empty());
        const fs::path files = folder_ / "tuned", rows = folder_ / "rows";
        fs::remove_all(files);
        fs::create_directories(files);
        std::string expected;
        for (const ScheduleCandidate &c : list) {
            fs::remove_all(rows);
            const tools::TunedLayer tuned = layer(c, text);
            ASSERT_EQ(tools::write_rows({tuned}, rows.string()), 1u);
            const fs::path file = fs::directory_iterator(rows)->path();
            const json written = json::parse(read(file));
            EXPECT_EQ(written.at("record").at("variant"), c.name);
            EXPECT_EQ(written.at("record").at("problem"), text);
            EXPECT_EQ(written.at("kernel").at("parameters"), c.parameters);
            fs::rename(file, files / (c.name + ".json"));
        }
        const std::string table = by_script(files);
        for (const ScheduleCandidate &c : list) {
            SCOPED_TRACE(c.name);
            const json row = layer(c, text).record.at("row");
            const std::string made = tools::KernelSource(source).table(
                "float", {{{"kind", "variant"}, {"function", row.at("function")}, {"row", row}}}, "");
            std::size_t found = 0;
            std::istringstream lines(made);
            for (std::string line; std::getline(lines, line);) {
                if (line.find(c.name) == std::string::npos) continue;
                found++;
                EXPECT_NE(table.find(line + "\n"), std::string::npos) << line;
            }
            EXPECT_GE(found, 3u); // its declaration, what is built in and its row
        }
    }
}

TEST_F(Shipped, WhatIsTheDefaultChoiceHasNoFile) {
    const Geometry geometry =
        geometry_of(parse_problem("f32 nchw n1 g1 ic8 oc3 i9x32 k4x4 s2x2 p1x1_1x1 op0x0 d1x1 bias"));
    const auto list = schedule_candidates(spatial_problem(geometry, geometry.y_dtype, true), Isa::kAvx512, 1);
    tools::TunedLayer tuned = layer(list.front(), "a problem");
    tuned.record["default"] = tuned.record["variant"];
    EXPECT_EQ(tools::write_rows({tuned}, (folder_ / "rows").string()), 0u);
    EXPECT_TRUE(fs::is_empty(folder_ / "rows"));
}

} // namespace
} // namespace convtranspose::test
