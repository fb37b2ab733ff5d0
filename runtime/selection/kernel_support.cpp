// Decides whether a variant can compute a problem, and says why not.
#include "selection/candidates.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/division.h"
#include "kernels/kernel_tables.h"

namespace convtranspose {

UnsupportedReason too_large(const char *text, std::int64_t elements) { return {text, elements, kMostElements, true}; }

namespace {

// Returns how the problem differs from the layer that is built into the variant. strides: those built in, per axis; 0: any.
UnsupportedReason unsupported_reason(const BuiltIn &b, const std::array<int, 3> &strides, const SpatialProblem &p) {
    if (b.ic && b.ic != p.ic()) return {"built for # input channels per group, and the layer has #", b.ic, p.ic()};
    if (b.oc && b.oc != p.oc()) return {"built for # output channels per group, and the layer has #", b.oc, p.oc()};
    for (std::size_t i = 0; i < 3; i++) {
        const BuiltInAxis &a = b.axes[i];
        const AxisPlan &plan = p.plan[i];
        const auto of_axis = [&](const char *text, std::int64_t first, std::int64_t second) {
            return UnsupportedReason{text, first, second, false, i};
        };
        if (a.out && a.out != plan.geometry.out)
            return of_axis("built for # @ of y, and the layer has #", a.out, plan.geometry.out);
        for (std::int64_t r = 0; a.count && r < plan.rows(); r++) {
            const std::int32_t count = plan.row(r)[kTapCount];
            if (count != a.count) return of_axis("built for # taps along %, and a phase has #", a.count, count);
        }
        if (!a.table) continue;
        if (a.phases != plan.phases || a.phases != plan.geometry.stride) {
            return of_axis("built for # phases of %, and the layer has #", a.phases,
                           std::min(plan.phases, plan.geometry.stride));
        }
        // If phases are a dimension of y, those with a position more than others take a call of their own, which built-in tables do
        // not allow.
        if (strides[i] == 0 && plan.geometry.out % a.phases != 0) {
            return of_axis("built for a multiple of # @ of y, and the layer has #", a.phases, plan.geometry.out);
        }
        if (a.step != plan.step) return of_axis("built for taps # @ apart, and these are # apart", a.step, plan.step);
        for (std::int64_t t = 0; t < std::int64_t{kTapColumns} * a.phases; t++) {
            if (a.table[t] != plan.table[static_cast<std::size_t>(t)]) {
                return of_axis("built for other taps along %: phase # differs in column # of the table",
                               t / kTapColumns, t % kTapColumns);
            }
        }
    }
    return {};
}

UnsupportedReason unsupported_types(const Variant &v, const SpatialProblem &p) {
    if (const UnsupportedReason reason = unsupported_arithmetic(v.arithmetic, p); reason.text) return reason;
    if (v.dtype != p.y_dtype && !rounds_y(v, p.y_dtype)) return {kOtherType};
    if (has_light_weights(v.arithmetic)) {
        const LightWeights &light = p.geometry.light;
        if (light.dtype != light_dtype(v.arithmetic)) return {kOtherType};
        if (p.weights_at_run_time) return {"weights arrive with each run"};
        // An algorithm may compute the layer through one of other output channels.
        const auto of_channels = static_cast<std::int64_t>(light.scales ? light.scales->size() : 1);
        if (of_channels != 1 && of_channels != p.geometry.out_channels) return {"the scales are of other channels"};
    }
    if (v.arithmetic == Arithmetic::kHalf && !p.sums_in_f16) return {"sums in f16 were not asked for"};
    if (v.arithmetic == Arithmetic::kBf16 && p.weights_at_run_time) return {"weights arrive with each run"};
    return {};
}

// Returns how far the two taps of a pair may be apart. The first may be one that no position meets inside x, so the copy of x
// reaches so far before what the others read, and must stay in proportion to x and y. Kernels take twice the distance in 32 bits.
std::int64_t farthest_pair(const AxisPlan &axis) {
    return std::min(axis.geometry.in + axis.q_extent(), kMostElements / 2);
}

// Checks what kernels need whose vectors are of phases of w.
UnsupportedReason unsupported_phases(const Variant &v, const SpatialProblem &p) {
    const AxisPlan &w = p.plan[0];
    if (w.geometry.stride != p.weight_stride[0]) return {"x has one column, so each tap is a phase of its own"};
    if (!has_equal_taps(w)) return {"phases of w have unequal numbers of taps"};
    for (const PhaseRun &run : w.runs) {
        if (run.count < v.lanes) return {"# neighbouring phases of w, fewer than a vector's #", run.count, v.lanes};
    }
    const Geometry &g = p.geometry;
    const std::int64_t weights = capped_product({2, g.in_channels, p.oc(), g.kernel_volume()}); // each is packed twice
    if (weights > kMostElements)
        return too_large("its packed weights have # elements; a kernel counts up to #", weights);
    return {};
}

// Checks what the families but the reference need of the layer.
UnsupportedReason unsupported_layer(const Variant &v, const SpatialProblem &p) {
    if (const UnsupportedReason reason = unsupported_values(v.arithmetic, p); reason.text) return reason;
    if (p.may_be_infinite && p.reads_outside()) {
        return {"a weight is inf or NaN, which the zeros around x must not meet"};
    }
    const AxisPlan &w = p.plan[0], &h = p.plan[1];
    const OutputOrder dense = p.geometry.y_channels_last() ? OutputOrder::kChannels : OutputOrder::kPlanar;
    switch (v.family) {
    case Family::kReference: break;
    case Family::kOcVectorized:
    case Family::kAmx:
        if (v.output_order == OutputOrder::kChannels && dense != OutputOrder::kChannels) return {"y is channels first"};
        if (v.output_order == OutputOrder::kPlanar && dense != OutputOrder::kPlanar) return {"y is channels last"};
        if (has_rows_of_channels(v) && p.geometry.layout == CONVT_CHANNELS_LAST) return {"x is channels last"};
        break;
    case Family::kOwVectorized:
        if (v.output_order != dense)
            return {dense == OutputOrder::kPlanar ? "y is channels first" : "y is channels last"};
        break;
    case Family::kSmallOc:
        if (dense != OutputOrder::kPlanar && p.geometry.out_channels > 1) return {"y is channels last"};
        if (!has_tap_offset_order(v) && (w.geometry.offset_step() != 1 || h.geometry.offset_step() != 1))
            return {"dilation does not divide stride"};
        if (v.stride_h != 0 && h.geometry.stride != v.stride_h) return {"stride of h is #", h.geometry.stride};
        break;
    case Family::kDepthwise:
        if (p.ic() != 1) return {"# input channels per group", p.ic()};
        if (v.stride_h != 0 && h.geometry.stride != v.stride_h) return {"stride of h is #", h.geometry.stride};
        if (pairs_taps(v) && w.geometry.stride != p.weight_stride[0])
            return {"x has one column, so each tap is a phase of its own"};
        if (pairs_taps(v) && w.geometry.offset_step() > farthest_pair(w))
            return {"taps in pairs would be # columns apart, more than the # that may be copied for them",
                    w.geometry.offset_step(), farthest_pair(w)};
        if (v.output_order == OutputOrder::kChannels) {
            if (p.geometry.layout != CONVT_CHANNELS_LAST || dense != OutputOrder::kChannels)
                return {"x or y is channels first"};
            if (p.oc() != 1) return {"# output channels per group", p.oc()};
            if (overlaps_groups(v) && p.geometry.group < packing_of(v).group_tile) {
                return {"# groups, fewer than the tile's #", p.geometry.group, packing_of(v).group_tile};
            }
        } else if (dense != OutputOrder::kPlanar) {
            return {"y is channels last"};
        } else if (has_vectors_of_phases(v)) {
            if (const UnsupportedReason reason = unsupported_phases(v, p); reason.text) return reason;
        }
        break;
    }
    if (v.stride_w == 0 && w.least_q_extent() < v.tile_q) {
        return {"a phase has # columns, fewer than the tile's #", w.least_q_extent(), v.tile_q};
    }
    if (h.least_q_extent() < v.tile_qh) {
        return {"a phase has # rows, fewer than the tile's #", h.least_q_extent(), v.tile_qh};
    }
    if (v.stride_w != 0 && w.geometry.stride != v.stride_w) return {"stride of w is #", w.geometry.stride};
    if (v.built_in) return unsupported_reason(*v.built_in, {v.stride_w, v.stride_h, 0}, p);
    return {};
}

} // namespace

UnsupportedReason unsupported_arithmetic(Arithmetic arithmetic, const SpatialProblem &p) {
    if (is_float(arithmetic) != p.geometry.quantized()) return {};
    return {p.geometry.quantized() ? "computes with floats" : "computes with integers"};
}

UnsupportedReason unsupported_values(Arithmetic arithmetic, const SpatialProblem &p) {
    if (!p.facts.fits_int32) return {"sums may not fit in 32 bits"};
    if (!p.facts.fits_int8 && arithmetic == Arithmetic::kInt8)
        return {"a weight less its zero point does not fit in 8 bits"};
    const auto is_empty = [](const AxisPlan &axis) { return axis.geometry.in == 0; };
    if (p.ic() == 0 || std::any_of(p.plan.begin(), p.plan.end(), is_empty)) return {"x has no elements"};
    return {};
}

// Checks the numbers of elements, which a kernel counts in 32 bits.
UnsupportedReason unsupported_sizes(const PackedLayout &packing, const SpatialProblem &p) {
    const auto whole = [](std::int64_t count, std::int64_t part) { return ceil_div(count, part) * part; };
    const std::int64_t group = p.geometry.group;
    const std::int64_t weights = capped_product(
        {packing.oc_tile ? group : whole(group, packing.group_tile),
         packing.oc_tile ? whole(p.oc(), packing.oc_tile) : 1, whole(p.ic(), packing.block * packing.blocks_at_once),
         p.plan[0].element_count(), p.plan[1].element_count(), p.plan[2].element_count()});
    if (weights > kMostElements)
        return too_large("its packed weights have # elements; a kernel counts up to #", weights);
    for (const AxisPlan &axis : p.plan) {
        if (!axis.fits_kernels()) {
            return too_large("positions of x reach up to #; a kernel counts up to #", axis.q_extent() + axis.high - 1);
        }
    }
    return {};
}

UnsupportedReason unsupported_reason(const Variant &v, const SpatialProblem &p) {
    UnsupportedReason reason = unsupported_types(v, p);
    if (!reason.text && v.family != Family::kReference) reason = unsupported_layer(v, p);
    if (!reason.text) reason = unsupported_sizes(packing_of(v), p);
    if (!reason.text && rounds_y(v, p.y_dtype) && !find_rounder(v.isa, CopyOrder::kPlanar, p.y_dtype).any)
        reason = {"no kernel that rounds its results is built in"};
    return reason;
}

std::string to_string(const UnsupportedReason &unsupported) {
    static constexpr const char *kExtents[3] = {"columns", "rows", "planes"}, *kAxes[3] = {"w", "h", "d"};
    std::string text;
    std::int64_t number = unsupported.first;
    for (const char *c = unsupported.text ? unsupported.text : ""; *c; c++) {
        if (*c == '#') {
            text += std::to_string(std::exchange(number, unsupported.second));
        } else if (*c == '@' || *c == '%') {
            text += (*c == '@' ? kExtents : kAxes)[unsupported.axis];
        } else {
            text += *c;
        }
    }
    return text;
}

} // namespace convtranspose
