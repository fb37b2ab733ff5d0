// Candidates that do not compile, hang, crash or compute something else cost themselves and nothing more.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/files.h"
#include "cli/process.h"
#include "json_lines.h"

namespace convtranspose::test {
namespace {

using nlohmann::json;

// Only one family has kernels for it, so all candidates come from one generator.
const std::string kDepthwise = "f32 nchw n1 g16 ic16 oc16 i9x40 k4x4 s2x2 p1x1_1x1 bias";

class Failures : public testing::Test {
  protected:
    // Generators that, called in turn, do each of these: shell, where "$@" are the arguments, $f the function, $out the object.
    // An empty one is the real generator.
    void generators(const std::vector<std::string> &turns) const {
        const std::filesystem::path folder = folder_.path() / "generators";
        std::filesystem::create_directories(folder);
        for (const char *const family : {"reference", "oc_vectorized", "ow_vectorized", "small_oc", "depthwise"}) {
            const std::string name = std::string(family) + "_generator";
            std::string script =
                "#!/bin/sh\nreal=" + std::string(CONVTRANSPOSE_GENERATORS) + "/" + name +
                "\nmake() { printf '%s\\n' \"$1\" > \"$out.c\"; " + CONVTRANSPOSE_COMPILER +
                " -x c -fPIC -c \"$out.c\" -o \"$out\"; }\n"
                "next=''\nfor word in \"$@\"; do\n"
                "    case $next in -f) f=$word ;; -n) n=$word ;; -o) o=$word ;; esac\n    next=$word\ndone\n"
                "out=$o/$n.o\n"
                "while ! mkdir " +
                (folder / "lock").string() + " 2>/dev/null; do sleep 0.01; done\n" +
                "count=" + (folder / "count").string() +
                "\nturn=$(cat $count 2>/dev/null || echo 0)\necho $((turn + 1)) > $count\nrmdir " +
                (folder / "lock").string() + "\ncase $((turn % " + std::to_string(turns.size()) + ")) in\n";
            for (std::size_t i = 0; i < turns.size(); i++) {
                script += std::to_string(i) + ") " + (turns[i].empty() ? "exec $real \"$@\"" : turns[i]) + " ;;\n";
            }
            write_text(folder / name, script + "esac\n");
            std::filesystem::permissions(folder / name, std::filesystem::perms::owner_all);
        }
    }

    std::vector<json> search(const std::string &budget) const {
        const std::string out = (folder_.path() / "out").string();
        outcome_ = convtranspose({"tune", kDepthwise, "--output", out, "--search", "schedule", "--budget", budget,
                                  "--timeout", "2", "--generators", (folder_.path() / "generators").string(),
                                  "--compiler", CONVTRANSPOSE_COMPILER});
        return lines_of(out + "/search.jsonl");
    }

    static std::size_t count(const std::vector<json> &lines, const std::string &error) {
        std::size_t n = 0;
        for (const json &line : lines) n += line.value("error", "").find(error) != std::string::npos;
        return n;
    }

    static std::size_t made(const std::vector<json> &lines) {
        std::size_t n = 0;
        for (const json &line : lines) n += line.contains("generator") && line.contains("ms");
        return n;
    }

    TemporaryFolder folder_;
    mutable Outcome outcome_;
};

TEST_F(Failures, ToCompile) {
    generators({"echo this will not do >&2; exit 3", ""});
    const std::vector<json> lines = search("6");
    ASSERT_EQ(outcome_.status, 0) << outcome_;
    EXPECT_GT(count(lines, "ended with status 3: this will not do"), 0u) << outcome_;
    EXPECT_GT(made(lines), 0u) << outcome_;
}

TEST_F(Failures, ToEnd) {
    generators({"exec sleep 100", ""});
    const std::vector<json> lines = search("8");
    ASSERT_EQ(outcome_.status, 0) << outcome_;
    EXPECT_GT(count(lines, "took too long"), 0u) << outcome_;
    EXPECT_GT(made(lines), 0u) << outcome_;
}

TEST_F(Failures, ToStayAlive) {
    generators({"make \"void abort(void); int $f() { abort(); }\"", "", ""});
    const std::vector<json> lines = search("8");
    ASSERT_EQ(outcome_.status, 0) << outcome_;
    EXPECT_GT(count(lines, "was ended by signal Aborted"), 0u) << outcome_;
    EXPECT_GT(made(lines), 0u) << outcome_;
}

TEST_F(Failures, ToAnswer) {
    generators({"make \"int $f() { for (;;) ; }\"", "", ""});
    const std::vector<json> lines = search("5");
    ASSERT_EQ(outcome_.status, 0) << outcome_;
    EXPECT_GT(count(lines, "did not answer in"), 0u) << outcome_;
}

TEST_F(Failures, ToBeRight) {
    generators({"make \"int $f() { return 0; }\"", ""});
    const std::vector<json> lines = search("6");
    ASSERT_EQ(outcome_.status, 0) << outcome_;
    EXPECT_GT(count(lines, "wrong results: "), 0u) << outcome_;
    EXPECT_GT(made(lines), 0u) << outcome_;
    // A candidate that computes something else is never chosen, though it would be the fastest by far.
    const json record = json::parse(read_text(folder_.path() / "out" / "tuning.jsonl"));
    for (const json &line : lines) {
        EXPECT_FALSE(line.contains("error") && line.at("name") == record.at("variant")) << outcome_;
    }
}

TEST_F(Failures, OfAllOfThem) {
    generators({"echo this will not do >&2; exit 1"});
    const std::vector<json> lines = search("3");
    EXPECT_EQ(outcome_.status, 1) << outcome_;
    EXPECT_EQ(made(lines), 0u) << outcome_;
    EXPECT_NE(outcome_.err.find("kernels that were made could be compiled and run; the first: "), std::string::npos)
        << outcome_;
    EXPECT_NE(outcome_.err.find("ended with status 1: this will not do"), std::string::npos) << outcome_;
    EXPECT_EQ(outcome_.out, "") << outcome_;
    EXPECT_EQ(read_text(folder_.path() / "out" / "tuning.jsonl"), "") << outcome_;
}

TEST_F(Failures, OfTheCompiler) {
    const Outcome outcome = convtranspose({"tune", kDepthwise, "--output", (folder_.path() / "out").string(),
                                           "--search", "schedule", "--budget", "3", "--compiler", "/nonexistent/c++"});
    EXPECT_EQ(outcome.status, 1) << outcome;
    EXPECT_NE(outcome.err.find("the first: cannot run /nonexistent/c++"), std::string::npos) << outcome;
}

TEST_F(Failures, OfTheWorker) {
    for (const auto &[worker, message] :
         std::vector<std::pair<std::string, std::string>>{{"/bin/false", "the worker: it ended with status 1"},
                                                          {"/bin/cat", "the worker: its answer makes no sense"},
                                                          {"/nonexistent/worker", "cannot run /nonexistent/worker"}}) {
        const Outcome outcome =
            convtranspose({"tune", kDepthwise, "--output", (folder_.path() / "out").string(), "--worker", worker});
        EXPECT_EQ(outcome.status, 1) << outcome;
        EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome;
    }
}

} // namespace
} // namespace convtranspose::test
