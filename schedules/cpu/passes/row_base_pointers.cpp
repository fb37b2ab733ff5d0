#include "cpu/passes/row_base_pointers.h"

#include <vector>

#include "cpu/passes/address.h"
#include "cpu/passes/lowered_names.h"

namespace convtranspose {

using namespace Halide;
using namespace Halide::Internal;

namespace {

// Finds out whether a loop is innermost and stores to the sums.
class Body : public IRVisitor {
  public:
    explicit Body(const std::string &sum) : sum_(sum) {}
    bool has_loops = false, stores = false;

  private:
    using IRVisitor::visit;
    void visit(const For *) override { has_loops = true; }
    void visit(const Store *op) override { stores = stores || op->name == sum_; }

    const std::string &sum_;
};

// Positions of a row that are read through one pointer.
struct Row {
    std::string pointer;
    Expr first;          // where it points to: an index, in elements
    Expr position, rest; // the same index as position * stride + rest
    int bytes;           // of an element
};

// Replaces loads of x by loads through the pointers of its rows.
class ThroughPointers : public IRMutator {
  public:
    ThroughPointers(const std::string &x, int positions)
        : x_(x), positions_(positions), stride_name_(stride_name(x, 0)),
          stride_(Variable::make(Int(32), stride_name_)) {}
    std::vector<Row> rows;

  private:
    using IRMutator::visit;
    Expr visit(const Load *op) override {
        if (op->name != x_ || !op->type.is_scalar()) return IRMutator::visit(op);
        const auto load = [&](const std::string &pointer, const Expr &index) {
            return Load::make(op->type, pointer, index, Buffer<>(), Parameter(), const_true(), ModulusRemainder());
        };
        if (!expr_uses_var(op->index, stride_name_)) { // positions lie side by side
            for (const Row &row : rows) {
                const Expr further = simplify(op->index - row.first);
                if (further.as<IntImm>()) return load(row.pointer, further);
            }
            rows.push_back({unique_name(x_ + "_row"), op->index, 0, 0, op->type.bytes()});
            return load(rows.back().pointer, 0);
        }
        const Expr rest = simplify(substitute(stride_name_, 0, op->index)),
                   position = simplify(substitute(stride_name_, 1, op->index) - rest);
        for (const Row &row : rows) {
            const Expr further = simplify(position - row.position);
            const auto *const p = further.as<IntImm>();
            if (p && p->value >= 0 && p->value < positions_ && equal(rest, row.rest)) {
                return load(row.pointer, simplify(stride_ * further));
            }
        }
        rows.push_back({unique_name(x_ + "_row"), op->index, position, rest, op->type.bytes()});
        return load(rows.back().pointer, 0);
    }

    const std::string x_;
    const int positions_;
    const std::string stride_name_;
    const Expr stride_;
};

} // namespace

Stmt RowBasePointers::visit(const For *op) {
    Body body(sum_);
    op->body.accept(&body);
    if (body.has_loops || !body.stores) return IRMutator::visit(op);
    ThroughPointers reading(x_, positions_);
    Stmt step = reading.mutate(op->body);
    for (const Row &row : reading.rows) {
        const Expr pointer = hidden_from_llvm(address_of(x_, row.first * row.bytes));
        step = LetStmt::make(row.pointer, pointer, step);
    }
    return For::make(op->name, op->min, op->extent, op->for_type, op->partition_policy, op->device_api, step);
}

} // namespace convtranspose
