#include "gpu/device_choice.h"

#include <algorithm>
#include <cmath>

#include "base/division.h"
#include "base/error.h"
#include "kernels/post_ops.h"

namespace convtranspose {

namespace {

constexpr std::int64_t kMostBlocks = 65535;               // limit of the second and third axis of a grid
constexpr int kMostPartsOfSum = 32;                       // that sums are split into
constexpr std::int64_t kMostPositionsOfGrid = 2147480000; // so that adding a tile does not overflow

// The work of a kernel is cut into tiles of output channels, phases and tiles of positions; `each` counts positions of all phases.
struct Grid {
    std::int64_t tiles, phases, positions;
};

Grid grid_of(const DeviceVariant &v, const SpatialProblem &p) {
    const Geometry &g = p.geometry;
    const auto product = [&](std::int64_t (*f)(const AxisPlan &)) {
        return f(p.plan[0]) * f(p.plan[1]) * f(p.plan[2]);
    };
    if (v.call == DeviceCall::kByOutput) {
        return {ceil_div(g.out_channels, v.tile_oc), 1,
                g.batch * product([](const AxisPlan &a) { return a.geometry.out; })};
    }
    return {g.group * ceil_div(p.oc(), v.tile_oc), product([](const AxisPlan &a) { return a.phases; }),
            g.batch * product([](const AxisPlan &a) { return a.q_extent(); })};
}

const DeviceVariant *find_combine(const DeviceTable &table, convt_dtype parts, convt_dtype y) {
    for (std::size_t i = 0; i < table.variant_count; i++) {
        const DeviceVariant &v = table.variants[i];
        if (v.call == DeviceCall::kCombine && v.x_dtype == parts && v.y_dtype == y) return &v;
    }
    return nullptr;
}

convt_dtype as_table(convt_dtype dtype) { return dtype == CONVT_S8 ? CONVT_U8 : dtype; }

// Returns the reason why the variant cannot compute the problem, no matter how sums are split; no text: it can.
UnsupportedReason unsupported_reason(const DeviceVariant &v, const DeviceFacts &device, const SpatialProblem &p,
                                     const PackedLayout *packed) {
    const Geometry &g = p.geometry;
    if (v.call == DeviceCall::kCombine) return {"adds up what others compute"};
    if (const UnsupportedReason reason = unsupported_arithmetic(v.arithmetic, p); reason.text) return reason;
    if (v.x_dtype != as_table(g.dtype)) return {"reads another type"};
    if (v.x_dtype == CONVT_F64 && !device.has_f64) return {"the device has no f64"};
    const bool each = v.call == DeviceCall::kByOutput;
    const PackedLayout packing = packing_of(v, g);
    if (packed && !same_packing(*packed, packing)) return {"weights are packed in another order"};
    // A tile is filled up with zeros even if no tap leaves x.
    if (!each && p.may_be_infinite) return {"a weight is inf or NaN, which the zeros around x must not meet"};
    UnsupportedReason reason = each ? UnsupportedReason() : unsupported_values(v.arithmetic, p);
    if (!reason.text) reason = unsupported_sizes(packing, p);
    if (reason.text) return reason;
    const Grid grid = grid_of(v, p);
    if (grid.tiles > kMostBlocks) return {"# tiles of output channels, a grid has #", grid.tiles, kMostBlocks};
    if (grid.phases > kMostBlocks) return {"# phases, a grid has #", grid.phases, kMostBlocks};
    if (grid.positions > kMostPositionsOfGrid)
        return {"# positions, a grid has #", grid.positions, kMostPositionsOfGrid};
    return {};
}

// Returns what a kernel has to do, with sums over input channels in so many parts.
DeviceWork work_of(const DeviceVariant &v, const SpatialProblem &p, int parts) {
    const Geometry &g = p.geometry;
    const Grid grid = grid_of(v, p);
    const bool each = v.call == DeviceCall::kByOutput;
    double taps = 1, terms = 1; // of all phases, and of an output, on average over the phases
    for (const AxisPlan &a : p.plan) {
        taps *= real(a.elements.size());
        terms *= a.taps / real(a.phases);
    }
    const double ic = real(p.ic());
    const double x_bytes = real(g.x_bytes()), w_bytes = taps * ic * real(g.out_channels * operand_size(v)),
                 y_bytes = real(volume(g.y_shape) * size_of(v.y_dtype));
    DeviceWork work;
    work.blocks = real(grid.tiles * grid.phases * parts) * real(ceil_div(grid.positions, v.tile_p));
    work.steps = terms * std::ceil(std::ceil(ic / v.chunk) / parts);
    work.bytes = x_bytes + w_bytes + y_bytes * parts;
    // Parts and y are read and written once more, by the kernel that adds parts up.
    if (parts > 1) work.combined_bytes = y_bytes * (parts + 1);
    work.strided = v.along_channels != (each ? g.y_channels_last() : g.layout == CONVT_CHANNELS_LAST);
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
void append_choices(const DeviceTable &table, const DeviceVariant &v, const DeviceFacts &device,
                    const SpatialProblem &p, std::vector<DeviceChoice> *list) {
    const Geometry &g = p.geometry;
    const convt_dtype y = as_table(g.y_dtype), sum = sum_dtype(g.dtype);
    const bool each = v.call == DeviceCall::kByOutput;
    DeviceChoice whole = {v.name, &v, nullptr, 1, {}, {}, 0};
    const auto estimate = [&](DeviceChoice *choice) {
        choice->work = work_of(v, p, choice->splits);
        choice->cost = cycles_of(table, v, choice->work, device.multiprocessors);
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
    if (!each && is_float(v.arithmetic) && v.y_dtype == sum && adds_up) {
        const std::int64_t chunks = ceil_div(g.in_channels_per_group(), v.chunk);
        const std::int64_t y_elements = volume(g.y_shape);
        // Parts and phases share an axis of the grid.
        const std::int64_t most = std::min(chunks / 2, kMostBlocks / std::max<std::int64_t>(grid_of(v, p).phases, 1));
        for (int parts = 2; parts <= kMostPartsOfSum && parts <= most && y_elements <= INT32_MAX / parts; parts *= 2) {
            DeviceChoice choice = {concat(v.name, ":", parts), &v, adds_up, parts, {}, {}, 0};
            estimate(&choice);
            list->push_back(choice);
        }
    }
    if (list->size() == before) list->push_back(whole);
}

} // namespace

PackedLayout packing_of(const DeviceVariant &v, const Geometry &g) {
    const bool of_groups = v.along_channels && g.in_channels_per_group() == 1 && g.out_channels_per_group() == 1;
    PackedLayout packing;
    packing.arithmetic = v.arithmetic;
    packing.block = block_of(v);
    packing.oc_tile = v.call != DeviceCall::kByOutput ? v.tile_oc : of_groups ? 0 : 1;
    return packing;
}

std::vector<DeviceChoice> device_choices(const DeviceTable &table, const DeviceFacts &device,
                                         const SpatialProblem &problem, const PackedLayout *packed) {
    std::vector<DeviceChoice> list;
    for (std::size_t i = 0; i < table.variant_count; i++) {
        const DeviceVariant &v = table.variants[i];
        const UnsupportedReason unsupported = unsupported_reason(v, device, problem, packed);
        if (unsupported.text) {
            list.push_back({v.name, &v, nullptr, 1, unsupported, {}, 0});
        } else {
            append_choices(table, v, device, problem, &list);
        }
    }
    return list;
}

} // namespace convtranspose
