#include "cpu/passes/branch_once.h"

#include <algorithm>
#include <vector>

namespace convtranspose {

using namespace Halide;
using namespace Halide::Internal;

namespace {

// The statement as a branch around the store of a whole vector, or else of a part of it; null if it is none.
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

// One branch: all of the whole vectors, or else all of the parts.
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
    std::vector<const IfThenElse *> branches; // that follow each other, up to here
    const auto add_branches = [&] {
        if (!branches.empty()) made.push_back(behind_one_branch(branches));
        branches.clear();
    };
    for (const Stmt &s : all) {
        if (const IfThenElse *const branch = store_in_part(s)) {
            branches.push_back(branch);
        } else {
            add_branches();
            made.push_back(mutate(s));
        }
    }
    add_branches();
    return Block::make(made);
}

} // namespace convtranspose
