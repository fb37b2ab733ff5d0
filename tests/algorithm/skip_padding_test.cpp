// The positions of a tile's rows that are left out where they are outside of x, and that sums stay the same.
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <Halide.h>
#include <gtest/gtest.h>

#include "schedules/cpu/passes/skip_padding.h"

namespace convtranspose {

namespace {

using namespace Halide;

constexpr int kChannels = 8; // of the tile

// A pass that has all loops kept as they are.
class KeepAll : public Internal::IRMutator {
  public:
    explicit KeepAll(SharedLoopSet kept) : kept_(std::move(kept)) {}

  private:
    using IRMutator::visit;
    Internal::Stmt visit(const Internal::For *op) override {
        Internal::Stmt loop = IRMutator::visit(op);
        kept_->add(loop);
        return loop;
    }
    const SharedLoopSet kept_;
};

// y(i, q, h) = sum over tap t, then k, of w(i, k) * x(first(0) + q + t, k, h), tiles of `columns` by `rows`.
struct Sums {
    ImageParam first{Int(32), 1, "first"}, x{Float(32), 3, "x"}, w{Float(32), 2, "w"};
    Param<int> taps{"taps"};
    Func y{"y"}, sum{"sum"};

    Sums(int columns, int rows) {
        Var i("i"), q("q"), h("h"), qo("qo");
        RDom k(0, w.dim(1).extent(), 0, taps);
        sum(i, q, h) = 0.0F;
        const Expr at = unsafe_promise_clamped(first(0) + q + k.y, x.dim(0).min(), x.dim(0).max());
        sum(i, q, h) += w(i, k.x) * x(at, k.x, h);
        y(i, q, h) = sum(i, q, h);
        y.bound(i, 0, kChannels).bound(h, 0, rows).vectorize(i);
        y.split(q, qo, q, columns).reorder(i, q, h, qo).unroll(q).unroll(h);
        sum.compute_at(y, qo).bound_extent(i, kChannels).bound_extent(q, columns).bound_extent(h, rows);
        sum.vectorize(i).unroll(q).unroll(h);
        sum.update().reorder(i, q, h, k.x, k.y).vectorize(i).unroll(q).unroll(h);
        x.dim(0).set_stride(Expr());
    }

    Pipeline pipeline(int columns, int most, bool elsewhere = false, const SharedLoopSet &kept = nullptr) {
        Pipeline p(y);
        if (kept) p.add_custom_lowering_pass(new KeepAll(kept));
        p.add_custom_lowering_pass(
            new SkipPadding(elsewhere ? "another" : sum.name(), "x", kChannels, columns, most, kept));
        return p;
    }
};

// Stores to the sums in each loop of the steps, and how many such loops there are.
class Steps : public Internal::IRVisitor {
  public:
    std::vector<int> stores;
    Steps(const Module &module, std::string sum) : sum_(std::move(sum)) {
        module.functions().front().body.accept(this);
    }

