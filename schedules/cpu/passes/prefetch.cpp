#include "cpu/passes/prefetch.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/passes/address.h"
#include "cpu/passes/cache_lines.h"
#include "cpu/passes/lowered_names.h"
#include "cpu/passes/shared_base_pointer.h"
#include "kernel_contract/fetching.h"

namespace convtranspose {

using namespace Halide;
using namespace Halide::Internal;

namespace {

constexpr int kParts = 3; // of a loop that fetches lines of y meanwhile

// The loops around a Func's values, outermost first.
class LoopsAround : public IRVisitor {
  public:
    LoopsAround(const std::string &func, std::vector<const For *> *loops) : func_(func), loops_(loops) {}

  private:
    using IRVisitor::visit;
    void visit(const For *op) override {
        if (found_) return;
        loops_->push_back(op);
        IRVisitor::visit(op);
        if (!found_) loops_->pop_back();
    }
    void visit(const Allocate *op) override {
        found_ = found_ || op->name == func_;
        if (!found_) IRVisitor::visit(op);
    }

    const std::string &func_;
    std::vector<const For *> *loops_;
    bool found_ = false;
};

// The stores to a buffer outside of loops; none if one of them is masked.
class Stores : public LetScopeVisitor {
  public:
    explicit Stores(std::string buffer) : stored{std::move(buffer), {}, 0} {}
    Accesses stored;

  private:
    using LetScopeVisitor::visit;

    void visit(const For *) override {}
    void visit(const IfThenElse *op) override { op->then_case.accept(this); } // otherwise a part is stored
    void visit(const Store *op) override {
        if (op->name != stored.buffer) return;
        if (is_const_one(op->predicate) && !masked_) {
            stored.add(outside_terms(op->index), op->value.type().element_of().bytes());
        } else {
            masked_ = true;
            stored.at.clear();
        }
    }
    bool masked_ = false;
};

Stmt set(const std::string &variable, const Expr &pointer) {
    return Store::make(variable, reinterpret<std::uint64_t>(pointer), 0, Parameter(), const_true(), ModulusRemainder());
}

} // namespace

// The reads of x and w in a loop's body, the loops within it, and whether it stores to the sums.
class Prefetch::Body : public LetScopeVisitor {
  public:
    Body(const Names &names, const For *loop)
        : steps(loop), x{names.x, {}, 0}, w{names.w, {}, 0}, sum_(names.sum), inner_(loop),
          first_({{loop->name, loop->min}}) {
        loop->body.accept(this);
    }

    bool stores = false, has_loops = false;
    const For *steps; // the loop whose steps read w, which may be the loop itself
    Accesses x, w;

    // An expression where the loop and those within it begin.
    Expr at_begin(const Expr &e) const { return without_lets(e, first_); }

  private:
    using LetScopeVisitor::visit;

    void visit(const For *op) override {
        has_loops = true;
        first_.emplace_back(op->name, outside_terms(op->min));
        const For *const outer = inner_;
        inner_ = op;
        IRVisitor::visit(op);
        inner_ = outer;
    }
    void visit(const Store *op) override {
        stores = stores || op->name == sum_;
        IRVisitor::visit(op);
    }
    void visit(const Load *op) override {
        for (Accesses *a : {&x, &w}) {
            if (op->name == a->buffer) a->add(outside_terms(op->index), op->type.element_of().bytes());
        }
        if (op->name == w.buffer) steps = inner_;
        IRVisitor::visit(op);
    }

