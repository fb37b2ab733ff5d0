// Files of schedules/tuned: what `convtranspose tune --rows` writes of a layer is what CMake makes rows of the table from.
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reference/descriptor.h"
#include "reference/reference.h"
#include "tools/tune/kernel_row.h"
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

// Without what C++ does not mind: spaces, and commas in front of a brace.
std::string squeezed(const std::string &text) {
    std::string result;
    for (const char c : text) {
        if (std::isspace(static_cast<unsigned char>(c))) continue;
        if (c == '}' && !result.empty() && result.back() == ',') result.pop_back();
        result += c;
    }
    return result;
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
        return {{"some.onnx: ConvTranspose 'up'"},
                {{"problem", problem},
                 {"isa", "avx512"},
                 {"cpu", "some CPU"},
                 {"threads", 1},
                 {"variant", c.name},
                 {"default", "channels_f32_planar_1x1"},
                 {"default_ms", 2.0},
                 {"ms", 1.0},
                 {"generator", c.generator},
                 {"parameters", c.parameters},
                 {"row", tools::json_of(row, "convt_" + c.name + "_avx512")}}};
    }

    // The C++ that the build makes of the row of a file: declarations in front of the table, and the row.
    std::string by_cmake(const fs::path &file, const std::string &function) const {
        const fs::path script = folder_ / "row.cmake", result = folder_ / "row.txt";
        std::ofstream(script) << "cmake_minimum_required(VERSION 3.22)\n"
                              << "include(" CONVTRANSPOSE_CMAKE_FOLDER "/tuned.cmake)\n"
                              << "file(READ \"" << file.string() << "\" json)\n"
                              << "string(JSON row GET \"${json}\" kernel row)\n"
                              << "_convtranspose_tuned_row(tuned \"${row}\" " << function << ")\n"
                              << "file(WRITE \"" << result.string() << "\" \"${tuned_in_front}${tuned_row}\")\n";
        EXPECT_EQ(std::system((CONVTRANSPOSE_CMAKE " -P " + script.string()).c_str()), 0);
        return read(result);
    }

    fs::path folder_;
};

TEST_F(Shipped, RowsAreThoseOfTheSearch) {
    for (const char *const text : {"f32 nchw n1 g1 ic8 oc3 i9x32 k4x4 s2x2 p1x1_1x1 op0x0 d1x1 bias",
                                   "f64 nhwc n1 g1 ic8 oc16 i8x16 k3x3 s1x1 p1x1_1x1 op0x0 d1x1",
                                   "f16 nchw n1 g5 ic5 oc5 i7x40 k4x4 s2x2 p1x1_1x1 op0x0 d1x1"}) {
        const Geometry geometry = geometry_of(parse_problem(text));
        const std::vector<ScheduleCandidate> list =
            schedule_candidates(spatial_problem(geometry, geometry.y_dtype, true), Isa::kAvx512, 12);
        ASSERT_FALSE(list.empty());
        for (const ScheduleCandidate &c : list) {
            SCOPED_TRACE(c.name);
            const fs::path rows = folder_ / "rows";
            fs::remove_all(rows);
            const tools::TunedLayer tuned = layer(c, text);
            ASSERT_EQ(tools::write_rows({tuned}, rows.string()), 1u);
            const fs::path file = fs::directory_iterator(rows)->path();
            const json written = json::parse(read(file));
            EXPECT_EQ(written.at("record").at("variant"), c.name);
            EXPECT_EQ(written.at("record").at("problem"), text);
            EXPECT_EQ(written.at("kernel").at("parameters"), c.parameters);
            const json &row = tuned.record.at("row");
            EXPECT_EQ(squeezed(by_cmake(file, row.at("function"))),
                      squeezed(tools::declarations_as_cpp(row) + tools::row_as_cpp(row)));
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
