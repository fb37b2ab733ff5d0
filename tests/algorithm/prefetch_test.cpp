// The lines that a loop fetches ahead of their use, and that sums stay the same.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <Halide.h>
#include <gtest/gtest.h>

#include "schedules/cpu/passes/prefetch.h"

namespace convtranspose {

namespace {

using namespace Halide;
using Internal::Call;

constexpr int kSecondLevelCache = 2 << 20, kLeastSteps = 160;

// sum(i) += w(k, i) * x(k, j), in which the names of the inputs are those of kernels.
struct Sums {
    ImageParam w{Float(32), 1, "w"}, x{Float(32), 1, "x"};
    Param<int> steps{"steps"};
    Func y{"y"}, sum{"sum"};
    Var i{"i"};

    // Each step reads x_each floats of x, x_step floats after those of the step before, and `width` floats of w.
    Sums(int width, int x_each, int x_step) {
        RDom k(0, steps);
        sum(i) = 0.0F;
        Expr all = 0.0F;
        for (int e = 0; e < x_each; e++) all += x(k * x_step + e);
        sum(i) += w(k * width + i) * all;
        y(i) = sum(i);
        sum.compute_root().bound_extent(i, width);
        sum.vectorize(i, 8).unroll(i);
        sum.update().reorder(i, k).vectorize(i, 8).unroll(i);
        y.bound(i, 0, width);
    }

    Pipeline pipeline(int w_bytes_ahead, int x_steps_ahead) {
        Pipeline p(y);
        p.add_custom_lowering_pass(
            new Prefetch({sum.name(), x.name(), w.name()}, {w_bytes_ahead, x_steps_ahead}, kSecondLevelCache));
        return p;
    }
};

// y(i, n) = sum over taps t and k of w(t, k, i) * x(k + t, n), all i of an n at once.
struct StoredSums {
    ImageParam w{Float(32), 1, "w"}, x{Float(32), 2, "x"};
    Param<int> steps{"steps"}, taps{"taps"};
    Func y{"y"}, sum{"sum"};

    StoredSums(int width, bool in_a_loop) {
        Var i("i"), n("n");
        RDom k(0, steps, 0, taps);
        sum(i, n) = 0.0F;
        sum(i, n) += w((k.y * steps + k.x) * width + i) * x(k.x + k.y, n);
        y(i, n) = sum(i, n);
        sum.compute_at(y, n).bound_extent(i, width);
        sum.vectorize(i, 8).unroll(i);
        sum.update().reorder(i, k.x, k.y).vectorize(i, 8).unroll(i);
        y.bound(i, 0, width).vectorize(i, 8);
        if (!in_a_loop) y.unroll(i);
    }

    Pipeline pipeline() {
        auto *const prefetch = new Prefetch({sum.name(), x.name(), w.name()}, {2048, 0}, kSecondLevelCache);
        prefetch->fetch_stored(y.name(), 1, kLeastSteps);
        Pipeline p(y);
        p.add_custom_lowering_pass(prefetch);
        return p;
    }
};

// y(i, q, oo, n) = sum over k of w(k, i, oo) * x(q, k, n), in tiles of `width` sums of some positions in some rows; all k of a
// position of x side by side.
struct TiledSums {
    static constexpr int kWidth = 16, kPositions = 4;
    ImageParam w{Float(32), 1, "w"}, x{Float(32), 4, "x"};
    Param<int> steps{"steps"};
    Func y{"y"}, sum{"sum"};

    explicit TiledSums(int rows) {
        Var i("i"), q("q"), h("h"), oo("oo"), n("n"), tile("tile"), row_tile("row_tile");
        RDom k(0, steps);
        sum(i, q, h, oo, n) = 0.0F;
        sum(i, q, h, oo, n) += w((oo * steps + k) * kWidth + i) * x(q, h, k, n);
        y(i, q, h, oo, n) = sum(i, q, h, oo, n);
        y.bound(i, 0, kWidth).reorder(i, q, h, oo, n).vectorize(i, 8).unroll(i);
        y.tile(q, h, tile, row_tile, q, h, kPositions, rows, TailStrategy::RoundUp).unroll(q).unroll(h);
        y.reorder(i, q, h, tile, row_tile, oo, n);
        sum.compute_at(y, tile).bound_extent(i, kWidth).bound_extent(q, kPositions).bound_extent(h, rows);
        sum.vectorize(i, 8).unroll(i).unroll(q).unroll(h);
        sum.update().reorder(i, q, h, k).vectorize(i, 8).unroll(i).unroll(q).unroll(h);
        x.dim(0).set_stride(Expr());
        x.dim(2).set_stride(1);
        for (int d = 0; d < y.dimensions(); d++) y.output_buffer().dim(d).set_min(0); // or loops have other names
    }

