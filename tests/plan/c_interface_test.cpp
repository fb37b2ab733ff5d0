#include "plan/c_interface.h"

#include <vector>

#include <gtest/gtest.h>

namespace {

TEST(CInterface, RunsFromC) {
    std::vector<float> y(5, -1);
    const char *error = run_by_hand(y.data(), y.size());
    ASSERT_EQ(error, nullptr) << error;
    EXPECT_EQ(y, (std::vector<float>{1001, 1010, 1102, 1020, 1200}));
}

TEST(CInterface, ReportsErrorsToC) { EXPECT_TRUE(rejects_zero_initialised_problem()); }

} // namespace
