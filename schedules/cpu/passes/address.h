// Addresses in lowered code, and prefetches of what they point to.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_PASSES_ADDRESS_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_PASSES_ADDRESS_H_

#include <string>

#include <Halide.h>

namespace convtranspose {

// A pointer to byte `byte` of an input or output, a sum of products of 32-bit integers.
Halide::Expr address_of(const std::string &buffer, const Halide::Expr &byte);

// The same pointer, hidden from LLVM: it neither derives another pointer from this one nor this one from another.
Halide::Expr hidden_from_llvm(const Halide::Expr &pointer);

enum class CacheLevel { kFirst, kSecond };

// Fetches the cache line that a pointer points into, to a level and those behind it.
Halide::Internal::Stmt prefetch(const Halide::Expr &pointer, CacheLevel level);

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_PASSES_ADDRESS_H_
