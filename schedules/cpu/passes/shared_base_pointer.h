// The loads of a step of a loop from one buffer, all through one pointer.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_PASSES_SHARED_BASE_POINTER_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_PASSES_SHARED_BASE_POINTER_H_

#include <optional>
#include <string>

#include <Halide.h>

namespace convtranspose {

// A step whose loads of a buffer are at constant distances from one another. The caller defines `pointer` around it, as an address
// that is hidden from LLVM (address.h): of addresses that it relates to each other LLVM's LoopStrengthReduce keeps several in
// registers, and the values that those push out are read from the stack in each step.
struct SharedBasePointer {
    Halide::Internal::Stmt step;
    std::string pointer; // the name of the pointer to the first load
    Halide::Expr first;  // where that load is: an index, in elements
    int bytes = 0;       // of an element
};

// Nothing if the step reads nothing of the buffer, or some of it at a distance that is not constant.
std::optional<SharedBasePointer> through_shared_pointer(const std::string &buffer, const Halide::Internal::Stmt &step);

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_PASSES_SHARED_BASE_POINTER_H_
