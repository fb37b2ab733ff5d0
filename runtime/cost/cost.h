// Estimates of how long kernels take.
#ifndef CONVTRANSPOSE_RUNTIME_COST_COST_H_
#define CONVTRANSPOSE_RUNTIME_COST_COST_H_

#include "kernels/variant.h"
#include "problem/geometry.h"
#include "problem/spatial_problem.h"

namespace convtranspose {

// Cycles on one thread by a simple machine: two vector multiply-adds and two loads a cycle, a latency of four; and by what cost_profile.h
// knows of this one. Without those of copying x. narrower: what computes the ends of rows; null: the variant.
double cost(const Variant &variant, const SpatialProblem &problem, const Variant *narrower);

// Of copying all of x. ends_alone: the rest is read where it is.
double cost_of_copy(const Variant &variant, const SpatialProblem &problem, bool ends_alone);

// Cycles to store a single element of y among those of other channels. Where its cache line holds none that is stored with it,
// that line comes from further away: measured, 6 cycles with positions 1536 bytes apart, 44 with 4096, which meet in few sets.
double cycles_to_scatter(const Geometry &geometry);

// Whether groups of channels of y, channels last, are of less than a cache line.
bool shares_cache_lines(const Geometry &geometry);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_COST_COST_H_
