#include "tools/fma_peak.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "tools/clock.h"

#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
#define CONVTRANSPOSE_PEAK_X86 1
#include <immintrin.h>
#elif defined(__GNUC__) && defined(__aarch64__)
#define CONVTRANSPOSE_PEAK_ARM 1
#include <arm_neon.h>
#endif

namespace convtranspose::tools {

namespace {

// The factors are read at run time, so that nothing folds. a < 1 keeps the chains from running off to infinity, b from sinking to
// subnormals.
volatile double volatile_a = 0.9999999, volatile_b = 1e-3;

struct Kernel {
    void (*run)(std::int64_t steps);
    double flops_per_step;
};

#if defined(__clang__)
#define CONVTRANSPOSE_PEAK_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define CONVTRANSPOSE_PEAK_UNROLL _Pragma("GCC unroll 32")
#endif

// CHAINS independent accumulators, each acc = acc * a + b over and over: enough to cover the latency of the units (4
// cycles on two ports, 8 for a separate multiply and add), and few enough that all of them and a and b stay in
// registers. The loop over them must be unrolled, or they live in memory: GCC does not by itself for 24.
// PRODUCTS is how many products of integers each element of acc adds up in a step.
#define CONVTRANSPOSE_PEAK_KERNEL(NAME, ATTRIBUTES, VECTOR, ELEMENT, CHAINS, BROADCAST, MULTIPLY_ADD)                  \
    CONVTRANSPOSE_PEAK_PRODUCTS(NAME, ATTRIBUTES, VECTOR, ELEMENT, CHAINS, BROADCAST, MULTIPLY_ADD, 1)

#define CONVTRANSPOSE_PEAK_PRODUCTS(NAME, ATTRIBUTES, VECTOR, ELEMENT, CHAINS, BROADCAST, MULTIPLY_ADD, PRODUCTS)      \
    ATTRIBUTES void NAME(std::int64_t steps) {                                                                         \
        const VECTOR a = BROADCAST(ELEMENT(volatile_a)), b = BROADCAST(ELEMENT(volatile_b));                           \
        VECTOR acc[(CHAINS)];                                                                                          \
        for (int i = 0; i < (CHAINS); i++) acc[i] = BROADCAST(ELEMENT(i));                                             \
        for (std::int64_t s = 0; s < steps; s++) {                                                                     \
            CONVTRANSPOSE_PEAK_UNROLL for (int i = 0; i < (CHAINS); i++) acc[i] = MULTIPLY_ADD(acc[i], a, b);          \
        }                                                                                                              \
        VECTOR results[(CHAINS)];                                                                                      \
        for (int i = 0; i < (CHAINS); i++) results[i] = acc[i];                                                        \
        asm volatile("" : : "r"(results) : "memory"); /* all of them are wanted */                                     \
    }                                                                                                                  \
    constexpr Kernel NAME##_kernel{NAME, 2.0 * (PRODUCTS) * (CHAINS) * sizeof(VECTOR) / sizeof(ELEMENT)};

#if defined(CONVTRANSPOSE_PEAK_X86)

#define CONVTRANSPOSE_SSE_MULTIPLY_ADD_F32(ACC, A, B) _mm_add_ps(_mm_mul_ps(ACC, A), B)
#define CONVTRANSPOSE_SSE_MULTIPLY_ADD_F64(ACC, A, B) _mm_add_pd(_mm_mul_pd(ACC, A), B)

CONVTRANSPOSE_PEAK_KERNEL(avx512_f32, __attribute__((target("avx512f"))), __m512, float, 24, _mm512_set1_ps,
                          _mm512_fmadd_ps)
CONVTRANSPOSE_PEAK_KERNEL(avx512_f64, __attribute__((target("avx512f"))), __m512d, double, 24, _mm512_set1_pd,
                          _mm512_fmadd_pd)
CONVTRANSPOSE_PEAK_KERNEL(avx2_f32, __attribute__((target("avx2,fma"))), __m256, float, 12, _mm256_set1_ps,
                          _mm256_fmadd_ps)
CONVTRANSPOSE_PEAK_KERNEL(avx2_f64, __attribute__((target("avx2,fma"))), __m256d, double, 12, _mm256_set1_pd,
                          _mm256_fmadd_pd)
CONVTRANSPOSE_PEAK_KERNEL(sse_f32, , __m128, float, 12, _mm_set1_ps, CONVTRANSPOSE_SSE_MULTIPLY_ADD_F32)
CONVTRANSPOSE_PEAK_KERNEL(sse_f64, , __m128d, double, 12, _mm_set1_pd, CONVTRANSPOSE_SSE_MULTIPLY_ADD_F64)

// The instruction is volatile because the product is the same each time.
__attribute__((target("avx512f,avx512bw"), always_inline)) inline __m512i avx512_madd(__m512i acc, __m512i a,
                                                                                      __m512i b) {
    __m512i product;
    asm volatile("vpmaddwd %2, %1, %0" : "=v"(product) : "v"(a), "v"(b));
    return _mm512_add_epi32(acc, product);
}
__attribute__((target("avx2"), always_inline)) inline __m256i avx2_madd(__m256i acc, __m256i a, __m256i b) {
    __m256i product;
    asm volatile("vpmaddwd %2, %1, %0" : "=x"(product) : "x"(a), "x"(b));
    return _mm256_add_epi32(acc, product);
}
__attribute__((always_inline)) inline __m128i sse_madd(__m128i acc, __m128i a, __m128i b) {
    asm volatile("pmaddwd %1, %0" : "+x"(a) : "x"(b));
    return _mm_add_epi32(acc, a);
}

// GCC 12 copies the accumulator around the intrinsic.
__attribute__((target("avx512f,avx512vnni"), always_inline)) inline __m512i dpbusd(__m512i acc, __m512i a, __m512i b) {
    asm("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b));
    return acc;
}

__attribute__((target("avx2"), always_inline)) inline __m256i avx_dpbusd(__m256i acc, __m256i a, __m256i b) {
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(acc) : "x"(a), "x"(b));
    return acc;
}

CONVTRANSPOSE_PEAK_PRODUCTS(avx_vnni_s8, __attribute__((target("avx2"))), __m256i, std::int32_t, 12, _mm256_set1_epi32,
                            avx_dpbusd, 4)
CONVTRANSPOSE_PEAK_PRODUCTS(vnni_s8, __attribute__((target("avx512f,avx512vnni"))), __m512i, std::int32_t, 24,
                            _mm512_set1_epi32, dpbusd, 4)
CONVTRANSPOSE_PEAK_PRODUCTS(avx512_s16, __attribute__((target("avx512f,avx512bw"))), __m512i, std::int32_t, 16,
                            _mm512_set1_epi32, avx512_madd, 2)
CONVTRANSPOSE_PEAK_PRODUCTS(avx2_s16, __attribute__((target("avx2"))), __m256i, std::int32_t, 8, _mm256_set1_epi32,
                            avx2_madd, 2)
CONVTRANSPOSE_PEAK_PRODUCTS(sse_s16, , __m128i, std::int32_t, 8, _mm_set1_epi32, sse_madd, 2)

#if defined(__linux__) && defined(__x86_64__)
// Six accumulators of 16 rows and columns take the same operands over and over; a step is 64 bytes of each row.
#define CONVTRANSPOSE_AMX_PEAK_KERNEL(NAME, MULTIPLY_ADD, PRODUCTS)                                                    \
    void NAME(std::int64_t steps) {                                                                                    \
        struct alignas(64) {                                                                                           \
            std::uint8_t palette = 1, start = 0, reserved[14] = {};                                                    \
            std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};                                            \
            std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};                                                  \
        } tiles;                                                                                                       \
        asm volatile("ldtilecfg %0\n\ttilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3\n\t"    \
                     "tilezero %%tmm4\n\ttilezero %%tmm5\n\ttilezero %%tmm6\n\ttilezero %%tmm7"                        \
                     :                                                                                                 \
                     : "m"(tiles));                                                                                    \
        for (std::int64_t s = 0; s < steps; s++) {                                                                     \
            asm volatile(MULTIPLY_ADD " %tmm7, %tmm6, %tmm0\n\t" MULTIPLY_ADD " %tmm7, %tmm6, %tmm1\n\t" MULTIPLY_ADD  \
                                      " %tmm7, %tmm6, %tmm2\n\t" MULTIPLY_ADD " %tmm7, %tmm6, %tmm3\n\t" MULTIPLY_ADD  \
                                      " %tmm7, %tmm6, %tmm4\n\t" MULTIPLY_ADD " %tmm7, %tmm6, %tmm5");                 \
        }                                                                                                              \
        asm volatile("tilerelease");                                                                                   \
    }                                                                                                                  \
    constexpr Kernel NAME##_kernel{NAME, 2.0 * 6 * 16 * 16 * (PRODUCTS)};
