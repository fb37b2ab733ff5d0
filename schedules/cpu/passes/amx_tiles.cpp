#include "cpu/passes/amx_tiles.h"

#include <map>

#include "cpu/passes/lowered_names.h"
#include "kernel_contract/kernel_traits.h"

namespace convtranspose {

using namespace Halide;
using namespace Halide::Internal;

namespace {

constexpr int kRegisterBytes = kAmxRows * kAmxRows * 4;

void require(bool holds, const char *rule, const Stmt &nest) {
    _halide_user_assert(holds) << "AMX: " << rule << " in\n" << nest;
}

// The loops of AmxLoops around one store.
struct Nest {
    struct Loop {
        std::string name;
        Expr min, extent;
    };
    std::map<std::string, Loop> loops; // by the variables of AmxLoops
    Stmt body;
    const Store *store = nullptr;

    static Nest of(const Stmt &whole, const AmxLoops &names) {
        Nest n;
        n.body = whole;
        for (;;) {
            if (const LetStmt *let = n.body.as<LetStmt>()) {
                n.body = substitute(let->name, let->value, let->body);
                continue;
            }
            const For *const loop = n.body.as<For>();
            if (!loop) break;
            for (const std::string &name : {names.bytes, names.depth, names.columns, names.rows}) {
                if (runs_over(loop->name, name)) n.loops[name] = {loop->name, loop->min, loop->extent};
            }
            n.body = Stmt(loop->body);
        }
        n.store = n.body.as<Store>();
        require(n.store, "loops hold something else than one store", whole);
        require(is_const_one(n.store->predicate), "a store is predicated", whole);
        return n;
    }

    // A loop of one step is no loop.
    int extent(const std::string &loop) const {
        if (!loops.count(loop)) return 1;
        const auto *const n = loops.at(loop).extent.as<IntImm>();
        _halide_user_assert(n) << "AMX: the extent of " << loop << " is not a constant\n";
        return static_cast<int>(n->value);
    }

    // An index where all loops begin, or with one of them a step further.
    Expr at(Expr index, const std::string &loop = std::string()) const {
        for (const auto &[name, l] : loops) {
            const Expr value = name == loop ? l.min + 1 : l.min;
            index = substitute(l.name, value, index);
        }
        return simplify(index);
    }

