#include "cpu/passes/skip_padding.h"

#include "cpu/passes/lowered_names.h"

namespace convtranspose {

using namespace Halide;
using namespace Halide::Internal;

namespace {

// The reads of x in a loop's body, and whether it is innermost and stores to the sums.
class Body : public LetScopeVisitor {
  public:
    Body(const std::string &sum, const std::string &x) : sum_(sum), x_(x) {}
    bool has_loops = false, stores = false;
    std::vector<Expr> of_x; // indices

  private:
    using LetScopeVisitor::visit;
    void visit(const For *) override { has_loops = true; }
    void visit(const Store *op) override {
        stores = stores || op->name == sum_;
        IRVisitor::visit(op);
    }
    void visit(const Load *op) override {
        if (op->name == x_) of_x.push_back(outside_terms(op->index));
        IRVisitor::visit(op);
    }

    const std::string &sum_, &x_;
};

// Takes from a loop its stores to the sums of positions other than begin .. end - 1.
class Positions : public IRMutator {
  public:
    Positions(const std::string &sum, int tile_oc, int tile_q, int begin, int end)
        : sum_(sum), tile_oc_(tile_oc), tile_q_(tile_q), begin_(begin), end_(end) {}

  private:
    using IRMutator::visit;
    Stmt visit(const Store *op) override {
        if (op->name != sum_) return op;
        const Ramp *const ramp = op->index.as<Ramp>();
        const Expr first = simplify(ramp ? ramp->base : op->index);
        const auto *const element = first.as<IntImm>();
        _halide_user_assert(element) << "sums are stored to an index that varies, " << first << "\n";
        const auto position = static_cast<int>(element->value) / tile_oc_ % tile_q_;
        return position >= begin_ && position < end_ ? Stmt(op) : Evaluate::make(0);
    }

    const std::string &sum_;
    const int tile_oc_, tile_q_, begin_, end_;
};

} // namespace

Stmt SkipPadding::visit(const LetStmt *op) {
    if (op->value.as<Call>()) return IRMutator::visit(op); // such as strides, which position() knows by name
    scope_.emplace_back(op->name, op->value);
    Stmt s = IRMutator::visit(op);
    scope_.pop_back();
    return s;
}

// The position in its row, counted from where x begins, that an index reads.
Expr SkipPadding::position(Expr index) const {
    index = without_lets(index, scope_);
    constexpr int kMostDimensions = 7;
    for (int d = 0; d < kMostDimensions; d++) {
        index = substitute(stride_name(x_, d), d == 0 ? 1 : 0, index);
    }
    return simplify(index);
}

Stmt SkipPadding::visit(const For *op) {
    Body body(sum_, x_);
    op->body.accept(&body);
    if (body.has_loops || !body.stores || body.of_x.empty()) return IRMutator::visit(op);
    if (kept_ && kept_->has(op)) return op;

    Expr least = position(body.of_x[0]);
    for (const Expr &index : body.of_x) {
        const Expr at = position(index), distance = simplify(at - least);
        const auto *const positions = distance.as<IntImm>();
        _halide_user_assert(positions) << "a step reads positions " << at << " and " << least << "\n";
        if (positions->value < 0) least = at;
    }
    const std::string name = unique_name("first_of_row");
    const Expr first = Variable::make(Int(32), name), left = -first, right = first + tile_q_ - extent_of(x_, 0);
    const auto without = [&](int at_left, int at_right) {
        return Positions(sum_, tile_oc_, tile_q_, at_left, tile_q_ - at_right).mutate(Stmt(op));
    };
    Stmt ends = without(0, 1);
    for (int n = 2; n <= most_; n++) ends = IfThenElse::make(right >= n, without(0, n), ends);
    for (int n = 1; n <= most_; n++) ends = IfThenElse::make(left >= n, without(n, 0), ends);
    return LetStmt::make(name, least, IfThenElse::make(left <= 0 && right <= 0, op, ends));
}

} // namespace convtranspose
