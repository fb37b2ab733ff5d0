// Parts of tuning by themselves meet programs that do not answer, kernels that leave a worker, and disks that are full.
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/files.h"
#include "convtranspose/convtranspose.h"
#include "json_lines.h"
#include "tools/error.h"
#include "tools/tune/measurement_session.h"
#include "tools/tune/search_log.h"
#include "tools/tune/subprocess.h"

namespace convtranspose::test {
namespace {

using nlohmann::json;

class Session : public testing::Test {
  protected:
    std::string file(const std::string &name) const { return (folder_.path() / name).string(); }

    TemporaryFolder folder_;
};

// Children end by themselves, so that a test that fails does not wait for long. What they write last tells that they were waited
// for.
TEST_F(Session, AChildThatClosesItsPipesIsNotWaitedFor) {
    tools::Subprocess child({"/bin/sh", "-c", "exec <&- >&-; sleep 10; : >" + file("ended")}, file("log"));
    EXPECT_THROW(child.ask("a question", 0.2), tools::Error);
    EXPECT_FALSE(std::filesystem::exists(file("ended")));
}

TEST_F(Session, AChildThatReadsNothingIsNotWaitedFor) {
    tools::Subprocess child({"/bin/sh", "-c", "sleep 10; : >" + file("ended")}, file("log"));
    try {
        child.ask(std::string(1 << 20, 'x'), 0.2); // more than a pipe holds
        ADD_FAILURE() << "it has answered";
    } catch (const tools::Error &e) {
        EXPECT_STREQ(e.what(), "it did not answer in 0 s");
    }
    EXPECT_FALSE(std::filesystem::exists(file("ended")));
}

TEST_F(Session, HasTheKernelsThatHaveNotLeft) {
    const json candidates = {{{"name", "default"}, {"ms", 1.0}}};
    setenv("FAKE_WORKER", json{{"candidates", candidates}, {"log", file("questions")}}.dump().c_str(), 1);
    tools::TuneOptions options;
    options.output = file("out");
    options.worker = CONVTRANSPOSE_FAKE_WORKER;
    const tools::KernelBuilder builder(options);
    tools::MeasurementSession session(builder, "f32 nchw n1 g1 ic4 oc4 i5x5 k2x2 s2x2", options.plan, 30);
    write_text(file("kernels.so"), "");
    constexpr int kAdded = 29; // one more than a worker takes
    const auto name = [](int i) { return "kernel_" + std::to_string(i); };
    for (int i = 0; i < kAdded; i++) EXPECT_EQ(session.add(file("kernels.so"), json{{{"name", name(i)}}}), "");
    EXPECT_FALSE(session.has(name(0)));
    EXPECT_TRUE(session.has(name(kAdded - 2)));
    EXPECT_TRUE(session.has(name(kAdded - 1)));
    EXPECT_FALSE(session.has(name(kAdded)));
}

TEST_F(Session, ALineThatCannotBeWrittenLeavesNoPart) {
    const tools::Stamp stamp = {CONVT_VERSION, convt_kernels_version()};
    tools::SearchLog log(file("log.jsonl"), stamp, false);
    log.add({{"name", "first"}});
    const std::string before = read_text(file("log.jsonl"));
    rlimit usual = {};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
    const rlimit full = {before.size() + 20, usual.rlim_max};
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
    EXPECT_THROW(log.add({{"name", "second"}}), tools::Error);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &usual), 0);
    std::signal(SIGXFSZ, handler);
    EXPECT_EQ(read_text(file("log.jsonl")), before);
    EXPECT_EQ(log.lines().size(), 1u);
    EXPECT_EQ(tools::SearchLog(file("log.jsonl"), stamp, true).lines().size(), 1u);
}

TEST_F(Session, BlankLinesAreSkipped) {
    const tools::Stamp stamp = {CONVT_VERSION, convt_kernels_version()};
    const std::string line = json{{"package", stamp.package}, {"kernels", stamp.kernels}}.dump();
    write_text(file("log.jsonl"), "\n" + line + "\n \t\r\n" + line + "\n ");
    tools::SearchLog log(file("log.jsonl"), stamp, true);
    log.add(json::object());
    EXPECT_EQ(tools::SearchLog(file("log.jsonl"), stamp, true).lines().size(), 3u);
}

} // namespace
} // namespace convtranspose::test