  private:
    using IRVisitor::visit;
    void visit(const Internal::For *op) override {
        const int before = count_;
        const std::size_t loops = stores.size();
        IRVisitor::visit(op);
        if (stores.size() == loops && count_ > before) stores.push_back(count_ - before);
    }
    void visit(const Internal::Store *op) override {
        if (op->name == sum_) count_++;
        IRVisitor::visit(op);
    }
    const std::string sum_;
    int count_ = 0;
};

std::vector<int> stores(int columns, int rows, int most, bool elsewhere = false, const SharedLoopSet &kept = nullptr) {
    Sums sums(columns, rows);
    const Pipeline p = sums.pipeline(columns, most, elsewhere, kept);
    return Steps(Pipeline(p).compile_to_module({sums.first, sums.x, sums.w, sums.taps}, "f"), sums.sum.name()).stores;
}

TEST(SkipPadding, HaveLoopsOfTheirOwn) {
    EXPECT_EQ(stores(6, 1, 1), (std::vector<int>{6, 5, 5}));
    EXPECT_EQ(stores(6, 1, 2), (std::vector<int>{6, 4, 5, 4, 5}));
    EXPECT_EQ(stores(3, 2, 1), (std::vector<int>{6, 4, 4})) << "in each of the rows";
    EXPECT_EQ(stores(6, 1, 1, true), (std::vector<int>{6})) << "another Func's";
}

TEST(SkipPadding, LeavesLoopsThatAnotherPassKeeps) {
    EXPECT_EQ(stores(6, 1, 1, false, std::make_shared<LoopSet>()), (std::vector<int>{6}));
}

// x holds a value at each of its own positions, and what would spoil a sum around them: left out are exactly those of `most` at
// either end, so zeros are there for the others alone.
TEST(SkipPadding, AreLeftOutAndNothingElse) {
    constexpr int kColumns = 6, kRows = 2, kSteps = 3, kTaps = 5, kAround = 8;
    for (const int most : {1, 2}) {
        for (const int width : {6, 7, 12, 20}) {
            for (const int begin : {-3, -2, -1, 0}) {
                SCOPED_TRACE(testing::Message() << most << " of " << width << " from " << begin);
                Sums sums(kColumns, kRows);
                const int outputs = (width + kColumns - 1) / kColumns * kColumns, row = outputs + 2 * kAround;
                const auto value = [&](int position, int step, int h) {
                    return position < 0 || position >= width
                               ? 0
                               : static_cast<float>((position * 7 + step * 3 + h) % 11 + 1);
                };
                std::vector<float> memory(static_cast<std::size_t>(row) * kSteps * kRows);
                const auto at = [&](int position, int step, int h) -> float & {
                    const int index = (h * row + position + kAround) * kSteps + step;
                    return memory[static_cast<std::size_t>(index)];
                };
                for (int h = 0; h < kRows; h++) {
                    for (int p = -kAround; p < outputs + kAround; p++) {
                        for (int k = 0; k < kSteps; k++) at(p, k, h) = value(p, k, h);
                    }
                }
                // Positions that a tile of a tap reads as one of its ends only.
                if (begin < 0) {
                    const int far = begin; // tap 0 of the first tile leaves -begin out, at most `most`
                    for (int h = 0; h < kRows && -far <= most; h++) {
                        for (int k = 0; k < kSteps; k++) at(far, k, h) = std::numeric_limits<float>::quiet_NaN();
                    }
                }
                halide_dimension_t shape[] = {{0, width, kSteps}, {0, kSteps, 1}, {0, kRows, row * kSteps}};
                const Buffer<float> x(&at(0, 0, 0), 3, shape);
                Buffer<float> w(kChannels, kSteps);
                for (int i = 0; i < kChannels; i++) {
                    for (int k = 0; k < kSteps; k++) w(i, k) = static_cast<float>(i + 2 * k + 1);
                }
                Buffer<int> first(1);
                first(0) = begin;
                sums.first.set(first);
                sums.x.set(x);
                sums.w.set(w);
                sums.taps.set(kTaps);
                const Target target = get_jit_target_from_environment()
                                          .with_feature(Target::NoBoundsQuery)
                                          .with_feature(Target::NoAsserts);
                const Buffer<float> y = sums.pipeline(kColumns, most).realize({kChannels, outputs, kRows}, target);
                for (int h = 0; h < kRows; h++) {
                    for (int q = 0; q < outputs; q++) {
                        for (int i = 0; i < kChannels; i++) {
                            float expected = 0;
                            for (int t = 0; t < kTaps; t++) {
                                for (int k = 0; k < kSteps; k++) expected += w(i, k) * value(begin + q + t, k, h);
                            }
                            EXPECT_EQ(y(i, q, h), expected) << i << ", " << q << ", " << h;
                        }
                    }
                }
            }
        }
    }
}

} // namespace

} // namespace convtranspose
