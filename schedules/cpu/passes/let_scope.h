// The names that surround a piece of code, for passes that need values in terms of what is defined outside of it.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_PASSES_LET_SCOPE_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_PASSES_LET_SCOPE_H_

#include <string>
#include <utility>
#include <vector>

#include <Halide.h>

namespace convtranspose {

// The values of names, outermost first.
using LetScope = std::vector<std::pair<std::string, Halide::Expr>>;

// The expression with values in place of the names of a scope.
Halide::Expr without_lets(Halide::Expr e, const LetScope &scope);

// Visits code, and knows the names in it that surround what is visited.
class LetScopeVisitor : public Halide::Internal::IRVisitor {
  protected:
    using IRVisitor::visit;

    // The expression in terms of what is defined outside of the code.
    Halide::Expr outside_terms(const Halide::Expr &e) const { return without_lets(e, scope_); }
    void visit(const Halide::Internal::LetStmt *op) override { visit_let(op); }
    void visit(const Halide::Internal::Let *op) override { visit_let(op); }
    // Visits what a name with this value surrounds.
    void visit_within(const std::string &name, const Halide::Expr &value, const Halide::Internal::Stmt &body) {
        scope_.emplace_back(name, value);
        body.accept(this);
        scope_.pop_back();
    }

  private:
    template<typename T>
    void visit_let(const T *op) {
        scope_.emplace_back(op->name, op->value);
        IRVisitor::visit(op);
        scope_.pop_back();
    }

    LetScope scope_;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_PASSES_LET_SCOPE_H_
