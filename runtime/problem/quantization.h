// Scales and zero points: what they must be, and what they make of sums.
#ifndef CONVTRANSPOSE_RUNTIME_PROBLEM_QUANTIZATION_H_
#define CONVTRANSPOSE_RUNTIME_PROBLEM_QUANTIZATION_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "problem/geometry.h"

namespace convtranspose {

// A convt_quantization that has been checked, held by value.
struct QuantizationValues {
    float x_scale = 1;
    std::int32_t x_zero_point = 0;
    std::vector<float> w_scale;             // one, or one for each output channel
    std::vector<std::int32_t> w_zero_point; // likewise
    float y_scale = 1;
    std::int32_t y_zero_point = 0;
    float y_least = -std::numeric_limits<float>::infinity(), y_most = -y_least; // real bounds of y

    float w_scale_of(std::int64_t m) const { return w_scale[w_scale.size() == 1 ? 0 : static_cast<std::size_t>(m)]; }
    std::int32_t w_zero_point_of(std::int64_t m) const {
        return w_zero_point[w_zero_point.size() == 1 ? 0 : static_cast<std::size_t>(m)];
    }
};

inline bool given(const convt_quantization &q) { return q.w_scale != nullptr; }

// Checks every rule; on failure *values is untouched.
Status read_quantization(const convt_quantization &quantization, const Geometry &geometry, QuantizationValues *values);

// x_scale * w_scale / y_scale of an output channel, without y_scale if y is f32: what a sum is multiplied with.
float factor_of(const QuantizationValues &q, const Geometry &geometry, std::int64_t m);

// What is done with sum * factor, alike for all channels: rounded (8-bit y), clamped, shifted.
struct OutputRange {
    std::int32_t zero_point = 0;
    float least = 0, most = 0;
};
OutputRange output_range(const QuantizationValues &q, const Geometry &geometry);

// x as the kernels multiply it (kByteX) whatever its sign: x ^ flip, whose zero point is zero.
struct ByteX {
    std::int32_t flip = 0, zero = 0;
};
ByteX byte_x(const QuantizationValues &q, const Geometry &geometry);

// One element of y, as the kernels make it. sum: exact, the bias included unless y is f32.
void requantize(const Geometry &geometry, double sum, float factor, float addend, const OutputRange &range, void *y);

// What integer arithmetic may be used for weights.
struct WeightFacts {
    bool fits_int8 = true;  // weights less their zero points are in -128..127, and sums with x's zero point in it fit
    bool fits_int32 = true; // no sum of less than 2^31 in magnitude can be exceeded
    double bound = 0;       // of the magnitude of any sum, whatever x holds
};

// w: dense (C, M/group, K1..Kn); b: (M), or null. counts: of so many bytes, to count in.
std::uint64_t examination_bytes(const Geometry &geometry);
WeightFacts examine_weights(const Geometry &geometry, const QuantizationValues &q, const void *w, const void *b,
                            void *counts);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_PROBLEM_QUANTIZATION_H_
