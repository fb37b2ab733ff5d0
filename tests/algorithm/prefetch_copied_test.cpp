// The lines that a copy fetches, and that what it copies stays the same.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <Halide.h>
#include <gtest/gtest.h>

#include "schedules/cpu/passes/prefetch_copied.h"

namespace convtranspose {

namespace {

using namespace Halide;

// copy(c, w) = x(c, w) in pieces of `vectors` vectors, two along c and four along w before the next ones.
struct Copied {
    static constexpr int kLanes = 8, kPieces = 4;
    ImageParam x{Float(32), 2, "x"};
    Func copy{"copy"};
    Var c{"c"}, w{"w"};

    Copied() { copy(c, w) = x(c, w); }

    void schedule(Stage s, int vectors) {
        const Var ci("ci"), wi("wi"), beside("beside"), near("near");
        s.split(c, c, ci, kLanes, TailStrategy::ShiftInwards).split(w, w, wi, vectors, TailStrategy::ShiftInwards);
        s.split(c, c, beside, 2, TailStrategy::GuardWithIf).split(w, w, near, kPieces, TailStrategy::GuardWithIf);
        s.reorder({ci, wi, beside, near, c, w}).vectorize(ci).unroll(wi);
    }

    // Copies that fetch have loops of their own.
    Pipeline pipeline(int vectors, const std::vector<std::string> &variables, const Expr &fetches_x,
                      const Expr &fetches_copy, const Expr &x_ahead = PrefetchCopied::kBytesAhead) {
        const Expr fetches = fetches_x || fetches_copy;
        Stage fetching = copy.specialize(fetches);
        schedule(fetching, vectors);
        fetching.never_partition_all(); // Halide makes one of loops that are the same
        schedule(copy, vectors);
        Pipeline p(copy);
        p.add_custom_lowering_pass(
            new PrefetchCopied({x.name(), fetches_x, x_ahead}, {copy.name(), fetches_copy}, fetches, variables));
        return p;
    }
};

// For each flag that a branch tests, the most fetches in such a branch, and the most loops around one of them within it.
class Fetches : public Internal::IRVisitor {
  public:
    struct Branch {
        int most = 0, loops = 0, further = 0; // further: those by the variable "further", of all
    };
    std::map<std::string, Branch> branches;
    int outside = 0; // fetches where both flags may be false
    explicit Fetches(const Module &module) { module.functions().front().body.accept(this); }

  private:
    using IRVisitor::visit;
    void visit(const Internal::IfThenElse *op) override {
        const int before = count_, further = further_, loops = std::exchange(loops_, 0),
                  deepest = std::exchange(deepest_, 0);
        const bool any_holds = any_holds_;
        any_holds_ = any_holds_ || op->condition.as<Internal::Or>();
        op->then_case.accept(this);
        any_holds_ = any_holds;
        if (op->else_case.defined()) op->else_case.accept(this);
        if (const auto *flag = op->condition.as<Internal::Variable>(); flag && count_ > before) {
            Branch &branch = branches[flag->name];
            branch.most = std::max(branch.most, count_ - before);
            branch.loops = std::max(branch.loops, deepest_);
            branch.further += further_ - further;
        }
        loops_ = loops;
        deepest_ = deepest;
    }
    void visit(const Internal::For *op) override {
        loops_++;
        IRVisitor::visit(op);
        loops_--;
    }
    void visit(const Internal::Call *op) override {
        if (op->name.rfind("llvm.prefetch", 0) == 0) {
            count_++;
            outside += !any_holds_;
            further_ += Internal::expr_uses_var(op->args[0], "further");
            deepest_ = std::max(deepest_, loops_);
        }
        IRVisitor::visit(op);
    }
    int count_ = 0, further_ = 0, loops_ = 0, deepest_ = 0;
    bool any_holds_ = false;
};

Fetches fetches(int vectors, const std::vector<std::string> &variables) {
    Copied copied;
    const Param<bool> fetches_x("fetches_x"), fetches_copy("fetches_copy");
    const std::vector<Argument> arguments = {copied.x, fetches_x, fetches_copy};
    return Fetches(copied.pipeline(vectors, variables, fetches_x, fetches_copy).compile_to_module(arguments, "f"));
}

TEST(PrefetchCopied, FetchesWhatIsFarForEachVector) {
    for (const int vectors : {1, 3}) {
        SCOPED_TRACE(vectors);
        const Fetches found = fetches(vectors, {"near", "beside"});
        EXPECT_EQ(found.outside, 0);
        for (const char *const flag : {"fetches_x", "fetches_copy"}) {
            SCOPED_TRACE(flag);
            ASSERT_EQ(found.branches.count(flag), 1);
            const Fetches::Branch &branch = found.branches.at(flag);
            EXPECT_EQ(branch.most, vectors);
            EXPECT_EQ(branch.loops, 2);
        }
    }
}

TEST(PrefetchCopied, StandsBeforeTheLoopsOverItsVariables) {
    const auto loops = [](const std::vector<std::string> &variables) {
        return fetches(2, variables).branches.at("fetches_x").loops;
    };
    EXPECT_EQ(loops({"near", "beside"}), 2);
    EXPECT_EQ(loops({"near"}), 2); // the innermost loop counts whatever it runs over
    EXPECT_EQ(loops({"beside"}), 1);
    EXPECT_EQ(loops({}), 1);
}

TEST(PrefetchCopied, XIsFetchedAsFarAheadAsIsAsked) {
    Copied copied;
    const Param<bool> fetches_x("fetches_x"), fetches_copy("fetches_copy");
    const Param<int> further("further");
    const std::vector<Argument> arguments = {copied.x, fetches_x, fetches_copy, further};
    Pipeline pipeline = copied.pipeline(2, {"near"}, fetches_x, fetches_copy, further);
    const Fetches found(pipeline.compile_to_module(arguments, "f"));
    EXPECT_GE(found.branches.at("fetches_x").further, 2);
    EXPECT_EQ(found.branches.at("fetches_copy").further, 0);
}

TEST(PrefetchCopied, CopiesTheSame) {
    for (const int extent : {8, 15, 17, 40}) {
        for (const bool far : {false, true}) { // the last fetches are past the ends
            SCOPED_TRACE(extent);
            SCOPED_TRACE(far);
            Copied copied;
            Buffer<float> x(extent, extent + 1);
            x.for_each_element([&](int c, int w) { x(c, w) = static_cast<float>(100 * w + c); });
            copied.x.set(x);
            Param<bool> fetches("fetches"); // a condition that is known would leave no branch
            fetches.set(far);
            const Buffer<float> copy =
                copied.pipeline(3, {"near", "beside"}, fetches, fetches).realize({extent, extent + 1});
            copy.for_each_element([&](int c, int w) { ASSERT_EQ(copy(c, w), x(c, w)) << c << ", " << w; });
        }
    }
}

} // namespace

} // namespace convtranspose
