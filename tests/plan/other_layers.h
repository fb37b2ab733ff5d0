// Checks that tests of algorithms have in common, and those of reshaping.
#ifndef CONVTRANSPOSE_TESTS_PLAN_OTHER_LAYERS_H_
#define CONVTRANSPOSE_TESTS_PLAN_OTHER_LAYERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "reference/descriptor.h"
#include "reference/reference.h"

namespace convtranspose::test {

// For an algorithm by its name, with all of so many threads.
Options by_algorithm(const char *name, int threads = 1);

// With constant weights. Expects that there is one.
Plan plan_of(const Problem &problem, const Inputs &inputs, const Options &options = {});

// On each ISA that this CPU has, the same on one thread and on three, by the algorithm that the options name.
void expect_agreement_on_all_isas(const std::vector<std::string> &problems, const Options &options);

// Infinities and NaNs reach what the definition says, in x and in w. problems: lines.
void expect_infinities_reach_what_they_must(const std::vector<std::string> &problems, const Options &options = {});

// Plans that are reshaped to other extents of x agree: of its first spatial axis, or of the last.
enum class SpatialAxis { kFirst, kLast };
void expect_agreement_when_reshaped(const std::vector<std::string> &problems, SpatialAxis axis,
                                    const std::vector<std::int64_t> &extents, const Options &options = {});

// y as a crop of something larger, with a post-op and a workspace of the caller's, is what it is without: bit by bit, or, of an
// algorithm that sums a y with gaps in another order, within the tolerance.
enum class CropOrder { kSame, kOther };
void expect_agreement_of_crops(const std::vector<std::string> &problems, const Options &options = {},
                               CropOrder order = CropOrder::kSame, Values values = Values::uniform);

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_PLAN_OTHER_LAYERS_H_
