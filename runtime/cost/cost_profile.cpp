#include "cost/cost_profile.h"

#include <algorithm>
#include <cstdint>

#include "base/once.h"
#include "cpu/cpu.h"

namespace convtranspose {

namespace {

// Granite Rapids, one thread where nothing else is said.
CostProfile intel() {
    CostProfile m;
    // Of the same multiply-adds in the first-level cache, tiles of 4 vectors by 6 (10 loads for 24) take 0.92 to 0.95 of the time
    // of 2 by 14 (16 for 28). On AMD's Zen 5 all of them run at its peak.
    m.per_load = 0.2;
    // Channels last, tiles of 2 vectors by 14, 12, 8, 10 take 1.01, 1.02, 1.05, 1.06 times as long as 4 by 6 (12 layers).
    m.per_other = 0.12;
    // pix2pix_last and dcgan_32to64_rgb, 4x4 stride 2, of 3 outputs: all such loads took 13 of 75 cycles an input channel.
    m.per_crossing = 1.2;
    // Tiles of 4 rows by 6 vectors have 116 GFLOP/s where 8 by 3 have 162.
    m.least_per_crossing = 2.8;
    m.least_per_depthwise_crossing = 1.4;
    // One output channel by four vectors of 2x2 stride 2 layers takes 1.2 times as long for it, three by two 1.07 times.
    m.per_far_load = 0.5;
    m.narrow_tiles = 1.07; // 4 vectors by 4: eight layers, 1.03 to 1.1
    m.narrow_positions = 6;
    m.three_vectors = 1.05; // 3 by 8: six layers, 1.03 to 1.13
    m.one_channel = 1.3;    // 1.2 to 2.2
    m.depth_to_space = 1.15;
    m.groups_to_space = 1.8; // 18 layers: 1.4 to 5.6
    m.wide_doubles = 1.1;    // of several taps: 15 layers, 1.03 to 1.19, where channels take 0.84 to 1.1
    m.second_level_cache = 2 << 20;
    // Without these factors, at 3.5 GHz, eight layers whose y and weights fill that cache take 1.14 to 1.31 times their
    // estimates, three others 1.05 to 1.11; a large panel of weights is lost between two tiles where y alone fills it (256 to
    // 128 channels of 800, 16 taps stride 8: 1.2).
    m.late_weights = 1.1;
    m.very_late_weights = 1.2;
    m.far_transposition = 3; // 3.3 to 5.5
    m.strip_to_far = 1.3;    // 0.7 to 1.3
    m.far_rows = 1.3;        // nine layers, 1.1 to 1.7
    m.far_x = 2.5;           // five layers of one or four outputs, 1.8 to 3.3, in 3-D 7
    m.far_weights = 8;       // 192 to 192 channels of one position: 28 GB/s
    // 128 to 64 channels of 224x224, 2x2 stride 2: 4 vectors by 3 columns and 2 rows take 0.85 of the time of 4 by 6, and of 2 by
    // 6 and 2 rows; of 128x128, 3x3 stride 2, 0.97; of 16x16x16 0.98 and 0.94.
    m.far_store = 8;
    m.shared_line = 24; // 32 groups of 2 to 4 channels, y of 4.7 MB
    m.far_product = 1;  // 2x2 stride 2 layers take 2 to 24 cycles longer; others, of fewer channels, less
    // 512 channels of 3200 to 8, 16, 24, 32, 64: 0.67, 0.76, 0.82, 0.85, 0.96 of the time of copying; 1024 of 800 to 16 0.77,
    // 256 of 3200 0.80, 128 of 16000 0.79, rows of whole pages 0.84, 512 of 32000 1.00. 23 products of 5 to 16 tiles, elements of
    // kernels: 0.97 in the mean, 0.88 to 1.05. 512 channels of 3200 to 16 save 0.25 cycles an element, to 8 0.29.
    m.tiles_in_place = 16;
    // 512 to 256 channels of 56x56 take 0.88 of the time so, 1024 to 512 of 16x16 0.93 (channels first).
    m.near_strip = 768 << 10; // where the size of that cache is not known
    m.fine_strips = 4;        // 256 to 128 channels of 64x64, 3x3 stride 2: 0.79 of the time on two threads
    return m;
}

// Of AMD's cores, of vectors shorter than a cache line: AVX2. Measured on Zen 3.
void set_short_vectors(CostProfile *m) {
    // A multiply-add by 2 vectors and 4 positions takes 1.04 to 1.06 times as long as by 2 and 6 where weights are near, 1.1 to 1.3
    // times where they are 4 to 32 MB (kernels of so few positions fetch nothing ahead), by 1 and 6 1.1 to 1.3.
    m->per_position_less = 0.03;
    m->few_of_far = 1.15;
    m->one_vector = 1.1;
    // 2 vectors by 3 positions in two rows: 1.2 to 1.35 of an x of 256 KiB and more, 1.0 of less.
    m->several_rows = 1.25;
    // Along w, 3 channels by 3 vectors take 1.19 times as long a multiply-add as 6 by 1, 4 by 3 1.12, 6 by 2 1.08.
    m->per_vector_along = 0.27;
    // By VMASKMOV one to five output channels, channels last, take 2 to 4.5 times as long.
    m->per_masked_store = 12;
}

// Zen 3 (2 cores, AVX2), one thread, f32: 77 layers in either layout, 32 of them of real networks, up to 12 candidates of each
// timed. Choices are 1.033 from the best in the mean, 88% within 10%; by the estimates of other cores of AMD's 1.072, 79%.
CostProfile amd_of_avx2() {
    CostProfile m;
    set_short_vectors(&m);
    // 16 columns as 6, 6 and 4, 32 as five of 6 and 4: 1.18 and 1.07 times as long as by tiles of 4.
    m.channels_row_end = 1.4;
    // 128 to 3 channels of 128x128: 1.36 to 1.74 times as long by candidates that copy the 8 MB of x.
    m.far_copy = 1.2;
    // 512 to 4 channels of 7972 and 4 x 56 to 2 of 15704: 4 cycles; 128 of 128x128 2.4, 512 of 3200 1.2.
    m.strip_from_far = 2.5;
    m.far_bytes = 4 << 20;
    // Of 24 depthwise channels of 65015; as on Intel's cores.
    m.strip_to_far = 1.3;
    m.second_level_cache = 512 << 10;
    m.far_weights = 8;
    return m;
}

// Of vectors that are multiplied in two halves: what loads take hides behind that. Measured on Zen 4, one thread, f32: 332 layers in
// either layout, 32 of them of real networks, up to 13 candidates of each timed. Choices are 1.037 and 1.047 from the best in the
// mean, 1.050 and 1.063 without; of 80 other layers 1.020 either way, 94% within 10%, without 1.023 and 1.046, 94 and 84%.
void set_halves(CostProfile *m) {
    // Of 64 channels of 5x4, 6x6 stride 3, tiles of 4 positions take 0.75 of the time of 4 in each of 3 rows, which were estimated to
    // take 0.8 of theirs.
    m->near_weights = 0.8;
    m->per_row_of_x = 1;
    m->depthwise_taps = 0.6;
    m->far_transposition = 1.5;
    // By AVX2 there these margins take up to 1.6 times as long, 31 layers 1.07 in the mean.
    m->margins_of_lines.layout_transpose = 1.07;
    m->margins_of_lines.layout_transpose_of_last = 0.96;
    m->margins_of_lines.depth_to_space = 0.98;
}

// Zen 4 (2 cores), one thread, f32. On Zen 5, which multiplies twice as fast, x in place was not measured.
CostProfile amd_of_avx512() {
    CostProfile m;
    set_short_vectors(&m);
    // 64 and 512 channels of 800 to 16000 to 8: 0.58 to 0.73 of the time of copying; to 64 0.86 to 0.95, to 256 0.96 to 0.99.
    m.tiles_in_place = 32;
    // 12 products of up to eight tiles by four such variants, x of up to 12 MB: 0.47 to 0.98, of rows of whole pages up to 1.1, of
    // 11 MB once 1.2; of 16 MB and more 0.5 to 2.
    m.near_tiles_in_place = 8;
    m.in_place_bytes = 8 << 20;
    m.not_copied = m.not_copied_by_more = 0.35; // 0.24 to 0.51
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
        // Of 2 MiB 768 KiB, of 1 MiB 384, of 512 KiB 192: there, of 512 to 256 channels 2x2 stride 2, 1.07 to 1.16 times as fast as by
        // strips of 384 KiB, of 1024 for few rows 1.5 times.
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
