#include "isa/amx_emulator.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

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
bool multiply(const VexInstruction &i) {
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

} // namespace

bool execute_amx(const VexInstruction &i) {
    if (i.is_256_bits) return false;
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

} // namespace convtranspose::test
