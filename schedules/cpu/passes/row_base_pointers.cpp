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
    Expr first; // where it points to: an index, in elements
    int bytes;  // of an element
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
        for (const Row &row : rows) {
            // The distance is some positions and some elements: it is linear in the stride, if that is in it.
            const Expr distance = simplify(op->index - row.first);
            const auto elements = as_const_int(simplify(substitute(stride_name_, 0, distance))),
                       with_a_position = as_const_int(simplify(substitute(stride_name_, 1, distance)));
            if (!elements || !with_a_position) continue;
            const auto positions = static_cast<int>(*with_a_position - *elements);
            if (positions < 0 || positions >= positions_) continue;
            return load(row.pointer, simplify(stride_ * positions + static_cast<int>(*elements)));
        }
        rows.push_back({unique_name(x_ + "_row"), op->index, op->type.bytes()});
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
