// Candidates: every variant of an ISA, with its estimated cost for a problem or the reason why it cannot compute it.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "cost/cost.h"
#include "cpu/cost_profile.h"
#include "kernels/tuning.h"
#include "kernels/variant.h"
#include "problem/quantization.h"
#include "problem/spatial_problem.h"
#include "selection/input_access.h"
#include "selection/kernel_support.h"

namespace convtranspose {

struct Candidate {
    const Variant *variant = nullptr;
    UnsupportedReason unsupported;
    double cost = 0, copying = 0,
           rounding = 0; // estimated cycles on one thread; those among them that copy x and round y
    bool copies_x = false;
    bool packs_edge_strips = false; // only strips of x that taps leave are copied
    Columns in_place;               // if any, x is read in place for these and copied for the others
    bool narrower_ends = false;     // rows that are not whole tiles end in a narrower one (narrower_tiles())

    const char *name() const { return variant->name; }
};

// Estimates the variant for the problem by the profile, or says why it cannot compute it.
Candidate candidate(const Variant &variant, const SpatialProblem &problem, const CostProfile &profile);

// Returns the parts of a candidate's cost, by CostPart, then what the copy of x adds, which is negative if x is read in place with a
// gain, and what rounding y adds. They add up to the cost.
std::array<double, kCostParts + 2> parts_of_cost(const Candidate &candidate, const SpatialProblem &problem,
                                                 const CostProfile &profile);

// Returns the candidates for the problem, one for each variant of the ISA, in the order of the tables.
std::vector<Candidate> candidates(const SpatialProblem &problem, Isa isa, const CostProfile &profile);

// Returns the cost of the cheapest candidate for a layer of up to three axes. facts: of quantized weights.
double least_cost(const Geometry &geometry, Isa isa, const CostProfile &profile, const WeightFacts &facts = {});

// The rest is for kernels of CPUs and of devices alike. A Choice is a Candidate, or a DeviceChoice (gpu/device_choice.h).

// A candidate that can compute the problem, and its estimate: cycles on one thread, or a device's.
struct AbleCandidate {
    const char *name;
    double cycles;
};

// Returns why a choice was made: its name was asked for, a record that `note` quotes names it, or else `otherwise`, and then `note` says
// why records could not be followed.
std::string why_chosen(bool is_named, bool is_recorded, const std::string &note, const std::string &otherwise);

// Returns the cheapest of the choices that are wanted and can compute the problem, or null.
template<typename Choice, typename Wanted>
const Choice *cheapest(const std::vector<Choice> &choices, const Wanted &wanted) {
    const Choice *best = nullptr;
    for (const Choice &c : choices) {
        if (!c.unsupported.text && wanted(c) && (!best || c.cost < best->cost)) best = &c;
    }
    return best;
}

// Returns all choices that can compute the problem, the cheapest first. Names are those of the choices.
template<typename Choice>
std::vector<AbleCandidate> able_of(const std::vector<Choice> &choices) {
    std::vector<AbleCandidate> able;
    for (const Choice &c : choices) {
        if (!c.unsupported.text) able.push_back({c.name(), c.cost});
    }
    std::stable_sort(able.begin(), able.end(),
                     [](const AbleCandidate &a, const AbleCandidate &b) { return a.cycles < b.cycles; });
    return able;
}

// Returns the one of these choices that a tuning record names, or null if it is not among them or cannot compute the problem. *note
// quotes the record or says why it cannot be followed. target: an ISA or a kind of device.
template<typename Choice>
const Choice *recorded_choice(const std::vector<Choice> &choices, const TuningRecord *record, const char *target,
                              std::string *note) {
    if (!record) return nullptr;
    const auto found = std::find_if(choices.begin(), choices.end(),
                                    [&](const Choice &choice) { return record->variant == choice.name(); });
    if (found == choices.end()) {
        *note = concat("a tuning record names ", record->variant, ", which is not built for ", target);
    } else if (found->unsupported.text) {
        *note = concat("a tuning record names ", record->variant, ", which cannot: ", to_string(found->unsupported));
    } else {
        *note = record->reason;
        return &*found;
    }
    return nullptr;
}

} // namespace convtranspose
