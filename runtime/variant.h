// The table of kernels that are built in. Its rows are generated from cmake/variants.cmake.
#ifndef CONVTRANSPOSE_RUNTIME_VARIANT_H_
#define CONVTRANSPOSE_RUNTIME_VARIANT_H_

#include <cstddef>
#include <cstdint>

#include "convtranspose/convtranspose.h"

struct halide_buffer_t;

namespace convtranspose {

enum class Isa { kX86_64, kAvx2, kAvx512, kAvx512Vnni, kAmx, kNeon, kNeonFp16, kNeonDotprod, kNeon32, kWasmSimd128 };

inline constexpr Isa kIsas[] = {Isa::kAmx,    Isa::kAvx512Vnni,  Isa::kAvx512,   Isa::kAvx2,
                                Isa::kX86_64, Isa::kNeonDotprod, Isa::kNeonFp16, Isa::kNeon,
                                Isa::kNeon32, Isa::kWasmSimd128}; // best first

enum class Family { kReference, kChannels, kMatrix, kWide, kFew, kDepthwise };

// Where y (and for depthwise x) is dense: along the channels or along w.
enum class Store { kChannels, kPlanar };

// What x and w are when they are multiplied (generators/numerics.h).
enum class Arithmetic {
    kFloat, // the type of the sums
    kHalf,  // f16, and so are the sums
    kBf16,  // bf16, summed in f32
    kInt8,  // x of type kByteX with its zero point in it, s8 w
    kInt16, // both s16, less their zero points
};

inline bool is_float(Arithmetic a) {
    return a == Arithmetic::kFloat || a == Arithmetic::kHalf || a == Arithmetic::kBf16;
}

// Operands of integer arithmetic that differ by architecture: the type of x of kInt8, and the input channels that kInt16
// multiplies at a time (generators/numerics.h).
#if defined(__aarch64__) || defined(_M_ARM64) || defined(__arm__)
inline constexpr convt_dtype kByteX = CONVT_S8;
inline constexpr int kInt16Block = 1;
#else
inline constexpr convt_dtype kByteX = CONVT_U8;
inline constexpr int kInt16Block = 2;
#endif

// Whether kernels multiply by elements of vectors (schedules/schedule.h). Of an odd number of input channels, or blocks of them,
// they may then load the weights of one more, and kInt8 the x.
#if defined(__aarch64__) || defined(_M_ARM64)
inline constexpr bool kByElement = true;
#else
inline constexpr bool kByElement = false;
#endif

// generators/conv_transpose_generator.cpp, its inputs in order and then y.
using ConvFunction = int (*)(halide_buffer_t *x, halide_buffer_t *w, halide_buffer_t *bias, halide_buffer_t *factors,
                             halide_buffer_t *taps_w, halide_buffer_t *taps_h, halide_buffer_t *taps_d,
                             std::int32_t step_w, std::int32_t step_h, std::int32_t step_d, std::int32_t max_count_w,
                             std::int32_t max_count_h, std::int32_t max_count_d, std::int32_t shared_first_w,
                             std::int32_t shared_count_w, std::int32_t shared_first_h, std::int32_t shared_count_h,
                             std::int32_t y_zero_point, float y_min, float y_max, halide_buffer_t *y);

// One axis of a layer that a kernel is built for.
struct BuiltInAxis {
    // The tap table (runtime/axis_plan.h): rows of kTapColumns for residues of all the stride; null: any.
    const std::int32_t *table;
    std::int32_t residues;
    std::int32_t step;  // with a table: between the input positions of consecutive taps
    std::int32_t count; // of taps: every residue has as many; 0: any
    std::int32_t out;   // extent of y; 0: any
};

// What of a layer is built into a kernel, which then is for such layers alone; of numbers, 0 is any.
struct BuiltIn {
    std::int32_t ic, oc; // channels per group
    BuiltInAxis axes[3]; // w, h, d
    bool x_in_place;     // x is read in place wherever that can be, not only where it is estimated to be faster
};

struct Variant {
    const char *name; // family_dtype[_store][_sSTRIDE]_tile; the same kernel for another ISA has the same name
    Isa isa;
    Family family;
    Store store;
    Arithmetic arithmetic;
    // Of y. kFloat: x and w are of its sum type, but for the reference's x, which is of dtype. Else f32; s32, the bare sums;
    // or u8, which stands for s8 too.
    convt_dtype dtype;
    int stride_w; // 0: any. Otherwise w is one axis of y, and x is read up to a whole tile past its last column.
    int stride_h; // likewise
    int tile_oc, tile_q, tile_qh; // schedules/schedule.h
    int lanes;                    // of a vector of the sum type
    ConvFunction run;
    const BuiltIn *built_in = nullptr; // null: nothing but the strides
};

// Which dimension of x and of its copy is dense: w or the channels of both, channels of x and w of the copy, the same if there
// are kCopyTile or more of either (not of blocks), or w of x and the channels of the copy (blocks of channels only).
enum class CopyOrder { kPlanar, kChannels, kTransposed, kTiles, kToChannels };
constexpr std::int64_t kCopyTile = 8;

// generators/copy_input_generator.cpp
using CopyFunction = int (*)(halide_buffer_t *x, std::int32_t flip, std::int32_t zero, halide_buffer_t *copy);

struct CopyVariant {
    Isa isa;
    CopyOrder order;
    Arithmetic arithmetic; // of the copy
    convt_dtype dtype;     // of x; u8: of 8 bits
    int block;             // of channels
    CopyFunction run;
};

// generators/post_ops_generator.cpp
enum class PostKernel { kClip, kLeakyRelu, kSigmoid, kTanh };
using PostOpsFunction = int (*)(halide_buffer_t *convolution, halide_buffer_t *residual, float alpha, float beta,
                                halide_buffer_t *y);

struct PostOpsVariant {
    Isa isa;
    convt_dtype dtype; // of y and the residual
    PostKernel kernel;
    bool adds_residual;
    PostOpsFunction run;
};

// generators/col2im_generator.cpp and col2im_channels_generator.cpp, their inputs in order and then y.
using Col2imFunction = int (*)(halide_buffer_t *columns, halide_buffer_t *bias, halide_buffer_t *taps_w,
                               halide_buffer_t *taps_h, halide_buffer_t *taps_d, std::int32_t step_w,
                               std::int32_t step_h, std::int32_t step_d, std::int32_t kernel_step_w,
                               std::int32_t kernel_step_h, std::int32_t kernel_step_d, std::int32_t max_count_w,
                               std::int32_t max_count_h, std::int32_t max_count_d, halide_buffer_t *y);

struct Col2imVariant {
    Isa isa;
    convt_dtype dtype; // of y
    Store store;       // what of columns is dense: kernel elements and channels, or positions
    int stride_w;      // 0: any
    int vectors;       // of a row that are summed at once
    int lanes;         // of them together, of the sum type
    Col2imFunction run;
};

// generators/winograd_input_generator.cpp and winograd_output_generator.cpp: their inputs in order and then the output.
using WinogradInputFunction = int (*)(halide_buffer_t *x, halide_buffer_t *entries_w, halide_buffer_t *entries_h,
                                      std::int32_t first_w, std::int32_t first_h, halide_buffer_t *transformed);
using WinogradOutputFunction = int (*)(halide_buffer_t *products, halide_buffer_t *y);

struct WinogradVariant { // either input or output
    Isa isa;
    convt_dtype dtype;
    int count_w, count_h;              // of output: taps of the residue along w and h; 0: there is no such axis
    const char *entries_w, *entries_h; // of input: those that are built in, as its generator has them
    WinogradInputFunction input;
    WinogradOutputFunction output;
};

} // namespace convtranspose

