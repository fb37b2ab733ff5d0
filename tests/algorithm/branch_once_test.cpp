// The branches of stores that become one, and that what is stored stays the same.
#include <Halide.h>
#include <gtest/gtest.h>

#include "schedules/cpu/passes/branch_once.h"

namespace convtranspose {

namespace {

using namespace Halide;

// y(i, q) = x(i) * (q + 1), by `width` of i and two q at a time; the last vectors of i may be stored in part.
struct Tiles {
    static constexpr int kLanes = 8, kPositions = 2;
    ImageParam x{Float(32), 1, "x"};
    Func y{"y"}, sum{"sum"};

    explicit Tiles(int width) {
        Var i("i"), q("q"), io("io"), ii("ii"), qo("qo"), qi("qi");
        sum(i, q) = x(min(i, x.dim(0).extent() - 1)) * cast<float>(q + 1);
        y(i, q) = sum(i, q);
        y.split(i, io, ii, width, TailStrategy::GuardWithIf).split(q, qo, qi, kPositions, TailStrategy::RoundUp);
        y.reorder(ii, qi, qo, io).vectorize(ii, kLanes).unroll(ii).unroll(qi).never_partition_all();
        sum.compute_at(y, qo).bound_extent(i, width).bound_extent(q, kPositions);
        sum.vectorize(i, kLanes).unroll(i).unroll(q);
        x.dim(0).set_min(0);
    }

    Pipeline pipeline(bool once) {
        Pipeline p(y);
        if (once) p.add_custom_lowering_pass(new BranchOnce);
        return p;
    }
};

// How many branches there are around stores of whole vectors, and stores in code.
class Found : public Internal::IRVisitor {
  public:
    int branches = 0, whole = 0, parts = 0;
    explicit Found(const Module &module) { module.functions().front().body.accept(this); }

  private:
    using IRVisitor::visit;
    void visit(const Internal::For *op) override {
        in_loop_++;
        IRVisitor::visit(op);
        in_loop_--;
    }
    void visit(const Internal::IfThenElse *op) override {
        branches += in_loop_ > 0 && op->else_case.defined();
        IRVisitor::visit(op);
    }
    void visit(const Internal::Store *op) override {
        (Internal::is_const_one(op->predicate) ? whole : parts)++;
        IRVisitor::visit(op);
    }
    int in_loop_ = 0;
};

Found found(int width, bool once) {
    Tiles tiles(width);
    return Found(tiles.pipeline(once).compile_to_module({tiles.x}, "f"));
}

TEST(BranchOnce, MakesOneBranchOfAll) {
    for (const int vectors : {2, 3}) { // Halide itself makes one of the same branches
        SCOPED_TRACE(vectors);
        const Found each = found(vectors * Tiles::kLanes, false), once = found(vectors * Tiles::kLanes, true);
        EXPECT_EQ(each.branches, vectors * Tiles::kPositions);
        EXPECT_EQ(once.branches, 1);
        EXPECT_EQ(once.whole, each.whole);
        EXPECT_EQ(once.parts, each.parts);
    }
}

TEST(BranchOnce, StoresTheSame) {
    constexpr int kWidth = 2 * Tiles::kLanes, kRows = 4;
    for (const int count : {1, 7, 8, 9, 16, 17, 24, 31, 32}) {
        SCOPED_TRACE(count);
        Tiles tiles(kWidth);
        Buffer<float> x(count), memory(count + 2 * kWidth, kRows);
        x.for_each_element([&](int i) { x(i) = static_cast<float>(i * i % 17 + 1); });
        memory.fill(-1);
        Buffer<float> y = memory.cropped(0, kWidth, count);
        tiles.x.set(x);
        y.translate(0, -kWidth);
        tiles.pipeline(true).realize(y);
        memory.for_each_element([&](int at, int q) {
            const int i = at - kWidth;
            const float expected = i >= 0 && i < count ? x(i) * static_cast<float>(q + 1) : -1;
            EXPECT_EQ(memory(at, q), expected) << i << ", " << q;
        });
    }
}

} // namespace

} // namespace convtranspose