CONVTRANSPOSE_AMX_PEAK_KERNEL(amx_bf16, "tdpbf16ps", 32)
CONVTRANSPOSE_AMX_PEAK_KERNEL(amx_s8, "tdpbusd", 64)
#define CONVTRANSPOSE_PEAK_AMX 1
#endif

Kernel integer_kernel_of(const std::string &isa) {
#if defined(CONVTRANSPOSE_PEAK_AMX)
    if (isa == "amx") return amx_s8_kernel;
#endif
    if (isa == "avx_vnni") return avx_vnni_s8_kernel;
    if (isa.find("vnni") != std::string::npos) return vnni_s8_kernel;
    if (isa.find("avx512") != std::string::npos) return avx512_s16_kernel;
    return isa.find("avx2") != std::string::npos ? avx2_s16_kernel : sse_s16_kernel;
}

Kernel kernel_of(const std::string &isa, bool f64) {
#if defined(CONVTRANSPOSE_PEAK_AMX)
    if (isa == "amx") return amx_bf16_kernel; // which has nothing else for floats
#endif
    if (isa.find("avx512") != std::string::npos) return f64 ? avx512_f64_kernel : avx512_f32_kernel;
    if (isa.find("avx") != std::string::npos) return f64 ? avx2_f64_kernel : avx2_f32_kernel;
    return f64 ? sse_f64_kernel : sse_f32_kernel;
}