// Kernels of a component of the library, float or quantized, or some that a program adds (convt_add_kernels).
struct convt_kernels {
    const char *version; // convt_kernels_version() of the sources that they were made from; null: there are none
    const convtranspose::Variant *variants;
    std::size_t variant_count;
    const convtranspose::CopyVariant *copies;
    std::size_t copy_count;
    const convtranspose::PostOpsVariant *post_ops;
    std::size_t post_ops_count;
    const convtranspose::Col2imVariant *col2im;
    std::size_t col2im_count;
    const convtranspose::WinogradVariant *winograd;
    std::size_t winograd_count;
    const char *records; // tuning records (tuning.h) that come with them; null: none
};

namespace convtranspose {

using KernelTable = ::convt_kernels;

// A program links the components that it needs, and an empty table stands in for the other (runtime/CMakeLists.txt).
extern "C" const KernelTable convt_float_kernels, convt_quantized_kernels;

// The variants of both.
inline std::size_t variant_count() { return convt_float_kernels.variant_count + convt_quantized_kernels.variant_count; }
inline const Variant &variant_at(std::size_t i) {
    const std::size_t floats = convt_float_kernels.variant_count;
    return i < floats ? convt_float_kernels.variants[i] : convt_quantized_kernels.variants[i - floats];
}

inline convt_dtype sum_dtype(convt_dtype dtype) { return dtype == CONVT_F64 ? CONVT_F64 : CONVT_F32; }
inline convt_dtype sum_dtype(const Variant &v) { // of floats
    return v.arithmetic == Arithmetic::kHalf ? CONVT_F16 : sum_dtype(v.dtype);
}

// Input channels that lie side by side for instructions that multiply and add several at once; taps, if pairs_taps().
inline int block_of(const Variant &v) {
    if (v.family == Family::kReference) return 1;
    switch (v.arithmetic) {
    case Arithmetic::kFloat:
    case Arithmetic::kHalf: break;
    case Arithmetic::kBf16: return 2;
    case Arithmetic::kInt8: return 4;
    case Arithmetic::kInt16: return kInt16Block;
    }
    return 1;
}

// Blocks of input channels are padded to a multiple of so many, which one instruction of AMX multiplies.
inline int blocks_at_once(const Variant &v) { return v.family == Family::kMatrix ? 16 : 1; }

// Whether the rows of what that instruction multiplies are output channels, not positions (schedules/cpu/matrix.cpp): its
// blocks of weights are all that it multiplies at once.
inline bool has_rows_of_channels(const Variant &v) { return v.family == Family::kMatrix && v.store == Store::kPlanar; }

// Whether a block is two neighbouring taps along w, and the two positions of x that they read: with one input channel per
// group there is nothing else to pair.
inline bool pairs_taps(const Variant &v) {
    return v.family == Family::kDepthwise && v.arithmetic == Arithmetic::kInt16 && kInt16Block == 2;
}

// Whether the sum runs over input offsets (generators/conv_transpose.h: TapOrder::kByOffset).
inline bool goes_by_offset(const Variant &v) {
    const bool planar = v.family == Family::kFew || (v.family == Family::kDepthwise && v.store == Store::kPlanar);
    return planar && v.built_in && v.built_in->axes[0].table && v.built_in->axes[1].table;
}

// Whether the taps of an input channel are packed side by side: kernels that unroll all of w and h read them at constant
// distances from one address, which with the channels of a tap side by side would be one for each tap, most of them on the stack.
inline bool has_taps_inside(const Variant &v) { return v.family == Family::kFew && goes_by_offset(v); }

// Whether vectors along the groups never go past the last one: its tile overlaps the one before it (schedules/cpu/depthwise.cpp).
inline bool overlaps_groups(const Variant &v) {
    const bool masked_stores = v.isa == Isa::kAvx512 || v.isa == Isa::kAvx512Vnni;
    return v.family == Family::kDepthwise && v.store == Store::kChannels && v.tile_q > 1 && !masked_stores;
}

// Whether it loads x by vectors of neighbours in a row.
inline bool has_vectors_along_w(const Variant &v) {
    return v.family == Family::kWide || v.family == Family::kFew ||
           (v.family == Family::kDepthwise && v.store == Store::kPlanar);
}

// Whether the variant reads x whatever its strides are, as it broadcasts every element (generators/conv_transpose_generator.cpp).
inline bool reads_any_strides(const Variant &v) {
    return v.isa == Isa::kAvx512 && v.family == Family::kChannels && v.store == Store::kChannels &&
           is_float(v.arithmetic) && v.stride_w == 0;
}

// Whether the variant leaves out the taps of an axis that leave x, whatever is there.
inline bool skips_outside(const Variant &v, std::size_t axis) {
    const bool loops = (v.family == Family::kChannels || v.family == Family::kWide) && is_float(v.arithmetic);
    const bool knows_counts = v.built_in && (v.built_in->axes[axis].table || v.built_in->axes[axis].count);
    return loops && !knows_counts && (axis == 2 || (axis == 1 && v.tile_qh == 1));
}

// Bytes of an element of the packed weights, and of the copy of x.
inline std::int64_t operand_size(const Variant &v) {
    if (v.arithmetic == Arithmetic::kBf16) return 2;
    if (is_float(v.arithmetic)) return static_cast<std::int64_t>(convt_dtype_size(sum_dtype(v)));
    return v.arithmetic == Arithmetic::kInt8 ? 1 : 2;
}

// Whether the variant can be used where `isa` is asked for. ISAs that add dot products or f16 arithmetic have variants of
// their own for what gains by them, and the rest is that of the ISA that they add to.
inline bool belongs_to(const Variant &v, Isa isa) {
    if (v.isa == isa) return true;
    if (isa == Isa::kAmx) return belongs_to(v, Isa::kAvx512Vnni);
    if (isa == Isa::kAvx512Vnni) return v.isa == Isa::kAvx512 && v.arithmetic == Arithmetic::kFloat;
    if (isa == Isa::kNeonDotprod && v.isa == Isa::kNeonFp16) return true;
    return (isa == Isa::kNeonDotprod || isa == Isa::kNeonFp16) && v.isa == Isa::kNeon;
}

// The ISA whose kernels of floats, other than variants, serve another: those have no use for dot products, and compute in f32.
inline Isa isa_of_floats(Isa isa) {
    if (isa == Isa::kAvx512Vnni || isa == Isa::kAmx) return Isa::kAvx512;
    return isa == Isa::kNeonDotprod || isa == Isa::kNeonFp16 ? Isa::kNeon : isa;
}

inline int vector_registers(Isa isa) {
    switch (isa) {
    case Isa::kAvx512:
    case Isa::kAvx512Vnni:
    case Isa::kAmx:
    case Isa::kNeon:
    case Isa::kNeonFp16:
    case Isa::kNeonDotprod: return 32;
    case Isa::kX86_64:
    case Isa::kAvx2:
    case Isa::kNeon32:
    case Isa::kWasmSimd128: break;
    }
    return 16;
}

const char *isa_name(Isa isa);
bool isa_supported(Isa isa); // by this CPU

// Of this CPU. Bytes: 0 where they are not known.
bool is_intel();
bool multiplies_in_halves(); // vectors of 512 bits: AMD's Zen 4
std::int64_t second_level_cache_bytes();

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_VARIANT_H_
