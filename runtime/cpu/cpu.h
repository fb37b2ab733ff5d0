// These functions describe this machine's CPU: its instruction sets, caches and name.
#pragma once

#include "kernel_contract/kernel_table.h"

namespace convtranspose {

bool isa_supported(Isa isa); // true if this CPU has the instructions

const char *cpu_name(); // as the CPU or the operating system names itself

// These facts decide which cost profile is taken.
struct CpuFacts {
    const char *vendor = "other";            // or "intel"
    const char *widest_isa = "";             // "avx512", "avx2" or neither
    const char *multiplies_in_halves = "no"; // "yes": it computes 512-bit vectors as two halves (AMD's Zen 4)
    double second_level_cache = 0;           // bytes; 0: unknown
};
const CpuFacts &cpu_facts();

} // namespace convtranspose
