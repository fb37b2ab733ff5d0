// Instructions that begin with a VEX prefix of three bytes, as those of AMX and AVX-VNNI do (Intel's manual, volume 2, 2.3).
#ifndef CONVTRANSPOSE_TESTS_ISA_VEX_H_
#define CONVTRANSPOSE_TESTS_ISA_VEX_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <ucontext.h>

namespace convtranspose::test {

// An instruction of the opcode map 0F38, with W0.
struct VexInstruction {
    int opcode, prefix; // 0, 1: 66, 2: F3, 3: F2
    int reg, rm, vvvv;  // the numbers of registers
    bool is_256_bits;
    bool has_memory;
    std::uint64_t address = 0, stride = 0; // of the memory operand: base and displacement; index times scale
    std::size_t length = 0;
};

template<typename T>
T load(const std::uint8_t *from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

// Returns false if the code is another instruction. The registers are the general ones that addresses are made of.
bool decode(const std::uint8_t *code, const greg_t *registers, VexInstruction *instruction);

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_ISA_VEX_H_
