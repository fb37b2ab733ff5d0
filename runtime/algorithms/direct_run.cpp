// Runs of the direct algorithm: its direct plan runs once, or once for each position and tap of the leading axes.
#include <algorithm>

#include "algorithms/direct.h"
#include "base/error.h"
#include "base/half.h"
#include "base/shape.h"
#include "base/tensor_copy.h"

namespace convtranspose {

namespace {

// Rounds a sum to the type of y. This is the only rounding.
void store(convt_dtype dtype, double sum, void *y) {
    switch (dtype) {
    case CONVT_F16: *static_cast<F16 *>(y) = to_f16(static_cast<float>(sum)); break;
    case CONVT_BF16: *static_cast<Bf16 *>(y) = to_bf16(static_cast<float>(sum)); break;
    case CONVT_F32: *static_cast<float *>(y) = static_cast<float>(sum); break;
    case CONVT_F64: *static_cast<double *>(y) = sum; break;
    case CONVT_U8: // quantized sums end in requantize()
    case CONVT_S8:
    case CONVT_S32: break;
    }
}

double load(convt_dtype dtype, const void *p) {
    switch (dtype) {
    case CONVT_F16: return static_cast<double>(static_cast<float>(*static_cast<const F16 *>(p)));
    case CONVT_BF16: return static_cast<double>(static_cast<float>(*static_cast<const Bf16 *>(p)));
    case CONVT_F32: return static_cast<double>(*static_cast<const float *>(p));
    case CONVT_F64: return *static_cast<const double *>(p);
    case CONVT_U8: return *static_cast<const std::uint8_t *>(p);
    case CONVT_S8: return *static_cast<const std::int8_t *>(p);
    case CONVT_S32: break;
    }
    return *static_cast<const std::int32_t *>(p);
}

} // namespace

// Returns the direct plan that is right for the run's weights; null: the plan that they need would overflow.
const DirectPlan *Direct::direct_for(const RunTensors &t, void *workspace) const {
    if (!weights_at_run_time() || !geometry_.quantized() || direct_.variant().family == Family::kReference)
        return &direct_;
    const WeightFacts facts = examine_weights(geometry_, *t.quantization, t.w, t.b, workspace);
    const auto allowed = [&](const DirectPlan &direct) {
        if (direct.variant().family == Family::kReference) return true;
        return direct.variant().arithmetic == Arithmetic::kInt8 ? facts.fits_int8 && facts.fits_int32
                                                                : facts.fits_int32;
    };
    if (allowed(direct_)) return &direct_;
    const auto found = std::find_if(fallbacks_.begin(), fallbacks_.end(), allowed);
    return found == fallbacks_.end() ? nullptr : &*found;
}

Status Direct::run(const RunTensors &t, char *workspace) const {
    char *const run_packed = workspace, *const run_epilogue = run_packed + run_packed_bytes_,
                *const direct_workspace = run_epilogue + run_epilogue_bytes_;
    const DirectPlan *direct = direct_for(t, direct_workspace);
    if (!direct) {
        return Status(CONVT_OVERFLOW,
                      "sums of these weights may not fit in 32 bits, and the kernel that sums in 64 cannot "
                      "count the elements of so large a layer: make it smaller, or the weights");
    }
    const QuantizationValues *const q = t.quantization ? t.quantization : quantization_;

    DirectPlan::Operands operands;
    operands.x = t.x;
    operands.x_strides = tensor_strides(problem_.geometry, t.x_strides);
    if (const UnsupportedReason unsupported = direct->overflow_of_strides(operands.x_strides); unsupported.text) {
        return Status(CONVT_OVERFLOW, to_string(unsupported));
    }
    operands.y = t.y;
    operands.y_strides = tensor_strides(problem_.geometry, t.y_strides);
    operands.workspace = direct_workspace;
    operands.packed = packed_ ? packed_->block.data() : run_packed;
    if (!packed_ && !pack(*direct, {t.w, t.b}, q, run_packed) && !fallbacks_.empty()) direct = &fallbacks_.back();
    if (q) {
        operands.epilogue = epilogue_.data();
        if (!packed_ || t.quantization) {
            const void *const b = !packed_ ? t.b : packed_->bias.data();
            prepare(*direct, *q, operands.packed, b, run_epilogue);
            operands.epilogue = run_epilogue;
        }
        operands.byte_x = byte_x(*q, geometry_);
        operands.range = output_range(*q, geometry_);
    }

    if (post_ops_.run && !leading_) {
        operands.post_ops = &post_ops_;
        operands.residual = t.residual;
        if (t.residual) operands.residual_strides = tensor_strides(problem_.geometry, t.residual_strides);
    }
    if (leading_) {
        run_leading(*direct, t, operands, direct_workspace + direct_bytes_);
    } else if (dense_y_bytes_ && operands.y_strides.axes[0] != 1 && geometry_.axes.back().out > 1) {
        operands.y = direct_workspace + direct_bytes_;
        operands.y_strides = tensor_strides(problem_.geometry, dense_strides(geometry_.y_shape));
        direct->run(operands, settings_.parallel);
        copy_apart(geometry_.y_shape, convt_dtype_size(geometry_.y_dtype), operands.y, t.y, t.y_strides);
    } else {
        direct->run(operands, settings_.parallel);
    }
    return Status();
}

// Computes each position of the leading axes as the sum of the direct plan's results over the taps of those axes. operands:
// those of the whole layer. workspace: partial_bytes_ long.
void Direct::run_leading(const DirectPlan &direct, const RunTensors &t, DirectPlan::Operands operands,
                         char *workspace) const {
    const bool channels_last = geometry_.layout == CONVT_CHANNELS_LAST;
    const std::size_t first_axis = geometry_.dimensions().first_axis; // the first leading axis of x and y
    const auto x_size = static_cast<std::int64_t>(convt_dtype_size(geometry_.dtype)),
               y_size = static_cast<std::int64_t>(convt_dtype_size(geometry_.y_dtype));
    const QuantizationValues *const q = t.quantization ? t.quantization : quantization_;
    const void *const b = !packed_ ? t.b : packed_->bias.data();
    const auto bias_of = [&](std::size_t m) {
        return b ? load(geometry_.b_dtype, static_cast<const char *>(b) + m * convt_dtype_size(geometry_.b_dtype)) : 0;
    };
    // If sums of integers become an f32 y, the bias is added after the multiplication by the scales.
    const bool bias_in_sum = !(q && geometry_.y_dtype == CONVT_F32);

    // The partial result is dense, in the layout of y. The sums have the same order.
    Shape inner = {problem_.geometry.batch};
    if (!channels_last) inner.push_back(problem_.geometry.out_channels);
    for (const AxisGeometry &a : problem_.geometry.axes) inner.push_back(a.out);
    if (channels_last) inner.push_back(problem_.geometry.out_channels);
    const auto elements = static_cast<std::size_t>(volume(inner));
    const std::size_t channel = dimension_order(geometry_.layout, inner.size()).channel;
    char *const partial = workspace;
    auto *const total = reinterpret_cast<double *>(partial + round_up(elements * convt_dtype_size(problem_.y_dtype)));
    const char *const packed = static_cast<const char *>(operands.packed);
    const char *const epilogue = static_cast<const char *>(operands.epilogue);
    operands.y = partial;
    operands.y_strides = tensor_strides(problem_.geometry, dense_strides(inner));

    // All book-keeping is allocated before any part of y is written, so that nothing can fail afterwards.
    std::vector<std::int64_t> out_extents, at(leading_, 0), tap_extents(leading_), tap(leading_);
    std::vector<std::int64_t> position(inner.size()), strides(t.y_strides.begin(), t.y_strides.end());
    std::vector<Taps> taps(leading_);
    for (std::size_t a = 0; a < leading_; a++) out_extents.push_back(geometry_.axes[a].out);
    strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(first_axis),
                  strides.begin() + static_cast<std::ptrdiff_t>(first_axis + leading_));
    do {
        std::fill(position.begin(), position.end(), 0);
        for (std::size_t i = 0; i < elements; i++) {
            total[i] = bias_in_sum ? bias_of(static_cast<std::size_t>(position[channel])) : 0;
            next(inner, &position);
        }
        bool any = true;
        for (std::size_t a = 0; a < leading_; a++) {
            taps[a] = taps_of(geometry_.axes[a], at[a] % geometry_.axes[a].stride);
            tap_extents[a] = taps[a].count;
            any = any && taps[a].count > 0;
        }
        std::fill(tap.begin(), tap.end(), 0);
        if (any) {
            do {
                std::int64_t element = 0, offset = 0;
                bool inside = true;
                for (std::size_t a = 0; a < leading_; a++) {
                    const AxisGeometry &axis = geometry_.axes[a];
                    const std::int64_t i = at[a] / axis.stride + taps[a].offset + tap[a] * axis.offset_step;
                    inside = inside && i >= 0 && i < axis.in;
                    offset += i * t.x_strides[first_axis + a];
                    element = element * axis.kernel + taps[a].kernel_begin + tap[a] * axis.kernel_step;
                }
                if (!inside) continue;
                operands.x = static_cast<const char *>(t.x) + offset * x_size;
                operands.packed = packed + element * static_cast<std::int64_t>(direct.packed_bytes());
                if (epilogue)
                    operands.epilogue = epilogue + element * static_cast<std::int64_t>(direct.epilogue_bytes());
                direct.run(operands, settings_.parallel);
                for (std::size_t i = 0; i < elements; i++) {
                    total[i] += load(problem_.y_dtype, partial + i * convt_dtype_size(problem_.y_dtype));
                }
            } while (next(tap_extents, &tap));
        }
        std::int64_t y_offset = 0;
        for (std::size_t a = 0; a < leading_; a++) y_offset += at[a] * t.y_strides[first_axis + a];
        std::fill(position.begin(), position.end(), 0);
        for (std::size_t i = 0; i < elements; i++) {
            std::int64_t to = y_offset;
            for (std::size_t d = 0; d < inner.size(); d++) to += position[d] * strides[d];
            char *const y = static_cast<char *>(t.y) + to * y_size;
            if (q) {
                const auto m = position[channel];
                const double addend = bias_in_sum ? 0 : bias_of(static_cast<std::size_t>(m));
                requantize(geometry_, total[i], factor_of(*q, geometry_, m), static_cast<float>(addend), operands.range,
                           y);
            } else {
                store(geometry_.dtype, total[i], y);
            }
            next(inner, &position);
        }
    } while (next(out_extents, &at));
}

} // namespace convtranspose
