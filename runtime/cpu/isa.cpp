// Asks the CPU which ISAs it runs, and what else sets its core apart (cpu.h).
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>

#include "base/error.h"
#include "base/once.h"
#include "cpu/cpu.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(_M_X64)
#include <intrin.h>
#elif (defined(__aarch64__) || defined(__arm__)) && defined(__linux__)
#include <asm/hwcap.h>
#include <fstream>
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#elif (defined(__aarch64__) || defined(_M_ARM64)) && defined(_WIN32)
#include <windows.h>
#endif

namespace convtranspose {

namespace {

#if defined(__aarch64__) || defined(_M_ARM64)
// The operating system reports these, as user programs cannot read the registers that hold them.
struct ArmFeatures {
    bool fp16 = false, dotprod = false;
};

ArmFeatures arm_features() {
    ArmFeatures has;
#if defined(__linux__)
    const unsigned long bits = getauxval(AT_HWCAP);
    has = {(bits & HWCAP_ASIMDHP) != 0, (bits & HWCAP_ASIMDDP) != 0};
#elif defined(__APPLE__)
    const auto feature = [](const char *name) {
        int value = 0;
        std::size_t size = sizeof value;
        return sysctlbyname(name, &value, &size, nullptr, 0) == 0 && value;
    };
    has = {feature("hw.optional.arm.FEAT_FP16"), feature("hw.optional.arm.FEAT_DotProd")};
#elif defined(_WIN32)
    // 43 is PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE, which older headers lack. Windows does not report f16, but every CPU with dot
    // products that it runs on has f16 too.
    constexpr DWORD kDotProduct = 43;
    has.dotprod = has.fp16 = IsProcessorFeaturePresent(kDotProduct);
#endif
    return has;
}

bool supported(Isa isa) {
    const ArmFeatures has = arm_features();
    return isa == Isa::kNeon || (isa == Isa::kNeonFp16 && has.fp16) ||
           (isa == Isa::kNeonDotprod && has.fp16 && has.dotprod);
}

#elif defined(__x86_64__) || defined(_M_X64)
struct Registers {
    unsigned int a = 0, b = 0, c = 0, d = 0;
};

// Returns the registers of a CPUID leaf, all zero if the CPU does not know the leaf. __builtin_cpu_supports would be shorter,
// but some compilers lack it or its library.
Registers cpuid(unsigned int leaf, unsigned int subleaf = 0) {
    Registers r;
#if defined(__GNUC__)
    __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);
#else
    int most[4], found[4];
    __cpuid(most, static_cast<int>(leaf & 0x80000000U)); // the highest leaf of this range
    if (leaf <= static_cast<unsigned int>(most[0])) {
        __cpuidex(found, static_cast<int>(leaf), static_cast<int>(subleaf));
        r.a = static_cast<unsigned int>(found[0]);
        r.b = static_cast<unsigned int>(found[1]);
        r.c = static_cast<unsigned int>(found[2]);
        r.d = static_cast<unsigned int>(found[3]);
    }
#endif
    return r;
}

// Returns the family in what leaf 1 of CPUID has in its first register. The extension counts for family 15 alone.
unsigned int family_of(unsigned int id) {
    const unsigned int base = id >> 8 & 15;
    return base == 15 ? base + (id >> 20 & 255) : base;
}

// Returns which registers the operating system saves: XCR0, which may be read if the system uses XSAVE.
std::uint64_t saved_registers() {
#if defined(__GNUC__)
    std::uint32_t low = 0, high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return std::uint64_t{high} << 32 | low;
#else
    return _xgetbv(0);
#endif
}

bool has_all(std::uint64_t flags, std::initializer_list<int> bits) {
    for (const int bit : bits) {
        if (!(flags >> bit & 1)) return false;
    }
    return true;
}

// Asks Linux to save the tiles of AMX, 8 KiB more for each thread, which it does only for processes that request it
// (Documentation/arch/x86/xstate.rst). If it agrees, all threads of the process may use tiles.
bool tiles_granted() {
#if defined(__linux__) && defined(__GNUC__)
    constexpr long kRequestPermission = 0x1023, kTileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
    return false;
#endif
}

// The bits are numbered as in Intel's manual (volume 2, CPUID).
bool supported(Isa isa) {
    const Registers basic = cpuid(1), extended = cpuid(7);
    const std::uint64_t saved = has_all(basic.c, {27 /* osxsave */}) ? saved_registers() : 0;
    const bool avx2 = has_all(saved, {1 /* xmm */, 2 /* ymm */}) &&
                      has_all(basic.c, {12 /* fma */, 28 /* avx */, 29 /* f16c */}) &&
                      has_all(extended.b, {5 /* avx2 */});
#if defined(__APPLE__)
    const bool zmm = true; // macOS saves zmm once a thread uses them, and reports them only then
#else
    const bool zmm = has_all(saved, {5 /* masks */, 6 /* zmm 0..15 */, 7 /* zmm 16..31 */});
#endif
    const bool avx512 =
        avx2 && zmm && has_all(extended.b, {16 /* f */, 17 /* dq */, 28 /* cd */, 30 /* bw */, 31 /* vl */});
    // Ice Lake, Zen 4 and later have these. Halide's target of that name implies bf16 and more too; tests/kernels checks that
    // no kernel contains an instruction that is not tested for here.
    const bool vnni = avx512 && has_all(extended.b, {21 /* ifma */}) &&
                      has_all(extended.c, {1 /* vbmi */, 6 /* vbmi2 */, 11 /* vnni */, 12 /* bitalg */});
    switch (isa) {
    case Isa::kX86_64: return true;
    case Isa::kAvx2: return avx2;
    case Isa::kAvxVnni:
        // Leaf 7 says in a how many more leaves it has.
        return avx2 && extended.a >= 1 && has_all(cpuid(7, 1).a, {4 /* avx vnni */});
    case Isa::kAvx512: return avx512;
    case Isa::kAvx512Vnni: return vnni;
    case Isa::kAmx:
        return vnni && has_all(extended.d, {22 /* amx bf16 */, 24 /* amx tile */, 25 /* amx int8 */}) &&
               has_all(saved, {17 /* tile configuration */, 18 /* tiles */}) && tiles_granted();
    case Isa::kNeon:
    case Isa::kNeonFp16:
    case Isa::kNeonDotprod:
    case Isa::kNeon32:
    case Isa::kWasmSimd128: return false;
    }
    return false;
}

#elif defined(__arm__)
bool supported(Isa isa) {
#if defined(__linux__)
    return isa == Isa::kNeon32 && (getauxval(AT_HWCAP) & HWCAP_NEON);
#else
    return false;
#endif
}

#elif defined(__wasm__)
// An engine without 128-bit vectors rejects the whole program, so this program has them.
bool supported(Isa isa) { return isa == Isa::kWasmSimd128; }
#endif

// This holds the CPU's answers. They are asked for once, because in a virtual machine each CPUID traps to the hypervisor, which
// takes longer than the rest of planning a small layer.
struct Cpu {
    std::uint64_t isas = 0;
    CpuFacts facts;
};

Cpu ask() {
    Cpu c;
    // These are the features that kernels/table.py compiles each ISA for.
    for (const IsaFacts &isa : kIsas) c.isas |= std::uint64_t{supported(isa.value)} << static_cast<int>(isa.value);
#if defined(__x86_64__) || defined(_M_X64)
    constexpr unsigned int kGenu = 0x756e6547, kAuth = 0x68747541; // the first letters of GenuineIntel and AuthenticAMD
    constexpr unsigned int kFamilyOfZen4 = 25;   // also of Zen 3, which has no 512-bit vectors; Zen 5 has 26
    constexpr unsigned int kCaches = 0x80000006; // a leaf that both vendors have
    const unsigned int vendor = cpuid(0).b;
    if (vendor == kGenu) c.facts.vendor = "intel";
    if (vendor == kAuth && family_of(cpuid(1).a) == kFamilyOfZen4) c.facts.multiplies_in_halves = "yes";
    c.facts.second_level_cache = 1024.0 * (cpuid(kCaches).c >> 16);
    for (const Isa isa : {Isa::kAvx2, Isa::kAvx512})
        if (c.isas >> static_cast<int>(isa) & 1) c.facts.widest_isa = isa_name(isa);
#endif
    return c;
}

const Cpu &cpu() {
    static Once<Cpu> asked;
    return asked.get(ask);
}

// This is unused on platforms where the CPU cannot be asked, such as WebAssembly.
[[maybe_unused]] std::string trimmed(const std::string &text) {
    const std::size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
    return first == std::string::npos ? "unknown" : text.substr(first, last - first + 1);
}

std::string read_cpu_name() {
#if defined(__x86_64__) && defined(__GNUC__)
    char brand[49] = {};
    for (unsigned int i = 0; i < 3; i++) {
        unsigned int words[4] = {};
        if (!__get_cpuid(0x80000002 + i, &words[0], &words[1], &words[2], &words[3])) return "unknown";
        std::memcpy(brand + 16 * i, words, 16);
    }
    // Vendors give one name, such as "AMD EPYC", to several generations, so family and model are added.
    const unsigned int id = cpuid(1).a, model = (id >> 4 & 15) | (id >> 16 & 15) << 4;
    return concat(trimmed(brand), " (family ", family_of(id), " model ", model, ")");
#elif defined(__APPLE__)
    char brand[128] = {};
    std::size_t size = sizeof brand - 1;
    return sysctlbyname("machdep.cpu.brand_string", brand, &size, nullptr, 0) == 0 ? trimmed(brand) : "unknown";
#elif defined(__linux__)
    // Linux lists the implementer and the part of each core. It does not say which cores are the fastest, so all distinct
    // ones are named.
    std::ifstream file("/proc/cpuinfo");
    std::string name, line, implementer;
    while (std::getline(file, line)) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        const std::string value = trimmed(line.substr(colon + 1));
        if (line.rfind("CPU implementer", 0) == 0) implementer = value;
        if (line.rfind("CPU part", 0) == 0) {
            const std::string direct = implementer + ":" + value;
            if (name.find(direct) == std::string::npos) name += (name.empty() ? "" : " ") + direct;
        }
        if (line.rfind("model name", 0) == 0) return value; // the host of an emulator
    }
    return name.empty() ? "unknown" : name;
#else
    return "unknown";
#endif
}

} // namespace

bool isa_supported(Isa isa) { return cpu().isas >> static_cast<int>(isa) & 1; }
const CpuFacts &cpu_facts() { return cpu().facts; }

const char *cpu_name() {
    static Once<std::string> name;
    return name.get(read_cpu_name).c_str();
}

} // namespace convtranspose
