#include "isa/avx_vnni_emulator.h"

#include <cstdint>
#include <cstring>

#include <cpuid.h>

namespace convtranspose::test {

namespace {

constexpr int kLanes = 8, kBytes = 4 * kLanes; // of ymm

// The vector registers as the kernel of Linux saves them for a signal: the layout of XSAVE, in which the lower halves of ymm are
// where FXSAVE has xmm, and the upper halves are a part that the CPU says the place of.
class VectorRegisters {
  public:
    explicit VectorRegisters(ucontext_t *context)
        : area_(reinterpret_cast<std::uint8_t *>(context->uc_mcontext.fpregs)) {}

    void read(int n, std::uint8_t *bytes) const {
        std::memcpy(bytes, lower(n), kBytes / 2);
        std::memset(bytes + kBytes / 2, 0, kBytes / 2);
        if (saved_parts() & kUpperHalves) std::memcpy(bytes + kBytes / 2, upper(n), kBytes / 2);
    }

    void write(int n, const std::uint8_t *bytes) {
        std::memcpy(lower(n), bytes, kBytes / 2);
        if (!(saved_parts() & kUpperHalves))
            std::memset(upper(0), 0, std::size_t{16} * kBytes / 2); // they were all zero
        std::memcpy(upper(n), bytes + kBytes / 2, kBytes / 2);
        const std::uint64_t parts = saved_parts() | kUpperHalves | kLowerHalves;
        std::memcpy(area_ + kHeader, &parts, sizeof parts);
    }

  private:
    static constexpr std::size_t kFirstXmm = 160, kHeader = 512;
    static constexpr std::uint64_t kLowerHalves = 2, kUpperHalves = 4;

    static std::size_t place_of_upper_halves() {
        unsigned int size = 0, place = 0, c = 0, d = 0;
        __get_cpuid_count(13, 2, &size, &place, &c, &d);
        return place;
    }

    std::uint64_t saved_parts() const { return load<std::uint64_t>(area_ + kHeader); }
    std::uint8_t *lower(int n) const { return area_ + kFirstXmm + kBytes / 2 * n; }
    std::uint8_t *upper(int n) const {
        static const std::size_t place = place_of_upper_halves();
        return area_ + place + kBytes / 2 * n;
    }

    std::uint8_t *area_;
};

} // namespace

bool execute_avx_vnni(const VexInstruction &i, ucontext_t *context) {
    constexpr int kDpbusd = 0x50;
    if (i.opcode != kDpbusd || i.prefix != 1) return false;
    const int lanes = i.is_256_bits ? kLanes : kLanes / 2;
    VectorRegisters registers(context);
    std::uint8_t sums[kBytes], x[kBytes], w[kBytes];
    registers.read(i.reg, sums);
    registers.read(i.vvvv, x);
    if (i.has_memory) {
        std::memcpy(w, reinterpret_cast<const std::uint8_t *>(i.address + i.stride), std::size_t{4} * lanes);
    } else {
        registers.read(i.rm, w);
    }
    for (int lane = 0; lane < lanes; lane++) {
        auto sum = load<std::uint32_t>(sums + 4 * lane);
        for (int k = 4 * lane; k < 4 * lane + 4; k++) {
            sum += static_cast<std::uint32_t>(x[k] * static_cast<std::int8_t>(w[k]));
        }
        std::memcpy(sums + 4 * lane, &sum, sizeof sum);
    }
    std::memset(sums + 4 * lanes, 0, static_cast<std::size_t>(kBytes - 4 * lanes));
    registers.write(i.reg, sums);
    return true;
}

} // namespace convtranspose::test
