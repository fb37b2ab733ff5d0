#include "isa/amx_emulator.h"

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <ucontext.h>

#include "runtime/cpu/cpu.h"
#include "runtime/kernels/variant.h"

// The linker puts the wrapper in the place of isa_supported() (tests/CMakeLists.txt), so that the library takes the CPU for one
// with tiles.
extern "C" {
bool __real__ZN13convtranspose13isa_supportedENS_3IsaE(convtranspose::Isa isa); // NOLINT
bool __wrap__ZN13convtranspose13isa_supportedENS_3IsaE(convtranspose::Isa isa); // NOLINT
}

namespace convtranspose::test {

namespace {

constexpr int kTiles = 8, kMostRows = 16, kMostBytes = 64; // palette 1

// Numbers as in the manual (Intel, volume 2): the configuration in memory has the bytes of a row at 16, the rows at 48.
struct Tile {
    int rows = 0, bytes = 0; // of a row
    std::uint8_t data[kMostRows][kMostBytes] = {};
};

struct Tiles {
    Tile tile[kTiles];
    bool configured = false;
};

thread_local Tiles tiles;
bool emulated = false;

// Registers by their number in an instruction.
constexpr int kRegisters[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

// One instruction, of a VEX prefix of three bytes.
struct Instruction {
    int opcode, prefix; // 0, 1: 66, 2: F3, 3: F2
    int reg, rm, vvvv;
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

// False where it is not an instruction of AMX.
bool decode(const std::uint8_t *code, const greg_t *registers, Instruction *i) {
    constexpr std::uint8_t kVex = 0xc4, kMap0f38 = 2;
    if (code[0] != kVex || (code[1] & 0x1f) != kMap0f38 || (code[2] & 0x84) != 0) return false; // W0, 128 bits
    const auto value = [&](int n) { return static_cast<std::uint64_t>(registers[kRegisters[n]]); };
    const int high_reg = code[1] & 0x80 ? 0 : 8, high_index = code[1] & 0x40 ? 0 : 8,
              high_base = code[1] & 0x20 ? 0 : 8;
    i->prefix = code[2] & 3;
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

bool configure(const std::uint8_t *from) {
    tiles = Tiles();
    if (from[0] != 1) return from[0] == 0;
    for (int t = 0; t < kTiles; t++) {
        tiles.tile[t].bytes = load<std::uint16_t>(from + 16 + 2 * t);
        tiles.tile[t].rows = from[48 + t];
        if (tiles.tile[t].bytes > kMostBytes || tiles.tile[t].rows > kMostRows) return false;
    }
    tiles.configured = true;
    return true;
}

// bf16; subnormal ones count as zero.
float widen(const std::uint8_t *from) {
    const std::uint32_t bits = std::uint32_t{load<std::uint16_t>(from)} << 16;
    float value = 0;
    if ((bits & 0x7f800000U) != 0) std::memcpy(&value, &bits, sizeof value);
    return value;
}

std::int32_t byte(std::uint8_t value, bool is_signed) { return is_signed ? static_cast<std::int8_t>(value) : value; }

constexpr int kColumns = kMostBytes / 4;

// Products of neighbouring elements have a sum each, from zero, and the two are added to the sum of the matrix.
__attribute__((target("avx2,fma"))) void add_products_of_bf16(const Tile &a, const Tile &b, Tile *sums) {
    float even_b[kMostRows][kColumns], odd_b[kMostRows][kColumns];
    for (int k = 0; k < b.rows; k++) {
        for (int n = 0; n < kColumns; n++) {
            even_b[k][n] = widen(b.data[k] + 4 * n);
            odd_b[k][n] = widen(b.data[k] + 4 * n + 2);
        }
    }
    for (int m = 0; m < sums->rows; m++) {
        float even[kColumns] = {}, odd[kColumns] = {}, sum[kColumns];
        for (int k = 0; k < b.rows; k++) {
            const float even_a = widen(a.data[m] + 4 * k), odd_a = widen(a.data[m] + 4 * k + 2);
            for (int n = 0; n < kColumns; n++) even[n] = __builtin_fmaf(even_a, even_b[k][n], even[n]);
            for (int n = 0; n < kColumns; n++) odd[n] = __builtin_fmaf(odd_a, odd_b[k][n], odd[n]);
        }
        std::memcpy(sum, sums->data[m], sizeof sum);
        for (int n = 0; n < kColumns; n++) sum[n] += even[n] + odd[n];
        std::memcpy(sums->data[m], sum, static_cast<std::size_t>(sums->bytes));
    }
}

__attribute__((target("avx2"))) void add_products_of_bytes(const Tile &a, bool a_signed, const Tile &b, bool b_signed,
                                                           Tile *sums) {
    std::int32_t wide_b[4 * kMostRows][kColumns];
    for (int k = 0; k < 4 * b.rows; k++) {
        for (int n = 0; n < kColumns; n++) wide_b[k][n] = byte(b.data[k / 4][4 * n + k % 4], b_signed);
    }
    for (int m = 0; m < sums->rows; m++) {
        std::uint32_t sum[kColumns];
        std::memcpy(sum, sums->data[m], sizeof sum);
        for (int k = 0; k < a.bytes; k++) {
            const std::int32_t wide_a = byte(a.data[m][k], a_signed);
            for (int n = 0; n < kColumns; n++) sum[n] += static_cast<std::uint32_t>(wide_a * wide_b[k][n]);
        }
        std::memcpy(sums->data[m], sum, static_cast<std::size_t>(sums->bytes));
    }
}

// sums += a * b. The columns of b are those of the sums, and its rows hold four bytes or two bf16 of each.
bool multiply(const Instruction &i) {
    if (i.reg >= kTiles || i.rm >= kTiles || i.vvvv >= kTiles) return false;
    Tile &sums = tiles.tile[i.reg];
    const Tile &a = tiles.tile[i.rm], &b = tiles.tile[i.vvvv];
    if (sums.rows != a.rows || sums.bytes != b.bytes || a.bytes != 4 * b.rows || sums.rows == 0) return false;
    constexpr int kBf16 = 0x5c;
    if (i.opcode == kBf16) {
        add_products_of_bf16(a, b, &sums);
    } else {
        // Prefixes: none u8 by u8, 66 u8 by s8, F3 s8 by u8, F2 s8 by s8.
        add_products_of_bytes(a, i.prefix == 2 || i.prefix == 3, b, i.prefix == 1 || i.prefix == 3, &sums);
    }
    return true;
}

// False where the CPU would refuse it too.
bool execute(const Instruction &i) {
    auto *const memory = reinterpret_cast<std::uint8_t *>(i.address);
    switch (i.opcode) {
    case 0x49:
        if (i.has_memory) return i.prefix == 0 && i.reg == 0 && configure(memory); // ldtilecfg
        if (i.prefix == 0 && i.reg == 0) {                                         // tilerelease
            tiles = Tiles();
            return true;
        }
        if (i.prefix != 3 || !tiles.configured || i.reg >= kTiles) return false; // tilezero
        std::memset(tiles.tile[i.reg].data, 0, sizeof tiles.tile[i.reg].data);
        return true;
    case 0x4b: { // tilestored, or tileloadd and tileloaddt1
        if (!i.has_memory || !tiles.configured || i.reg >= kTiles || i.prefix == 0) return false;
        Tile &tile = tiles.tile[i.reg];
        const auto bytes = static_cast<std::size_t>(tile.bytes);
        for (int row = 0; row < tile.rows; row++) {
            std::uint8_t *const at = memory + static_cast<std::uint64_t>(row) * i.stride;
            if (i.prefix == 2) {
                std::memcpy(at, tile.data[row], bytes);
            } else {
                std::memset(tile.data[row], 0, kMostBytes);
                std::memcpy(tile.data[row], at, bytes);
            }
        }
        return true;
    }
    case 0x5c: return i.prefix == 2 && tiles.configured && multiply(i);
    case 0x5e: return tiles.configured && multiply(i);
    default: return false;
    }
}

void on_illegal_instruction(int signal, siginfo_t *info, void *context) {
    greg_t *const registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
    Instruction instruction{};
    if (decode(static_cast<const std::uint8_t *>(info->si_addr), registers, &instruction) && execute(instruction)) {
        registers[REG_RIP] += static_cast<greg_t>(instruction.length);
        return;
    }
    std::signal(signal, SIG_DFL); // the same instruction again, and the process ends as it would without us
}

} // namespace

std::string emulate_amx() {
    if (__real__ZN13convtranspose13isa_supportedENS_3IsaE(Isa::kAmx)) return "";
    __builtin_cpu_init();
    if (!__real__ZN13convtranspose13isa_supportedENS_3IsaE(Isa::kAvx512Vnni) ||
        __builtin_cpu_supports("avx512bf16") == 0) {
        return "this CPU has neither AMX nor the AVX-512 that kernels for AMX need beside their tiles";
    }
    struct sigaction action = {};
    action.sa_sigaction = on_illegal_instruction;
    action.sa_flags = SA_SIGINFO;
    if (sigaction(SIGILL, &action, nullptr) != 0) return "no handler of SIGILL can be set";
    emulated = true;
    return "";
}

} // namespace convtranspose::test

bool __wrap__ZN13convtranspose13isa_supportedENS_3IsaE(convtranspose::Isa isa) { // NOLINT
    return (isa == convtranspose::Isa::kAmx && convtranspose::test::emulated) ||
           __real__ZN13convtranspose13isa_supportedENS_3IsaE(isa);
}
