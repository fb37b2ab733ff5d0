// The kinds of kernels that there are, in the words that generators, schedules and the runtime share.
#ifndef CONVTRANSPOSE_KERNEL_CONTRACT_KERNEL_TYPES_H_
#define CONVTRANSPOSE_KERNEL_CONTRACT_KERNEL_TYPES_H_

#include <cstddef>

namespace convtranspose {

enum class Isa {
    kX86_64,
    kAvx2,
    kAvxVnni,
    kAvx512,
    kAvx512Vnni,
    kAmx,
    kNeon,
    kNeonFp16,
    kNeonDotprod,
    kNeon32,
    kWasmSimd128,
};

struct IsaFacts {
    const char *name;
    Isa value;
    Isa adds_to; // the ISA whose kernels it takes where it has none of its own; if it adds to none, itself
    int vector_bytes, vector_registers;
};

// All ISAs; kernels/table.py has the same names.
inline constexpr IsaFacts kIsas[] = {
    {"amx", Isa::kAmx, Isa::kAvx512Vnni, 64, 32}, // best first
    {"avx512_vnni", Isa::kAvx512Vnni, Isa::kAvx512, 64, 32},
    {"avx512", Isa::kAvx512, Isa::kAvx512, 64, 32},
    {"avx_vnni", Isa::kAvxVnni, Isa::kAvx2, 32, 16},
    {"avx2", Isa::kAvx2, Isa::kAvx2, 32, 16},
    {"x86_64", Isa::kX86_64, Isa::kX86_64, 16, 16},
    {"neon_dotprod", Isa::kNeonDotprod, Isa::kNeon, 16, 32},
    {"neon_fp16", Isa::kNeonFp16, Isa::kNeon, 16, 32},
    {"neon", Isa::kNeon, Isa::kNeon, 16, 32},
    {"neon32", Isa::kNeon32, Isa::kNeon32, 16, 16},
    {"wasm_simd128", Isa::kWasmSimd128, Isa::kWasmSimd128, 16, 16},
};

// Returns the row of such a table that has the value. One must have it.
template<typename Row, std::size_t count>
constexpr const Row &row_of(const Row (&rows)[count], decltype(Row::value) value) {
    std::size_t i = 0;
    while (rows[i].value != value) i++;
    return rows[i];
}

constexpr const IsaFacts &facts_of(Isa isa) { return row_of(kIsas, isa); }
constexpr const char *isa_name(Isa isa) { return facts_of(isa).name; }

// An enumerator, and its name in the table of kernels, parameters of generators and tuning records.
template<typename E>
struct Named {
    const char *name;
    E value;
};

// The families of schedules (schedules/schedule.h).
enum class Family { kReference, kOcVectorized, kAmx, kOwVectorized, kSmallOc, kDepthwise };

inline constexpr Named<Family> kFamilies[] = {
    {"oc_vectorized", Family::kOcVectorized}, {"amx", Family::kAmx},
    {"ow_vectorized", Family::kOwVectorized}, {"small_oc", Family::kSmallOc},
    {"depthwise", Family::kDepthwise},        {"reference", Family::kReference},
};

constexpr const char *family_name(Family family) { return row_of(kFamilies, family).name; }

// The dimension along which the caller's y (and, if depthwise, x) is dense.
enum class OutputOrder {
    kChannels, // oc; g if depthwise
    kPlanar,   // ow
};

inline constexpr Named<OutputOrder> kOutputOrders[] = {{"channels", OutputOrder::kChannels},
                                                       {"planar", OutputOrder::kPlanar}};

// The operands of a product.
enum class Arithmetic {
    kFloat, // the type of the sums
    kHalf,  // f16, and so are the sums: twice as many in a vector of a CPU that computes with them, and far less exact
    kBf16,  // both bf16, summed in f32: tdpbf16ps multiplies two neighbouring input channels at a time
    kInt8, // 8-bit x (byte_x_is_signed()), s8 w, four neighbouring input channels at a time, as vpdpbusd (u8 x) and sdot (s8 x)
    // multiply. x has its zero point in it; the share of a sum that is due to it depends on the taps alone, and is taken
    // off the bias.
    kInt16, // both s16, less their zero points: vpmaddwd multiplies two neighbouring input channels at a time, smlal one
    // Light weights: f32 x and sums; w becomes f32 in a register. An s8 is then multiplied by the factor of its output channel.
    kF16Weights,
    kBf16Weights,
    kS8Weights,
};

inline constexpr Named<Arithmetic> kArithmetics[] = {{"float", Arithmetic::kFloat},
                                                     {"half", Arithmetic::kHalf},
                                                     {"bf16", Arithmetic::kBf16},
                                                     {"int8", Arithmetic::kInt8},
                                                     {"int16", Arithmetic::kInt16},
                                                     {"f16_weights", Arithmetic::kF16Weights},
                                                     {"bf16_weights", Arithmetic::kBf16Weights},
                                                     {"s8_weights", Arithmetic::kS8Weights}};

constexpr bool has_light_weights(Arithmetic a) {
    return a == Arithmetic::kF16Weights || a == Arithmetic::kBf16Weights || a == Arithmetic::kS8Weights;
}

// True if sums are of floats.
constexpr bool is_float(Arithmetic a) {
    return a == Arithmetic::kFloat || a == Arithmetic::kHalf || a == Arithmetic::kBf16 || has_light_weights(a);
}

// The dimensions of x and of its copy that are dense. Channels are in two dimensions, of which the inner one, c0, has all channels
// of a group, or a block of neighbours, or one.
enum class CopyOrder {
    kPlanar,          // w of x; of the copy w, and c0 within it
    kChannels,        // c0 of both
    kTransposed,      // channels of x; of the copy c0, then w
    kTiles,           // c1 of x, w of the copy, with kCopyTile or more of either; one channel in c0
    kToChannels,      // w of x, c0 of the copy (blocks of channels only)
    kTilesToChannels, // the same, with kCopyTile or more of either
};

inline constexpr int kCopyTile = 8;

// The activations that follow a convolution.
enum class PostKernel { kClip, kLeakyRelu, kSigmoid, kTanh };

// A GPU kernel is called with tiles of a phase, with single outputs, or with what others have computed.
enum class DeviceCall { kByPhase, kByOutput, kCombine };

} // namespace convtranspose

#endif // CONVTRANSPOSE_KERNEL_CONTRACT_KERNEL_TYPES_H_
