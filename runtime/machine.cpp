#include "machine.h"

#include "variant.h"

namespace convtranspose {

namespace {

// Granite Rapids, one thread where nothing else is said.
Machine intel() {
    Machine m;
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
    // kernels: 0.97 in the mean, 0.88 to 1.05.
    m.tiles_in_place = 16;
    // 512 to 256 channels of 56x56 take 0.88 of the time so, 1024 to 512 of 16x16 0.93 (channels first).
    m.near_strip *= 2;
    m.fine_strips = 4; // 256 to 128 channels of 64x64, 3x3 stride 2: 0.79 of the time on two threads
    return m;
}

} // namespace

const Machine &machine() {
    static const Machine made = is_intel() ? intel() : Machine();
    return made;
}

} // namespace convtranspose
