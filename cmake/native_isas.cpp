// Prints the ISAs that CONVTRANSPOSE_ISAS=native stands for: the best one that this machine's CPU runs, and those whose kernels
// that one takes. On 64-bit ARM these are all that the CPU runs.
#include <cstdio>

#include "cpu/cpu.h"
#include "kernel_contract/kernel_table.h"

int main() {
    using convtranspose::Isa;
    const char *separator = "";
    Isa last = Isa::kNeon;
    for (const convtranspose::IsaFacts &isa : convtranspose::kIsas) { // best first
        if (!convtranspose::isa_supported(isa.value)) continue;
        const bool is_first = !*separator,
                   is_needed = convtranspose::kBaseIsa == Isa::kNeon || facts_of(last).adds_to == isa.value;
        if (!is_first && !is_needed) continue;
        std::printf("%s%s", separator, isa.name);
        separator = ";";
        last = isa.value;
    }
    return *separator ? 0 : 1;
}
