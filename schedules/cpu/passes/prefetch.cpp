#include "cpu/passes/prefetch.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "cpu/passes/address.h"
#include "cpu/passes/lowered_names.h"
#include "cpu/passes/shared_base_pointer.h"
#include "kernel_contract/fetching.h"

namespace convtranspose {

using namespace Halide;
using namespace Halide::Internal;

namespace {

constexpr int kParts = 3; // of a loop that fetches lines of y meanwhile

// The first and the last element of each load or store of a buffer, in bytes from where the buffer begins.
struct Accesses {
    std::string buffer;
    std::vector<Expr> at;
    int bytes = 0; // of an element

    void add(Expr index, int element_bytes) {
        bytes = element_bytes;
        int elements = 1;
        if (const Ramp *r = index.as<Ramp>()) {
            elements = is_const_one(r->stride) ? r->lanes : 1;
            index = r->base;
        } else if (const Broadcast *b = index.as<Broadcast>()) {
            index = b->value;
        }
        at.push_back(simplify(index * bytes));
        at.push_back(simplify(index * bytes + (elements - 1) * bytes));
    }
};

// The reads of x and w in a loop's body, the loops within it, and whether it stores to the sums.
class Body : public LetScopeVisitor {
  public:
    Body(const Prefetch::Names &names, const For *loop) : x{names.x, {}, 0}, w{names.w, {}, 0}, sum_(names.sum) {
        loop->body.accept(this);
    }

    bool stores = false;
    std::vector<Expr> extents; // of the loops within, each in the one before
    Accesses x, w;

  private:
    using LetScopeVisitor::visit;

    void visit(const For *op) override {
        extents.push_back(outside_terms(op->extent));
        IRVisitor::visit(op);
    }
    void visit(const Store *op) override {
        stores = stores || op->name == sum_;
        IRVisitor::visit(op);
    }
    void visit(const Load *op) override {
        for (Accesses *a : {&x, &w}) {
            if (op->name == a->buffer) a->add(outside_terms(op->index), op->type.element_of().bytes());
        }
        IRVisitor::visit(op);
    }

    const std::string &sum_;
};

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

// One address for each cache line that is accessed. Among accesses at constant distances these are the first, those from there on
// that are a line further, and the last, as lines may begin anywhere; not the last if the next step goes on there (dense).
std::vector<Expr> lines(const Accesses &accesses, bool dense) {
    struct Run {
        Expr first;
        std::set<std::int64_t> offsets;
    };
    std::vector<Run> runs;
    for (const Expr &at : accesses.at) {
        const auto near = std::find_if(runs.begin(), runs.end(), [&](Run &run) {
            const Expr distance = simplify(at - run.first);
            const auto *const bytes = distance.as<IntImm>();
            if (bytes) run.offsets.insert(bytes->value);
            return bytes != nullptr;
        });
        if (near == runs.end()) runs.push_back({at, {0}});
    }
    std::vector<Expr> found;
    for (const Run &run : runs) {
        std::int64_t next = *run.offsets.begin();
        for (const std::int64_t offset : run.offsets) {
            if (offset < next && (dense || offset != *run.offsets.rbegin())) continue;
            found.push_back(run.first + static_cast<int>(offset));
            next = offset + kCacheLine;
        }
    }
    return found;
}

} // namespace

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
        for (const Expr &at : lines(stores.stored, true)) {
            stored_.push_back(prefetch(address_of(y_, at), CacheLevel::kFirst));
        }
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
    if (sums_ == Sums::kUndecided) return reduction(op);
    if (body.extents.empty()) return steps(op);
    if (sums_ == Sums::kOutside && !weights_far_ && !output_tiles_.empty() && !body.w.at.empty()) {
        // The outermost loop over a tile's positions is made once more for weights that are far. A choice around each reduction
        // would keep more registers in memory, which short ones feel.
        std::vector<const For *> loops = loops_;
        LoopsAround within(names_.sum, &loops);
        op->accept(&within);
        const PrefetchNextWeights next(without_lets(body.w.at[0], scope_), loops, output_tiles_, second_level_cache_);
        if (next.first_of_passes() == op && next.are_far().defined()) {
            const Stmt near = within_loop(op);
            weights_far_ = true;
            const Stmt far = within_loop(op);
            weights_far_ = false;
            return IfThenElse::make(next.are_far(), far, near);
        }
    }
    return within_loop(op);
}

Stmt Prefetch::within_loop(const For *op) {
    loops_.push_back(op);
    Stmt s = IRMutator::visit(op);
    loops_.pop_back();
    return s;
}