#elif defined(CONVTRANSPOSE_PEAK_ARM)

// fmla overwrites its addend, so the chain runs through that: acc + a * b.
#define CONVTRANSPOSE_NEON_MULTIPLY_ADD_F32(ACC, A, B) vfmaq_f32(ACC, A, B)
#define CONVTRANSPOSE_NEON_MULTIPLY_ADD_F64(ACC, A, B) vfmaq_f64(ACC, A, B)
#define CONVTRANSPOSE_NEON_MLAL(ACC, A, B) vmlal_high_s16(ACC, vreinterpretq_s16_s32(A), vreinterpretq_s16_s32(B))

CONVTRANSPOSE_PEAK_KERNEL(neon_f32, , float32x4_t, float, 24, vdupq_n_f32, CONVTRANSPOSE_NEON_MULTIPLY_ADD_F32)
CONVTRANSPOSE_PEAK_KERNEL(neon_f64, , float64x2_t, double, 24, vdupq_n_f64, CONVTRANSPOSE_NEON_MULTIPLY_ADD_F64)

CONVTRANSPOSE_PEAK_PRODUCTS(neon_s16, , int32x4_t, std::int32_t, 24, vdupq_n_s32, CONVTRANSPOSE_NEON_MLAL, 1)

Kernel integer_kernel_of(const std::string &) { return neon_s16_kernel; }

Kernel kernel_of(const std::string &, bool f64) { return f64 ? neon_f64_kernel : neon_f32_kernel; }

#else

template<typename T>
void portable(std::int64_t steps) {
    const T a = T(volatile_a), b = T(volatile_b);
    T acc[16];
    for (int i = 0; i < 16; i++) acc[i] = T(i);
    for (std::int64_t s = 0; s < steps; s++) {
        for (int i = 0; i < 16; i++) acc[i] = acc[i] * a + b;
    }
    T sum = 0;
    for (int i = 0; i < 16; i++) sum += acc[i];
    volatile T wanted = sum;
    static_cast<void>(wanted);
}

Kernel kernel_of(const std::string &, bool f64) { return {f64 ? portable<double> : portable<float>, 2.0 * 16}; }
Kernel integer_kernel_of(const std::string &) { return {portable<std::int32_t>, 2.0 * 16}; }

#endif

} // namespace

double fma_peak_gflops(const std::string &isa, convt_dtype dtype, int threads) {
    // Rounds are shorter than a time slice of the scheduler, so that some of them go undisturbed.
    constexpr int kRounds = 64;
    constexpr double kRoundSeconds = 1e-3;
    threads = std::min(threads, std::max(static_cast<int>(std::thread::hardware_concurrency()), 1));
    const bool integers = dtype == CONVT_U8 || dtype == CONVT_S8;
    const Kernel kernel = integers ? integer_kernel_of(isa) : kernel_of(isa, dtype == CONVT_F64);

    std::int64_t steps = 1000;
    for (;; steps *= 2) { // also wakes the clock and the vector units
        const double begin = now();
        kernel.run(steps);
        if (now() - begin >= kRoundSeconds) break;
    }

    // All threads work at once, round by round, and each one's best round counts: on a machine that is busy otherwise
    // there may be no round in which all of them are undisturbed, and a peak must not come out too low.
    std::vector<double> shortest(static_cast<std::size_t>(threads), std::numeric_limits<double>::infinity());
    std::atomic<int> arrived{0};
    std::atomic<bool> abandoned{false}; // not all threads could be started
    const auto work = [&](double &mine) {
        for (int round = 0; round < kRounds; round++) {
            arrived++;
            while (arrived < threads * (round + 1)) {
                if (abandoned) return;
                std::this_thread::yield();
            }
            const double begin = now();
            kernel.run(steps);
            mine = std::min(mine, now() - begin);
        }
    };
    std::vector<std::thread> others;
    try {
        for (std::size_t i = 1; i < shortest.size(); i++) others.emplace_back(work, std::ref(shortest[i]));
    } catch (...) {
        abandoned = true;
        for (std::thread &other : others) other.join();
        throw;
    }
    work(shortest[0]);
    for (std::thread &other : others) other.join();

    double flops_per_second = 0;
    for (const double seconds : shortest) flops_per_second += double(steps) * kernel.flops_per_step / seconds;
    return flops_per_second * 1e-9;
}

} // namespace convtranspose::tools
