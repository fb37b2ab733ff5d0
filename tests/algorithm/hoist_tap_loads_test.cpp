// That tables of taps are read outside of the loops over positions, and conditions are tested once.
#include <string>

#include <Halide.h>
#include <gtest/gtest.h>

#include "schedules/cpu/passes/hoist_tap_loads.h"

namespace convtranspose {

namespace {

using namespace Halide;
using Internal::IfThenElse;
using Internal::Load;

// y(q, r) = sum over t < taps_w(r, 1) of x(q + taps_w(r, 0) + t), of those inside of x.
struct Sums {
    ImageParam taps{Int(32), 2, "taps_w"}, x{Int(32), 1, "x"};
    Func y{"y"};

    Sums() {
        Var q("q"), r("r");
        RDom t(0, 100);
        const Expr at = q + taps(r, 0) + t;
        t.where(t < taps(r, 1));
        t.where(at >= x.dim(0).min());
        t.where(at <= x.dim(0).max());
        y(q, r) = 0;
        y(q, r) += x(unsafe_promise_clamped(at, x.dim(0).min(), x.dim(0).max()));
        taps.dim(1).set_min(0).set_stride(1);
        taps.dim(0).set_min(0).set_stride(2);
        y.output_buffer().dim(1).set_min(0);
    }

    Pipeline pipeline(bool once, const std::string &table = "taps_w") {
        Pipeline p(y);
        if (once) p.add_custom_lowering_pass(new HoistTapLoads({table}));
        return p;
    }
};

class Depths : public Internal::IRVisitor {
  public:
    int deepest_load = 0, conditions = 0; // of a table, in loops
    explicit Depths(const Module &module) { module.functions().front().body.accept(this); }

  private:
    using IRVisitor::visit;
    void visit(const Internal::For *op) override {
        op->min.accept(this);
        op->extent.accept(this);
        depth_++;
        op->body.accept(this);
        depth_--;
    }
    void visit(const Load *op) override {
        if (op->name == "taps_w") deepest_load = std::max(deepest_load, depth_);
        IRVisitor::visit(op);
    }
    void visit(const IfThenElse *op) override {
        conditions++;
        IRVisitor::visit(op);
    }
    int depth_ = 0;
};

Depths depths(bool once, const std::string &table = "taps_w") {
    Sums sums;
    return Depths(
        sums.pipeline(once, table)
            .compile_to_module({sums.taps, sums.x}, "sums",
                               get_host_target().with_feature(Target::NoBoundsQuery).with_feature(Target::NoAsserts)));
}

TEST(HoistTapLoads, ReadsTablesWhereThePhaseIsKnown) {
    EXPECT_GT(depths(false).deepest_load, 1) << "otherwise Halide does so itself";
    EXPECT_EQ(depths(true).deepest_load, 1);
    EXPECT_GT(depths(true, "another").deepest_load, 1) << "of the tables that it is told, no others";
}

TEST(HoistTapLoads, SumsTheSame) {
    constexpr int kWidth = 9, kPhases = 3, kFirst[kPhases] = {-2, 1, 0}, kCount[kPhases] = {5, 0, 3};
    Sums sums;
    Buffer<int> taps(2, kPhases), x(kWidth);
    taps.transpose(0, 1); // (phase, column), columns side by side
    for (int r = 0; r < kPhases; r++) {
        taps(r, 0) = kFirst[r];
        taps(r, 1) = kCount[r];
    }
    for (int i = 0; i < kWidth; i++) x(i) = i * i + 1;
    sums.taps.set(taps);
    sums.x.set(x);
    const Buffer<int> y = sums.pipeline(true).realize({kWidth, kPhases});
    for (int r = 0; r < kPhases; r++) {
        for (int q = 0; q < kWidth; q++) {
            int expected = 0;
            for (int t = 0; t < kCount[r]; t++) {
                const int at = q + kFirst[r] + t;
                if (at >= 0 && at < kWidth) expected += at * at + 1;
            }
            EXPECT_EQ(y(q, r), expected) << q << ", " << r;
        }
    }
}

// Statements as passes see them: a condition within the same one, within one that tells part of it, and within another.
class Conditions : public testing::Test {
  protected:
    const Expr a = Internal::Variable::make(Int(32), "a"), b = Internal::Variable::make(Int(32), "b");
    const Internal::Stmt leaf = Internal::Evaluate::make(a);

    static int count(const Internal::Stmt &s) {
        class Count : public Internal::IRVisitor {
          public:
            int found = 0;

          private:
            using IRVisitor::visit;
            void visit(const IfThenElse *op) override {
                found++;
                IRVisitor::visit(op);
            }
        } counted;
        HoistTapLoads once({"taps_w"});
        once.mutate(s).accept(&counted);
        return counted.found;
    }
};

TEST_F(Conditions, AreTestedOnce) {
    const Expr both = a < 3 && b < 4;
    EXPECT_EQ(count(IfThenElse::make(both, IfThenElse::make(both, leaf))), 1);
    EXPECT_EQ(count(IfThenElse::make(both, IfThenElse::make(b < 4, leaf))), 1);
    EXPECT_EQ(count(IfThenElse::make(b < 4, IfThenElse::make(both, leaf))), 2);
    EXPECT_EQ(count(IfThenElse::make(a < 3, IfThenElse::make(b < 3, leaf))), 2);
    const Internal::Stmt beside = Internal::Block::make(IfThenElse::make(both, leaf), IfThenElse::make(both, leaf));
    EXPECT_EQ(count(beside), 2) << "not one within the other";
    EXPECT_EQ(count(IfThenElse::make(both, leaf, IfThenElse::make(both, leaf))), 2) << "there it does not hold";
}

TEST_F(Conditions, AreTheSameByWhateverName) {
    const Expr c = Internal::Variable::make(Int(32), "c");
    const Internal::Stmt inner = Internal::LetStmt::make("c", a + 1, IfThenElse::make(c < 3, leaf));
    EXPECT_EQ(count(IfThenElse::make(a + 1 < 3, inner)), 1);
    EXPECT_EQ(count(IfThenElse::make(a + 2 < 3, inner)), 2);
}

} // namespace

} // namespace convtranspose
