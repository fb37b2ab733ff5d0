// The conformance cases on a device: it must compute all of them, and what is an error on the CPU must be the same one.
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

class DeviceConformance : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceConformance, testing::ValuesIn(device_kinds()),
                         [](const testing::TestParamInfo<std::string> &c) { return c.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceConformance);

TEST_P(DeviceConformance, AllCases) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    const Options options = on_device(GetParam());
    int computed = 0, errors = 0;
    for (const Case &named : load_cases()) {
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
                ++errors;
                continue;
            }
            Inputs inputs = inputs_of(c, first);
            if (last) inputs.x = channels_last(inputs.x);
            Tensor y;
            const Status status = run(problem, inputs, options, &y);
            EXPECT_TRUE(status) << status.message();
            if (!status) continue;
            EXPECT_TRUE(is_as_listed(c, y, last));
            EXPECT_TRUE(agrees(y, device_reference(problem, inputs))) << describe(problem);
            ++computed;
        }
    }
    RecordProperty("computed", computed);
    RecordProperty("errors", errors);
    EXPECT_GT(computed, 250);
    EXPECT_GT(errors, 30);
}

} // namespace
} // namespace convtranspose::test
