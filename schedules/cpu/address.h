// Addresses as lowering passes make them, and fetches from them.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_ADDRESS_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_ADDRESS_H_

#include <string>

#include <Halide.h>

namespace convtranspose {

// A pointer to byte `byte` of an input or output, a sum of products of 32-bit integers.
Halide::Expr address_of(const std::string &buffer, const Halide::Expr &byte);

// A pointer, of which LLVM does not know where it comes from: it neither makes another from it nor it from others.
Halide::Expr unrelated(const Halide::Expr &pointer);

enum class CacheLevel { kFirst, kSecond };

// Fetches the cache line that a pointer points into, to a level and those behind it.
Halide::Internal::Stmt prefetch(const Halide::Expr &pointer, CacheLevel level);

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_ADDRESS_H_
