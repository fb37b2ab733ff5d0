// These functions describe this machine's CPU: its instruction sets, caches and name.
#ifndef CONVTRANSPOSE_RUNTIME_CPU_CPU_H_
#define CONVTRANSPOSE_RUNTIME_CPU_CPU_H_

#include <cstdint>

#include "kernel_contract/kernel_table.h"

namespace convtranspose {

constexpr std::int64_t kCacheLine = 64; // bytes

const char *isa_name(Isa isa);
bool isa_supported(Isa isa); // true if this CPU has the instructions

bool is_intel();
bool multiplies_in_halves();             // true if it computes 512-bit vectors as two halves (AMD's Zen 4)
std::int64_t second_level_cache_bytes(); // 0: unknown
const char *cpu_name();                  // as the CPU or the operating system names itself

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_CPU_CPU_H_
