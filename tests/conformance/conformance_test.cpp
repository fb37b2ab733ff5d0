// The cases of the files beside this one through the public interface, in both layouts.
#if defined(__linux__)
#include <sys/resource.h>
#endif

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "conformance/cases.h"
#include "reference/built_types.h"
#include "reference/descriptor.h"
#include "reference/effort.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

class Conformance : public testing::TestWithParam<Case> {};

TEST_P(Conformance, Case) {
    const Json &c = GetParam().json;
    const Problem first = problem_of(c);
    for (const bool last : {false, true}) {
        SCOPED_TRACE(last ? "channels last" : "channels first");
        const Problem problem = last ? channels_last(first) : first;

        if (expects_error(c)) {
            const Status status = status_of_error(c, problem, options_of_the_run());
            EXPECT_NE(status.code(), CONVT_OK);
            EXPECT_NE(status.code(), CONVT_INTERNAL) << status.message();
            EXPECT_NE(status.message(), "");
            continue;
        }

        SCOPED_TRACE(describe(problem));
        Inputs inputs = inputs_of(c, first);
        if (last) inputs.x = channels_last(inputs.x);
        Tensor y;
        const Status status = run(problem, inputs, options_of_the_run(), &y);
        ASSERT_TRUE(status) << status.message();
        EXPECT_TRUE(is_as_listed(c, y, last));
        EXPECT_TRUE(agrees(y, reference(problem, inputs)));
    }
}

INSTANTIATE_TEST_SUITE_P(Cases, Conformance, testing::ValuesIn(load_cases()),
                         [](const testing::TestParamInfo<Case> &c) { return c.param.name; });

// While it lives, the process may have four gigabytes of addresses at most. Not with the address sanitizer, which has far more.
class LimitedMemory {
  public:
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
    LimitedMemory() {
        getrlimit(RLIMIT_AS, &before_);
        rlimit limit = before_;
        limit.rlim_cur = std::min<rlim_t>(rlim_t{4000000000}, before_.rlim_max);
        setrlimit(RLIMIT_AS, &limit);
    }
    ~LimitedMemory() { setrlimit(RLIMIT_AS, &before_); }

  private:
    rlimit before_ = {};
#else
    LimitedMemory() {}
    ~LimitedMemory() {}
#endif
  public:
    LimitedMemory(const LimitedMemory &) = delete;
    LimitedMemory &operator=(const LimitedMemory &) = delete;
};

// All cases of a file on one ISA, in both layouts, by the definition and where Winograd's algorithm may be taken. Where they are
// wrong the reference says which element.
class OnIsa : public testing::TestWithParam<std::string> {
  protected:
    static void expect_all(const std::string &file) {
        for (const Case &named : load_cases(file)) {
            const Json &c = named.json;
            const Problem first = problem_of(c);
            for (const bool last : {false, true}) {
                const Problem problem = last ? channels_last(first) : first;
                SCOPED_TRACE(named.name + ": " + describe(problem));
                Options options{};
                options.isa = GetParam().c_str();
                options.threads = 2;
                options.all_threads = 1;
                if (expects_error(c)) {
                    const Status status = status_of_error(c, problem, options);
                    EXPECT_TRUE(status.code() == CONVT_INVALID_ARGUMENT || status.code() == CONVT_OVERFLOW)
                        << status.message();
                    continue;
                }
                Inputs inputs = inputs_of(c, first);
                if (last) inputs.x = channels_last(inputs.x);
                for (const int winograd : {0, 1}) {
                    options.winograd = winograd;
                    Tensor y;
                    const Status status = run(problem, inputs, options, &y);
                    EXPECT_TRUE(status) << status.message();
                    if (!status) continue;
                    const testing::AssertionResult right = is_as_listed(c, y, last);
                    EXPECT_TRUE(right) << agrees(y, reference(problem, inputs)).message();
                    if (problem.dtype != CONVT_F32 && problem.dtype != CONVT_F64) break; // others have no use for it
                }
            }
        }
    }
};

// Emulated, the best and the least: those between add a few kernels, which the tests of variants run.
std::vector<std::string> isas() {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < convt_isa_count(); ++i) {
        if (convt_isa_supported(i)) names.emplace_back(convt_isa_name(i));
    }
    if (kEmulated && names.size() > 2) names = {names.front(), names.back()};
    return names;
}

TEST_P(OnIsa, Reports) { expect_all("reports.json"); }

// As few bytes and as little time as the tensors ask for, whatever dilations, pads and strides are.
TEST_P(OnIsa, Huge) {
    const LimitedMemory limit;
    expect_all("huge.json");
}

INSTANTIATE_TEST_SUITE_P(Isas, OnIsa, testing::ValuesIn(isas()),
                         [](const testing::TestParamInfo<std::string> &c) { return c.param; });

// Values that are published with the node's documentation: x = 0..8, w = 1, no attributes.
TEST(Published, ConvTranspose) {
    if (!is_built(CONVT_F32)) GTEST_SKIP() << "f32 is not built";
    const Problem problem = parse_problem("f32 nchw n1 g1 ic1 oc2 i3x3 k3x3");
    Inputs inputs = draw(problem, 1);
    fill(Json::parse("{\"arange\": true}"), &inputs.x);
    fill(Json::parse("{\"fill\": 1}"), &inputs.w);
    Tensor y;
    const Status status = run(problem, inputs, options_of_the_run(), &y);
    ASSERT_TRUE(status) << status.message();
    const std::vector<double> expected = {0,  1,  3, 3,  2,  3,  8,  15, 12, 7,  9,  21, 36,
                                          27, 15, 9, 20, 33, 24, 13, 6,  13, 21, 15, 8};
    for (std::int64_t i = 0; i < y.size(); ++i) EXPECT_EQ(y.get(i), expected[static_cast<std::size_t>(i) % 25]) << i;
}

// Likewise: strides 3 and 2, pads 1, 2, 1, 2.
TEST(Published, ConvTransposePads) {
    if (!is_built(CONVT_F32)) GTEST_SKIP() << "f32 is not built";
    const Problem problem = parse_problem("f32 nchw n1 g1 ic1 oc2 i3x3 k3x3 s3x2 p1x2_1x2");
    Inputs inputs = draw(problem, 1);
    fill(Json::parse("{\"arange\": true}"), &inputs.x);
    fill(Json::parse("{\"fill\": 1}"), &inputs.w);
    Tensor y;
    const Status status = run(problem, inputs, options_of_the_run(), &y);
    ASSERT_TRUE(status) << status.message();
    const std::vector<double> expected = {1, 1, 3, 1, 1, 3, 7, 4, 9, 7, 4, 9, 7, 4, 9, 13, 7, 15, 13, 7, 15};
    ASSERT_EQ(y.shape(), (Shape{1, 2, 7, 3}));
    for (std::int64_t i = 0; i < y.size(); ++i) EXPECT_EQ(y.get(i), expected[static_cast<std::size_t>(i) % 21]) << i;
}

} // namespace
} // namespace convtranspose::test
