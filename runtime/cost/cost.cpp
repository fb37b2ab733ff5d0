#include "cost/cost.h"

#include <algorithm>
#include <cmath>

#include "base/division.h"
#include "cost/cost_terms.h"
#include "kernel_contract/fetching.h"
#include "kernels/kernel_tables.h"
#include "kernels/packed_weights.h"

namespace convtranspose {

namespace {

// near: cycles an element, in the cache.
double cycles_to_copy(double elements, convt_dtype dtype, double near, const CostProfile &m) {
    const double bytes = elements * real(size_of(dtype));
    return elements * (bytes >= m.far_copy_from ? std::max(near, m.far_copy) : near);
}

double per_light_line(Arithmetic arithmetic, const CostProfile &m) {
    switch (light_dtype(arithmetic)) {
    case CONVT_F16: return m.per_f16_line;
    case CONVT_BF16: return m.per_bf16_line;
    case CONVT_S8: return m.per_s8_line;
    default: return 0;
    }
}

} // namespace

CostTerms::CostTerms(const Variant &variant, const SpatialProblem &problem, const CostProfile &profile, CostPart last_)
    : v(variant), p(problem), m(profile), g(problem.geometry), w(problem.plan[0]), h(problem.plan[1]),
      d(problem.plan[2]), last(last_) {
    for (std::size_t a = 0; a < 3; a++) {
        // The loop over the taps of an axis runs for each tap of the axes outside of it, and for each phase of the others.
        const double inside = skips_outside(v, a) ? p.plan[a].taps_inside : p.plan[a].taps;
        skipped = skipped * inside + phases * (p.plan[a].taps - inside);
        taps *= inside;
        phases *= real(p.plan[a].phases);
    }
    // Two taps of a phase make one step, and an odd last one makes a step of its own.
    if (pairs_taps(v)) taps *= (1 + real(w.phases) / real(w.elements.size())) / 2;
    ic = parts_of(p.ic(), block_of(v));
    groups = real(g.group);
    images = real(std::max<std::int64_t>(g.batch, 1)); // an empty batch is planned as one image would be
    rows = real(h.q_extent() * d.q_extent());
    lanes = v.lanes;
    size = real(operand_size(v) * block_of(v));
    w_size = real(weight_size(v) * block_of(v));
    // A y that is rounded afterwards is near when it is stored.
    y_bytes = rounds_y(v, p.y_dtype)
                  ? 0
                  : images * real(y_position_bytes(g) * w.geometry.out * h.geometry.out * d.geometry.out);
    // Without VNNI a second instruction adds the pairs of 16-bit products, partly on other ports. On ARM, whose blocks hold one
    // channel, smlal multiplies half a vector, and one load brings two or more of the elements that are broadcast (bench/mca).
    if (v.arithmetic == Arithmetic::kInt16)
        product = block_of(v) == 1 ? 2 : v.isa != Isa::kAvx512Vnni ? m.pair_products : 1;
    broadcast = multiplies_by_element(v.isa) ? 0.5 : 1;
    // Vectors come from the second-level cache; those of depthwise layers stay in the first.
    load = lanes * w_size / (v.family == Family::kDepthwise ? m.first_level_rate : m.second_level_rate);
    crosses = v.family != Family::kOcVectorized; // vectors along rows do
    // A core loads three vectors a cycle that are shorter than a cache line, so those cost nothing.
    per_load = lanes * size < kCacheLine ? 0 : m.per_load;
    is_of_channels = v.family == Family::kOcVectorized && v.output_order == OutputOrder::kChannels;
    // Instructions other than multiply-adds compete with them for ports.
    per_other = is_of_channels && lanes * size >= kCacheLine && v.tile_oc > v.lanes ? m.per_other : 0;
    // A row is put together from the phases of w by shuffles; bytes are requantized too, and take more of them.
    interleave = m.interleave + (is_float(v.arithmetic) ? 0 : m.requantize_phase * v.stride_w);
}

double CostTerms::cost_of_reference() const {
    return real(p.oc()) * real(w.q_extent() * h.q_extent() * d.q_extent()) * m.per_plain_step *
           (of(CostPart::kStores, 2 * phases) + taps * (of(CostPart::kTiles, 1) + ic));
}

double CostTerms::cost_of_group(const Variant *narrower) const {
    switch (v.family) {
    case Family::kReference: break;
    case Family::kOcVectorized: return cost_of_oc_vectorized(*this, narrower);
    case Family::kAmx: return cost_of_amx();
    case Family::kDepthwise:
        if (v.output_order == OutputOrder::kChannels) return cost_of_depthwise_channels();
        return has_vectors_of_phases(v) ? cost_of_vectors_of_phases() : cost_of_rows(narrower);
    case Family::kOwVectorized: return cost_of_rows(narrower);
    case Family::kSmallOc: return cost_of_small_oc();
    }
    return cost_of_reference();
}

double CostTerms::step(double vectors, double broadcasts) const {
    // A step loads each vector of weights and prefetches a later one; the loop itself takes four instructions.
    const double others = per_other > 0                          ? per_other * (2 * vectors + broadcasts + 4)
                          : crosses && lanes * size < kCacheLine ? m.per_vector_along * vectors
                                                                 : per_load * (vectors + broadcasts);
    const double crossing = v.family == Family::kDepthwise ? m.least_per_depthwise_crossing : m.least_per_crossing;
    const double least = crosses ? std::max(m.latency, crossing * vectors * lanes * size / kCacheLine) : m.latency;
    // Each vector of operands is multiplied by each broadcast.
    const double multiply = product * vectors * broadcasts / m.multiply_adds;
    return of_steps(multiply,
                    std::max({multiply, (vectors + broadcast * broadcasts) / m.loads, vectors * load, least}) + others +
                        vectors * lanes * size / kCacheLine * per_light_line(v.arithmetic, m));
}

double cost(const Variant &variant, const SpatialProblem &problem, const CostProfile &profile, const Variant *narrower,
            CostPart last) {
    const CostTerms terms(variant, problem, profile, last);
    const double cycles = terms.cost_of_group(narrower) * terms.images * terms.groups;
    if (!problem.geometry.light.exist() || last < CostPart::kLoads) return cycles;
    const double weights = real(problem.geometry.in_channels) * parts_of(problem.oc(), variant.tile_oc) *
                           variant.tile_oc * real(problem.geometry.kernel_volume());
    return cycles + weights * real(weight_size(variant)) / profile.memory_rate;
}

double cost_of_rounding(const SpatialProblem &p, const CostProfile &m) {
    return cycles_to_copy(real(volume(p.geometry.y_shape)), p.y_dtype, m.copied, m);
}

double cost_of_copy(const Variant &v, const SpatialProblem &p, const CostProfile &m, bool ends_alone) {
    const Geometry &g = p.geometry;
    const auto extent = [](const AxisPlan &a) {
        return real(std::max<std::int64_t>(a.q_extent() + a.high - a.low - 1, 1));
    };
    const double rows = real(g.batch) * real(g.in_channels) * extent(p.plan[1]) * extent(p.plan[2]),
                 elements = rows * extent(p.plan[0]);
    const CopyOrder order = copy_order(v, g.layout);
    // Transposing by single loads or stores takes longer (generators/copy_input_generator.cpp).
    const bool tiles = block_of(v) == 1 && std::min(g.in_channels, p.plan[0].geometry.in) >= kCopyTile;
    const double near = tiles || order != CopyOrder::kTransposed ? m.copied : m.copied_alone;
    const double of_rows = order == CopyOrder::kPlanar ? rows * m.per_copied_row : 0;
    return of_rows + (ends_alone ? elements * near : cycles_to_copy(elements, g.dtype, near, m));
}

double cycles_to_scatter(const Geometry &geometry, const CostProfile &profile) {
    double bytes = real(size_of(geometry.y_dtype));
    for (const std::int64_t extent : geometry.y_shape) bytes *= real(extent);
    if (y_position_bytes(geometry) <= kCacheLine || bytes <= profile.counted_cache) return profile.scatter;
    return y_position_bytes(geometry) < kFarPositions ? profile.scatter_far : profile.scatter_to_few_sets;
}

int threads_worth(double cycles, int allowed, const CostProfile &profile) {
    if (profile.per_thread <= 0) return allowed;
    if (!(cycles > 0)) return 1; // an estimate of next to nothing may be less than nothing
    // n threads take cycles / n + (n - 1) * per_thread. The n-th saves cycles / (n - 1) / n, so the last that pays is the root of
    // n * (n - 1) = cycles / per_thread.
    const double most = 0.5 + std::sqrt(0.25 + cycles / profile.per_thread);
    return static_cast<int>(std::min<double>(most, allowed));
}

bool shares_cache_lines(const Geometry &geometry) {
    return geometry.group > 1 && y_position_bytes(geometry) < kCacheLine * geometry.group;
}

} // namespace convtranspose
