// This machine's CPU: its instruction sets, caches and name.
#ifndef CONVTRANSPOSE_RUNTIME_CPU_CPU_H_
#define CONVTRANSPOSE_RUNTIME_CPU_CPU_H_

#include <cstdint>

#include "kernel_contract/kernel_table.h"

namespace convtranspose {

constexpr std::int64_t kCacheLine = 64; // bytes

const char *isa_name(Isa isa);
bool isa_supported(Isa isa); // by this CPU

bool is_intel();
bool multiplies_in_halves();             // vectors of 512 bits: AMD's Zen 4
std::int64_t second_level_cache_bytes(); // 0 where they are not known
const char *cpu_name();                  // as the CPU or the system calls it

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_CPU_CPU_H_
