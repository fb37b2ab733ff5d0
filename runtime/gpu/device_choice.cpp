#include "gpu/device_choice.h"

#include <algorithm>
#include <cmath>

#include "base/division.h"
#include "base/error.h"
#include "kernels/post_ops.h"

namespace convtranspose {

namespace {

constexpr std::int64_t kMostBlocks = 65535;         // limit of the second and third axis of a grid
constexpr int kMostParts = 32;                      // that sums are split into
constexpr std::int64_t kMostPositions = 2147480000; // so that adding a tile does not overflow

std::int64_t axis_product(const std::array<AxisPlan, 3> &axes, std::int64_t (*f)(const AxisPlan &)) {
    return f(axes[0]) * f(axes[1]) * f(axes[2]);
}

double terms_per_output(const std::array<AxisPlan, 3> &axes) { // average over the phases
    double terms = 1;
    for (const AxisPlan &a : axes) terms *= a.taps / static_cast<double>(a.phases);
    return terms;
}

const DeviceVariant *find_combine(const DeviceTable &table, convt_dtype parts, convt_dtype y) {
    for (std::size_t i = 0; i < table.variant_count; i++) {
        const DeviceVariant &v = table.variants[i];
        if (v.family == DeviceFamily::kCombine && v.x_dtype == parts && v.y_dtype == y) return &v;
    }
    return nullptr;
}

convt_dtype as_table(convt_dtype dtype) { return dtype == CONVT_S8 ? CONVT_U8 : dtype; }

// Returns the reason why the variant cannot compute the problem, no matter how sums are split; no text: it can.
UnsupportedReason unsupported_reason(const DeviceVariant &v, const DeviceQuestion &q) {
    const Geometry &g = q.geometry;
    if (v.family == DeviceFamily::kCombine) return {"adds up what others compute"};
    if (v.integers != g.quantized()) return {v.integers ? "computes with integers" : "computes with floats"};
    if (v.x_dtype != as_table(g.dtype)) return {"reads another type"};
    if (v.x_dtype == CONVT_F64 && !q.device.has_f64) return {"the device has no f64"};
    const bool each = v.family == DeviceFamily::kEach;
    if (q.packed && !same_packing(*q.packed, packing_of(v, g))) return {"weights are packed in another order"};
    if (!each && !q.finite) return {"a weight is inf or NaN, which the zeros around x must not meet"};
    if (v.block > 1 && !q.fits_int8) return {"weights less their zero points, or sums with that of x, do not fit"};
    if (!each && g.in_channels_per_group() == 0) return {"x has no elements"};
    const std::array<AxisPlan, 3> &axes = q.axes;
    const std::int64_t tiles =
        each ? ceil_div(g.out_channels, v.tile_oc) : g.group * ceil_div(g.out_channels_per_group(), v.tile_oc);
    if (tiles > kMostBlocks) return {"# tiles of output channels, a grid has #", tiles, kMostBlocks};
    for (const AxisPlan &axis : axes) {
        if (!axis.fits_kernels()) return {"positions of x do not fit in 32 bits"};
    }
    const std::int64_t phases = axis_product(axes, [](const AxisPlan &a) { return a.phases; });
    if (!each && phases > kMostBlocks) return {"# phases, a grid has #", phases, kMostBlocks};
    const std::int64_t positions =
        g.batch * (each ? axis_product(axes, [](const AxisPlan &a) { return a.geometry.out; })
                        : axis_product(axes, [](const AxisPlan &a) { return a.q_extent(); }));
    if (positions > kMostPositions) return {"# positions", positions};
    return {};
}

// Returns what a kernel has to do, with sums over input channels in so many parts.
DeviceWork work_of(const DeviceVariant &v, const DeviceQuestion &q, int parts) {
    const Geometry &g = q.geometry;
    const std::array<AxisPlan, 3> &axes = q.axes;
    const auto per_axis = [&](std::int64_t (*f)(const AxisPlan &)) {
        return static_cast<double>(axis_product(axes, f));
    };
    const auto tiles = [](double n, int tile) { return std::ceil(n / tile); };
    const double images = static_cast<double>(g.batch), oc = static_cast<double>(g.out_channels),
                 ic = static_cast<double>(g.in_channels_per_group()), groups = static_cast<double>(g.group);
    const double outputs = images * per_axis([](const AxisPlan &a) { return a.geometry.out; });
    const double taps = per_axis([](const AxisPlan &a) { return static_cast<std::int64_t>(a.elements.size()); });
    const double x_bytes = images * groups * ic * per_axis([](const AxisPlan &a) { return a.geometry.in; }) *
                           static_cast<double>(size_of(g.dtype)),
                 w_bytes = taps * ic * oc * static_cast<double>(bytes_of_weight(v)),
                 y_bytes = outputs * oc * static_cast<double>(size_of(v.y_dtype));
    DeviceWork work;
    work.bytes = x_bytes + w_bytes + y_bytes * parts;
    if (v.family == DeviceFamily::kEach) {
        work.blocks = tiles(oc, v.tile_oc) * tiles(outputs, v.tile_p);
        work.steps = terms_per_output(axes) * ic;
    } else {
        const double positions = images * per_axis([](const AxisPlan &a) { return a.q_extent(); });
        const double phases = per_axis([](const AxisPlan &a) { return a.phases; });
        work.blocks = tiles(positions, v.tile_p) * groups * tiles(oc / groups, v.tile_oc) * phases * parts;
        work.steps = terms_per_output(axes) * std::ceil(std::ceil(ic / v.chunk) / parts);
    }
    // Parts and y are read and written once more, by the kernel that adds parts up.
    if (parts > 1) work.combined_bytes = outputs * oc * static_cast<double>(size_of(v.y_dtype)) * (parts + 1);
    const bool neighbours = v.family == DeviceFamily::kEach ? v.along_channels == g.y_channels_last()
                                                            : v.along_channels == (g.layout == CONVT_CHANNELS_LAST);
    work.strided = !neighbours;
    return work;
}

// Returns the cycles that a kernel takes: those of a multiprocessor that is full, those that the last block to start waits for, or
// those that memory takes, whichever are most.
double cycles_of(const DeviceTable &table, const DeviceVariant &v, const DeviceWork &work, int multiprocessors) {
    const DeviceCosts &costs = table.costs;
    const double blocks = std::ceil(work.blocks / multiprocessors),
                 rounds = std::ceil(blocks / v.costs.resident_blocks);
    const double strided = work.strided ? costs.strided : 1, bandwidth = costs.bytes_per_cycle * multiprocessors;
    const double full = blocks * work.steps * v.costs.step_cycles * strided;
    const double waiting = rounds * (v.costs.block_latency + work.steps * v.costs.step_latency);
    const double combined = work.combined_bytes > 0 ? costs.launch_cycles + work.combined_bytes / bandwidth : 0;
    return costs.launch_cycles + std::max({full, waiting, work.bytes / bandwidth}) + combined;
}

// Appends the choices by which a variant that supports the problem can compute it.
void append_choices(const DeviceTable &table, const DeviceVariant &v, const DeviceQuestion &q,
                    std::vector<DeviceChoice> *list) {
    const Geometry &g = q.geometry;
    const convt_dtype y = as_table(g.y_dtype), sum = sum_dtype(g.dtype);
    const bool each = v.family == DeviceFamily::kEach;
    DeviceChoice whole = {v.name, &v, nullptr, 1, {}, {}, 0};
    const auto estimate = [&](DeviceChoice *choice) {
        choice->work = work_of(v, q, choice->splits);
        choice->cost = cycles_of(table, v, choice->work, q.device.multiprocessors);
    };
    estimate(&whole);
    if (v.y_dtype != y) whole.unsupported = {"writes another type"};
    if (has_post_ops(g.post_ops)) {
        whole.combine = find_combine(table, y, y);
        if (!whole.combine) whole.unsupported = {"nothing that does the post-ops is built in"};
    }
    const std::size_t before = list->size();
    if (!whole.unsupported.text) list->push_back(whole);
    // If sums are split, their parts are stored and then added up by another kernel.
    const DeviceVariant *const adds_up = find_combine(table, sum, y);
    if (!each && !v.integers && v.y_dtype == sum && adds_up) {
        const std::int64_t chunks = ceil_div(g.in_channels_per_group(), v.chunk);
        const std::int64_t y_elements =
            g.batch * g.out_channels * axis_product(q.axes, [](const AxisPlan &a) { return a.geometry.out; });
        for (int parts = 2; parts <= kMostParts && chunks / 2 >= parts && y_elements <= INT32_MAX / parts; parts *= 2) {
            DeviceChoice choice = {concat(v.name, ":", parts), &v, adds_up, parts, {}, {}, 0};
            estimate(&choice);
            list->push_back(choice);
        }
    }
    if (list->size() == before) list->push_back(whole);
}

} // namespace

std::size_t bytes_of_weight(const DeviceVariant &v) {
    return v.block > 1 ? 1 : v.integers ? 2 : convt_dtype_size(sum_dtype(v.x_dtype));
}

PackedLayout packing_of(const DeviceVariant &v, const Geometry &g) {
    const bool of_groups = v.along_channels && g.in_channels_per_group() == 1 && g.out_channels_per_group() == 1;
    PackedLayout packing;
    packing.arithmetic = !v.integers ? Arithmetic::kFloat : v.block > 1 ? Arithmetic::kInt8 : Arithmetic::kInt16;
    packing.block = v.block;
    packing.oc_tile = v.family != DeviceFamily::kEach ? v.tile_oc : of_groups ? 0 : 1;
    return packing;
}

std::vector<DeviceChoice> device_choices(const DeviceTable &table, const DeviceQuestion &q) {
    std::vector<DeviceChoice> list;
    for (std::size_t i = 0; i < table.variant_count; i++) {
        const DeviceVariant &v = table.variants[i];
        const UnsupportedReason unsupported = unsupported_reason(v, q);
        if (unsupported.text) {
            list.push_back({v.name, &v, nullptr, 1, unsupported, {}, 0});
        } else {
            append_choices(table, v, q, &list);
        }
    }
    return list;
}

} // namespace convtranspose
