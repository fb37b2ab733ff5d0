#include "problem/quantization.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/half.h"
#include "kernel_contract/kernel_table.h"

namespace convtranspose {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Status check_scale(const std::string &name, float scale) {
    if (scale > 0 && scale < kInfinity) return Status();
    return invalid(name, " = ", scale, " must be positive and finite");
}

Status check_zero_point(const std::string &name, std::int32_t zero_point, convt_dtype dtype) {
    const std::int32_t least = dtype == CONVT_S8 ? -128 : 0;
    if (zero_point >= least && zero_point < least + 256) return Status();
    return invalid(name, " = ", zero_point, " is not a value of ", convt_dtype_name(dtype));
}

Status check_size(const char *name, std::size_t size, std::int64_t channels) {
    if (size == 1 || static_cast<std::int64_t>(size) == channels) return Status();
    return invalid(name, " has ", size, " elements, needs 1 or ", channels, " (one per output channel)");
}

} // namespace

Status read_quantization(const convt_quantization &q, const Geometry &geometry, QuantizationValues *values) {
    QuantizationValues v;
    if (!q.w_scale) return invalid("w_scale is missing");
    // Nothing is read of a list of another size.
    TRY(check_size("w_scale", q.w_scale_size, geometry.out_channels));
    if (q.w_zero_point) TRY(check_size("w_zero_point", q.w_zero_point_size, geometry.out_channels));
    if (geometry.quantized()) {
        v.x_scale = q.x_scale;
        v.x_zero_point = q.x_zero_point;
    }
    v.w_scale.assign(q.w_scale, q.w_scale + q.w_scale_size);
    if (q.w_zero_point) v.w_zero_point.assign(q.w_zero_point, q.w_zero_point + q.w_zero_point_size);
    TRY(check_scale("x_scale", v.x_scale));
    if (geometry.quantized()) TRY(check_zero_point("x_zero_point", v.x_zero_point, geometry.dtype));
    for (std::size_t i = 0; i < v.w_scale.size(); i++) TRY(check_scale(element("w_scale", i), v.w_scale[i]));
    for (std::size_t i = 0; i < v.w_zero_point.size(); i++)
        TRY(check_zero_point(element("w_zero_point", i), v.w_zero_point[i], geometry.w_dtype));
    if (geometry.y_dtype != CONVT_F32) {
        v.y_scale = q.y_scale;
        v.y_zero_point = q.y_zero_point;
        TRY(check_scale("y_scale", v.y_scale));
        TRY(check_zero_point("y_zero_point", v.y_zero_point, geometry.y_dtype));
    }
    if (q.y_range) {
        v.y_range = {{q.y_range[0], q.y_range[1]}};
        if (!(q.y_range[0] <= q.y_range[1])) // false for a NaN too
            return invalid("y_range = (", q.y_range[0], ", ", q.y_range[1], ") must be (min, max)");
    }
    *values = std::move(v);
    return Status();
}

void expand_weights(const Geometry &geometry, const QuantizationValues *q, const void *w, float *expanded,
                    LightWeights *light) {
    const auto count = static_cast<std::size_t>(volume(geometry.w_shape));
    if (!geometry.has_scales()) {
        widen(geometry.w_dtype, w, count, expanded);
        if (light) light->dtype = geometry.w_dtype;
        return;
    }
    const std::int64_t oc = geometry.out_channels_per_group(), elements = geometry.kernel_volume(),
                       ic = geometry.in_channels_per_group();
    bool is_s8 = true, is_finite = true;
    for (std::int64_t c = 0; c < geometry.in_channels; c++) {
        for (std::int64_t o = 0; o < oc; o++) {
            const std::int64_t m = c / ic * oc + o, first = (c * oc + o) * elements;
            const std::int32_t zero = q->w_zero_point_of(m);
            const float scale = q->w_scale_of(m);
            for (std::int64_t i = first; i < first + elements; i++) {
                const std::int32_t value = (geometry.w_dtype == CONVT_S8 ? static_cast<const std::int8_t *>(w)[i]
                                                                         : static_cast<const std::uint8_t *>(w)[i]) -
                                           zero;
                expanded[i] = static_cast<float>(value) * scale;
                is_s8 = is_s8 && value >= -128 && value <= 127;
                is_finite = is_finite && std::abs(expanded[i]) < kInfinity;
            }
        }
    }
    if (!light) return;
    light->dtype = is_s8 && is_finite ? CONVT_S8 : CONVT_F32;
    light->scales = std::make_shared<const std::vector<float>>(q->w_scale);
}

float factor_of(const QuantizationValues &q, const Geometry &geometry, std::int64_t m) {
    const float product = q.x_scale * q.w_scale_of(m);
    const float factor = geometry.y_dtype == CONVT_F32 ? product : product / q.y_scale;
    // The product of the two scales may leave the normal range of f32 although the quotient does not, and the quotient may
    // leave it too. The factor is then computed in f64 and limited to the largest f32: an infinity would turn a sum of 0 into a
    // NaN.
    if (std::isnormal(product) && std::isnormal(factor)) return factor;
    const double exact = static_cast<double>(q.x_scale) * static_cast<double>(q.w_scale_of(m)) /
                         (geometry.y_dtype == CONVT_F32 ? 1.0 : static_cast<double>(q.y_scale));
    return static_cast<float>(std::min(exact, static_cast<double>(std::numeric_limits<float>::max())));
}

