// The order in which a step goes through the positions of a register tile.
#include <string>
#include <vector>

#include <Halide.h>
#include <gtest/gtest.h>

#include "schedules/cpu/passes/interleave_positions.h"

namespace convtranspose {

namespace {

using namespace Halide;
using namespace Halide::Internal;

Stmt store(const std::string &name, int at) {
    return Store::make(name, 0.0F, at, Parameter(), const_true(), ModulusRemainder());
}

// A step that stores to the elements 0, 1, .. of a buffer.
Stmt step(const std::string &name, int count) {
    std::vector<Stmt> all;
    all.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; i++) all.push_back(store(name, i));
    return Block::make(all);
}

class Stored : public IRVisitor {
  public:
    std::vector<int> at;

  private:
    using IRVisitor::visit;
    void visit(const Store *op) override {
        const auto *const index = op->index.as<IntImm>();
        if (index) at.push_back(static_cast<int>(index->value));
    }
};

std::vector<int> order(const Stmt &s, int vectors) {
    Stored stored;
    InterleavePositions("sum", vectors).mutate(s).accept(&stored);
    return stored.at;
}

TEST(InterleavePositions, PutsTheSecondHalfBetweenTheFirst) {
    EXPECT_EQ(order(step("sum", 8), 1), (std::vector<int>{0, 4, 1, 5, 2, 6, 3, 7}));
    EXPECT_EQ(order(step("sum", 5), 1), (std::vector<int>{0, 3, 1, 4, 2}));
    EXPECT_EQ(order(step("sum", 1), 1), (std::vector<int>{0}));
}

TEST(InterleavePositions, KeepsTheVectorsOfAPositionTogether) {
    EXPECT_EQ(order(step("sum", 8), 2), (std::vector<int>{0, 1, 4, 5, 2, 3, 6, 7}));
}

TEST(InterleavePositions, FindsStepsWithinOtherStatements) {
    const Stmt inside = IfThenElse::make(Variable::make(Bool(), "inside"), step("sum", 4));
    const Stmt loop = For::make("k", 0, 9, ForType::Serial, Partition::Auto, DeviceAPI::None, inside);
    EXPECT_EQ(order(loop, 1), (std::vector<int>{0, 2, 1, 3}));
}

TEST(InterleavePositions, LeavesEverythingElseAsItIs) {
    EXPECT_EQ(order(step("y", 4), 1), (std::vector<int>{0, 1, 2, 3}));
    EXPECT_EQ(order(step("sum", 5), 2), (std::vector<int>{0, 1, 2, 3, 4})) << "no whole positions";
    EXPECT_EQ(order(Block::make(step("sum", 4), store("y", 4)), 1), (std::vector<int>{0, 1, 2, 3, 4}));
}

} // namespace

} // namespace convtranspose
