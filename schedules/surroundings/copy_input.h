// The schedules of the algorithm in generators/copy_input_generator.cpp, one for each order of a copy.
#ifndef CONVTRANSPOSE_SCHEDULES_SURROUNDINGS_COPY_INPUT_H_
#define CONVTRANSPOSE_SCHEDULES_SURROUNDINGS_COPY_INPUT_H_

#include <string>

#include <Halide.h>

#include "kernel_contract/kernel_types.h"

namespace convtranspose {

// The loops and Funcs that the algorithm names; its generator inherits them.
struct CopyInput {
    Halide::Var c0{"c0"}, w{"w"}, h{"h"}, d{"d"}, c1{"c1"}, g{"g"}, n{"n"};
    Halide::Func element{"element"};      // of x, as the operand that is stored
    std::string x_name;                   // of the input
    Halide::Expr fetches_x, fetches_copy; // whether their lines are fetched ahead
};

struct CopyShape {
    CopyOrder order;
    Halide::Type type; // sets how many lanes a vector has
    int block;         // extent of c0 where it is a block
    bool is_float;
    bool by_parts; // the last vector of a row is copied in part
};

void schedule_copy_input(const CopyInput &c, const Halide::Func &copy, const CopyShape &shape,
                         const Halide::Target &target, Halide::Pipeline pipeline);

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_SURROUNDINGS_COPY_INPUT_H_
