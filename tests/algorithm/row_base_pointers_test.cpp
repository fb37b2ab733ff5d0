// The loads of a step that go through pointers of their own, and that sums stay the same.
#include <string>
#include <utility>
#include <vector>

#include <Halide.h>
#include <gtest/gtest.h>

#include "schedules/cpu/passes/row_base_pointers.h"

namespace convtranspose {

namespace {

using namespace Halide;
using Internal::Call;
using Internal::Load;

// y(q, h) = sum over k of x(taps(0) + q, k, h), `columns` by `rows` of them at once. As in kernels, where a row begins is read from
// a table.
struct Sums {
    ImageParam taps{Int(32), 1, "taps"}, x{Float(32), 3, "x"};
    Func y{"y"}, sum{"sum"};
    int columns, rows;

    Sums(int columns_, int rows_, bool dense) : columns(columns_), rows(rows_) {
        Var q("q"), h("h");
        RDom k(0, x.dim(1).extent());
        sum(q, h) = 0.0F;
        sum(q, h) += x(taps(0) + q, k, h);
        y(q, h) = sum(q, h);
        sum.compute_root().bound_extent(q, columns).bound_extent(h, rows).unroll(q).unroll(h);
        sum.update().reorder(q, h, k).unroll(q).unroll(h);
        y.bound(q, 0, columns).bound(h, 0, rows);
        if (!dense) x.dim(0).set_stride(Expr());
    }

    Pipeline pipeline(int positions, const std::string &of = std::string()) {
        Pipeline p(y);
        p.add_custom_lowering_pass(new RowBasePointers(of.empty() ? sum.name() : of, "x", positions));
        return p;
    }
};

class Found : public Internal::IRVisitor {
  public:
    int pointers = 0, through_pointers = 0, of_x = 0;
    explicit Found(const Module &module) { module.functions().front().body.accept(this); }

  private:
    using IRVisitor::visit;
    void visit(const Call *op) override {
        if (op->name == "llvm.launder.invariant.group.p0") pointers++;
        IRVisitor::visit(op);
    }
    void visit(const Load *op) override {
        if (op->name == "x") {
            of_x++;
        } else if (op->name.rfind("x_row", 0) == 0) {
            through_pointers++;
        }
        IRVisitor::visit(op);
    }
};

Found found(Sums *sums, int positions, const std::string &of = std::string()) {
    return Found(sums->pipeline(positions, of).compile_to_module({sums->taps, sums->x}, "sums"));
}

TEST(RowBasePointers, AreOneForSoManyPositionsOfARow) {
    const std::vector<std::pair<int, int>> cases = {{1, 8}, {4, 2}, {5, 2}, {7, 2}, {8, 1}, {100, 1}};
    for (const auto &[positions, pointers] : cases) {
        SCOPED_TRACE(positions);
        Sums sums(8, 1, false);
        const Found f = found(&sums, positions);
        EXPECT_EQ(f.pointers, pointers);
        EXPECT_EQ(f.through_pointers, 8);
        EXPECT_EQ(f.of_x, 0);
    }
}

TEST(RowBasePointers, AreOfOneRowEach) {
    Sums sums(4, 3, false);
    const Found f = found(&sums, 4);
    EXPECT_EQ(f.pointers, 3);
    EXPECT_EQ(f.through_pointers, 12);
}

TEST(RowBasePointers, AreOneForAllNeighboursInMemory) {
    Sums sums(4, 2, true);
    const Found f = found(&sums, 2);
    EXPECT_EQ(f.pointers, 2);
    EXPECT_EQ(f.through_pointers, 8);
    EXPECT_EQ(f.of_x, 0);
}

TEST(RowBasePointers, LeaveOutOtherLoops) {
    Sums sums(4, 1, false);
    const Found f = found(&sums, 4, "another");
    EXPECT_EQ(f.pointers, 0);
    EXPECT_EQ(f.of_x, 4);
}

TEST(RowBasePointers, ReadTheSame) {
    constexpr int kColumns = 14, kRows = 2, kSteps = 9;
    // Steps are side by side and positions kSteps apart, perhaps from the last to the first; or the other way round.
    for (const int stride : {kSteps, -kSteps, 1}) {
        SCOPED_TRACE(stride);
        const bool backwards = stride < 0;
        const int step = stride == 1 ? kColumns : 1;
        Sums sums(kColumns - 1, kRows, stride == 1);
        std::vector<float> memory(std::size_t{kColumns} * kRows * kSteps);
        for (std::size_t i = 0; i < memory.size(); i++) memory[i] = static_cast<float>(i * i % 97);
        halide_dimension_t shape[] = {{0, kColumns, stride}, {0, kSteps, step}, {0, kRows, kColumns * kSteps}};
        float *const first = memory.data() + (backwards ? (kColumns - 1) * kSteps : 0);
        const Buffer<float> x(first, 3, shape);
        sums.x.set(x);
        Buffer<int> taps(1);
        taps(0) = 1;
        sums.taps.set(taps);
        const Buffer<float> y = sums.pipeline(7).realize({kColumns - 1, kRows});
        for (int h = 0; h < kRows; h++) {
            for (int q = 0; q < kColumns - 1; q++) {
                float expected = 0;
                for (int k = 0; k < kSteps; k++) {
                    expected += first[(q + 1) * stride + k * step + h * kColumns * kSteps];
                }
                EXPECT_EQ(y(q, h), expected) << q << ", " << h;
            }
        }
    }
}

} // namespace

} // namespace convtranspose
