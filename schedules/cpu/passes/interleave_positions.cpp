#include "cpu/passes/interleave_positions.h"

#include <cstddef>
#include <vector>

namespace convtranspose {

using namespace Halide;
using namespace Halide::Internal;

Stmt InterleavePositions::visit(const Block *op) {
    std::vector<Stmt> stores;
    for (Stmt rest = op; rest.defined();) {
        const auto *const block = rest.as<Block>();
        stores.push_back(block ? block->first : rest);
        rest = block ? block->rest : Stmt();
        const auto *const store = stores.back().as<Store>();
        if (!store || store->name != sum_) return IRMutator::visit(op);
    }
    const auto vectors = static_cast<std::size_t>(vectors_);
    if (stores.size() % vectors != 0) return op;

    const std::size_t positions = stores.size() / vectors, half = (positions + 1) / 2;
    std::vector<Stmt> all;
    for (std::size_t i = 0; i < positions; i++) {
        const std::size_t position = i / 2 + i % 2 * half;
        const auto begin = stores.begin() + static_cast<std::ptrdiff_t>(position * vectors);
        all.insert(all.end(), begin, begin + vectors_);
    }
    return Block::make(all);
}

} // namespace convtranspose
