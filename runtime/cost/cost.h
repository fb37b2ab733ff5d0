// Estimates of how long kernels take, in cycles on one thread. Figures behind them: docs/measurements/2026-11-26-estimates.md.
#pragma once

#include <cstddef>

#include "cpu/cost_profile.h"
#include "kernels/variant.h"
#include "problem/geometry.h"
#include "problem/spatial_problem.h"

namespace convtranspose {

// The parts of an estimate. Each is what the variant takes besides the parts before it.
enum class CostPart {
    kMultiplyAdds, // as if nothing else took time
    kLoads,        // waiting for operands and for earlier sums
    kTiles,        // beginning tiles and looking up taps
    kStores,
};
constexpr std::size_t kCostParts = 4;

// Returns the cycles that the variant takes, without copying x: those of a simple machine with two vector multiply-adds and two
// loads a cycle and a latency of four, corrected by the terms of the profile. narrower: the variant that computes the ends of
// rows; null: the same one. last: the parts behind it are left out.
double cost(const Variant &variant, const SpatialProblem &problem, const CostProfile &profile, const Variant *narrower,
            CostPart last = CostPart::kStores);

// Returns the cycles to copy all of x. ends_alone: only strips at the ends are copied and the rest is read in place, so no cycles
// are added for an x that is far away.
double cost_of_copy(const Variant &variant, const SpatialProblem &problem, const CostProfile &profile, bool ends_alone);

// Returns the cycles to round a y of f32 to 16 bits.
double cost_of_rounding(const SpatialProblem &problem, const CostProfile &profile);

// Returns the cycles to store a single element of y among those of other channels. If no other element of its cache line is
// stored with it, the line comes from further away; lines of positions kFarPositions apart also share few sets of the cache.
double cycles_to_scatter(const Geometry &geometry, const CostProfile &profile);

// Returns how many of the allowed threads take the least time together for a layer of so many cycles on one.
int threads_worth(double cycles, int allowed, const CostProfile &profile);

// Returns whether the channels of a group, channels last, take less than a cache line of y, so that groups share lines.
bool shares_cache_lines(const Geometry &geometry);

} // namespace convtranspose
