#include "direct/direct_plan.h"

#include <algorithm>

#include "base/allocator.h"
#include "base/division.h"
#include "kernel_contract/fetching.h"
#include "kernels/kernel_tables.h"
#include "selection/candidates.h"

namespace convtranspose {

DirectPlan::OperandTypes DirectPlan::types_of(const Variant &v) {
    const halide_type_t s32(halide_type_int, 32), s16(halide_type_int, 16), sum = type_of(sum_dtype(v));
    if (v.arithmetic == Arithmetic::kBf16) return {type_of(CONVT_BF16), type_of(CONVT_BF16), type_of(CONVT_F32)};
    if (v.arithmetic == Arithmetic::kInt8) return {type_of(CONVT_S8), type_of(kByteX), s32};
    if (v.arithmetic == Arithmetic::kInt16) return {s16, s16, s32};
    return {has_light_weights(v.arithmetic) ? type_of(light_dtype(v.arithmetic)) : sum, sum, sum};
}

TensorStrides tensor_strides(const Geometry &geometry, const Strides &strides) {
    TensorStrides s;
    const DimensionOrder at = dimension_order(geometry.layout, strides.size());
    s.n = strides.front();
    s.c = strides[at.channel];
    for (std::size_t a = 0; a < std::min(geometry.axes.size(), s.axes.size()); a++)
        s.axes[a] = strides[at.last_axis - a];
    return s;
}

DirectPlan::DirectPlan(const SpatialProblem &problem, const Candidate &choice, const CostProfile &profile, int threads,
                       const PackedLayout *packed)
    : variant_(choice.variant), problem_(problem), reads_x_(choice.reads_x), in_place_(choice.in_place) {
    const Variant &v = *variant_;
    const Geometry &g = problem.geometry;
    whole_ = {v.stride_w != 0, v.stride_h != 0, false};
    fetches_x_ =
        g.layout == CONVT_CHANNELS_FIRST ? fetches_copied(g.x_bytes(), g.in_channels) : g.x_bytes() >= kLeavesLastCache;
    packed_ = packed ? *packed : packing_of(v);
    for (std::size_t a = 0; a < 3; a++) {
        axes_[a] = whole_[a] ? plan_axis(problem.plan[a].geometry, problem.weight_stride[a], true) : problem.plan[a];
        if (a == 0 && pairs_taps(v)) pair_taps(&axes_[a]);
        if (a == 0 && has_vectors_of_phases(v)) put_phases_inside(&axes_[a]);
        packed_.taps[a] = axes_[a].element_count() / (axes_[a].paired ? 2 : 1);
    }
    packed_.group = g.group;
    packed_.ic = problem.ic();
    packed_.oc = problem.oc();
    if (choice.narrower_ends) narrower_ = narrower_tiles(v);
    copy_order_ = copy_order(v, g.layout);
    const CopyOrder order = pairs_taps(v) ? CopyOrder::kPlanar : copy_order_; // copy_parts() says why
    const convt_dtype x_bits = is_float(v.arithmetic) ? problem.geometry.dtype : CONVT_U8;
    copy_ = transposes() ? find_copy(v.isa, CopyOrder::kTransposed, v.arithmetic, x_bits, 1)
                         : find_copy(v.isa, order, has_light_weights(v.arithmetic) ? Arithmetic::kFloat : v.arithmetic,
                                     x_bits, static_cast<int>(x_block()));
    plan_strips(profile, threads);
    if (rounds_y(v, problem.y_dtype)) plan_pieces(threads);
    if (is_float(v.arithmetic)) return;
    const EpilogueLayout epilogue = epilogue_of({packed_, axes_});
    const std::int64_t biases =
        capped_product({epilogue.classes[0], epilogue.classes[1], epilogue.classes[2], epilogue.biases});
    if (biases > kMostElements) overflow_ = too_large("its biases are # elements; a kernel counts up to #", biases);
}

std::uint64_t DirectPlan::weight_bytes() const {
    std::int64_t elements = packed_.weights();
    if (multiplies_by_element(variant_->isa))
        elements += packed_.block * std::max<std::int64_t>(packed_.oc_tile, 1); // kernels may load a channel more
    return round_up(elements * weight_size(*variant_));
}

std::uint64_t DirectPlan::packed_bytes() const {
    std::int64_t bytes = packed_.biases() * types_of(*variant_).bias.bytes();
    if (packed_.arithmetic == Arithmetic::kInt8) bytes = packed_.biases() * packed_.taps_volume() * 4;
    if (packed_.arithmetic == Arithmetic::kInt16) bytes = 0;
    if (packed_.arithmetic == Arithmetic::kS8Weights) bytes *= 2; // scales are packed behind the biases
    return weight_bytes() + round_up(bytes);
}

std::uint64_t DirectPlan::epilogue_bytes() const {
    return is_float(packed_.arithmetic) ? 0 : round_up(epilogue_of({packed_, axes_}).bytes());
}

bool DirectPlan::pack(const WeightsView &w, const void *bias, void *packed) const {
    return pack_weights({packed_, axes_}, problem_.geometry.dtype, problem_.geometry.light, w, bias, packed,
                        static_cast<char *>(packed) + weight_bytes());
}

void DirectPlan::pack(const WeightsView &w, const QuantizationValues &q, void *packed) const {
    void *const sums = static_cast<char *>(packed) + weight_bytes();
    pack_quantized({packed_, axes_}, problem_.geometry, q, w, packed, static_cast<std::int32_t *>(sums));
}

void DirectPlan::unpack(const WeightsView &w, const QuantizationValues *q, const void *packed, void *w_out) const {
    unpack_weights({packed_, axes_}, problem_.geometry.dtype, problem_.geometry.light, q, packed, w, w_out);
}

void DirectPlan::prepare(const QuantizationValues &q, const void *packed, const void *bias, void *epilogue) const {
    const void *const sums = static_cast<const char *>(packed) + weight_bytes();
    make_epilogue({packed_, axes_}, problem_.geometry, q, static_cast<const std::int32_t *>(sums), bias, epilogue);
}

bool DirectPlan::transposes() const {
    return copy_order_ == CopyOrder::kToChannels && variant_->arithmetic == Arithmetic::kBf16;
}

std::int64_t DirectPlan::x_block() const { return block_of(*variant_); }

std::int64_t DirectPlan::x_blocks() const { return packed_.blocks() * packed_.block / x_block(); }

std::int64_t DirectPlan::copied_channels() const {
    const std::int64_t padding = packed_.groups() - packed_.group; // of groups in vectors, which are never taken apart
    return (groups_ + padding) * packed_.blocks() * packed_.block;
}

bool DirectPlan::copies_channels_inside() const {
    return copy_order_ == CopyOrder::kChannels || copy_order_ == CopyOrder::kToChannels;
}

// Kernels multiply positions by strides in 32 bits, also positions before x from which a call counts (kernel_call.cpp).
UnsupportedReason DirectPlan::overflow_of_strides(const TensorStrides &x) const {
    if (reads_x_ == ReadsX::kCopy) return {};
    for (std::size_t a = 0; a < 3; a++) {
        const AxisPlan &axis = axes_[a];
        const std::int64_t before =
            std::clamp<std::int64_t>(tile_along(*variant_, a) - 1 - axis.low, 0, axis.q_extent() - 1);
        if (axis.geometry.in < 2 || before * x.axes[a] <= kMostElements) continue;
        return too_large("taps reach # elements before x, whose strides are large; a kernel counts up to #",
                         before * x.axes[a]);
    }
    return {};
}

void DirectPlan::run(const Operands &o, const Parallel &parallel) const {
    if (axes_[strip_axis_].q_extent() == 0) return;
    const std::int64_t count = strip_count();
    char *const copies = static_cast<char *>(o.workspace), *const pieces = copies + workers_ * copy_bytes_;
    if (are_filled_alike()) fill_copies(o, copies, parallel);
    if (workers_ <= 1) {
        for (std::int64_t i = 0; i < count; i++) run_strip(i, o, {copies, pieces}, parallel);
        return;
    }
    parallel.for_each_by(workers_, count, [&](std::int64_t i, std::int64_t worker) {
        run_strip(i, o, {copies + worker * copy_bytes_, pieces + worker * piece_bytes_}, Parallel());
    });
}

// Returns whether no tap leaves x in the strip. Taps that the kernel skips do not count; a kernel that reads x for whole tiles must
// find all of them inside.
bool DirectPlan::is_inside(const Strip &s) const {
    for (std::size_t a = 0; a < 3; a++) {
        if (skips_outside(*variant_, a)) continue;
        std::int64_t end = s.x_min[a] + s.x_extent[a];
        if (a == 0 && strip_axis_ == 0 && whole_[0])
            end += ceil_div(s.q_end - s.q_begin, strip_tile_) * strip_tile_ - (s.q_end - s.q_begin);
        if (s.x_min[a] < 0 || end > axes_[a].geometry.in) return false;
    }
    return true;
}

void DirectPlan::run_strip(std::int64_t i, const Operands &o, const Memory &memory, const Parallel &parallel) const {
    const std::int64_t at = i % strips_, of_axis = i / strips_, first_image = of_axis / group_parts() * images_,
                       first_group = of_axis % group_parts() * groups_;
    Strip s = strip(std::min(images_, problem_.geometry.batch - first_image),
                    std::min(groups_, packed_.group - first_group), strip_begin(at), strip_begin(at + 1));
    s.first_image = first_image;
    s.first_group = first_group;
    StripParts parts = parts_of_rows(s);
    char *copy = memory.copy;
    for (std::size_t k = 0; k < parts.count; k++) {
        Strip &part = parts.part[k];
        if (is_copied(part)) {
            locate_copy(&part, copy);
            copy_strip(part, o, parallel);
            copy += copied_elements(part) * operand_size(*variant_);
        } else {
            locate_in_place(&part, o);
        }
    }
    compute_strip(parts, o, memory.pieces, parallel);
}

bool DirectPlan::is_copied(const Strip &s) const {
    switch (reads_x_) {
    case ReadsX::kInPlace: return false;
    case ReadsX::kCopy: return true;
    case ReadsX::kCopyOfEdgeStrips: return !is_inside(s);
    case ReadsX::kCopyOfRowEnds: return s.columns.begin != in_place_.begin;
    }
    return true;
}

void DirectPlan::locate_in_place(Strip *s, const Operands &o) const {
    s->strides = o.x_strides;
    s->group_stride = packed_.ic * s->strides.c;
    s->strides.c *= x_block();
    const std::int64_t x_size = size_of(problem_.geometry.dtype);
    s->x = element_at(o.x, s->first_image * o.x_strides.n + s->first_group * s->group_stride, x_size);
    if (variant_->family == Family::kReference) return;
    for (std::size_t a = 0; a < 3; a++) {
        if (skips_outside(*variant_, a)) { // such kernels do not read around x
            const std::int64_t in = axes_[a].geometry.in,
                               end = std::clamp<std::int64_t>(s->x_min[a] + s->x_extent[a], 0, in);
            s->x_min[a] = std::clamp<std::int64_t>(s->x_min[a], 0, end);
            s->x_extent[a] = end - s->x_min[a];
        }
        s->x += s->x_min[a] * o.x_strides.axes[a] * x_size;
    }
}

DirectPlan::StripParts DirectPlan::parts_of_rows(const Strip &s) const {
    StripParts parts;
    const AxisPlan &w = axes_[0];
    const auto add = [&](std::int64_t begin, std::int64_t end) {
        if (begin >= end) return;
        Strip &part = parts.part[parts.count++];
        part = s;
        part.columns = {begin, end};
        if (reads_x_ != ReadsX::kCopyOfRowEnds) return;
        part.x_min[0] = begin + w.low;
        part.x_extent[0] = end + w.high - 1 - part.x_min[0];
    };
    add(0, in_place_.begin);
    add(in_place_.begin, in_place_.end);
    add(in_place_.end, w.q_extent());
    return parts;
}

} // namespace convtranspose
