#include "selection/candidates.h"

#include <algorithm>
#include <limits>

#include "base/division.h"
#include "kernels/kernel_tables.h"

namespace convtranspose {

namespace {

// Returns the cycles that the candidate copies x for.
double cycles_to_copy_x(const Candidate &c, const SpatialProblem &problem, const CostProfile &profile) {
    if (c.reads_x == ReadsX::kInPlace) return 0;
    const double all = cost_of_copy(*c.variant, problem, profile, c.reads_x == ReadsX::kCopyOfEdgeStrips);
    const std::int64_t columns = problem.plan[0].q_extent();
    return all - all * real(c.in_place.end - c.in_place.begin) / real(columns);
}

} // namespace

Candidate candidate(const Variant &variant, const SpatialProblem &problem, const CostProfile &profile) {
    Candidate c;
    c.variant = &variant;
    c.unsupported = unsupported_reason(variant, problem);
    if (c.unsupported.text) return c;
    double computing = cost(variant, problem, profile, nullptr);
    const std::int64_t rest = problem.plan[0].q_extent() % variant.tile_q;
    NarrowerTiles tiles;
    if (rest != 0) tiles = narrower_tiles(variant);
    if (const Variant *const narrower = tiles.holding(rest)) {
        const double with = cost(variant, problem, profile, narrower);
        c.narrower_ends = with < computing;
        computing = std::min(computing, with);
    }
    c.reads_x = way_to_read(variant, problem, profile);
    if (c.reads_x == ReadsX::kCopyOfRowEnds) {
        c.in_place = columns_in_place(variant, problem, c.narrower_ends ? tiles : NarrowerTiles());
        if (!c.in_place.any()) c.reads_x = ReadsX::kCopy;
    }
    c.copying = cycles_to_copy_x(c, problem, profile);
    c.rounding = rounds_y(variant, problem.y_dtype) ? cost_of_rounding(problem, profile) : 0;
    const double saved = c.reads_x == ReadsX::kCopyOfEdgeStrips ? cycles_saved_in_place(variant, problem, profile) : 0;
    c.cost = computing + c.copying + c.rounding - saved;
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
    problem.facts = facts;
    const std::vector<Candidate> list = candidates(problem, isa, profile);
    const Candidate *const best = cheapest(list, [](const Candidate &) { return true; });
    return best ? best->cost : std::numeric_limits<double>::infinity();
}

} // namespace convtranspose
