// The lines of later rows that a tile fetches, and that what it stores stays the same.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <Halide.h>
#include <gtest/gtest.h>

#include "interpreter.h"
#include "schedules/cpu/passes/lowered_names.h"
#include "schedules/cpu/passes/prefetch_rows.h"

namespace convtranspose {

namespace {

using namespace Halide;
using Internal::Add;
using Internal::Call;
using Internal::const_false;
using Internal::const_true;
using Internal::For;
using Internal::IfThenElse;
using Internal::Stmt;

constexpr std::int64_t kLine = 64;

// y(w, h) = sum(w, h) = w + 100 h + x(w, h) in tiles of 32 columns and 2 rows. Rows lie behind one another.
struct Layer {
    static constexpr int kColumns = 32, kRows = 2, kLanes = 8;
    const int width, height;
    ImageParam x{Float(32), 2, "x"};
    Func sum{"sum"}, y{"y"};
    Var w{"w"}, h{"h"};

    Layer(int width_, int height_) : width(width_), height(height_) {
        sum(w, h) = cast<float>(w + 100 * h);
        sum(w, h) += x(min(w, width - 1), h); // tiles reach past the end of a row
        y(w, h) = sum(w, h);
    }

    // guards: a row's last tile is stored in part; otherwise it overlaps the one before it.
    Pipeline pipeline(bool guards, const Expr &is_fetched) {
        const Var qo("qo"), qi("qi"), ho("ho"), hi("hi");
        y.output_buffer().dim(1).set_stride(width);
        y.split(w, qo, qi, kColumns, guards ? TailStrategy::GuardWithIf : TailStrategy::ShiftInwards)
            .split(h, ho, hi, kRows)
            .reorder({qi, hi, qo, ho})
            .vectorize(qi, kLanes)
            .unroll(qi)
            .unroll(hi);
        sum.compute_at(y, qo).vectorize(w, kLanes).update().vectorize(w, kLanes);
        Pipeline p(y);
        p.add_custom_lowering_pass(new PrefetchRows({sum.name(), y.name()}, width * kRows * 4, is_fetched));
        return p;
    }
};

// Runs through loops whose bounds are known, and notes in which order lines of y are fetched and stored to.
class Execution : public Internal::IRVisitor {
  public:
    std::set<std::int64_t> fetched;
    int late = 0, stored = 0; // lines that are stored to and were not fetched; all
    std::int64_t nearest = std::int64_t{1}
                           << 40; // the least distance, in bytes, of a fetch from the first store of its tile

    Execution(std::string y, const Stmt &loops) : y_(std::move(y)) { loops.accept(this); }

  private:
    using IRVisitor::visit;
    void visit(const Internal::LetStmt *op) override { with(op->name, op->value, op->body); }
    void visit(const For *op) override {
        const std::int64_t begin = value(op->min), extent = value(op->extent);
        for (std::int64_t i = begin; i < begin + extent; i++) with(op->name, static_cast<int>(i), op->body);
    }
    void visit(const IfThenElse *op) override {
        const Expr condition = known(op->condition);
        if (Internal::is_const_one(condition)) {
            op->then_case.accept(this);
        } else if (op->else_case.defined()) {
            op->else_case.accept(this);
        }
    }
    void visit(const Internal::Store *op) override {
        if (op->name != y_) return;
        const auto *const ramp = op->index.as<Internal::Ramp>();
        const std::int64_t at = 4 * value(ramp ? ramp->base : op->index);
        if (pending_ >= 0) nearest = std::min(nearest, pending_ - at);
        pending_ = -1;
        stored++;
        late += fetched.count(at / kLine) == 0;
    }
    void visit(const Call *op) override {
        if (op->name.rfind("llvm.prefetch", 0) != 0) return;
        const auto *const address = op->args[0].as<Internal::Reinterpret>();
        const std::int64_t at = value(address->value.as<Add>()->b); // behind y's own
        if (pending_ < 0) pending_ = at;
        fetched.insert(at / kLine);
    }
    void with(const std::string &name, const Expr &e, const Stmt &body) {
        scope_.emplace_back(name, known(e));
        body.accept(this);
        scope_.pop_back();
    }
    Expr known(Expr e) const {
        for (auto s = scope_.rbegin(); s != scope_.rend(); ++s) e = Internal::substitute(s->first, s->second, e);
        return Internal::simplify(e);
    }
    std::int64_t value(const Expr &e) const {
        const Expr constant = known(e);
        const auto v = Internal::as_const_int(constant);
        if (!v) ADD_FAILURE() << constant << " is not known";
        return v ? *v : 0;
    }