// The outermost loop of a reduction is made once more for each case that may hold: a choice within it would cost time.
Stmt Prefetch::reduction(const For *op) {
    const Body body(names_, op);
    const auto copy = [&](Sums sums) {
        sums_ = sums;
        Stmt s = visit(op);
        sums_ = Sums::kUndecided;
        return s;
    };
    if (weights_far_ && !body.w.at.empty()) {
        next_weights_ =
            PrefetchNextWeights(without_lets(body.w.at[0], scope_), loops_, output_tiles_, second_level_cache_);
        return copy(Sums::kOfFarWeights);
    }
    if (stored_.empty() && next_positions_ == 0) return copy(Sums::kNear);
    reduction_begin_ = loops_.size();
    const Expr steps = body.extents.empty() ? op->extent : body.extents.back();
    Stmt any = copy(Sums::kNear);
    if (!stored_.empty()) any = IfThenElse::make(stores_far_ && steps >= least_steps_, copy(Sums::kStoredFar), any);
    if (next_positions_ > 0 && !body.x.at.empty() && !body.w.at.empty()) {
        next_x_ = {unique_name("next_of_" + body.x.buffer), unique_name("row_of_" + body.x.buffer)};
        Stmt far = copy(Sums::kOfFarX);
        far = LetStmt::make(next_x_.row, stride_of(body.x.buffer, 1) * body.x.bytes, far);
        far = LetStmt::make(next_x_.tile, stride_of(body.x.buffer, 0) * (next_positions_ * body.x.bytes), far);
        any = IfThenElse::make(stride_of(body.x.buffer, x_images_) >= second_level_cache_ / body.x.bytes &&
                                   is_first_pass(without_lets(body.w.at[0], scope_)),
                               far, any);
    }
    return any;
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
Stmt Prefetch::steps(const For *op) const {
    const Body body(names_, op);
    std::vector<Stmt> all;
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
        const Expr ahead = min(ahead_.x_steps, op->extent / 4), next = Variable::make(Int(32), op->name) + 1;
        for (const Expr &at : lines(body.x, false)) {
            const Expr step = simplify(substitute(op->name, next, at) - at);
            const auto *const bytes = step.as<IntImm>();
            if (bytes && bytes->value < kCacheLine) continue;
            all.push_back(prefetch(address_of(body.x.buffer, at + step * ahead), CacheLevel::kFirst));
        }
    }
    if (sums_ == Sums::kOfFarX) {
        for (const Stmt &fetch : fetches_of_next_x(op, body.x.at[0], body.x.bytes)) all.push_back(fetch);
    }
    all.push_back(weights ? weights->step : op->body);
    Stmt step = Block::make(all);
    if (weights) {
        const Expr pointer = hidden_from_llvm(address_of(body.w.buffer, weights->first * weights->bytes));
        step = LetStmt::make(weights->pointer, pointer, step);
    }
    if (sums_ == Sums::kStoredFar) return in_parts(op, step);
    Stmt loop = For::make(op->name, op->min, op->extent, op->for_type, op->partition_policy, op->device_api, step);
    if (sums_ == Sums::kOfFarWeights && !body.w.at.empty()) {
        return next_weights_->fetched_in(loop.as<For>(), body.w.buffer, without_lets(body.w.at[0], scope_));
    }
    if (sums_ == Sums::kOfFarX) far_images_->add(loop);
    return loop;
}

// A step's fetches of the next tile's x: as many bytes as one channel of a row's positions has, which are a line of them at least if
// they are up to 16.
std::vector<Stmt> Prefetch::fetches_of_next_x(const For *op, const Expr &x_at, int element_bytes) const {
    const Expr step = Variable::make(Int(32), op->name) - op->min, next = substitute(op->name, op->min, x_at) +
                                                                          Variable::make(Int(32), next_x_.tile) +
                                                                          step * (next_positions_ * element_bytes);
    std::vector<Stmt> all;
    for (int row = 0; row < next_rows_; row++) {
        const Expr at = next + row * Variable::make(Int(32), next_x_.row);
        all.push_back(prefetch(address_of(names_.x, at), CacheLevel::kSecond));
    }
    return all;
}

// The innermost loop in parts, with fetches of lines of y before each, the last time that the reduction runs it.
Stmt Prefetch::in_parts(const For *op, const Stmt &step) const {
    Expr is_last = const_true();
    for (std::size_t i = reduction_begin_; i < loops_.size(); i++) {
        const For *const taps = loops_[i];
        is_last = is_last && Variable::make(Int(32), taps->name) == taps->min + taps->extent - 1;
    }
    std::vector<Stmt> parts;
    const auto count = static_cast<std::ptrdiff_t>(stored_.size());
    for (int p = 0; p < kParts; p++) {
        const Expr part = op->extent / kParts, begin = part * p;
        const Expr end = p + 1 == kParts ? op->extent : begin + part;
        const std::vector<Stmt> fetched(stored_.begin() + count * p / kParts,
                                        stored_.begin() + count * (p + 1) / kParts);
        if (!fetched.empty()) parts.push_back(IfThenElse::make(is_last, Block::make(fetched)));
        parts.push_back(For::make(op->name, op->min + begin, simplify(end - begin), op->for_type, op->partition_policy,
                                  op->device_api, step));
        far_images_->add(parts.back());
    }
    return Block::make(parts);
}

} // namespace convtranspose
