// Runs of the direct algorithm: its direct plan runs once, or once for each position and tap of the leading axes.
#include <algorithm>

#include "algorithms/direct.h"
#include "base/error.h"
#include "base/half.h"
#include "base/shape.h"
#include "base/tensor_copy.h"

namespace convtranspose {

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

// A run over the leading axes: each of their positions is the sum of the direct plan's results over the taps of those axes.
class Direct::LeadingRun {
  public:
    // operands: those of the whole layer. workspace: partial_bytes_ long. All book-keeping is allocated here, before any part of y is
    // written, so that nothing can fail afterwards.
    LeadingRun(const Direct &plan, const DirectPlan &direct, const RunTensors &t, const DirectPlan::Operands &operands,
               char *workspace)
        : plan_(plan), direct_(direct), t_(t), operands_(operands), packed_(static_cast<const char *>(operands.packed)),
          epilogue_(static_cast<const char *>(operands.epilogue)), first_axis_(plan.geometry_.dimensions().first_axis),
          q_(t.quantization ? t.quantization : plan.quantization_),
          b_(static_cast<const char *>(plan.packed_ ? plan.packed_->bias.data() : t.b)),
          bias_in_sum_(!(q_ && plan.geometry_.y_dtype == CONVT_F32)), inner_(plan.geometry_.y_shape),
          partial_(workspace), at_(plan.leading_, 0), tap_extents_(plan.leading_), tap_(plan.leading_),
          strides_(t.y_strides.begin(), t.y_strides.end()), taps_(plan.leading_) {
        const Geometry &g = plan.problem_.geometry;
        const auto first = static_cast<std::ptrdiff_t>(first_axis_),
                   end = first + static_cast<std::ptrdiff_t>(plan.leading_);
        out_extents_.assign(inner_.begin() + first, inner_.begin() + end);
        inner_.erase(inner_.begin() + first, inner_.begin() + end);
        strides_.erase(strides_.begin() + first, strides_.begin() + end);
        elements_ = static_cast<std::size_t>(volume(inner_));
        channel_ = dimension_order(g.layout, inner_.size()).channel;
        total_ = reinterpret_cast<double *>(partial_ + round_up(elements_ * convt_dtype_size(plan.problem_.y_dtype)));
        operands_.y = partial_;
        operands_.y_strides = tensor_strides(g, dense_strides(inner_));
        position_.resize(inner_.size());
    }

    void run() {
        do {
            begin_sums();
            add_taps();
            store_sums();
        } while (next(out_extents_, &at_));
    }

  private:
    double bias_of(std::int64_t m) const {
        const convt_dtype dtype = plan_.geometry_.b_dtype;
        return b_ ? load_element(dtype, b_ + static_cast<std::size_t>(m) * convt_dtype_size(dtype)) : 0;
    }

    void begin_sums() {
        std::fill(position_.begin(), position_.end(), 0);
        for (std::size_t i = 0; i < elements_; i++) {
            total_[i] = bias_in_sum_ ? bias_of(position_[channel_]) : 0;
            next(inner_, &position_);
        }
    }

    void add_taps() {
        bool any = true;
        for (std::size_t a = 0; a < plan_.leading_; a++) {
            taps_[a] = taps_of(plan_.geometry_.axes[a], at_[a] % plan_.geometry_.axes[a].stride);
            tap_extents_[a] = taps_[a].count;
            any = any && taps_[a].count > 0;
        }
        std::fill(tap_.begin(), tap_.end(), 0);
        while (any) {
            add_tap();
            any = next(tap_extents_, &tap_);
        }
    }

    void add_tap() {
        std::int64_t element = 0, offset = 0;
        for (std::size_t a = 0; a < plan_.leading_; a++) {
            const AxisGeometry &axis = plan_.geometry_.axes[a];
            const std::int64_t i = at_[a] / axis.stride + taps_[a].offset + tap_[a] * axis.offset_step;
            if (i < 0 || i >= axis.in) return;
            offset += i * t_.x_strides[first_axis_ + a];
            element = element * axis.kernel + taps_[a].kernel_begin + tap_[a] * axis.kernel_step;
        }
        const std::int64_t x_size = size_of(plan_.geometry_.dtype);
        operands_.x = static_cast<const char *>(t_.x) + offset * x_size;
        operands_.packed = packed_ + element * static_cast<std::int64_t>(direct_.packed_bytes());
        if (epilogue_) operands_.epilogue = epilogue_ + element * static_cast<std::int64_t>(direct_.epilogue_bytes());
        direct_.run(operands_, plan_.settings_.parallel);
        const convt_dtype dtype = plan_.problem_.y_dtype;
        for (std::size_t i = 0; i < elements_; i++)
            total_[i] += load_element(dtype, partial_ + i * convt_dtype_size(dtype));
    }

    void store_sums() {
        const Geometry &g = plan_.geometry_;
        const std::int64_t y_size = size_of(g.y_dtype);
        std::int64_t y_offset = 0;
        for (std::size_t a = 0; a < plan_.leading_; a++) y_offset += at_[a] * t_.y_strides[first_axis_ + a];
        std::fill(position_.begin(), position_.end(), 0);
        for (std::size_t i = 0; i < elements_; i++) {
            std::int64_t to = y_offset;
            for (std::size_t d = 0; d < inner_.size(); d++) to += position_[d] * strides_[d];
            char *const y = static_cast<char *>(t_.y) + to * y_size;
            if (q_) {
                const std::int64_t m = position_[channel_];
                const auto addend = static_cast<float>(bias_in_sum_ ? 0 : bias_of(m));
                requantize(g, total_[i], factor_of(*q_, g, m), addend, operands_.range, y);
            } else {
                store_element(g.dtype, total_[i], y);
            }
            next(inner_, &position_);
        }
    }

    const Direct &plan_;
    const DirectPlan &direct_;
    const RunTensors &t_;
    DirectPlan::Operands operands_;
    const char *const packed_, *const epilogue_; // of all elements of the leading axes
    const std::size_t first_axis_;               // the first leading axis of x and y
    const QuantizationValues *const q_;
    const char *const b_;
    const bool
        bias_in_sum_; // if sums of integers become an f32 y, the bias is added after the multiplication by the scales
    Shape inner_;     // y at one position of the leading axes, in the layout of y
    std::size_t elements_ = 0, channel_ = 0;
    char *const partial_; // the direct plan's result, dense
    double *total_ = nullptr;
    std::vector<std::int64_t> out_extents_, at_, tap_extents_, tap_, position_, strides_;
    std::vector<Taps> taps_;
};

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
        LeadingRun(*this, *direct, t, operands, direct_workspace + direct_bytes_).run();
    } else if (dense_y_bytes_ && operands.y_strides.axes[0] != 1 && geometry_.axes.back().out > 1) {
        operands.y = direct_workspace + direct_bytes_;
        const Strides dense = dense_strides(geometry_.y_shape);
        operands.y_strides = tensor_strides(problem_.geometry, dense);
        direct->run(operands, settings_.parallel);
        copy_tensor(geometry_.y_shape, convt_dtype_size(geometry_.y_dtype), operands.y, dense, t.y, t.y_strides);
    } else {
        direct->run(operands, settings_.parallel);
    }
    return Status();
}

} // namespace convtranspose