    const std::string y_;
    std::vector<std::pair<std::string, Expr>> scope_;
    std::int64_t pending_ = -1; // the first fetch of the tile that has stored nothing yet
};

Execution run(int width, int height, bool guards, const Expr &is_fetched) {
    Layer layer(width, height);
    Pipeline pipeline = layer.pipeline(guards, is_fetched);
    layer.y.output_buffer().dim(0).set_bounds(0, width);
    layer.y.output_buffer().dim(1).set_bounds(0, height);
    Stmt loops;
    test::keep_loops(pipeline, &loops);
    pipeline.compile_to_module({layer.x}, "f",
                               get_host_target().with_feature(Target::NoAsserts).with_feature(Target::NoBoundsQuery));
    return {layer.y.name(), loops};
}

TEST(PrefetchRows, EachLineIsFetchedWellBeforeItIsStoredTo) {
    for (const int width : {64, 96, 1024, 4096}) {
        for (const bool guards : {false, true}) {
            SCOPED_TRACE(width);
            SCOPED_TRACE(guards);
            const int step = width * Layer::kRows * 4;
            const int steps = (PrefetchRows::kLeastAhead + step - 1) / step; // of rows that nothing was fetched for
            const int height = Layer::kRows * (steps + 3);
            const Execution found = run(width, height, guards, const_true());
            EXPECT_EQ(found.stored, width * height / Layer::kLanes);
            EXPECT_EQ(found.late, width * Layer::kRows * steps / Layer::kLanes);
            EXPECT_GE(found.nearest, PrefetchRows::kLeastAhead);
            EXPECT_LT(found.nearest, PrefetchRows::kLeastAhead + step);
        }
    }
}

// Rows need not begin at a line, and their last tiles are stored in part.
TEST(PrefetchRows, EndsOfRowsAreFetchedToo) {
    for (const int width : {40, 56, 100}) {
        SCOPED_TRACE(width);
        const int step = width * Layer::kRows * 4, steps = (PrefetchRows::kLeastAhead + step - 1) / step;
        const Execution found = run(width, Layer::kRows * (steps + 3), true, const_true());
        EXPECT_LE(found.late, (width / Layer::kLanes + 1) * Layer::kRows * steps);
        EXPECT_GT(found.stored, found.late);
    }
}

TEST(PrefetchRows, NothingIsFetchedForAYThatIsNear) {
    const Execution found = run(1024, 8, true, const_false());
    EXPECT_EQ(found.stored, 1024);
    EXPECT_TRUE(found.fetched.empty());
}

// The last fetches are past the end.
TEST(PrefetchRows, StoresTheSame) {
    for (const int width : {33, 64, 100}) {
        SCOPED_TRACE(width);
        Layer layer(width, 10);
        Buffer<float> x(width, 10);
        x.for_each_element([&](int w, int h) { x(w, h) = static_cast<float>(w * h % 7); });
        layer.x.set(x);
        const Buffer<float> y = layer.pipeline(true, extent_of(layer.x.name(), 0) >= 64).realize({width, 10});
        y.for_each_element(
            [&](int w, int h) { ASSERT_EQ(y(w, h), static_cast<float>(w + 100 * h + w * h % 7)) << w << ", " << h; });
    }
}

} // namespace

} // namespace convtranspose
