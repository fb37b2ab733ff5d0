#include "cpu/passes/branch_once.h"

#include <algorithm>
#include <vector>

namespace convtranspose {

using namespace Halide;
using namespace Halide::Internal;

namespace {

// A store behind a branch of its own, or nothing.
const IfThenElse *store_in_part(const Stmt &s) {
    const auto *const branch = s.as<IfThenElse>();
    if (!branch) return nullptr;
    const auto *const whole = branch->then_case.as<Store>();
    Stmt other = branch->else_case;
    while (other.defined() && other.as<LetStmt>()) other = other.as<LetStmt>()->body;
    const auto *const part = other.defined() ? other.as<Store>() : nullptr;
    const bool is_it =
        whole && part && whole->name == part->name && is_const_one(whole->predicate) && !is_const_one(part->predicate);
    return is_it ? branch : nullptr;
}

// The statements of a block, in order.
void add_to(std::vector<Stmt> *all, const Stmt &s) {
    if (const auto *const block = s.as<Block>()) {
        add_to(all, block->first);
        add_to(all, block->rest);
    } else {
        all->push_back(s);
    }
}

Stmt behind_one_branch(const std::vector<const IfThenElse *> &branches) {
    std::vector<Expr> conditions;
    std::vector<Stmt> whole, parts;
    for (const IfThenElse *const branch : branches) {
        const auto is_same = [&](const Expr &e) { return equal(e, branch->condition); };
        if (std::none_of(conditions.begin(), conditions.end(), is_same)) conditions.push_back(branch->condition);
        whole.push_back(branch->then_case);
        parts.push_back(branch->else_case);
    }
    Expr all = conditions[0];
    for (std::size_t i = 1; i < conditions.size(); i++) all = all && conditions[i];
    return IfThenElse::make(all, Block::make(whole), Block::make(parts));
}

} // namespace

Stmt BranchOnce::visit(const Block *op) {
    std::vector<Stmt> all, made;
    add_to(&all, op);
    for (std::size_t i = 0; i < all.size();) {
        std::vector<const IfThenElse *> branches;
        for (; i < all.size() && store_in_part(all[i]); i++) branches.push_back(store_in_part(all[i]));
        if (branches.empty()) {
            made.push_back(mutate(all[i++]));
        } else {
            made.push_back(behind_one_branch(branches));
        }
    }
    return Block::make(made);
}

} // namespace convtranspose
