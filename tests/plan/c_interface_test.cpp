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

TEST(CInterface, RefusesIntegersThatAreNoEnumerators) {
    const char *let_through = rejects_unknown_enumerators();
    EXPECT_EQ(let_through, nullptr) << let_through;
}

TEST(CInterface, ExplainsAPlanOfNoOutputChannels) { EXPECT_TRUE(explains_no_output_channels()); }

} // namespace
