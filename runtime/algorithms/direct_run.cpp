// Runs of the direct algorithm: its direct plan runs once, or once for each position and tap of the leading axes.
#include <algorithm>

#include "algorithms/direct.h"
#include "base/error.h"
#include "base/half.h"
#include "base/shape.h"

namespace convtranspose {

// Returns the direct plan that is right for the run's weights; null: the plan that they need would overflow.
const DirectPlan *Direct::direct_for(const RunTensors &t, void *workspace) const {
    if (!weights_at_run_time() || !geometry_.quantized() || direct_->variant().family == Family::kReference)
        return direct_.get();
    const WeightFacts facts = examine_weights(geometry_, *t.quantization, t.w, t.b, workspace);
    const auto allowed = [&](const DirectPlan &direct) {
        if (direct.variant().family == Family::kReference) return true;
        return direct.variant().arithmetic == Arithmetic::kInt8 ? facts.fits_int8 && facts.fits_int32
                                                                : facts.fits_int32;
    };
    if (allowed(*direct_)) return direct_.get();
    const auto found = std::find_if(fallbacks_.begin(), fallbacks_.end(), allowed);
    return found == fallbacks_.end() ? nullptr : &*found;
}

// Runs over the leading axes: each of their positions is the sum of the direct plan's results over the taps of those axes.
// operands: those of the whole layer. partial: partial_bytes_ long. All book-keeping is allocated before any part of y is
// written, so that nothing can fail afterwards.
void Direct::run_leading(const DirectPlan &direct, const RunTensors &t, DirectOperands operands, char *partial) const {
    const QuantizationValues *const q = t.quantization ? t.quantization : quantization_;
    const void *const b = packed_ ? packed_->bias.data() : t.b;
    // Those of all elements of the leading axes.
    const void *const packed = operands.packed;
    const void *const epilogue = operands.epilogue;
    // If sums of integers become an f32 y, the bias is added after the multiplication by the scales.
    const bool bias_in_sum = !(q && geometry_.y_dtype == CONVT_F32);
    const std::size_t first_axis = geometry_.dimensions().first_axis;
    const auto first = static_cast<std::ptrdiff_t>(first_axis), end = first + static_cast<std::ptrdiff_t>(leading_);
    const Shape inner = inner_y_shape();
    const std::vector<std::int64_t> out_extents(geometry_.y_shape.begin() + first, geometry_.y_shape.begin() + end);
    std::vector<std::int64_t> strides(t.y.strides.begin(), t.y.strides.end());
    strides.erase(strides.begin() + first, strides.begin() + end);
    // Each index is at zeros when next() has passed the last.
    std::vector<std::int64_t> at(leading_), tap_extents(leading_), tap(leading_), position(inner.size());
    std::vector<Taps> taps(leading_);
    const std::int64_t elements = volume(inner), size = size_of(direct.variant().dtype);
    const std::size_t channel = dimension_order(geometry_.layout, inner.size()).channel;
    auto *const total = reinterpret_cast<double *>(partial + round_up(elements * sizeof(double)));
    operands.y = partial;
    operands.y_strides = tensor_strides(problem_.geometry, dense_strides(inner));

    const auto bias_of = [&](std::int64_t m) {
        const convt_dtype dtype = geometry_.b_dtype;
        return b ? load_element(dtype, element_at(b, m, size_of(dtype))) : 0;
    };
    const auto for_each_element = [&](const auto &f) {
        for (std::int64_t i = 0; i < elements; i++, next(inner, &position)) f(i);
    };
    const auto add_tap = [&] {
        std::int64_t element = 0, offset = 0;
        for (std::size_t a = 0; a < leading_; a++) {
            const AxisGeometry &axis = geometry_.axes[a];
            const std::int64_t i = at[a] / axis.stride + taps[a].offset + tap[a] * axis.offset_step();
            if (i < 0 || i >= axis.in) return;
            offset += i * t.x.strides[first_axis + a];
            element = element * axis.kernel + taps[a].kernel_begin + tap[a] * axis.kernel_step();
        }
        operands.x = element_at(t.x.data, offset, size_of(geometry_.dtype));
        operands.packed = element_at(packed, element, direct.packed_bytes());
        if (epilogue) operands.epilogue = element_at(epilogue, element, direct.epilogue_bytes());
        direct.run(operands, settings_.parallel);
        for (std::int64_t i = 0; i < elements; i++)
            total[i] += load_element(direct.variant().dtype, partial + i * size);
    };
    do {
        for_each_element([&](std::int64_t i) { total[i] = bias_in_sum ? bias_of(position[channel]) : 0; });
        bool any = true;
        std::int64_t y_offset = 0;
        for (std::size_t a = 0; a < leading_; a++) {
            taps[a] = leading_axes_[a].taps_of(at[a] % geometry_.axes[a].stride);
            tap_extents[a] = taps[a].count;
            any = any && taps[a].count > 0;
            y_offset += at[a] * t.y.strides[first_axis + a];
        }
        for (; any; any = next(tap_extents, &tap)) add_tap();
        for_each_element([&](std::int64_t i) {
            std::int64_t to = y_offset;
            for (std::size_t d = 0; d < inner.size(); d++) to += position[d] * strides[d];
            char *const y = element_at(t.y.data, to, size_of(geometry_.y_dtype));
            const std::int64_t m = position[channel];
            if (q) {
                const auto addend = static_cast<float>(bias_in_sum ? 0 : bias_of(m));
                requantize(geometry_, total[i], factor_of(*q, geometry_, m), addend, operands.range, y);
            } else {
                store_element(geometry_.dtype, total[i], y);
            }
        });
    } while (next(out_extents, &at));
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

    DirectOperands operands;
    operands.x = t.x.data;
    operands.x_strides = tensor_strides(problem_.geometry, t.x.strides);
    operands.y = t.y.data;
    operands.y_strides = tensor_strides(problem_.geometry, t.y.strides);
    operands.workspace = direct_workspace;
    operands.packed = packed_ ? packed_->block.data() : run_packed;
    if (!packed_ && !pack(*direct, {t.w, t.b}, q, run_packed) && !fallbacks_.empty()) {
        const bool is_packed = same_packing(direct->packed_layout(), fallbacks_.back().packed_layout());
        direct = &fallbacks_.back();
        if (!is_packed) pack(*direct, {t.w, t.b}, q, run_packed);
    }
    if (const UnsupportedReason unsupported = direct->overflow_of_strides(operands.x_strides); unsupported.text) {
        return Status(CONVT_OVERFLOW, to_string(unsupported));
    }
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
        operands.residual = t.residual.data;
        if (t.residual.data) operands.residual_strides = tensor_strides(problem_.geometry, t.residual.strides);
    }
    if (leading_) {
        run_leading(*direct, t, operands, direct_workspace + direct_bytes_);
    } else if (dense_y_bytes_ && operands.y_strides.axes[0] != 1 && geometry_.axes.back().out > 1) {
        operands.y = direct_workspace + direct_bytes_;
        const Strides dense = dense_strides(geometry_.y_shape);
        operands.y_strides = tensor_strides(problem_.geometry, dense);
        direct->run(operands, settings_.parallel);
        copy_tensor(geometry_.y_shape, size_of(geometry_.y_dtype), operands.y, dense, t.y.data, t.y.strides);
    } else {
        direct->run(operands, settings_.parallel);
    }
    return Status();
}

} // namespace convtranspose
