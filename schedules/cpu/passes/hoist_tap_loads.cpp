#include "cpu/passes/hoist_tap_loads.h"

#include <algorithm>
#include <cstddef>

namespace convtranspose {

using namespace Halide;
using namespace Halide::Internal;

namespace {

// Replaces the loads from tables in whose index a variable occurs by variables, which are then defined around all of them.
class Values : public IRMutator {
  public:
    Values(const std::vector<std::string> &tables, const std::string &row) : tables_(tables), row_(row) {}
    Stmt defined_around(Stmt body) const {
        for (auto value = found_.rbegin(); value != found_.rend(); ++value) {
            body = LetStmt::make(value->first, value->second, body);
        }
        return body;
    }

  private:
    using IRMutator::visit;
    Expr visit(const Load *op) override {
        const bool is_table = std::find(tables_.begin(), tables_.end(), op->name) != tables_.end();
        if (!is_table || !expr_uses_var(op->index, row_)) return IRMutator::visit(op);
        const Expr load = op;
        for (const auto &[name, value] : found_) {
            if (equal(value, load)) return Variable::make(op->type, name);
        }
        found_.emplace_back(unique_name(op->name + "_value"), load);
        return Variable::make(op->type, found_.back().first);
    }

    const std::vector<std::string> &tables_;
    const std::string &row_;
    std::vector<std::pair<std::string, Expr>> found_;
};

void add_parts(const Expr &condition, std::vector<Expr> *parts) {
    if (const And *both = condition.as<And>()) {
        add_parts(both->a, parts);
        add_parts(both->b, parts);
    } else {
        parts->push_back(condition);
    }
}

} // namespace

Stmt HoistTapLoads::visit(const For *op) {
    Values values(tables_, op->name);
    const Stmt body = mutate(values.mutate(op->body));
    return For::make(op->name, op->min, op->extent, op->for_type, op->partition_policy, op->device_api,
                     values.defined_around(body));
}

Stmt HoistTapLoads::visit(const LetStmt *op) {
    Values values(tables_, op->name);
    Stmt body = values.mutate(op->body);
    scope_.emplace_back(op->name, op->value);
    body = mutate(body);
    scope_.pop_back();
    return LetStmt::make(op->name, op->value, values.defined_around(body));
}

Stmt HoistTapLoads::visit(const IfThenElse *op) {
    if (op->else_case.defined()) return IRMutator::visit(op);
    std::vector<Expr> parts;
    add_parts(without_lets(substitute_in_all_lets(op->condition), scope_), &parts);
    const std::size_t known = known_.size();
    for (const Expr &part : parts) {
        if (std::none_of(known_.begin(), known_.end(), [&](const Expr &e) { return equal(e, part); })) {
            known_.push_back(part);
        }
    }
    const bool tells = known_.size() > known;
    Stmt s = mutate(op->then_case);
    known_.resize(known);
    return tells ? IfThenElse::make(op->condition, s) : s;
}

} // namespace convtranspose
