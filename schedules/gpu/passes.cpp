#include "gpu/passes.h"

namespace convtranspose {

using namespace Halide;
using namespace Halide::Internal;

namespace {

// Names of lowered loops and allocations are "outer.inner.name", and may end in a number of their own.
bool ends_in(const std::string &name, const std::string &end) {
    return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

constexpr int kFenceOfShared = 2; // of a barrier, as Halide numbers fences

bool is_barrier(const Evaluate *op) {
    const Call *call = op->value.as<Call>();
    return call && call->is_intrinsic(Call::gpu_thread_barrier);
}

void require(bool holds, const std::string &func_or_loop, const char *what) {
    if (!holds) {
        throw InternalError(func_or_loop + ": " + what);
    }
}

// Counts the barriers of a loop's body, and those of them that come before anything is written, and before anything is read.
class ListBarriers : public IRVisitor {
  public:
    int count = 0, before_writes = 0, before_reads = 0;

  private:
    using IRVisitor::visit;
    void visit(const Evaluate *op) override {
        if (is_barrier(op)) {
            count++;
            before_writes += !writes_;
            before_reads += !reads_;
        }
    }
    void visit(const ProducerConsumer *op) override {
        (op->is_producer ? writes_ : reads_) = true;
        IRVisitor::visit(op);
    }
    bool writes_ = false, reads_ = false;
};

} // namespace

bool OneThreadsPart::is_ours(const std::string &name) const {
    const size_t n = func_.size();
    return name.compare(0, n, func_) == 0 && (name.size() == n || name[n] == '.' || name[n] == '$');
}

Expr OneThreadsPart::renumbered(Expr index) {
    for (bool found = true; found;) {
        found = false;
        for (const auto &[name, value] : lets_) {
            if (expr_uses_var(index, name)) {
                index = substitute(name, value, index);
                found = true;
            }
        }
    }
    std::map<std::string, Expr> thread_zero;
    for (const std::string &thread : threads_) {
        thread_zero[thread] = 0;
    }
    index = simplify(substitute(thread_zero, index));
    const Ramp *const ramp = index.as<Ramp>();
    const int lanes = ramp ? ramp->lanes : 1;
    const auto first = as_const_int(ramp ? ramp->base : index);
    require(first && (!ramp || is_const_one(ramp->stride)), func_, "a thread uses another thread's part");
    for (int i = 0; i < lanes; i++) {
        places_.emplace(*first + i, static_cast<int>(places_.size()));
    }
    const int place = places_.at(*first);
    for (int i = 0; i < lanes; i++) {
        require(places_.at(*first + i) == place + i, func_, "its vectors overlap");
    }
    return ramp ? Ramp::make(place, 1, lanes) : Expr(place);
}

Stmt OneThreadsPart::visit(const For *op) {
    if (op->for_type == ForType::GPUThread) {
        threads_.insert(op->name);
    }
    return IRMutator::visit(op);
}

Stmt OneThreadsPart::visit(const LetStmt *op) {
    lets_[op->name] = op->value;
    return IRMutator::visit(op);
}

Expr OneThreadsPart::visit(const Let *op) {
    lets_[op->name] = op->value;
    return IRMutator::visit(op);
}

Stmt OneThreadsPart::visit(const Allocate *op) {
    if (!is_ours(op->name)) {
        return IRMutator::visit(op);
    }
    const Stmt body = mutate(op->body);
    return Allocate::make(op->name, op->type, op->memory_type, {static_cast<int>(places_.size())}, op->condition, body);
}

Expr OneThreadsPart::visit(const Load *op) {
    if (!is_ours(op->name)) {
        return IRMutator::visit(op);
    }
    return Load::make(op->type, op->name, renumbered(op->index), op->image, op->param, mutate(op->predicate),
                      ModulusRemainder());
}

Stmt OneThreadsPart::visit(const Atomic *op) {
    // No other thread adds to it: see renumbered().
    return is_ours(op->producer_name) ? mutate(op->body) : IRMutator::visit(op);
}

Stmt OneThreadsPart::visit(const Store *op) {
    if (!is_ours(op->name)) {
        return IRMutator::visit(op);
    }
    const Expr index = renumbered(op->index); // before its value's, so that vectors are numbered in a row
    return Store::make(op->name, mutate(op->value), index, op->param, mutate(op->predicate), ModulusRemainder());
}

Stmt BoundedLoop::visit(const For *op) {
    if (!ends_in(op->name, loop_)) {
        return IRMutator::visit(op);
    }
    require(is_const_zero(op->min), op->name, "does not start at zero");
    name_ = op->name;
    bound_ = Expr();
    const Stmt body = mutate(op->body);
    name_.clear();
    require(bound_.defined(), op->name, "nothing bounds it");
    return For::make(op->name, op->min, min(op->extent, bound_), op->for_type, op->partition_policy, op->device_api,
                     body);
}

Stmt BoundedLoop::visit(const IfThenElse *op) {
    if (name_.empty()) {
        return IRMutator::visit(op);
    }
    const Expr condition = simplify(mutate(op->condition));
    if (is_const_one(condition)) {
        return mutate(op->then_case);
    }
    return IfThenElse::make(condition, mutate(op->then_case), op->else_case.defined() ? mutate(op->else_case) : Stmt());
}

Stmt BoundedLoop::visit(const LetStmt *op) {
    if (name_.empty() || !op->value.type().is_bool()) {
        return IRMutator::visit(op);
    }
    const Expr value = simplify(mutate(op->value));
    if (is_const_one(value)) {
        return mutate(substitute(op->name, value, op->body));
    }
    return LetStmt::make(op->name, value, mutate(op->body));
}

Expr BoundedLoop::visit(const LT *op) {
    const Variable *const variable = op->a.as<Variable>();
    if (name_.empty() || !variable || variable->name != name_) {
        return IRMutator::visit(op);
    }
    require(!bound_.defined() || equal(bound_, op->b), name_, "has several bounds");
    bound_ = op->b;
    return const_true();
}

Stmt TwoBarriers::visit(const For *op) {
    if (!ends_in(op->name, loop_)) {
        return IRMutator::visit(op);
    }
    ListBarriers barriers;
    op->body.accept(&barriers);
    // Two stay: the last one before anything is read, and one between the reads and the writes of the next turn.
    before_reads_ = barriers.before_reads;
    between_turns_ = barriers.count > barriers.before_reads ? barriers.count : 1;
    require(barriers.before_reads > barriers.before_writes, op->name, "has no barrier between writes and reads");
    require(barriers.count > barriers.before_reads || barriers.before_writes > 0, op->name,
            "has no barrier between its turns");
    seen_ = 0;
    const Stmt body = mutate(op->body);
    before_reads_ = 0;
    return For::make(op->name, op->min, op->extent, op->for_type, op->partition_policy, op->device_api, body);
}

Stmt TwoBarriers::visit(const Evaluate *op) {
    if (before_reads_ == 0 || !is_barrier(op)) {
        return op;
    }
    seen_++;
    if (seen_ != before_reads_ && seen_ != between_turns_) {
        return Evaluate::make(0);
    }
    // Halide fences what stays in a turn, but these order one turn's reads before the writes of the next too.
    return Evaluate::make(Call::make(Int(32), Call::gpu_thread_barrier, {kFenceOfShared}, Call::Intrinsic));
}

} // namespace convtranspose
