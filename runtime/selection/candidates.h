// This says which kernels support a problem, how they read x, and which is the cheapest.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "cost/cost.h"
#include "cpu/cost_profile.h"
#include "kernels/kernel_tables.h"
#include "kernels/packed_weights.h"
#include "kernels/tuning.h"
#include "kernels/variant.h"
#include "problem/quantization.h"
#include "problem/spatial_problem.h"

namespace convtranspose {

// The reason why a variant cannot compute a problem. It is made for every variant with every plan and seldom read, so its text is
// put together only by to_string().
struct UnsupportedReason {
    // In it, each # stands for a number, in order, @ for the positions of an axis (rows) and % for its name (h). Null: it can.
    const char *text = nullptr;
    std::int64_t first = 0, second = 0;
    bool is_overflow = false; // true: only because kernels count with 32 bits
    std::size_t axis = 0;     // w, h or d
};
std::string to_string(const UnsupportedReason &unsupported);

// Returns the reason that something has more elements than a kernel can count. text has a # for their number and one for the limit.
UnsupportedReason too_large(const char *text, std::int64_t elements);

// These rules are those of all kernels, for CPUs and for devices; the second is for those that are not for any problem. packing:
// the variant's own.
UnsupportedReason unsupported_arithmetic(Arithmetic arithmetic, const SpatialProblem &problem);
UnsupportedReason unsupported_values(Arithmetic arithmetic, const SpatialProblem &problem);
UnsupportedReason unsupported_sizes(const PackedLayout &packing, const SpatialProblem &problem);

constexpr const char *kOtherType = "computes another type of y";

// Returns why the variant cannot compute the problem; text is null if it can.
UnsupportedReason unsupported_reason(const Variant &variant, const SpatialProblem &problem);

// A range of positions q along w: begin .. end - 1.
struct Columns {
    std::int64_t begin = 0, end = 0;
    bool any() const { return begin < end; }
};

// Returns whether neighbouring positions that are `bytes` apart share one or two sets of a first-level cache. A tile of them does
// not stay there from one input channel to the next.
inline bool in_few_sets(std::int64_t bytes) { return bytes % 2048 == 0; }

// How a kernel reads x.
enum class ReadsX {
    kInPlace,
    kCopy,             // all of x is copied, with zeros around it
    kCopyOfEdgeStrips, // strips that taps leave are copied, the others are read in place
    kCopyOfRowEnds,    // the ends of rows are copied, the columns between them are read in place
};

// Returns the columns whose tiles read x in place if taps leave x along w only. They are whole tiles, and enough columns follow
// that the last tile of a row, which overlaps the one before it, does not reach back to them.
Columns columns_in_place(const Variant &v, const SpatialProblem &p, const NarrowerTiles &narrower);

// A candidate is a variant of an ISA, with its estimated cost for a problem or the reason why it cannot compute it.
struct Candidate {
    const Variant *variant = nullptr;
    UnsupportedReason unsupported;
    double cost = 0, copying = 0,
           rounding = 0; // estimated cycles on one thread; those among them that copy x and round y
    ReadsX reads_x = ReadsX::kInPlace;
    Columns in_place;           // of kCopyOfRowEnds: x is read in place for these
    bool narrower_ends = false; // rows that are not whole tiles end in a narrower one (narrower_tiles())

    const char *name() const { return variant->name; }
};

// Estimates the variant for the problem by the profile, or says why it cannot compute it.
Candidate candidate(const Variant &variant, const SpatialProblem &problem, const CostProfile &profile);

// Returns the parts of a candidate's cost, by CostPart, then what the copy of x adds, which is negative if x is read in place with
// a gain, and what rounding y adds. They add up to the cost.
std::array<double, kCostParts + 2> parts_of_cost(const Candidate &candidate, const SpatialProblem &problem,
                                                 const CostProfile &profile);

// Returns the candidates for the problem, one for each variant of the ISA, in the order of the tables. only: the name of the
// variants that are wanted; null: all.
std::vector<Candidate> candidates(const SpatialProblem &problem, Isa isa, const CostProfile &profile,
                                  const char *only = nullptr);

// Returns the cost of the cheapest candidate for a layer of up to three axes. facts: of quantized weights.
double least_cost(const Geometry &geometry, Isa isa, const CostProfile &profile, const WeightFacts &facts = {});

// The rest is for kernels of CPUs and of devices alike. A Choice is a Candidate, or a DeviceChoice (gpu/device_choice.h).

// A candidate that can compute the problem, and its estimate: cycles on one thread, or a device's.
struct AbleCandidate {
    const char *name;
    double cycles;
};

// Returns why a choice was made, with a note on why records could not be followed; it may be empty.
inline std::string with_note(const std::string &why, const std::string &note) {
    return note.empty() ? why : concat(why, " (", note, ")");
}
constexpr const char *kByName = "asked for by name";

// Returns the cheapest of the choices that are wanted and can compute the problem, or null.
template<typename Choice, typename Wanted>
const Choice *cheapest(const std::vector<Choice> &choices, const Wanted &wanted) {
    const Choice *best = nullptr;
    for (const Choice &c : choices) {
        if (!c.unsupported.text && wanted(c) && (!best || c.cost < best->cost)) best = &c;
    }
    return best;
}
template<typename Choice>
const Choice *cheapest(const std::vector<Choice> &choices) { // of all that can
    return cheapest(choices, [](const Choice &) { return true; });
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
