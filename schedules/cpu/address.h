// Addresses as lowering passes make them.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_ADDRESS_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_ADDRESS_H_

#include <string>

#include <Halide.h>

namespace convtranspose {

// A pointer to byte `byte` of an input or output, a sum of products of 32-bit integers.
Halide::Expr address_of(const std::string &buffer, const Halide::Expr &byte);

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_ADDRESS_H_
