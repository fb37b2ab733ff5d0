#include "isa/vex.h"

namespace convtranspose::test {

namespace {

// General registers by their number in an instruction.
constexpr int kRegisters[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

} // namespace

bool decode(const std::uint8_t *code, const greg_t *registers, VexInstruction *i) {
    constexpr std::uint8_t kVex = 0xc4, kMap0f38 = 2;
    if (code[0] != kVex || (code[1] & 0x1f) != kMap0f38 || (code[2] & 0x80) != 0) return false;
    const auto value = [&](int n) { return static_cast<std::uint64_t>(registers[kRegisters[n]]); };
    const int high_reg = code[1] & 0x80 ? 0 : 8, high_index = code[1] & 0x40 ? 0 : 8,
              high_base = code[1] & 0x20 ? 0 : 8;
    i->prefix = code[2] & 3;
    i->is_256_bits = (code[2] & 4) != 0;
    i->vvvv = ~(code[2] >> 3) & 15;
    i->opcode = code[3];
    const int mod = code[4] >> 6, rm = code[4] & 7;
    i->reg = (code[4] >> 3 & 7) + high_reg;
    i->rm = rm + high_base;
    i->has_memory = mod != 3;
    i->length = 5;
    if (!i->has_memory) return true;
    bool no_base = mod == 0 && rm == 5; // an address from that of the next instruction
    const bool from_next = no_base;
    int base = i->rm;
    if (rm == 4) {
        const std::uint8_t sib = code[i->length++];
        const int index = (sib >> 3 & 7) + high_index;
        base = (sib & 7) + high_base;
        no_base = mod == 0 && (sib & 7) == 5;
        if (index != 4) i->stride = value(index) << (sib >> 6);
    }
    if (!no_base) i->address = value(base);
    if (mod == 1) {
        i->address += static_cast<std::uint64_t>(std::int64_t{load<std::int8_t>(code + i->length)});
        i->length += 1;
    } else if (mod == 2 || no_base) {
        i->address += static_cast<std::uint64_t>(std::int64_t{load<std::int32_t>(code + i->length)});
        i->length += 4;
    }
    if (from_next) i->address += reinterpret_cast<std::uint64_t>(code) + i->length;
    return true;
}

} // namespace convtranspose::test
