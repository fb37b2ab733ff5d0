#include "cpu/passes/prefetch_next_weights.h"

#include <algorithm>
#include <cstddef>

#include "cpu/passes/lowered_names.h"
#include "kernel_contract/fetching.h"

namespace convtranspose {

using namespace Halide;
using namespace Halide::Internal;

namespace {

Expr variable(const For *loop) { return Variable::make(Int(32), loop->name); }

} // namespace

PrefetchNextWeights::PrefetchNextWeights(const Expr &at, const std::vector<const For *> &loops,
                                         const std::string &output_tiles, int second_level_cache_bytes)
    : pass_(0) {
    const int far_bytes = least_far_weights(second_level_cache_bytes),
              most_of_tile = most_weights_of_tile(second_level_cache_bytes);
    const auto has_own = [&](std::size_t loop) { return expr_uses_var(at, loops[loop]->name); };
    // From the innermost loop outwards: those within a tile of weights, those over its positions, those over tiles of weights.
    std::size_t loop = loops.size();
    while (loop > 0 && has_own(loop - 1)) loop--;
    passes_ = 1;
    for (; loop > 0 && !has_own(loop - 1); loop--) {
        const For *const of_positions = loops[loop - 1];
        pass_ += (variable(of_positions) - of_positions->min) * passes_;
        passes_ *= max(of_positions->extent, 1); // there may be a rest of a row alone
        over_positions_.push_back(of_positions);
        first_of_passes_ = of_positions;
    }
    Expr carry = const_true(), tiles = 1; // the latter of the same output channels: phases
    for (; loop > 1 && has_own(loop - 1); loop--) {
        const For *const of_tiles = loops[loop - 1];
        const Expr i = variable(of_tiles), end = of_tiles->min + of_tiles->extent;
        if (runs_over(of_tiles->name, output_tiles)) {
            moved_.emplace_back(of_tiles->name,
                                select(carry, i + 1, i)); // past w's end after the last tile, which has no effect
            const Expr group = variable(loops[loop - 2]);
            const Expr group_bytes = simplify(substitute(loops[loop - 2]->name, group + 1, at) - at),
                       bytes = simplify(substitute(of_tiles->name, i + 1, at) - at);
            far_ = group_bytes >= far_bytes && tiles >= (bytes + most_of_tile - 1) / most_of_tile && passes_ > 1;
            return;
        }
        moved_.emplace_back(of_tiles->name, select(carry, select(i + 1 < end, i + 1, of_tiles->min), i));
        carry = carry && i + 1 >= end;
        tiles *= of_tiles->extent;
    }
}

PrefetchNextWeights::Lines PrefetchNextWeights::lines(const For *steps, const Expr &at) const {
    const Expr step = simplify(substitute(steps->name, variable(steps) + 1, at) - at);
    if (!step.as<IntImm>()) return {};
    const Expr share = (step + passes_ - 1) / passes_;
    Expr first = simplify(substitute(steps->name, steps->min, at)) + pass_ * (steps->extent * share);
    for (const auto &[name, value] : moved_) first = substitute(name, value, first);
    return {first, share};
}

Expr PrefetchNextWeights::pass(const std::vector<const For *> &around) const {
    Expr pass = pass_;
    for (const For *const loop : over_positions_) {
        const bool is_around =
            std::any_of(around.begin(), around.end(), [&](const For *f) { return f->name == loop->name; });
        if (!is_around) pass = substitute(loop->name, loop->min + loop->extent, pass);
    }
    return pass;
}

} // namespace convtranspose
