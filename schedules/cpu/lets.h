// Names that code gives to values, for lowering passes that want those values in terms of what is defined outside.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_LETS_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_LETS_H_

#include <string>
#include <utility>
#include <vector>

#include <Halide.h>

namespace convtranspose {

// Values by name, outermost first.
using Lets = std::vector<std::pair<std::string, Halide::Expr>>;

// With values instead of their names.
Halide::Expr without_lets(Halide::Expr e, const Lets &lets);

// Visits code, and knows what is named in it around what is visited.
class VisitsLets : public Halide::Internal::IRVisitor {
  protected:
    using IRVisitor::visit;

    // In terms of what is defined outside of the code.
    Halide::Expr outside_terms(const Halide::Expr &e) const { return without_lets(e, lets_); }
    void visit(const Halide::Internal::LetStmt *op) override { visit_let(op); }
    void visit(const Halide::Internal::Let *op) override { visit_let(op); }

  private:
    template<typename T>
    void visit_let(const T *op) {
        lets_.emplace_back(op->name, op->value);
        IRVisitor::visit(op);
        lets_.pop_back();
    }

    Lets lets_;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_LETS_H_
