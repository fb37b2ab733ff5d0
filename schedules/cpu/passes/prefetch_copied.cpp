#include "cpu/passes/prefetch_copied.h"

#include <algorithm>

#include "cpu/passes/address.h"
#include "cpu/passes/let_scope.h"
#include "cpu/passes/lowered_names.h"

namespace convtranspose {

using namespace Halide;
using namespace Halide::Internal;

namespace {

// The loops of a nest, outermost first, and where the dense vectors begin that its code loads from one buffer and stores to another,
// in bytes from where the buffer does. All is in terms of the loops and of what is defined outside.
class Nest : public LetScopeVisitor {
  public:
    Nest(const std::string &loaded_from, const std::string &stored_to) : from_(loaded_from), to_(stored_to) {}

    struct Loop {
        const For *loop;
        Expr min, extent;
    };
    std::vector<Loop> loops;
    std::vector<Expr> loaded, stored;

    Stmt around(Stmt body) const {
        for (auto l = loops.rbegin(); l != loops.rend(); ++l) {
            body = For::make(l->loop->name, l->min, l->extent, l->loop->for_type, l->loop->partition_policy,
                             l->loop->device_api, body);
        }
        return body;
    }

  private:
    using LetScopeVisitor::visit;

    void visit(const For *op) override {
        loops.push_back({op, outside_terms(op->min), outside_terms(op->extent)});
        LetScopeVisitor::visit(op);
    }
    void visit(const Load *op) override {
        if (op->name == from_) add(op->index, op->type, &loaded);
        LetScopeVisitor::visit(op);
    }
    void visit(const Store *op) override {
        if (op->name == to_) add(op->index, op->value.type(), &stored);
        LetScopeVisitor::visit(op);
    }
    void add(const Expr &index, const Type &type, std::vector<Expr> *vectors) {
        const Ramp *const ramp = index.as<Ramp>();
        if (ramp && is_const_one(ramp->stride)) vectors->push_back(simplify(outside_terms(ramp->base) * type.bytes()));
    }

    const std::string &from_, &to_;
};

// Fetches what lies ahead of each vector of a buffer.
Stmt fetches(const PrefetchCopied::Buffer &buffer, const std::vector<Expr> &vectors, const Nest &nest) {
    if (vectors.empty()) return Evaluate::make(0);
    std::vector<Stmt> all;
    all.reserve(vectors.size());
    for (const Expr &at : vectors) {
        all.push_back(prefetch(address_of(buffer.name, at + buffer.ahead), CacheLevel::kFirst));
    }
    return IfThenElse::make(buffer.is_fetched, nest.around(Block::make(all)));
}

} // namespace

Stmt PrefetchCopied::visit(const IfThenElse *op) {
    // Halide may have changed the order of the condition's terms.
    if (!equal(simplify(op->condition), simplify(condition_))) return IRMutator::visit(op);
    holds_ = true;
    Stmt then_case = mutate(op->then_case);
    holds_ = false;
    return IfThenElse::make(op->condition, then_case, op->else_case);
}

Stmt PrefetchCopied::visit(const For *op) {
    if (!holds_) return IRMutator::visit(op);
    Nest nest(x_.name, copy_.name);
    op->accept(&nest);
    const bool is_whole = std::all_of(nest.loops.begin(), nest.loops.end() - 1, [&](const Nest::Loop &l) {
        return std::any_of(variables_.begin(), variables_.end(),
                           [&](const std::string &v) { return runs_over(l.loop->name, v); });
    });
    if (!is_whole) return IRMutator::visit(op);
    return Block::make(Block::make(fetches(x_, nest.loaded, nest), fetches(copy_, nest.stored, nest)), op);
}

} // namespace convtranspose