OutputRange output_range(const QuantizationValues &q, const Geometry &geometry) {
    const auto [y_least, y_most] = q.y_range.value_or(std::array<float, 2>{-kInfinity, kInfinity});
    if (geometry.y_dtype == CONVT_F32) return {0, y_least, y_most};
    const double least = geometry.y_dtype == CONVT_S8 ? -128 : 0;
    const auto bound = [&](float real) {
        const double quantized = std::nearbyint(static_cast<double>(real) / static_cast<double>(q.y_scale));
        const double value = std::clamp(quantized + q.y_zero_point, least, least + 255);
        return static_cast<float>(value - q.y_zero_point);
    };
    return {q.y_zero_point, bound(y_least), bound(y_most)};
}

ByteX byte_x(const QuantizationValues &q, const Geometry &geometry) {
    if (geometry.dtype == kByteX) return {0, q.x_zero_point};
    return {0x80, q.x_zero_point + (kByteX == CONVT_U8 ? 128 : -128)};
}

void requantize(const Geometry &geometry, double sum, float factor, float addend, const OutputRange &range, void *y) {
    const float product = static_cast<float>(sum) * factor;
    if (geometry.y_dtype == CONVT_F32) {
        const float value = std::clamp(product + addend, range.least, range.most);
        std::memcpy(y, &value, sizeof value);
        return;
    }
    const float whole = std::nearbyint(std::clamp(product, range.least, range.most));
    const auto bits = static_cast<std::uint8_t>(static_cast<std::int32_t>(whole) + range.zero_point);
    std::memcpy(y, &bits, sizeof bits);
}

std::uint64_t examination_bytes(const Geometry &geometry) {
    return 3 * sizeof(std::int64_t) * geometry.kernel_volume();
}

WeightFacts examine_weights(const Geometry &geometry, const QuantizationValues &q, const void *w, const void *b,
                            void *counts) {
    const std::int64_t ic = geometry.in_channels_per_group(), oc = geometry.out_channels_per_group(),
                       elements = geometry.kernel_volume();
    // magnitude[k] is the sum of |w| of kernel element k over the input channels of one output channel. sums has the total of
    // magnitude over each class of elements.
    auto *const magnitude = static_cast<std::int64_t *>(counts), *const class_of = magnitude + elements,
                *const sums = class_of + elements;
    // Only kernel elements that meet at a common output position add up. Elements of an axis meet the same phase if their
    // k * dilation is the same modulo the stride; such elements form a class.
    std::int64_t classes = 1;
    for (std::int64_t k = 0; k < elements; k++) {
        std::int64_t rest = k;
        class_of[k] = 0;
        classes = 1;
        for (std::size_t a = geometry.axes.size(); a-- > 0;) {
            const AxisGeometry &axis = geometry.axes[a];
            const std::int64_t period = -axis.kernel_step();
            class_of[k] += rest % axis.kernel % period * classes;
            classes *= std::min(axis.kernel, period);
            rest /= axis.kernel;
        }
    }
    WeightFacts facts;
    const std::int32_t flip = geometry.w_dtype == CONVT_S8 ? 0x80 : 0; // s8 becomes u8
    std::int32_t least = 0, most = 0;
    const std::int32_t x_most = (geometry.dtype == CONVT_S8 ? 127 : 255) - q.x_zero_point;
    const double x_magnitude = std::max(x_most, 255 - x_most); // greatest |x - zero point|
    bool fits_with_zero_point = true;
    for (std::int64_t m = 0; m < geometry.out_channels; m++) {
        const std::int32_t zero = q.w_zero_point_of(m) + (flip ? 128 : 0);
        std::fill_n(magnitude, elements, 0);
        for (std::int64_t c = 0; c < ic; c++) {
            const auto *const from =
                static_cast<const std::uint8_t *>(w) + ((m / oc * ic + c) * oc + m % oc) * elements;
            for (std::int64_t k = 0; k < elements; k++) {
                const std::int32_t value = (from[k] ^ flip) - zero;
                least = std::min(least, value);
                most = std::max(most, value);
                magnitude[k] += std::abs(value);
            }
        }
        std::fill_n(sums, classes, 0);
        for (std::int64_t k = 0; k < elements; k++) sums[class_of[k]] += magnitude[k];
        const auto sum = static_cast<double>(*std::max_element(sums, sums + classes));
        const double bias = b && geometry.b_dtype == CONVT_S32
                                ? std::abs(static_cast<double>(static_cast<const std::int32_t *>(b)[m]))
                                : 0;
        constexpr double kMost = std::numeric_limits<std::int32_t>::max();
        facts.bound = std::max(facts.bound, x_magnitude * sum + bias);
        // A later run may bring another zero point, but |x - zero point| never exceeds 255.
        facts.fits_int32 = facts.fits_int32 && 255 * sum + bias <= kMost;
        fits_with_zero_point = fits_with_zero_point && 2 * 255 * sum + bias <= kMost;
    }
    facts.fits_int8 = least >= -128 && most <= 127 && fits_with_zero_point;
    return facts;
}

} // namespace convtranspose
