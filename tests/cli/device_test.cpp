// --device of run, bench, tune and targets.
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "files.h"
#include "gpu/device.h"
#include "models.h"
#include "process.h"

namespace convtranspose::test {
namespace {

class CommandLine : public testing::TestWithParam<std::string> {
  protected:
    std::string file(const std::string &name) const { return (folder_.path() / name).string(); }

    TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, CommandLine, testing::ValuesIn(device_kinds()),
                         [](const testing::TestParamInfo<std::string> &c) { return c.param; });

TEST_P(CommandLine, ListsDevices) {
    const Outcome outcome = convtranspose({"targets"});
    EXPECT_EQ(outcome.status, 0) << outcome;
    const std::string why = why_no_device(GetParam());
    const std::string said = why.empty() ? convt_device_description(GetParam().c_str(), 0) : why;
    EXPECT_NE(outcome.out.find("devices of " + GetParam() + ": "), std::string::npos) << outcome;
    EXPECT_NE(outcome.out.find(said), std::string::npos) << outcome;
}

TEST_P(CommandLine, SaysWhyThereIsNone) {
    if (why_no_device(GetParam()).empty()) GTEST_SKIP() << "there is one";
    write(file("layer.onnx"), model());
    const Outcome outcome = convtranspose({"bench", "--device", GetParam(), file("layer.onnx")});
    EXPECT_EQ(outcome.status, 1) << outcome;
    EXPECT_NE(outcome.err.find(why_no_device(GetParam())), std::string::npos) << outcome;
}

TEST_P(CommandLine, Computes) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    const Values y = expected(kX, kW, &kB);
    write_test(folder_.path() / "layer", model(), {tensor("X", onnx::TensorProto::FLOAT, kX)},
               {tensor("Y", onnx::TensorProto::FLOAT, y)});
    const Outcome outcome = convtranspose({"run", "--verify", "--device", GetParam(), file("layer")});
    EXPECT_EQ(outcome.status, 0) << outcome;
}

TEST_P(CommandLine, Measures) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    write(file("layer.onnx"), model());
    for (const bool residual : {false, true}) {
        std::vector<std::string> arguments = {"bench",    "--json",   "--min-time",      "0.01",
                                              "--device", GetParam(), file("layer.onnx")};
        if (residual) arguments.insert(arguments.begin() + 1, {"--residual", "--activation", "relu"});
        const Outcome outcome = convtranspose(arguments);
        ASSERT_EQ(outcome.status, 0) << outcome;
        const nlohmann::json rows = nlohmann::json::parse(outcome.out);
        ASSERT_EQ(rows.size(), 1u) << outcome;
        EXPECT_EQ(rows[0].at("isa"), GetParam());
        EXPECT_EQ(rows[0].at("device"), convt_device_description(GetParam().c_str(), 0));
        EXPECT_GT(rows[0].at("best_ms").get<double>(), 0);
    }
}

TEST_P(CommandLine, AnUnknownPeakIsADash) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    write(file("layer.onnx"), model());
    const Outcome outcome = convtranspose({"bench", "--min-time", "0.01", "--device", GetParam(), file("layer.onnx")});
    EXPECT_EQ(outcome.status, 0) << outcome;
    EXPECT_EQ(outcome.out.find("nan"), std::string::npos) << outcome;
}

// The record that tuning writes is one that plans read.
TEST_P(CommandLine, Tunes) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    const std::string layer = "f32 nchw n1 g1 ic8 oc8 i6x6 k4x4 s2x2 p1x1_1x1 bias";
    Outcome outcome =
        convtranspose({"tune", layer, "--device", GetParam(), "--budget", "1", "--output", file("tuning")});
    ASSERT_EQ(outcome.status, 0) << outcome;
    const std::string records = read_text(folder_.path() / "tuning" / "tuning.jsonl");
    const nlohmann::json record = nlohmann::json::parse(records);
    EXPECT_EQ(record.at("cpu"), convt_device_description(GetParam().c_str(), 0));
    EXPECT_EQ(record.at("isa"), GetParam());
    EXPECT_GE(record.at("tried"), 1); // as many as the budget allows
    convt_tuning *tuning = nullptr;
    ASSERT_EQ(convt_tuning_read(records.data(), records.size(), &tuning), CONVT_OK) << convt_last_error();
    convt_tuning_destroy(tuning);

    outcome = convtranspose({"tune", layer, "--device", GetParam(), "--search", "schedule", "--output", file("other")});
    EXPECT_EQ(outcome.status, 2) << outcome;
    EXPECT_NE(outcome.err.find("--search select"), std::string::npos) << outcome;
}

} // namespace
} // namespace convtranspose::test
