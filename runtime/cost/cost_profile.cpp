#include "cost/cost_profile.h"

#include <algorithm>
#include <cstdint>

#include "base/once.h"
#include "cpu/cpu.h"

namespace convtranspose {

namespace {

// The profiles below hold the fields that differ from the defaults of cost_profile.h, which says what each one means. The figures
// that they are fitted to: docs/measurements/2026-11-26-estimates.md.

// Intel's cores with AVX-512, fitted on Granite Rapids.
CostProfile intel() {
    CostProfile m;
    m.per_load = 0.2;
    m.per_other = 0.12;
    m.per_crossing = 1.2;
    m.least_per_crossing = 2.8;
    m.least_per_depthwise_crossing = 1.4;
    m.per_far_load = 0.5;
    m.narrow_tiles = 1.07;
    m.narrow_positions = 6;
    m.three_vectors = 1.05;
    m.one_channel = 1.3;
    m.depth_to_space = 1.15;
    m.groups_to_space = 1.8;
    m.wide_doubles = 1.1;
    m.second_level_cache = 2 << 20;
    m.late_weights = 1.1;
    m.very_late_weights = 1.2;
    m.far_transposition = 3;
    m.strip_to_far = 1.3;
    m.far_rows = 1.3;
    m.far_x = 2.5;
    m.far_weights = 8;
    m.far_store = 8;
    m.shared_line = 24;
    m.far_product = 1;
    m.tiles_in_place = 16;
    m.near_strip = 768 << 10; // for a CPU that does not tell the size of that cache
    m.fine_strips = 4;
    return m;
}

// Sets the terms of vectors shorter than a cache line, which is AVX2, for AMD's cores; fitted on Zen 3.
void set_short_vectors(CostProfile *m) {
    m->per_position_less = 0.03;
    m->few_of_far = 1.15; // kernels of so few positions prefetch nothing
    m->one_vector = 1.1;
    m->several_rows = 1.25;
    m->per_vector_along = 0.27;
    m->per_masked_store = 12; // by VMASKMOV
}

// AMD's cores without AVX-512, fitted on Zen 3.
CostProfile amd_of_avx2() {
    CostProfile m;
    set_short_vectors(&m);
    m.channels_row_end = 1.4;
    m.far_copy = 1.2;
    m.strip_from_far = 2.5;
    m.far_bytes = 4 << 20;
    m.strip_to_far = 1.3;
    m.second_level_cache = 512 << 10;
    m.far_weights = 8;
    return m;
}

// Sets the terms of cores that multiply vectors of 512 bits in two halves, behind which loads hide; fitted on Zen 4.
void set_halves(CostProfile *m) {
    m->near_weights = 0.8;
    m->per_row_of_x = 1;
    m->depthwise_taps = 0.6;
    m->far_transposition = 1.5;
    // These margins do not fit AVX2 on the same cores, so its plans keep the defaults (margins()).
    m->margins_of_lines.layout_transpose = 1.07;
    m->margins_of_lines.layout_transpose_of_last = 0.96;
    m->margins_of_lines.depth_to_space = 0.98;
}

// AMD's cores with AVX-512, fitted on Zen 4; x in place is not measured on Zen 5, which multiplies twice as fast.
CostProfile amd_of_avx512() {
    CostProfile m;
    set_short_vectors(&m);
    m.tiles_in_place = 32;
    m.near_tiles_in_place = 8;
    m.in_place_bytes = 8 << 20;
    m.not_copied = m.not_copied_by_more = 0.35;
    if (multiplies_in_halves()) set_halves(&m);
    return m;
}

CostProfile made_for_this() {
    if (is_intel()) return intel();
    if (isa_supported(Isa::kAvx512)) return amd_of_avx512();
    return isa_supported(Isa::kAvx2) ? amd_of_avx2() : CostProfile();
}

} // namespace

const CostProfile &cost_profile() {
    static Once<CostProfile> made;
    return made.get([] {
        CostProfile m = made_for_this();
        // A strip takes 3/8 of the second-level cache, where its size is known.
        constexpr std::int64_t kLeast = 64 << 10, kMost = 768 << 10;
        if (const std::int64_t bytes = second_level_cache_bytes())
            m.near_strip = std::clamp(bytes / 8 * 3, kLeast, kMost);
        return m;
    });
}

Margins margins(Isa isa) {
    const bool of_lines = isa_of_floats(isa) == Isa::kAvx512;
    return of_lines ? cost_profile().margins_of_lines : Margins();
}

} // namespace convtranspose
