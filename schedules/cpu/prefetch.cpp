#include "prefetch.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

namespace convtranspose {

using namespace Halide;
using namespace Halide::Internal;

namespace {

constexpr int kLine = 64; // bytes of a cache line

// The first and the last element of each load of an input, in bytes from where that begins.
struct Reads {
    const char *input;
    std::vector<Expr> at;

    void add(Expr index, int bytes) {
        int elements = 1;
        if (const Ramp *r = index.as<Ramp>()) {
            elements = is_const_one(r->stride) ? r->lanes : 1;
            index = r->base;
        } else if (const Broadcast *b = index.as<Broadcast>()) {
            index = b->value;
        }
        at.push_back(simplify(index * bytes));
        at.push_back(simplify(index * bytes + (elements - 1) * bytes));
    }
};

// What a loop's body reads of x and w, and whether it is innermost and stores to `sum`.
class Body : public IRVisitor {
  public:
    explicit Body(std::string sum) : sum_(std::move(sum)) {}

    bool stores = false, loops = false;
    Reads x{"x", {}}, w{"w", {}};

  private:
    using IRVisitor::visit;

    void visit(const For *op) override {
        loops = true;
        IRVisitor::visit(op);
    }
    void visit(const Store *op) override {
        stores = stores || op->name == sum_;
        IRVisitor::visit(op);
    }
    void visit(const Load *op) override {
        for (Reads *r : {&x, &w}) {
            if (op->name == r->input) r->add(whole(op->index), op->type.element_of().bytes());
        }
        IRVisitor::visit(op);
    }
    void visit(const LetStmt *op) override {
        lets_.emplace_back(op->name, op->value);
        IRVisitor::visit(op);
        lets_.pop_back();
    }
    void visit(const Let *op) override {
        lets_.emplace_back(op->name, op->value);
        IRVisitor::visit(op);
        lets_.pop_back();
    }

    // In terms of what is defined outside of the loop.
    Expr whole(Expr e) const {
        for (auto let = lets_.rbegin(); let != lets_.rend(); ++let) e = substitute(let->first, let->second, e);
        return e;
    }

    std::string sum_;
    std::vector<std::pair<std::string, Expr>> lets_;
};

// One address per cache line of what is read: of reads at constant distances the first, those from there on that are a line
// further, and, unless the next step goes on there, the last, for lines may begin anywhere.
std::vector<Expr> lines(const Reads &reads, bool dense) {
    struct Run {
        Expr first;
        std::set<std::int64_t> offsets;
    };
    std::vector<Run> runs;
    for (const Expr &at : reads.at) {
        const auto near = std::find_if(runs.begin(), runs.end(), [&](Run &run) {
            const Expr distance = simplify(at - run.first);
            const auto *const bytes = distance.as<IntImm>();
            if (bytes) run.offsets.insert(bytes->value);
            return bytes != nullptr;
        });
        if (near == runs.end()) runs.push_back({at, {0}});
    }
    std::vector<Expr> found;
    for (const Run &run : runs) {
        std::int64_t next = *run.offsets.begin();
        for (const std::int64_t offset : run.offsets) {
            if (offset < next && (dense || offset != *run.offsets.rbegin())) continue;
            found.push_back(run.first + static_cast<int>(offset));
            next = offset + kLine;
        }
    }
    return found;
}

// As 64-bit integers from its leaves on, as Halide computes addresses: LLVM then steps through them with the loop.
Expr wide(const Expr &e) {
    if (const Add *op = e.as<Add>()) return wide(op->a) + wide(op->b);
    if (const Sub *op = e.as<Sub>()) return wide(op->a) - wide(op->b);
    if (const Mul *op = e.as<Mul>()) return wide(op->a) * wide(op->b);
    return cast<std::int64_t>(e);
}

// LLVM's intrinsic, which Halide's own prefetch calls and so has declared (where it had not, its module would be refused, as a
// call from Halide returns a number): https://llvm.org/docs/LangRef.html#llvm-prefetch-intrinsic
Stmt prefetch(const char *input, const Expr &byte) {
    constexpr int kRead = 0, kEveryLevel = 3, kData = 1;
    const Expr address = reinterpret<std::int64_t>(Variable::make(Handle(), input)) + wide(byte);
    return Evaluate::make(Call::make(Int(32), "llvm.prefetch.p0",
                                     {reinterpret(Handle(), address), kRead, kEveryLevel, kData}, Call::Extern));
}

} // namespace

Stmt Prefetch::visit(const For *op) {
    Body body(sum_);
    op->body.accept(&body);
    if (body.loops || !body.stores) return IRMutator::visit(op);

    std::vector<Stmt> all;
    if (w_bytes_ahead_) {
        for (const Expr &at : lines(body.w, true)) all.push_back(prefetch(body.w.input, at + w_bytes_ahead_));
    }
    if (x_steps_ahead_) {
        // Of a short loop less far ahead, as what lies behind its last step is fetched for nothing.
        const Expr steps = min(x_steps_ahead_, op->extent / 4), next = Variable::make(Int(32), op->name) + 1;
        for (const Expr &at : lines(body.x, false)) {
            const Expr step = simplify(substitute(op->name, next, at) - at);
            const auto *const bytes = step.as<IntImm>();
            if (!bytes || bytes->value >= kLine) all.push_back(prefetch(body.x.input, at + step * steps));
        }
    }
    all.push_back(op->body);
    return For::make(op->name, op->min, op->extent, op->for_type, op->partition_policy, op->device_api,
                     Block::make(all));
}

} // namespace convtranspose