    Expr stride(const Expr &index, const std::string &loop) const { return simplify(at(index, loop) - at(index)); }
};

Expr bytes(const Expr &elements, const Type &type) { return cast<int64_t>(elements) * type.bytes(); }

// The load that a factor is, without what widens it.
const Load *loaded(Expr e) {
    while (const Cast *c = e.as<Cast>()) e = c->value;
    return e.as<Load>();
}

Expr load_tile(const Load *load, int rows, int row_bytes, const Expr &first, const Expr &stride) {
    const Type element = load->type.element_of();
    return Call::make(
        element.with_lanes(kRegisterBytes / element.bytes()), "tile_load",
        {rows, row_bytes, Variable::make(Handle(), load->name), bytes(first, element), bytes(stride, element)},
        Call::Intrinsic);
}

// The type of a whole register.
Type whole(const Type &type) { return type.element_of().with_lanes(kRegisterBytes / type.element_of().bytes()); }
Expr lanes(const Type &type) { return Ramp::make(0, 1, whole(type).lanes()); }

Stmt set_tile(const std::string &name, const Expr &value) {
    return Store::make(name, value, lanes(value.type()), Parameter(), const_true(value.type().lanes()),
                       ModulusRemainder());
}

Expr get_tile(const std::string &name, const Type &type) {
    return Load::make(whole(type), name, lanes(type), Buffer<>(), Parameter(), const_true(whole(type).lanes()),
                      ModulusRemainder());
}

Stmt multiply(const Nest &nest, const AmxLoops &loops, const Expr &product, const std::string &tile, const Stmt &all) {
    Expr e = lower_intrinsics(product);
    while (const Cast *c = e.as<Cast>()) e = c->value; // integers are multiplied in fewer bits
    const Mul *const mul = e.as<Mul>();
    require(mul, "what is added is not a product", all);
    const Load *rows = loaded(mul->a), *columns = loaded(mul->b);
    require(rows && columns, "a factor is not a load", all);
    const auto is_bf16 = [](const Load *l) { return l->type.element_of() == BFloat(16); };
    const auto is_byte = [](const Load *l) { return l->type.is_int_or_uint() && l->type.bits() == 8; };
    require((is_bf16(rows) && is_bf16(columns)) || (is_byte(rows) && is_byte(columns)), "factors are of other types",
            all);
    if (!is_const_zero(nest.stride(rows->index, loops.columns))) std::swap(rows, columns);
    const int block = 4 / rows->type.bytes(), depth = nest.extent(loops.depth);
    const int m = nest.extent(loops.rows), n = nest.extent(loops.columns);
    require(nest.extent(loops.bytes) == block, "the innermost loop is not of 4 bytes", all);
    require(m <= kAmxRows && n <= kAmxRows && depth <= kAmxRows, "a tile has more rows or columns than a register",
            all);
    require(is_const_zero(nest.stride(rows->index, loops.columns)) &&
                is_const_one(nest.stride(rows->index, loops.bytes)) &&
                is_const(nest.stride(rows->index, loops.depth), block),
            "the operand of rows is not dense", all);
    require(is_const_zero(nest.stride(columns->index, loops.rows)) &&
                is_const_one(nest.stride(columns->index, loops.bytes)) &&
                is_const(nest.stride(columns->index, loops.columns), block),
            "the operand of columns is not dense", all);
    const Expr a = load_tile(rows, m, depth * 4, nest.at(rows->index), nest.stride(rows->index, loops.rows));
    const Expr b = load_tile(columns, depth, n * 4, nest.at(columns->index), nest.stride(columns->index, loops.depth));
    const Type sum = nest.store->value.type();
    return set_tile(tile,
                    Call::make(whole(sum), "tile_matmul",
                               {m, n * 4, depth * 4 / rows->type.bytes(), get_tile(tile, sum), a, b}, Call::Intrinsic));
}

} // namespace

const std::string &AmxTiles::tile_at(const Expr &index) {
    for (const auto &[first, name] : tiles_) {
        if (equal(first, index)) return name;
    }
    tiles_.emplace_back(index, sum_ + ".tile" + std::to_string(tiles_.size()));
    return tiles_.back().second;
}

Stmt AmxTiles::visit(const Allocate *op) {
    if (op->name != sum_) return IRMutator::visit(op);
    tiles_.clear();
    Stmt body = mutate(op->body);
    for (const auto &tile : tiles_) {
        body = Allocate::make(tile.second, whole(op->type), MemoryType::AMXTile, {1}, const_true(), body);
    }
    return body;
}

Stmt AmxTiles::visit(const Free *op) { return op->name == sum_ ? Evaluate::make(0) : IRMutator::visit(op); }

Stmt AmxTiles::visit(const For *op) {
    if (!runs_over(op->name, loops_.rows) && !runs_over(op->name, loops_.columns)) return IRMutator::visit(op);
    const Stmt all = op;
    const Nest nest = Nest::of(all, loops_);
    const Store *const store = nest.store;
    if (store->name != sum_) {
        const Load *const load = store->value.as<Load>();
        require(load && load->name == sum_, "what is stored is not a tile", all);
        const std::string &tile = tile_at(nest.at(load->index));
        require(is_const_one(nest.stride(store->index, loops_.columns)), "a tile is not stored by rows", all);
        const Type t = store->value.type();
        return Evaluate::make(Call::make(Int(32), "tile_store",
                                         {nest.extent(loops_.rows), nest.extent(loops_.columns) * t.bytes(),
                                          Variable::make(Handle(), store->name), bytes(nest.at(store->index), t),
                                          bytes(nest.stride(store->index, loops_.rows), t), get_tile(tile, t)},
                                         Call::Intrinsic));
    }
    const std::string tile = tile_at(nest.at(store->index));
    if (is_const_zero(store->value)) {
        return set_tile(tile, Call::make(whole(store->value.type()), "tile_zero",
                                         {nest.extent(loops_.rows), nest.extent(loops_.columns) * 4}, Call::Intrinsic));
    }
    const Add *const add = store->value.as<Add>();
    require(add, "a tile is neither zeroed nor added to", all);
    const Load *const left = add->a.as<Load>();
    const bool is_left = left && left->name == sum_;
    const Load *const before = is_left ? left : add->b.as<Load>();
    require(before && before->name == sum_ && equal(before->index, store->index), "a tile is not added to itself", all);
    return multiply(nest, loops_, is_left ? add->b : add->a, tile, all);
}

} // namespace convtranspose
