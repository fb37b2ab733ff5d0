#include "candidates.h"

#include <algorithm>
#include <limits>

#include "cost.h"
#include "kernel_tables.h"
#include "machine.h"
#include "shape.h"

namespace convtranspose {

Candidate candidate(const Variant &variant, const CoreProblem &problem) {
    Candidate c;
    c.variant = &variant;
    c.refusal = refusal(variant, problem);
    if (!c.refusal.text) {
        const bool in_place = reads_x_in_place(variant, problem);
        const bool leaves = leaves_x(variant, problem, kNoAxis) || !has_whole_tiles(variant, problem);
        c.copies_x = !in_place || (variant.family != Family::kReference && leaves);
        c.copies_ends = c.copies_x && in_place && dares_in_place(variant, problem) &&
                        !leaves_x(variant, problem, problem.strip_axis());
        c.copying = c.copies_x ? cost_of_copy(variant, problem, c.copies_ends) : 0;
        c.cost = cost(variant, problem, nullptr) + c.copying;
        const std::int64_t columns = problem.plan[0].q_extent(), rest = columns % variant.tile_q;
        NarrowerTiles tiles;
        if (rest != 0) tiles = narrower_tiles(variant);
        if (const Variant *const narrower = tiles.holding(rest)) {
            const double with = cost(variant, problem, narrower) + c.copying;
            c.narrower_ends = with < c.cost;
            c.cost = std::min(c.cost, with);
        }
        if (c.copies_x && in_place && copies_row_ends(variant, problem)) {
            c.in_place = columns_in_place(variant, problem, c.narrower_ends ? tiles : NarrowerTiles());
            const double spared =
                c.copying * static_cast<double>(c.in_place.end - c.in_place.begin) / static_cast<double>(columns);
            c.cost -= spared;
            c.copying -= spared;
        }
        if (c.copies_ends && pays_in_place(variant, problem)) {
            const double not_copied =
                problem.oc() <= std::int64_t{4} * variant.tile_oc ? machine().not_copied : machine().not_copied_by_more;
            c.cost -= not_copied * static_cast<double>(volume(problem.geometry.x_shape));
        }
    }
    return c;
}

std::vector<Candidate> candidates(const CoreProblem &problem, Isa isa) {
    std::vector<Candidate> list;
    for_each_kernel_table([&](const KernelTable &table) {
        for (std::size_t i = 0; i < table.variant_count; i++) {
            const Variant &v = table.variants[i];
            if (!belongs_to(v, isa)) continue;
            list.push_back(candidate(v, problem));
        }
    });
    return list;
}

double least_cost(const Geometry &geometry, Isa isa) {
    double least = std::numeric_limits<double>::infinity();
    for (const Candidate &c : candidates(core_problem(geometry, geometry.y_dtype, true), isa)) {
        if (!c.refusal.text) least = std::min(least, c.cost);
    }
    return least;
}

} // namespace convtranspose
