#include "selection/candidates.h"

#include <algorithm>
#include <limits>

#include "base/shape.h"
#include "kernels/kernel_tables.h"

namespace convtranspose {

Candidate candidate(const Variant &variant, const SpatialProblem &problem, const CostProfile &profile) {
    Candidate c;
    c.variant = &variant;
    c.unsupported = unsupported_reason(variant, problem);
    if (!c.unsupported.text) {
        const bool in_place = reads_x_in_place(variant, problem, profile);
        const bool leaves = leaves_x(variant, problem, kNoAxis) || !has_whole_tiles(variant, problem);
        c.copies_x = !in_place || (variant.family != Family::kReference && leaves);
        c.packs_edge_strips = c.copies_x && in_place && forces_in_place(variant, problem, profile) &&
                              !leaves_x(variant, problem, problem.strip_axis());
        c.copying = c.copies_x ? cost_of_copy(variant, problem, profile, c.packs_edge_strips) : 0;
        c.rounding = rounds_y(variant, problem.y_dtype) ? cost_of_rounding(problem, profile) : 0;
        const double besides = c.copying + c.rounding;
        c.cost = cost(variant, problem, profile, nullptr) + besides;
        const std::int64_t columns = problem.plan[0].q_extent(), rest = columns % variant.tile_q;
        NarrowerTiles tiles;
        if (rest != 0) tiles = narrower_tiles(variant);
        if (const Variant *const narrower = tiles.holding(rest)) {
            const double with = cost(variant, problem, profile, narrower) + besides;
            c.narrower_ends = with < c.cost;
            c.cost = std::min(c.cost, with);
        }
        if (c.copies_x && in_place && packs_row_edges(variant, problem, profile)) {
            c.in_place = columns_in_place(variant, problem, c.narrower_ends ? tiles : NarrowerTiles());
            const double spared =
                c.copying * static_cast<double>(c.in_place.end - c.in_place.begin) / static_cast<double>(columns);
            c.cost -= spared;
            c.copying -= spared;
        }
        if (c.packs_edge_strips && prefers_in_place(variant, problem, profile)) {
            const double not_copied =
                problem.oc() <= std::int64_t{4} * variant.tile_oc ? profile.not_copied : profile.not_copied_by_more;
            c.cost -= not_copied * static_cast<double>(volume(problem.geometry.x_shape));
        }
    }
    return c;
}

std::string why_chosen(bool is_named, bool is_recorded, const std::string &note, const std::string &otherwise) {
    if (is_recorded) return note;
    const std::string why = is_named ? "asked for by name" : otherwise;
    return note.empty() ? why : concat(why, " (", note, ")");
}

std::array<double, kCostParts + 2> parts_of_cost(const Candidate &candidate, const SpatialProblem &problem,
                                                 const CostProfile &profile) {
    const Variant &v = *candidate.variant;
    NarrowerTiles tiles;
    if (candidate.narrower_ends) tiles = narrower_tiles(v);
    const Variant *const narrower = tiles.holding(problem.plan[0].q_extent() % v.tile_q);
    std::array<double, kCostParts + 2> parts = {};
    double before = 0;
    for (std::size_t i = 0; i < kCostParts; i++) {
        const double all = cost(v, problem, profile, narrower, static_cast<CostPart>(i));
        parts[i] = all - before;
        before = all;
    }
    parts[kCostParts] = candidate.cost - before - candidate.rounding;
    parts[kCostParts + 1] = candidate.rounding;
    return parts;
}

std::vector<Candidate> candidates(const SpatialProblem &problem, Isa isa, const CostProfile &profile) {
    std::vector<Candidate> list;
    for_each_kernel_table([&](const KernelTable &table) {
        for (std::size_t i = 0; i < table.variant_count; i++) {
            const Variant &v = table.variants[i];
            if (belongs_to(v, isa)) list.push_back(candidate(v, problem, profile));
        }
    });
    return list;
}

double least_cost(const Geometry &geometry, Isa isa, const CostProfile &profile, const WeightFacts &facts) {
    SpatialProblem problem = spatial_problem(geometry, geometry.y_dtype, true);
    problem.fits_int8 = facts.fits_int8;
    problem.fits_int32 = facts.fits_int32;
    const std::vector<Candidate> list = candidates(problem, isa, profile);
    const Candidate *const best = cheapest(list, [](const Candidate &) { return true; });
    return best ? best->cost : std::numeric_limits<double>::infinity();
}

} // namespace convtranspose