    Pipeline pipeline(bool fetches_next_x) {
        constexpr int kImages = 3; // dimension of x
        auto *const prefetch = new Prefetch({sum.name(), x.name(), w.name()}, {2048, 0}, kSecondLevelCache);
        prefetch->fetch_next_weights("oo");
        if (fetches_next_x) prefetch->fetch_next_x(kPositions, kImages);
        Pipeline p(y);
        p.add_custom_lowering_pass(prefetch);
        return p;
    }
};

// How often lines of w, of x and of y are fetched in the code of a pipeline.
class Fetches : public Internal::IRVisitor {
  public:
    int w = 0, x = 0, y = 0;
    explicit Fetches(const Module &module) { module.functions().front().body.accept(this); }

  private:
    using IRVisitor::visit;
    void visit(const Call *op) override {
        if (op->name == "llvm.prefetch.p0") inside_ = true;
        IRVisitor::visit(op);
        if (op->name == "llvm.prefetch.p0") inside_ = false;
    }
    void visit(const Internal::Variable *op) override {
        if (inside_ && op->name.rfind("w_step", 0) == 0) w++; // one pointer for all of a step
        if ((inside_ || sets_next_) && op->name == "x") x++;
        if (inside_ && op->name.rfind("first_of_y", 0) == 0) y++;
    }
    void visit(const Internal::Store *op) override {
        sets_next_ = op->name.rfind("next_w", 0) == 0; // the pointer to what comes next, of w or of x
        IRVisitor::visit(op);
        sets_next_ = false;
    }
    bool inside_ = false, sets_next_ = false;
};

Fetches fetches(Sums sums, int x_steps_ahead) {
    return Fetches(sums.pipeline(2048, x_steps_ahead).compile_to_module({sums.w, sums.x, sums.steps}, "f"));
}

TEST(Prefetch, FetchesEachLineOfWOnce) {
    EXPECT_EQ(fetches(Sums(16, 1, 1), 0).w, 1); // of two vectors
    EXPECT_EQ(fetches(Sums(32, 1, 1), 0).w, 2);
}

TEST(Prefetch, FetchesXWhereStepsShareNoLine) {
    EXPECT_EQ(fetches(Sums(16, 1, 1), 8).x, 0);
    EXPECT_EQ(fetches(Sums(16, 1, 15), 8).x, 0);
    EXPECT_EQ(fetches(Sums(16, 1, 16), 8).x, 1);
    EXPECT_EQ(fetches(Sums(16, 2, 100), 8).x, 2) << "they may lie on two lines";
    EXPECT_EQ(fetches(Sums(16, 40, 100), 8).x, 4) << "of 160 bytes";
    EXPECT_EQ(fetches(Sums(16, 40, 100), 0).x, 0);
}

TEST(Prefetch, FetchesEachLineThatIsStored) {
    const auto of_y = [](StoredSums sums) {
        return Fetches(sums.pipeline().compile_to_module({sums.w, sums.x, sums.steps, sums.taps}, "f")).y;
    };
    EXPECT_EQ(of_y(StoredSums(16, false)), 1);
    EXPECT_EQ(of_y(StoredSums(80, false)), 5);
    EXPECT_EQ(of_y(StoredSums(80, true)), 0);
}

TEST(Prefetch, LeavesStoredSumsAsTheyAre) {
    if (get_jit_target_from_environment().arch != Target::X86) GTEST_SKIP() << "kernels of x86 alone prefetch";
    constexpr int kWidth = 80, kMostSteps = 201, kMostTaps = 3, kRows = 2;
    Buffer<float> w(kWidth * kMostSteps * kMostTaps), x(kMostSteps + kMostTaps, kRows);
    w.for_each_element([&](int i) { w(i) = static_cast<float>(i % 7); });
    x.for_each_element([&](int k, int n) { x(k, n) = static_cast<float>((k + n) % 5); });
    for (const int row : {kWidth, 1 << 19}) { // far apart, lines are fetched where steps are many
        Buffer<float> rows(row, kRows);
        Buffer<float> y = rows.cropped(0, 0, kWidth);
        StoredSums sums(kWidth, false);
        sums.w.set(w);
        sums.x.set(x);
        Pipeline pipeline = sums.pipeline();
        for (const int steps : {0, 1, kLeastSteps - 1, kLeastSteps, kLeastSteps + 1, kMostSteps}) {
            for (int taps = 0; taps <= kMostTaps; taps++) {
                SCOPED_TRACE(testing::Message() << row << ", " << steps << ", " << taps);
                sums.steps.set(steps);
                sums.taps.set(taps);
                pipeline.realize(y);
                y.for_each_element([&](int i, int n) {
                    float expected = 0;
                    for (int t = 0; t < taps; t++)
                        for (int k = 0; k < steps; k++) expected += w((t * steps + k) * kWidth + i) * x(k + t, n);
                    EXPECT_EQ(y(i, n), expected) << i << ", " << n;
                });
            }
        }
    }
}

TEST(Prefetch, FetchesTheFirstRowOfXOfTheNextPositions) {
    const auto of_x = [](TiledSums sums, bool fetches_next_x) {
        return Fetches(sums.pipeline(fetches_next_x).compile_to_module({sums.w, sums.x, sums.steps}, "f")).x;
    };
    EXPECT_EQ(of_x(TiledSums(1), true), 1);
    EXPECT_EQ(of_x(TiledSums(2), true), 1);
    EXPECT_EQ(of_x(TiledSums(2), false), 0);
}

TEST(Prefetch, LeavesSumsOfNextPositionsAsTheyAre) {
    if (get_jit_target_from_environment().arch != Target::X86) GTEST_SKIP() << "kernels of x86 alone prefetch";
    constexpr int kTiles = 2, kMostSteps = 33, kRow = 8, kRows = 2, kImages = 2;
    Buffer<float> w(TiledSums::kWidth * kTiles * kMostSteps);
    w.for_each_element([&](int i) { w(i) = static_cast<float>(i % 7); });
    for (const int image : {kMostSteps * kRow * kRows, 1 << 19}) { // far apart, x is fetched
        std::vector<float> of_x(static_cast<std::size_t>(image) * kImages);
        const halide_dimension_t dimensions[] = {
            {0, kRow, kMostSteps}, {0, kRows, kMostSteps * kRow}, {0, kMostSteps, 1}, {0, kImages, image}};
        Buffer<float> x(of_x.data(), 4, dimensions);
        x.for_each_element(
            [&](int q, int h, int k, int n) { x(q, h, k, n) = static_cast<float>((q + 3 * h + k + n) % 5); });
        TiledSums sums(kRows);
        sums.w.set(w);
        sums.x.set(x);
        Pipeline pipeline = sums.pipeline(true);
        for (const int steps : {0, 1, kMostSteps}) {
            SCOPED_TRACE(testing::Message() << image << ", " << steps);
            sums.steps.set(steps);
            Buffer<float> y = pipeline.realize({TiledSums::kWidth, kRow, kRows, kTiles, kImages});
            y.for_each_element([&](int i, int q, int h, int oo, int n) {
                float expected = 0;
                for (int k = 0; k < steps; k++) {
                    expected += w((oo * steps + k) * TiledSums::kWidth + i) * x(q, h, k, n);
                }
                EXPECT_EQ(y(i, q, h, oo, n), expected) << i << ", " << q << ", " << h << ", " << oo << ", " << n;
            });
        }
    }
}

TEST(Prefetch, LeavesSumsAsTheyAre) {
    if (get_jit_target_from_environment().arch != Target::X86) GTEST_SKIP() << "kernels of x86 alone prefetch";
    constexpr int kWidth = 32, kSteps = 50, kStep = 20;
    Buffer<float> w(kWidth * kSteps), x(kStep * kSteps);
    w.for_each_element([&](int i) { w(i) = static_cast<float>(i % 7); });
    x.for_each_element([&](int i) { x(i) = static_cast<float>(i % 5); });
    Sums sums(kWidth, 1, kStep);
    sums.w.set(w);
    sums.x.set(x);
    sums.steps.set(kSteps);
    const Buffer<float> y = sums.pipeline(2048, 8).realize({kWidth}); // the last fetches are past the ends
    for (int i = 0; i < kWidth; i++) {
        float expected = 0;
        for (int k = 0; k < kSteps; k++) expected += w(k * kWidth + i) * x(k * kStep);
        EXPECT_EQ(y(i), expected) << i;
    }
}

} // namespace

} // namespace convtranspose