    const std::string &sum_;
    const For *inner_; // around what is visited
    LetScope first_;   // values of the loops' variables
};

Stmt Prefetch::visit(const LetStmt *op) {
    scope_.emplace_back(op->name, op->value);
    Stmt s = IRMutator::visit(op);
    scope_.pop_back();
    return s;
}

Stmt Prefetch::visit(const Allocate *op) {
    if (op->name != names_.sum) return IRMutator::visit(op);
    if (!y_.empty()) {
        Stores stores(y_);
        op->body.accept(&stores);
        stored_ = lines(stores.stored, true);
        if (!stored_.empty()) {
            stores_far_ = stride_of(y_, images_) >= second_level_cache_ / stores.stored.bytes;
        }
    }
    sums_ = Sums::kUndecided;
    Stmt s = IRMutator::visit(op);
    sums_ = Sums::kOutside;
    stored_.clear();
    return s;
}

Stmt Prefetch::visit(const For *op) {
    const Body body(names_, op);
    if (!body.stores) return IRMutator::visit(op);
    if (sums_ == Sums::kUndecided) return reduction(op, body);
    if (!body.has_loops) return steps(op, body);
    const bool may_begin_passes = sums_ == Sums::kOutside && !next_ && !output_tiles_.empty() && !body.w.at.empty();
    return may_begin_passes ? outside_of_passes(op, body) : within_loop(op);
}

Stmt Prefetch::within_loop(const For *op) {
    loops_.push_back(op);
    Stmt s = IRMutator::visit(op);
    loops_.pop_back();
    return s;
}

// The outermost loop over a tile's positions has around it what is known there of the next tiles. Other loops stay as they are.
Stmt Prefetch::outside_of_passes(const For *op, const Body &body) {
    std::vector<const For *> loops = loops_;
    LoopsAround within(names_.sum, &loops);
    op->accept(&within);
    const Expr w_at = without_lets(body.w.at[0], scope_);
    PrefetchNextWeights weights(w_at, loops, output_tiles_, second_level_cache_);
    if (weights.first_of_passes() != op || !weights.are_far().defined()) return within_loop(op);
    const auto [first, share] = weights.lines(body.steps, w_at);
    if (!first.defined()) return within_loop(op);

    next_ =
        Next{weights, unique_name("w_far"), unique_name("x_far"), unique_name("next_ahead"), unique_name("next_share")};
    Expr x_far = const_false(), ahead = select(next_->w_is_far(), simplify(body.at_begin(first - w_at)), 0);
    if (next_positions_ > 0) {
        x_far = !next_->w_is_far() && is_first_pass(w_at) &&
                stride_of(names_.x, x_images_) >= second_level_cache_ / body.x.bytes;
        ahead = select(next_->x_is_far(), stride_of(names_.x, 0) * (next_positions_ * body.x.bytes), ahead);
    }
    Stmt s = within_loop(op);
    s = LetStmt::make(next_->ahead, ahead, s);
    s = LetStmt::make(next_->share, select(next_->w_is_far(), share, 0), s);
    s = LetStmt::make(next_->x_far, x_far, s);
    s = LetStmt::make(next_->w_far, weights.are_far(), s);
    next_.reset();
    return s;
}

// The outermost loop of a reduction is made once more for a y that is far, and once for weights or an x that are: a choice within it
// would cost time.
Stmt Prefetch::reduction(const For *op, const Body &body) {
    reduction_begin_ = loops_.size();
    const auto copy = [&](Sums sums) {
        sums_ = sums;
        Stmt s = visit(op);
        sums_ = Sums::kUndecided;
        return s;
    };
    Stmt any = copy(Sums::kNear);
    if (!stored_.empty()) {
        any = IfThenElse::make(stores_far_ && body.steps->extent >= least_steps_, copy(Sums::kStoredFar), any);
    }
    if (!next_) return any;
    ahead_of_step_ = unique_name("step_ahead");
    const Expr of_pass = body.steps->extent * Variable::make(Int(32), next_->share);
    const Expr ahead = Variable::make(Int(32), next_->ahead) + next_->weights.pass(loops_) * of_pass;
    return IfThenElse::make(next_->w_is_far() || next_->x_is_far(),
                            LetStmt::make(ahead_of_step_, ahead, copy(Sums::kOfFar)), any);
}

// True if the loops around have read nothing of w for the same positions but what is at an address: those over phases and tiles
// of output channels are at their first step.
Expr Prefetch::is_first_pass(const Expr &w_at) const {
    Expr first = const_true();
    for (auto loop = loops_.rbegin(); loop != loops_.rend(); ++loop) {
        const std::string &name = (*loop)->name;
        if (expr_uses_var(w_at, name)) first = first && Variable::make(Int(32), name) == (*loop)->min;
        if (runs_over(name, output_tiles_)) break;
    }
    return first;
}

// An innermost loop of a reduction, with what each of its steps fetches.
Stmt Prefetch::steps(const For *op, const Body &body) const {
    std::vector<Stmt> all;
    const std::string next = unique_name("next_" + names_.w); // where the next tile's line is
    if (sums_ == Sums::kOfFar) {
        // LLVM keeps this variable in a register. A pointer that is a function of the step would be multiplied anew each time, or
        // take the registers of the addresses of x.
        const Expr line = Load::make(UInt(64), next, 0, Buffer<>(), Parameter(), const_true(), ModulusRemainder());
        Expr share = Variable::make(Int(32), next_->share);
        if (next_positions_ > 0) share = select(next_->x_is_far(), next_positions_ * body.x.bytes, share);
        all.push_back(prefetch(reinterpret(Handle(), line), CacheLevel::kSecond));
        all.push_back(set(next, hidden_from_llvm(reinterpret(Handle(), line + cast<std::uint64_t>(share)))));
    }
    const auto weights = ahead_.w_bytes ? through_shared_pointer(body.w.buffer, op->body) : std::nullopt;
    if (ahead_.w_bytes) {
        for (const Expr &at : lines(body.w, true)) {
            const Expr address = weights ? address_of(weights->pointer, simplify(at - body.w.at[0] + ahead_.w_bytes))
                                         : address_of(body.w.buffer, at + ahead_.w_bytes);
            all.push_back(prefetch(address, CacheLevel::kFirst));
        }
    }
    if (ahead_.x_steps) {
        // A short loop fetches less far ahead, as what lies behind its last step is fetched for nothing.
        const Expr ahead = min(ahead_.x_steps, op->extent / 4), after = Variable::make(Int(32), op->name) + 1;
        for (const Expr &at : lines(body.x, false)) {
            const Expr step = simplify(substitute(op->name, after, at) - at);
            const auto *const bytes = step.as<IntImm>();
            if (bytes && bytes->value < kCacheLine) continue;
            all.push_back(prefetch(address_of(body.x.buffer, at + step * ahead), CacheLevel::kFirst));
        }
    }
    all.push_back(weights ? weights->step : op->body);
    Stmt step = Block::make(all);
    if (weights) {
        const Expr pointer = hidden_from_llvm(address_of(body.w.buffer, weights->first * weights->bytes));
        step = LetStmt::make(weights->pointer, pointer, step);
    }
    if (sums_ == Sums::kStoredFar) return in_parts(op, step);
    Stmt loop = For::make(op->name, op->min, op->extent, op->for_type, op->partition_policy, op->device_api, step);
    if (sums_ != Sums::kOfFar) return loop;
    const auto first_of = [&](const Accesses &a) {
        return reinterpret<std::int64_t>(address_of(a.buffer, simplify(substitute(op->name, op->min, a.at[0]))));
    };
    Expr first = first_of(body.w);
    if (next_positions_ > 0) first = select(next_->x_is_far(), first_of(body.x), first);
    first = first + cast<std::int64_t>(Variable::make(Int(32), ahead_of_step_));
    return Allocate::make(next, UInt(64), MemoryType::Stack, {1}, const_true(),
                          Block::make(set(next, reinterpret(Handle(), first)), loop));
}

// The innermost loop. The last time that the reduction runs it, it runs in parts, and lines of y are fetched before each.
Stmt Prefetch::in_parts(const For *op, const Stmt &step) const {
    Expr is_last = const_true();
    for (std::size_t i = reduction_begin_; i < loops_.size(); i++) {
        const For *const taps = loops_[i];
        is_last = is_last && Variable::make(Int(32), taps->name) == taps->min + taps->extent - 1;
    }
    const std::string part = unique_name("part"), fetches = unique_name("fetches_y"), first = unique_name("first_of_y");
    const Expr p = Variable::make(Int(32), part), fetches_now = Variable::make(Bool(), fetches),
               parts = select(fetches_now, kParts, 1), size = op->extent / kParts, begin = p * size,
               end = select(p + 1 == parts, op->extent, begin + size);
    // The addresses are formed where they are used: LLVM would form all of them outside of the taps.
    const auto count = static_cast<std::ptrdiff_t>(stored_.size());
    Stmt fetched;
    for (int i = kParts - 1; i >= 0; i--) {
        std::vector<Stmt> of_part;
        for (auto line = count * i / kParts; line < count * (i + 1) / kParts; line++) {
            of_part.push_back(prefetch(address_of(first, simplify(stored_[line] - stored_[0])), CacheLevel::kFirst));
        }
        if (!of_part.empty()) fetched = IfThenElse::make(p == i, Block::make(of_part), fetched);
    }
    fetched = LetStmt::make(first, hidden_from_llvm(address_of(y_, stored_[0])), fetched);
    const Stmt loop =
        For::make(op->name, op->min + begin, end - begin, op->for_type, op->partition_policy, op->device_api, step);
    far_images_->add(loop);
    const Stmt body = Block::make(IfThenElse::make(fetches_now, fetched), loop);
    return LetStmt::make(fetches, is_last,
                         For::make(part, 0, parts, ForType::Serial, Partition::Never, DeviceAPI::None, body));
}

} // namespace convtranspose
