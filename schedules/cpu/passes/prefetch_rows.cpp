#include "cpu/passes/prefetch_rows.h"

#include <cstdint>
#include <vector>

#include "cpu/passes/address.h"
#include "cpu/passes/cache_lines.h"
#include "cpu/passes/let_scope.h"

namespace convtranspose {

using namespace Halide;
using namespace Halide::Internal;

namespace {

// The stores of a tile to a buffer, in terms of what is defined outside. Loops of a constant extent are run through. Of stores of whole
// vectors or else of parts, those of whole vectors count.
class Stored : public LetScopeVisitor {
  public:
    explicit Stored(std::string buffer) : accesses{std::move(buffer), {}, 0} {}
    Accesses accesses;

  private:
    using LetScopeVisitor::visit;

    void visit(const For *op) override {
        const auto *const extent = op->extent.as<IntImm>();
        for (std::int64_t i = 0; extent && i < extent->value; i++) {
            visit_within(op->name, op->min + static_cast<int>(i), op->body);
        }
    }
    void visit(const IfThenElse *op) override { op->then_case.accept(this); }
    void visit(const Store *op) override {
        if (op->name != accesses.buffer) return;
        accesses.add(outside_terms(op->index), op->value.type().element_of().bytes());
    }
};

} // namespace

Stmt PrefetchRows::visit(const ProducerConsumer *op) {
    if (op->name != names_.y || !op->is_producer) return IRMutator::visit(op);
    ahead_ = unique_name("rows_ahead");
    const Expr ahead = select(is_fetched_, step_ * max((kLeastAhead + step_ - 1) / step_, 1), 0);
    return LetStmt::make(ahead_, ahead, IRMutator::visit(op));
}

Stmt PrefetchRows::visit(const Allocate *op) {
    if (op->name != names_.sum) return IRMutator::visit(op);
    Stored stored(names_.y);
    op->body.accept(&stored);
    const Expr ahead = Variable::make(Int(32), ahead_);
    std::vector<Stmt> fetched;
    for (const Expr &at : lines(stored.accesses, true)) {
        fetched.push_back(prefetch(address_of(names_.y, at + ahead), CacheLevel::kSecond));
    }
    if (fetched.empty()) return op;
    return Block::make(IfThenElse::make(ahead != 0, Block::make(fetched)), op);
}

} // namespace convtranspose
