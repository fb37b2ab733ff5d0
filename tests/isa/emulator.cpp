#include "isa/emulator.h"

#include <csignal>
#include <cstdint>

#include <ucontext.h>

#include "isa/amx_emulator.h"
#include "isa/avx_vnni_emulator.h"
#include "isa/vex.h"
#include "runtime/cpu/cpu.h"
#include "runtime/kernels/variant.h"

// The linker puts the wrapper in the place of isa_supported() (tests/isa/CMakeLists.txt), so that the library takes the CPU for
// one that has what is emulated.
extern "C" {
bool __real__ZN13convtranspose13isa_supportedENS_3IsaE(convtranspose::Isa isa); // NOLINT
bool __wrap__ZN13convtranspose13isa_supportedENS_3IsaE(convtranspose::Isa isa); // NOLINT
}

namespace convtranspose::test {

namespace {

Isa emulated = Isa::kX86_64; // which needs no emulation

void on_illegal_instruction(int signal, siginfo_t *info, void *state) {
    auto *const context = static_cast<ucontext_t *>(state);
    greg_t *const registers = context->uc_mcontext.gregs;
    const auto execute = [&](const VexInstruction &instruction) {
        return emulated == Isa::kAmx ? execute_amx(instruction) : execute_avx_vnni(instruction, context);
    };
    // Those that follow are taken along, because the signal takes far longer than what it is there for.
    const auto *const first = static_cast<const std::uint8_t *>(info->si_addr), *code = first;
    for (VexInstruction next{}; decode(code, registers, &next) && execute(next); next = {}) {
        code += next.length;
    }
    registers[REG_RIP] += static_cast<greg_t>(code - first);
    if (code == first) std::signal(signal, SIG_DFL); // the process ends as it would without us
}

bool really_supported(Isa isa) { return __real__ZN13convtranspose13isa_supportedENS_3IsaE(isa); }

// Returns what the CPU lacks beside the instructions that are emulated.
std::string lacking(Isa isa) {
    __builtin_cpu_init();
    if (isa == Isa::kAvxVnni) {
        return really_supported(Isa::kAvx2) ? "" : "this CPU has neither AVX-VNNI nor AVX2, which its kernels need too";
    }
    if (really_supported(Isa::kAvx512Vnni) && __builtin_cpu_supports("avx512bf16") != 0) return "";
    return "this CPU has neither AMX nor the AVX-512 that kernels for AMX need beside their tiles";
}

} // namespace

std::string emulate(const std::string &name) {
    for (const Isa isa : {Isa::kAmx, Isa::kAvxVnni}) {
        if (name != isa_name(isa) || really_supported(isa)) continue;
        if (std::string why = lacking(isa); !why.empty()) return why;
        struct sigaction action = {};
        action.sa_sigaction = on_illegal_instruction;
        action.sa_flags = SA_SIGINFO;
        if (sigaction(SIGILL, &action, nullptr) != 0) return "no handler of SIGILL can be set";
        emulated = isa;
    }
    return "";
}

} // namespace convtranspose::test

bool __wrap__ZN13convtranspose13isa_supportedENS_3IsaE(convtranspose::Isa isa) { // NOLINT
    using convtranspose::test::emulated;
    return (isa == emulated && emulated != convtranspose::Isa::kX86_64) ||
           __real__ZN13convtranspose13isa_supportedENS_3IsaE(isa);
}
