// The conformance cases on a device: it must compute all of them, but for those of more than three spatial axes, and what is an
// error on the CPU must be the same one.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "conformance/cases.h"
#include "gpu/device.h"
#include "gpu/device_reference.h"
#include "reference/descriptor.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

struct Count {
    int computed = 0, errors = 0, refused = 0;
};

// All cases of a file, in both layouts.
class DeviceConformance : public testing::TestWithParam<std::string> {
  protected:
    static void expect_all(const std::string &file, Count *count);
};

void DeviceConformance::expect_all(const std::string &file, Count *count) {
    const Options options = on_device(GetParam());
    for (const Case &named : load_cases(file)) {
        const Json &c = named.json;
        const Problem first = problem_of(c);
        for (const bool last : {false, true}) {
            SCOPED_TRACE(named.name + (last ? ", channels last" : ", channels first"));
            const Problem problem = last ? channels_last(first) : first;
            if (expects_error(c)) {
                const Status cpu = status_of_error(c, problem, Options{});
                const Status device = status_of_error(c, problem, options);
                ASSERT_NE(cpu.code(), CONVT_OK);
                EXPECT_EQ(device.code(), cpu.code()) << device.message() << "; on the CPU: " << cpu.message();
                EXPECT_EQ(device.message(), cpu.message());
                ++count->errors;
                continue;
            }
            Inputs inputs = inputs_of(c, first);
            if (last) inputs.x = channels_last(inputs.x);
            Tensor y;
            const Status status = run(problem, inputs, options, &y);
            if (problem.x_shape.size() > 5 && status.code() == CONVT_UNSUPPORTED) {
                EXPECT_NE(status.message().find("spatial axes"), std::string::npos) << status.message();
                ++count->refused;
                continue;
            }
            EXPECT_TRUE(status) << status.message();
            if (!status) continue;
            EXPECT_TRUE(is_as_listed(c, y, last));
            EXPECT_TRUE(agrees(y, device_reference(problem, inputs))) << describe(problem);
            ++count->computed;
        }
    }
    RecordProperty("computed", count->computed);
    RecordProperty("errors", count->errors);
    RecordProperty("refused", count->refused);
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceConformance, testing::ValuesIn(device_kinds()),
                         [](const testing::TestParamInfo<std::string> &c) { return c.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceConformance);

TEST_P(DeviceConformance, AllCases) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    Count count;
    expect_all("cases.json", &count);
    EXPECT_GT(count.computed, 250);
    EXPECT_GT(count.errors, 30);
    EXPECT_EQ(count.refused, 0);
}

TEST_P(DeviceConformance, Reports) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    Count count;
    expect_all("reports.json", &count);
    EXPECT_GT(count.computed, 130);
    EXPECT_GT(count.errors, 10);
    EXPECT_EQ(count.refused, 0);
}

TEST_P(DeviceConformance, Huge) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    Count count;
    expect_all("huge.json", &count);
    EXPECT_GT(count.computed, 210);
}

} // namespace
} // namespace convtranspose::test
