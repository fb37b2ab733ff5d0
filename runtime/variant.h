// The table of kernels that are built in. Its rows are generated from cmake/variants.cmake.
#ifndef CONVTRANSPOSE_RUNTIME_VARIANT_H_
#define CONVTRANSPOSE_RUNTIME_VARIANT_H_

#include <cstddef>
#include <cstdint>

#include "convtranspose/convtranspose.h"

struct halide_buffer_t;

namespace convtranspose {

enum class Isa { kX86_64, kAvx2, kAvx512 };

enum class Family { kReference, kChannels, kWide, kFew, kDepthwise };

// Where y (and for depthwise x) is dense: along the channels or along w.
enum class Store { kChannels, kPlanar };

// generators/conv_transpose_generator.cpp, its inputs in order and then y.
using ConvFunction = int (*)(halide_buffer_t *x, halide_buffer_t *w, halide_buffer_t *bias, halide_buffer_t *taps_w,
                             halide_buffer_t *taps_h, halide_buffer_t *taps_d, std::int32_t step_w, std::int32_t step_h,
                             std::int32_t step_d, std::int32_t max_count_w, std::int32_t max_count_h,
                             std::int32_t max_count_d, std::int32_t shared_first_w, std::int32_t shared_count_w,
                             std::int32_t shared_first_h, std::int32_t shared_count_h, halide_buffer_t *y);

struct Variant {
    const char *name; // family_dtype[_store][_sSTRIDE]_tile; the same kernel for another ISA has the same name
    Isa isa;
    Family family;
    Store store;
    convt_dtype dtype; // of y; x and w are of its sum type, but for the reference's x, which is of dtype
    int stride_w;      // 0: any. Otherwise w is one axis of y, and x is read up to a whole tile past its last column.
    int stride_h;      // likewise
    int tile_oc, tile_q, tile_qh; // schedules/schedule.h
    int lanes;                    // of a vector of the sum type
    ConvFunction run;
};

// Which dimension of x and of its padded copy is dense.
enum class PadOrder { kPlanar, kChannels, kTransposed };

// generators/pad_input_generator.cpp
using PadFunction = int (*)(halide_buffer_t *x, halide_buffer_t *padded);

struct PadVariant {
    Isa isa;
    PadOrder order;
    convt_dtype dtype; // of x; the copy is of its sum type
    PadFunction run;
};

extern const Variant kVariants[];
extern const std::size_t kVariantCount;
extern const PadVariant kPadVariants[];
extern const std::size_t kPadVariantCount;

inline convt_dtype sum_dtype(convt_dtype dtype) { return dtype == CONVT_F64 ? CONVT_F64 : CONVT_F32; }

const char *isa_name(Isa isa);
bool isa_supported(Isa isa); // by this CPU

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_VARIANT_H_
