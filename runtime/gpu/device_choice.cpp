#include "gpu/device_choice.h"

#include <algorithm>
#include <cmath>

#include "base/division.h"
#include "kernels/post_ops.h"

namespace convtranspose {

namespace {

constexpr std::int64_t kMostBlocks = 65535;           // limit of the second and third axis of a grid
constexpr std::int64_t kMostPositions = 2147480000;   // so that adding a tile does not overflow
constexpr double kFmaPerCycle = 128;                  // per multiprocessor, f32
constexpr double kLaunch = 5000, kBytesPerCycle = 16; // cycles per launch; bytes from memory per multiprocessor

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
    const Geometry &g = *q.geometry;
    if (v.family == DeviceFamily::kCombine) return {"adds up what others compute"};
    if (v.integers != g.quantized()) return {v.integers ? "computes with integers" : "computes with floats"};
    if (v.x_dtype != as_table(g.dtype)) return {"reads another type"};
    if (v.x_dtype == CONVT_F64 && !q.has_f64) return {"the device has no f64"};
    const bool each = v.family == DeviceFamily::kEach;
    if (q.oc_tile &&
        (q.oc_tile != (each ? 1 : v.tile_oc) || q.block != v.block || q.dense_groups != packs_groups(v, g))) {
        return {"weights are packed in another order"};
    }
    if (!each && !q.finite) return {"a weight is inf or NaN, which the zeros around x must not meet"};
    if (v.block > 1 && !q.fits_int8) return {"weights less their zero points, or sums with that of x, do not fit"};
    if (!each && g.in_channels_per_group() == 0) return {"x has no elements"};
    const std::array<AxisPlan, 3> &axes = *q.axes;
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

// Returns the share of the FMA peak that a family reaches if there is enough work.
double efficiency(const DeviceVariant &v) {
    if (v.family == DeviceFamily::kSmallOc) return 0.3;
    const double sums = static_cast<double>(v.tile_oc) * v.tile_p / v.threads;
    return (sums >= 64 ? 0.7 : 0.5) * (v.block > 1 ? 2 : v.x_dtype == CONVT_F64 || v.integers ? 0.5 : 1);
}

double cost_by_phase(const DeviceVariant &v, const DeviceQuestion &q, int splits) {
    const Geometry &g = *q.geometry;
    const std::array<AxisPlan, 3> &axes = *q.axes;
    const double p_tiles = std::ceil(
        static_cast<double>(g.batch * axis_product(axes, [](const AxisPlan &a) { return a.q_extent(); })) / v.tile_p);
    const double tiles = static_cast<double>(g.group * ceil_div(g.out_channels_per_group(), v.tile_oc));
    const double phases = static_cast<double>(axis_product(axes, [](const AxisPlan &a) { return a.phases; }));
    const double chunks = static_cast<double>(ceil_div(ceil_div(g.in_channels_per_group(), v.chunk), splits));
    const double blocks_each = std::ceil(p_tiles * tiles * phases * splits / q.multiprocessors);
    const double block = terms_per_output(axes) * chunks * v.chunk * v.tile_oc * v.tile_p / kFmaPerCycle;
    // A multiprocessor with few threads waits for memory.
    const double busy = std::min(1.0, 0.4 + blocks_each * v.threads / 512 * 0.6);
    const double neighbours = v.along_channels == (g.layout == CONVT_CHANNELS_LAST) ? 1 : 1.5;
    double cost = blocks_each * block / (efficiency(v) * busy) * neighbours + blocks_each * 1500;
    if (splits > 1) {
        const double bytes = static_cast<double>(g.batch * g.out_channels) *
                             static_cast<double>(axis_product(axes, [](const AxisPlan &a) { return a.geometry.out; })) *
                             static_cast<double>(convt_dtype_size(sum_dtype(g.dtype))) * (2 * splits + 1);
        cost += kLaunch + bytes / (kBytesPerCycle * q.multiprocessors);
    }
    return cost;
}

double cost_each(const DeviceVariant &v, const DeviceQuestion &q) {
    const Geometry &g = *q.geometry;
    const double outputs = static_cast<double>(g.batch * g.out_channels) *
                           static_cast<double>(axis_product(*q.axes, [](const AxisPlan &a) { return a.geometry.out; }));
    const double terms = terms_per_output(*q.axes) * static_cast<double>(g.in_channels_per_group());
    // Neighbouring threads should write neighbouring elements.
    const bool neighbours = v.along_channels == g.y_channels_last();
    return outputs * (40 + terms * (neighbours ? 12 : 40)) / (kFmaPerCycle * q.multiprocessors);
}

} // namespace

bool packs_groups(const DeviceVariant &v, const Geometry &g) {
    return v.family == DeviceFamily::kEach && v.along_channels && g.in_channels_per_group() == 1 &&
           g.out_channels_per_group() == 1;
}

std::vector<DeviceChoice> device_choices(const DeviceTable &table, const DeviceQuestion &q) {
    const Geometry &g = *q.geometry;
    const convt_dtype y = as_table(g.y_dtype), sum = sum_dtype(g.dtype);
    const bool post_ops = has_post_ops(g.post_ops);
    std::vector<DeviceChoice> list;
    for (std::size_t i = 0; i < table.variant_count; i++) {
        const DeviceVariant &v = table.variants[i];
        DeviceChoice choice;
        choice.variant = &v;
        choice.unsupported = unsupported_reason(v, q);
        if (!choice.unsupported.text) {
            const bool each = v.family == DeviceFamily::kEach;
            choice.cost = each ? cost_each(v, q) : cost_by_phase(v, q, 1);
            if (v.y_dtype != y) choice.unsupported = {"writes another type"};
            if (post_ops) {
                choice.combine = find_combine(table, y, y);
                if (!choice.combine) choice.unsupported = {"nothing that does the post-ops is built in"};
            }
            // If sums are split, their parts are stored and then added up by another kernel.
            const DeviceVariant *const adds_up = find_combine(table, sum, y);
            const std::int64_t chunks = each ? 1 : ceil_div(g.in_channels_per_group(), v.chunk);
            const std::int64_t y_elements = [&] {
                std::int64_t n = g.batch * g.out_channels;
                for (const AxisPlan &a : *q.axes) n *= a.geometry.out;
                return n;
            }();
            for (int splits = 2; splits <= 32 && !each && !v.integers && v.y_dtype == sum && adds_up; splits *= 2) {
                if (chunks < 2 * splits || y_elements > INT32_MAX / splits) break;
                const double cost = cost_by_phase(v, q, splits);
                if (!choice.unsupported.text && cost >= choice.cost) continue;
                choice = {&v, adds_up, splits, {}, cost};
            }
        }
        list.push_back(choice);
    }
    return list;
}

} // namespace convtranspose
