#include "variant.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(_M_ARM64)
#include <windows.h>
#endif

namespace convtranspose {

const char *isa_name(Isa isa) {
    switch (isa) {
    case Isa::kX86_64: return "x86_64";
    case Isa::kAvx2: return "avx2";
    case Isa::kAvx512: return "avx512";
    case Isa::kAvx512Vnni: return "avx512_vnni";
    case Isa::kNeon: return "neon";
    case Isa::kNeonFp16: return "neon_fp16";
    case Isa::kNeonDotprod: return "neon_dotprod";
    }
    return "unknown";
}

namespace {

#if defined(__aarch64__) || defined(_M_ARM64)
// The kernel's word for it: user programs cannot read the registers that say so.
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
#elif defined(_M_ARM64)
    // PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE, which older headers lack. Windows has no word for f16: every CPU with dot products
    // that it runs on has that too.
    constexpr DWORD kDotProduct = 43;
    has.dotprod = has.fp16 = IsProcessorFeaturePresent(kDotProduct);
#endif
    return has;
}
#endif

} // namespace

// The features are those that cmake/variants.cmake compiles each ISA for.
bool isa_supported(Isa isa) {
#if defined(__aarch64__) || defined(_M_ARM64)
    const ArmFeatures has = arm_features();
    return isa == Isa::kNeon || (isa == Isa::kNeonFp16 && has.fp16) ||
           (isa == Isa::kNeonDotprod && has.fp16 && has.dotprod);
#elif defined(__x86_64__) && defined(__GNUC__)
    // __builtin_cpu_supports also asks whether the operating system saves the registers.
    __builtin_cpu_init();
    unsigned int a = 0, b = 0, c = 0, d = 0;
    const bool f16c =
        __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C); // not a name that every compiler's builtin knows
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && f16c;
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl");
    switch (isa) {
    case Isa::kX86_64: return true;
    case Isa::kAvx2: return avx2;
    case Isa::kAvx512: return avx512;
    case Isa::kAvx512Vnni:
        // Ice Lake, Zen 4 and later. Halide's name for it promises bf16 and more too; tests/kernels sees to it that no kernel
        // holds an instruction that is not asked for here.
        return avx512 && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512ifma") &&
               __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
               __builtin_cpu_supports("avx512bitalg");
    case Isa::kNeon:
    case Isa::kNeonFp16:
    case Isa::kNeonDotprod: return false;
    }
    return false;
#else
    return isa == Isa::kX86_64;
#endif
}

} // namespace convtranspose
