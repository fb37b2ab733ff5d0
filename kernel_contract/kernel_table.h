// The table of kernels: what a row says of each, and how it is called. The rows are generated from kernels/table.py.
#ifndef CONVTRANSPOSE_KERNEL_CONTRACT_KERNEL_TABLE_H_
#define CONVTRANSPOSE_KERNEL_CONTRACT_KERNEL_TABLE_H_

#include <cstddef>
#include <cstdint>

#include "convtranspose/convtranspose.h"
#include "kernel_contract/kernel_traits.h"
#include "kernel_contract/kernel_types.h"

struct halide_buffer_t;

namespace convtranspose {

// The ISA that all CPUs that this is compiled for have.
#if defined(__aarch64__) || defined(_M_ARM64)
inline constexpr Isa kBaseIsa = Isa::kNeon;
#elif defined(__arm__)
inline constexpr Isa kBaseIsa = Isa::kNeon32;
#elif defined(__wasm__)
inline constexpr Isa kBaseIsa = Isa::kWasmSimd128;
#else
inline constexpr Isa kBaseIsa = Isa::kX86_64;
#endif

// The type of x of kInt8.
inline constexpr convt_dtype kByteX = byte_x_is_signed(kBaseIsa) ? CONVT_S8 : CONVT_U8;

// The arguments are the inputs of generators/conv_transpose_generator.cpp in order, and then y.
using ConvFunction = int (*)(halide_buffer_t *x, halide_buffer_t *w, halide_buffer_t *bias, halide_buffer_t *factors,
                             halide_buffer_t *taps_w, halide_buffer_t *taps_h, halide_buffer_t *taps_d,
                             std::int32_t step_w, std::int32_t step_h, std::int32_t step_d, std::int32_t max_count_w,
                             std::int32_t max_count_h, std::int32_t max_count_d, std::int32_t shared_first_w,
                             std::int32_t shared_count_w, std::int32_t shared_first_h, std::int32_t shared_count_h,
                             std::int32_t y_zero_point, float y_min, float y_max, halide_buffer_t *y);

// One axis of a layer that a kernel is built for.
struct BuiltInAxis {
    // The tap table: rows of TapColumn (table_columns.h) for phases of all the stride; null: any.
    const std::int32_t *table;
    std::int32_t phases;
    std::int32_t step;  // with a table: between the input positions of consecutive taps
    std::int32_t count; // of taps: every phase has as many; 0: any
    std::int32_t out;   // extent of y; 0: any
};

// The properties of a layer that are built into a kernel, which then is for such layers alone. A number that is 0 means any.
struct BuiltIn {
    std::int32_t ic, oc; // channels per group
    BuiltInAxis axes[3]; // w, h, d
    bool x_in_place;     // x is read in place wherever that can be, not only where it is estimated to be faster
};

struct Variant {
    const char *name; // docs/kernel-names.md has its form; the same kernel for another ISA has the same name
    Isa isa;
    Family family;
    OutputOrder output_order;
    Arithmetic arithmetic;
    // The type of y. With kFloat, x and w have its sum type, but the reference's x has this type. Else it is f32; s32 for bare sums;
    // or u8, which stands for s8 too.
    convt_dtype dtype;
    int stride_w; // 0: any. Otherwise w is one axis of y, and x is read up to a whole tile past its last column.
    int stride_h; // likewise
    int tile_oc, tile_q, tile_qh; // as in Tile (schedules/schedule.h)
    int lanes;                    // of a vector of the sum type
    ConvFunction run;
    const BuiltIn *built_in = nullptr; // null: nothing but the strides
};

inline KernelTraits traits_of(const Variant &v) {
    KernelTraits k;
    k.isa = v.isa;
    k.family = v.family;
    k.output_order = v.output_order;
    k.arithmetic = v.arithmetic;
    k.stride_w = v.stride_w;
    k.tile_q = v.tile_q;
    k.tile_qh = v.tile_qh;
    for (int a = 0; a < 3 && v.built_in; a++) {
        k.knows_taps[a] = v.built_in->axes[a].table != nullptr;
        k.knows_counts[a] = k.knows_taps[a] || v.built_in->axes[a].count > 0;
    }
    return k;
}

// The arguments are those of generators/copy_input_generator.cpp.
using CopyFunction = int (*)(halide_buffer_t *x, std::int32_t flip, std::int32_t zero, bool fetches_x,
                             bool fetches_copy, halide_buffer_t *copy);

struct CopyVariant {
    Isa isa;
    CopyOrder order;
    Arithmetic arithmetic; // of the copy
    convt_dtype dtype;     // of x; u8: any of 8 bits
    int block;             // of channels
    CopyFunction run;
};

// The arguments are those of generators/post_ops_generator.cpp.
using PostOpsFunction = int (*)(halide_buffer_t *convolution, halide_buffer_t *residual, float alpha, float beta,
                                halide_buffer_t *y);

struct PostOpsVariant {
    Isa isa;
    convt_dtype dtype; // of y and the residual
    PostKernel kernel;
    bool adds_residual;
    PostOpsFunction run;
};

// The arguments are the inputs of generators/col2im_generator.cpp and col2im_channels_generator.cpp in order, and then y.
using Col2imFunction = int (*)(halide_buffer_t *columns, halide_buffer_t *bias, halide_buffer_t *taps_w,
                               halide_buffer_t *taps_h, halide_buffer_t *taps_d, std::int32_t step_w,
                               std::int32_t step_h, std::int32_t step_d, std::int32_t kernel_step_w,
                               std::int32_t kernel_step_h, std::int32_t kernel_step_d, std::int32_t max_count_w,
                               std::int32_t max_count_h, std::int32_t max_count_d, halide_buffer_t *y);

struct Col2imVariant {
    Isa isa;
    convt_dtype dtype;        // of y
    OutputOrder output_order; // columns are dense along kernel elements and channels, or along positions
    int stride_w;             // 0: any
    int vectors;              // of a row that are summed at once
    int lanes;                // of them together, of the sum type
    Col2imFunction run;
};

// The arguments are the inputs of generators/winograd_input_generator.cpp and winograd_output_generator.cpp in order, and then the
// output.
using WinogradInputFunction = int (*)(halide_buffer_t *x, halide_buffer_t *entries_w, halide_buffer_t *entries_h,
                                      std::int32_t first_w, std::int32_t first_h, halide_buffer_t *transformed);
using WinogradOutputFunction = int (*)(halide_buffer_t *products, halide_buffer_t *y);

struct WinogradVariant { // either input or output
    Isa isa;
    convt_dtype dtype;
    int count_w, count_h;              // of output: taps of the phase along w and h; 0: there is no such axis
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
    const char *records; // tuning records (runtime/kernels/tuning.h) that come with them; null: none
};

namespace convtranspose {

using KernelTable = ::convt_kernels;

// A program links the components that it needs, and an empty table stands in for the other (runtime/CMakeLists.txt).
extern "C" const KernelTable convt_float_kernels, convt_quantized_kernels;

} // namespace convtranspose

#endif // CONVTRANSPOSE_KERNEL_CONTRACT_KERNEL_TABLE_H_
