// Scales and zero points are checked here, and turned into what makes outputs of sums.
#pragma once

#include <cstdint>

#include "problem/geometry.h"

namespace convtranspose {

// This is a convt_quantization that has been checked, held by value.
struct QuantizationValues : Quantization {
    float w_scale_of(std::int64_t m) const { return of_channel(w_scale, m); }
    std::int32_t w_zero_point_of(std::int64_t m) const { return of_channel(w_zero_point, m); }
};

// Reads and checks the quantization; if a check fails, *values is unchanged.
Status read_quantization(const convt_quantization &quantization, const Geometry &geometry, QuantizationValues *values);

// Converts light weights to f32. w: dense (C, M/group, K1..Kn) of geometry.w_dtype. q: null unless geometry.has_scales(). light:
// receives how kernels may read them; null: nobody asks.
void expand_weights(const Geometry &geometry, const QuantizationValues *q, const void *w, float *expanded,
                    LightWeights *light);

// Returns the number that the sums of output channel m are multiplied with: x_scale * w_scale / y_scale, or x_scale * w_scale
// if y is f32.
float factor_of(const QuantizationValues &q, const Geometry &geometry, std::int64_t m);

// The last steps are the same for all channels: sum * factor is rounded (8-bit y only), clamped to least .. most, and shifted
// by zero_point.
struct OutputRange {
    std::int32_t zero_point = 0;
    float least = 0, most = 0;
};
OutputRange output_range(const QuantizationValues &q, const Geometry &geometry);

// Kernels multiply x as the type kByteX whatever its type is: they compute x ^ flip, whose zero point is `zero`.
struct ByteX {
    std::int32_t flip = 0, zero = 0;
};
ByteX byte_x(const QuantizationValues &q, const Geometry &geometry);

// Writes one element of y as the kernels compute it. sum is exact; it includes the bias unless y is f32.
void requantize(const Geometry &geometry, double sum, float factor, float addend, const OutputRange &range, void *y);

// These facts decide which integer arithmetic is safe for a layer's weights.
struct WeightFacts {
    bool fits_int8 = true;  // weights less zero points are in -128..127; sums that still contain x's zero point fit
    bool fits_int32 = true; // no sum can reach 2^31 in magnitude
    double bound = 0;       // upper bound of |sum|, whatever x holds
};

// Examines weights. w: dense (C, M/group, K1..Kn). b: (M), or null. counts: scratch memory of examination_bytes().
std::uint64_t examination_bytes(const Geometry &geometry);
WeightFacts examine_weights(const Geometry &geometry, const QuantizationValues &q, const void *w, const void *b,
                            void *counts);

} // namespace convtranspose
