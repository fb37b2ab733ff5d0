// The mode of a thread's floating-point unit says how it rounds, and whether it treats subnormal numbers as zero.
#pragma once

#include <cstdint>

#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#elif defined(_M_ARM64)
#include <intrin.h>
#endif

namespace convtranspose {

// A mode holds the bits of the control register that change results. The sticky exception flags and the masks of traps stay the
// thread's own.
class FloatMode {
  public:
    static FloatMode of_this_thread() { return FloatMode(read() & (kRounding | kFlushing)); }
    // Returns the mode that rounds to nearest, ties to even; all of these registers encode that as zero.
    FloatMode to_nearest() const { return FloatMode(bits_ & ~kRounding); }

    // Gives this thread the mode for the lifetime of the object, then restores the old one.
    class Scope {
      public:
        explicit Scope(const FloatMode &mode) : before_(of_this_thread().bits_), changes_(before_ != mode.bits_) {
            if (changes_) set(mode.bits_);
        }
        ~Scope() {
            if (changes_) set(before_);
        }
        Scope(const Scope &) = delete;
        Scope &operator=(const Scope &) = delete;

      private:
        const std::uint64_t before_;
        const bool changes_;
    };

  private:
    explicit FloatMode(std::uint64_t bits) : bits_(bits) {}
    static void set(std::uint64_t bits) { write((read() & ~(kRounding | kFlushing)) | bits); }

#if defined(__x86_64__) || defined(_M_X64) // MXCSR
    static constexpr std::uint64_t kRounding = 3 << 13, kFlushing = 1 << 15 | 1 << 6;
    static std::uint64_t read() { return _mm_getcsr(); }
    static void write(std::uint64_t bits) { _mm_setcsr(static_cast<unsigned int>(bits)); }
#elif defined(_M_ARM64)    // FPCR
    static constexpr std::uint64_t kRounding = 3 << 22, kFlushing = 1 << 24 | 1 << 19;
    static constexpr int kFpcr = 0x5a20;
    static std::uint64_t read() { return static_cast<std::uint64_t>(_ReadStatusReg(kFpcr)); }
    static void write(std::uint64_t bits) { _WriteStatusReg(kFpcr, static_cast<std::int64_t>(bits)); }
#elif defined(__aarch64__) // FPCR
    static constexpr std::uint64_t kRounding = 3 << 22, kFlushing = 1 << 24 | 1 << 19;
    static std::uint64_t read() {
        std::uint64_t bits = 0;
        __asm__ volatile("mrs %0, fpcr" : "=r"(bits));
        return bits;
    }
    static void write(std::uint64_t bits) { __asm__ volatile("msr fpcr, %0" : : "r"(bits) : "memory"); }
#elif defined(__arm__)     // FPSCR; NEON always rounds to nearest and flushes
    static constexpr std::uint64_t kRounding = 3 << 22, kFlushing = 1 << 24;
    static std::uint64_t read() {
        std::uint32_t bits = 0;
        __asm__ volatile("vmrs %0, fpscr" : "=r"(bits));
        return bits;
    }
    static void write(std::uint64_t bits) {
        __asm__ volatile("vmsr fpscr, %0" : : "r"(static_cast<std::uint32_t>(bits)) : "memory");
    }
#else                      // WebAssembly has only one mode
    static constexpr std::uint64_t kRounding = 0, kFlushing = 0;
    static std::uint64_t read() { return 0; }
    static void write(std::uint64_t) {}
#endif

    std::uint64_t bits_;
};

} // namespace convtranspose
