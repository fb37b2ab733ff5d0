// What a step of a loop reads of a buffer, through one pointer.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_ONE_POINTER_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_ONE_POINTER_H_

#include <optional>
#include <string>

#include <Halide.h>

namespace convtranspose {

// A step whose loads of a buffer are at constant distances from one another. `pointer` names a pointer to the first of them,
// which the step has to be given (unrelated() in address.h): of addresses that LLVM relates to each other its
// LoopStrengthReduce keeps several in registers, and what those push out is read from the stack in each step.
struct OnePointer {
    Halide::Internal::Stmt step;
    std::string pointer;
    Halide::Expr first; // what it points to: an index, in elements
    int bytes = 0;      // of an element
};

// Nothing if the step reads nothing of the buffer, or some of it at another distance.
std::optional<OnePointer> through_one_pointer(const std::string &buffer, const Halide::Internal::Stmt &step);

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_ONE_POINTER_H_
