// The tile registers that loops of a matrix product become, and that sums stay the same. No CPU with AMX is needed.
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include <Halide.h>
#include <gtest/gtest.h>

#include "algorithm/interpreter.h"
#include "schedules/cpu/passes/amx_tiles.h"

namespace convtranspose {

namespace {

using namespace Halide;
using Internal::Stmt;

constexpr int kColumns = 32, kRows = 14, kDepth = 5, kSteps = 3; // two registers along each side
const AmxLoops kLoops = {"amx_bytes", "amx_depth", "amx_columns", "amx_rows"};

// y(n, m) = sum over blocks of channels k and places b in them of w(b, n, k) * x(b, k, m).
struct Product {
    Type type, sum_type;
    int block;
    ImageParam x, w;
    Func y{"y"}, sum{"sum"};

    explicit Product(const Type &type_, bool vectorized = false)
        : type(type_), sum_type(type_.is_bfloat() ? Float(32) : Int(32)), block(4 / type_.bytes()), x(type_, 3, "x"),
          w(type_, 3, "w") {
        Var n("n"), m("m"), columns(kLoops.columns), rows(kLoops.rows);
        RDom r(0, block, 0, kDepth * kSteps);
        RVar bytes(kLoops.bytes), depth(kLoops.depth), steps("steps");
        sum(n, m) = cast(sum_type, 0);
        sum(n, m) += cast(sum_type, w(r.x, n, r.y)) * cast(sum_type, x(r.x, r.y, m));
        y(n, m) = sum(n, m);
        for (ImageParam *const input : {&x, &w}) {
            for (int d = 0; d < 3; d++) input->dim(d).set_min(0);
            input->dim(0).set_extent(block);
            input->dim(1).set_stride(block);
        }
        x.dim(2).set_stride(block * kDepth * kSteps);
        w.dim(2).set_stride(block * kColumns);
        y.bound(n, 0, kColumns).bound(m, 0, kRows);
        sum.compute_root().bound_extent(n, kColumns).bound_extent(m, kRows);
        Stage update = sum.update();
        update.rename(r.x, bytes).split(r.y, steps, depth, kDepth);
        for (Stage stage : {Stage(y), Stage(sum), update}) {
            stage.split(n, n, columns, kColumns / 2).split(m, m, rows, kRows / 2).unroll(n).unroll(m);
        }
        Stage(y).reorder(columns, rows, n, m);
        Stage(sum).reorder(columns, rows, n, m);
        update.reorder(bytes, depth, columns, rows, n, m, steps);
        if (vectorized) update.vectorize(columns);
    }

    Stmt loops() {
        Stmt s;
        Pipeline p(y);
        test::keep_loops(p, &s);
        p.compile_to_module({x, w}, "f", Target("x86-64-linux-no_asserts-no_bounds_query"));
        return s;
    }

    // y as some loops compute it.
    std::vector<double> run(const Stmt &loops) const {
        test::Memories buffers = {{"x", test::Memory({block, kDepth * kSteps, kRows})},
                                  {"w", test::Memory({block, kColumns, kDepth * kSteps})},
                                  {y.name(), test::Memory({kColumns, kRows})}};
        int count = 0;
        for (const char *const name : {"x", "w"}) {
            for (double &element : buffers.at(name).elements) element = count++ * 7 % 11 - (type.is_uint() ? 0 : 5);
        }
        test::interpret(loops, &buffers);
        return buffers.at(y.name()).elements;
    }
};

// The registers that are allocated, and whether anything else holds sums.
class Registers : public Internal::IRVisitor {
  public:
    std::set<std::string> tiles;
    bool in_memory = false;
    explicit Registers(const std::string &sum, const Stmt &s) : sum_(sum) { s.accept(this); }

  private:
    using IRVisitor::visit;
    void visit(const Internal::Allocate *op) override {
        if (op->memory_type == MemoryType::AMXTile) tiles.insert(op->name);
        in_memory = in_memory || op->name == sum_;
        IRVisitor::visit(op);
    }
    void visit(const Internal::Load *op) override {
        in_memory = in_memory || op->name == sum_;
        IRVisitor::visit(op);
    }
    const std::string sum_;
};

TEST(AmxTiles, HoldTheSumsAndChangeNone) {
    for (const Type &type : {BFloat(16), UInt(8), Int(8)}) {
        SCOPED_TRACE(testing::Message() << type);
        Product product(type);
        const Stmt before = product.loops(), after = AmxTiles(product.sum.name(), kLoops).mutate(before);
        EXPECT_TRUE(Registers(product.sum.name(), before).in_memory);
        const Registers registers(product.sum.name(), after);
        EXPECT_EQ(registers.tiles.size(), 4u);
        EXPECT_FALSE(registers.in_memory);
        const std::vector<double> expected = product.run(before), y = product.run(after);
        EXPECT_EQ(y, expected);
        EXPECT_EQ((std::set<double>(y.begin(), y.end()).size() > 10), true) << "all sums are alike";
    }
}

TEST(AmxTiles, AreOfTheFuncThatItIsTold) {
    Product product(BFloat(16));
    const Stmt before = product.loops();
    EXPECT_THROW(AmxTiles("another", kLoops).mutate(before), CompileError)
        << "loops of a matrix instruction without sums";
    const Stmt same = AmxTiles(product.sum.name(), {"bytes", "depth", "other_columns", "other_rows"}).mutate(before);
    EXPECT_TRUE(Registers(product.sum.name(), same).tiles.empty()) << "no loop is one of a matrix instruction";
}

TEST(AmxTiles, RefuseOtherLoops) {
    Product vectors(BFloat(16), true);
    const Stmt loops = vectors.loops();
    EXPECT_THROW(AmxTiles(vectors.sum.name(), kLoops).mutate(loops), CompileError);
}

} // namespace

} // namespace convtranspose
