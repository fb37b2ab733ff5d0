// The names that Halide 21 gives to what a lowered pipeline holds. Each rule is stated here once, for all passes.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_PASSES_LOWERED_NAMES_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_PASSES_LOWERED_NAMES_H_

#include <string>

#include <Halide.h>

namespace convtranspose {

// True if a loop runs over this variable of a schedule: loops are named FUNC.STAGE.VARIABLE, and a variable that a split made is
// the last of several.
bool runs_over(const std::string &loop, const std::string &variable);

// The variable that holds the stride of a dimension of an input or output.
std::string stride_name(const std::string &buffer, int dimension);

// The stride and the extent of a dimension, read from the buffer itself: Halide need not have kept them as variables.
Halide::Expr stride_of(const std::string &buffer, int dimension);
Halide::Expr extent_of(const std::string &buffer, int dimension);

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_PASSES_LOWERED_NAMES_H_
