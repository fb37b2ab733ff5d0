#include "variants/problems.h"

#include <sstream>
#include <string>
#include <utility>

#include "reference/descriptor.h"
#include "runtime/problem/geometry.h"

namespace convtranspose::test {

namespace {

// One vector, one more, one less; the same for two, and for tiles of a few.
const std::vector<int> kChannels = {1, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33};
const std::vector<int> kWidths = {1, 2, 3, 4, 5, 7, 8, 9, 13, 14, 15, 16, 17, 31, 32, 33, 47, 48, 49};
const std::vector<int> kStrides = {1, 2, 3, 4, 8};

template<typename... Parts>
std::string line(const Parts &...parts) {
    std::ostringstream stream;
    (stream << ... << parts);
    return stream.str();
}

std::vector<std::string> lines() {
    std::vector<std::string> all;

    // Output channels by input channels. Bias in every second.
    for (std::size_t i = 0; i < kChannels.size(); ++i) {
        const int ic = kChannels[(5 * i + 2) % kChannels.size()];
        all.push_back(line("n1 ic", ic, " oc", kChannels[i], " i3x5 k4x4 s2x2 p1x1_1x1", i % 2 ? " bias" : ""));
        all.push_back(line("n2 ic", ic, " oc", kChannels[i], " i4x3 k3x3 s1x1 p1x1_1x1", i % 2 ? "" : " bias"));
        all.push_back(line("n1 ic", kChannels[i], " oc", ic, " i2x9 k2x2 s2x2", i % 2 ? " bias" : ""));
    }
    all.emplace_back("n1 ic65 oc70 i5x6 k3x3 s2x2 p1x1_1x1 op1x1 bias");
    all.emplace_back("n1 ic3 oc129 i3x4 k3x3 s2x2 p1x1_1x1");

    // Long sums and many tiles: blocks of input channels, of output channels, of rows.
    all.emplace_back("n1 ic300 oc40 i4x5 k3x3 s2x2 p1x1_1x1 bias");
    all.emplace_back("n1 ic130 oc200 i2x3 k3x3 s1x1 p1x1_1x1");
    all.emplace_back("n1 ic13 oc25 i9x130 k3x3 s2x2 p1x1_1x1 bias");
    all.emplace_back("n1 ic20 oc24 i5x101 k4x4 s2x2 p1x1_1x1");
    all.emplace_back("n2 ic6 oc70 i5x61 k5x5 s1x1 d1x2 p2x4_2x4 bias");
    all.emplace_back("n1 ic6 oc70 i5x62 k3x7 s2x3 p1x7_0x2");
    all.emplace_back("n1 ic16 oc33 i5x61 k1x3 s1x1 p0x1_0x1 bias");
    all.emplace_back("n2 ic32 oc20 i5x46 k1x4 s1x2 p0x1_0x1");
    all.emplace_back("n2 ic10 oc12 i40x11 k3x3 s1x1 p1x1_1x1");
    all.emplace_back("n1 ic12 oc3 i33x65 k4x4 s2x2 p1x1_1x1");
    all.emplace_back("n1 g70 ic70 oc70 i17x21 k4x4 s2x2 p1x1_1x1");

    // Widths, for each stride that tiles are made for, with pads that shift the phases.
    for (std::size_t i = 0; i < kWidths.size(); ++i) {
        const int w = kWidths[i], oc = i % 3 == 0 ? 9 : 17;
        all.push_back(line("n1 ic5 oc", oc, " i3x", w, " k3x3 s1x1 p1x1_1x1"));
        all.push_back(line("n1 ic5 oc", oc, " i3x", w, " k4x4 s2x2 p1x1_1x1 bias"));
        all.push_back(line("n1 ic5 oc", oc, " i2x", w, " k3x3 s2x2 p1x", i % 2, "_0x1 op1x1"));
        all.push_back(line("n1 ic4 oc", oc, " i2x", w, " k2x2 s2x2"));
        all.push_back(line("n2 ic5 oc1 i3x", w, " k2x2 s2x2 bias"));
        all.push_back(line("n1 ic4 oc8 i2x", w, " k5x4 s4x4 p1x0_0x0"));
        all.push_back(line("n2 ic4 oc6 i", w, " k16 s8 p4_4 bias")); // one axis
    }
    // Heights.
    for (const int h : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 17}) {
        all.push_back(line("n1 ic4 oc9 i", h, "x4 k4x4 s2x2 p1x1_1x1"));
        all.push_back(line("n1 ic4 oc2 i", h, "x9 k3x3 s2x1 p1x1_1x1 op1x0 bias"));
    }

    // Tiles of several rows, for each stride: more rows than any of them has, just as many, and fewer.
    for (const int s : {1, 2, 3, 4}) {
        const int k = s + 2;
        for (const int h : {3, 4, 8, 11, 17}) {
            all.push_back(line("n1 ic5 oc7 i", h, "x6 k", k, "x", k, " s", s, "x", s, " p1x1_1x1 bias"));
            all.push_back(line("n1 ic3 oc35 i", h, "x18 k", k, "x", k, " s", s, "x", s, " p1x0_0x1"));
        }
        all.push_back(line("n2 ic3 oc4 i9x33 k3x", k, " s1x", s, " p1x1_1x1")); // rows apart from columns
        all.push_back(line("n1 g5 ic5 oc5 i9x33 k", k, "x", k, " s", s, "x", s, " p1x1_1x1 bias"));
        all.push_back(line("n1 g4 ic4 oc8 i3x50 k3x", k, " s1x", s));
    }

    // Kernels by strides.
    for (const int s : kStrides) {
        for (int k = 1; k <= 5; ++k) {
            const int p = k > 2 ? 1 : 0;
            all.push_back(line("n1 ic4 oc10 i4x7 k", k, "x", k, " s", s, "x", s, " p", p, "x", p, "_", p, "x", p));
            all.push_back(line("n1 ic3 oc17 i3x6 k", 6 - k, "x", k, " s", s, "x", s == 8 ? 1 : 2, " bias"));
        }
    }
    all.emplace_back("n1 ic6 oc12 i4x5 k6x7 s2x2 p2x3_2x3");
    all.emplace_back("n1 ic6 oc1 i5x20 k9x9 s4x4 p4x4_4x4 op3x3 bias");
    all.emplace_back("n1 ic3 oc5 i21 k64 s16 p24_24");
    all.emplace_back("n1 ic2 oc1 i9 k256 s64");

    // Strides as long as vectors, one channel per group. Offsets rise within a vector of phases, between two, or nowhere; phases
    // have one tap or several; those with a position less are a call of their own.
    for (const char *const each :
         {"n1 g3 ic3 oc3 i5x12 k16x16 s8x8 p4x4_4x4 bias", "n2 g3 ic3 oc6 i4x9 k4x32 s2x16 p1x8_1x8 bias",
          "n1 g2 ic2 oc2 i3x8 k3x16 s1x16 p1x3_0x13", "n1 g2 ic2 oc4 i21 k60 s20 p33_7",
          "n2 g2 ic2 oc2 i9 k80 s40 p7_6 bias", "n1 g2 ic2 oc2 i8 k64 s64 p5_20",
          "n2 g3 ic3 oc3 i3x11 k2x128 s2x64 p0x20_0x9", "n1 g2 ic2 oc2 i2x3x9 k3x4x32 s2x2x16 p1x1x8_0x1x8 bias"}) {
        all.emplace_back(each);
    }

    // Dilations: with common factors of the stride and without, and with more of them than the kernel covers.
    for (const int d : {2, 3, 4, 5}) {
        for (const int s : {1, 2, 3, 4}) {
            all.push_back(line("n1 ic3 oc9 i4x6 k3x3 s", s, "x", s, " d", d, "x", d, " p", d, "x1_1x", d, " bias"));
        }
        all.push_back(line("n1 ic4 oc16 i5x9 k2x3 s2x1 d", d, "x1 op1x0"));
        all.push_back(line("n1 ic4 oc16 i5x9 k3x2 s1x2 d1x", d));
    }

    // Pads: unequal, larger than the kernel, almost everything; sizes by rule.
    all.emplace_back("n1 ic4 oc9 i6x9 k3x3 s2x2 p0x2_1x0");
    all.emplace_back("n1 ic4 oc9 i6x9 k4x4 s2x2 p3x3_0x0 bias");
    all.emplace_back("n1 ic4 oc9 i6x9 k4x4 s2x2 p0x0_3x3");
    all.emplace_back("n1 ic4 oc9 i9x40 k3x3 s2x2 p7x21_5x30");
    all.emplace_back("n1 ic4 oc9 i9x40 k3x3 s2x2 p18x0_0x78 bias");
    all.emplace_back("n1 ic4 oc9 i9x40 k3x3 s2x2 p0x79_17x0");
    all.emplace_back("n1 ic4 oc9 i5x6 k4x3 s2x2 auto_SAME_UPPER");
    all.emplace_back("n1 ic4 oc9 i5x6 k5x4 s2x3 auto_SAME_LOWER bias");
    all.emplace_back("n1 ic4 oc9 i5x6 k1x2 s3x3 auto_SAME_UPPER");
    all.emplace_back("n1 ic4 oc9 i5x6 k3x3 s2x2 os12x14 bias");
    all.emplace_back("n1 ic4 oc9 i5x6 k3x3 s2x2 os31x57 bias");
    all.emplace_back("n1 ic4 oc9 i5x6 k3x3 s2x2 os2x3");
    all.emplace_back("n1 ic4 oc9 i0x6 k3x3 s2x2 bias");
    all.emplace_back("n1 ic0 oc9 i5x6 k3x3 s2x2 bias");
    all.emplace_back("n0 ic4 oc9 i5x6 k3x3 s2x2 bias");

    // Few outputs.
    for (const int oc : {1, 2, 3, 4}) {
        all.push_back(line("n1 ic7 oc", oc, " i6x17 k9x9 s4x4 p4x4_4x4 op3x3"));
        all.push_back(line("n1 ic16 oc", oc, " i9x33 k4x4 s2x2 p1x1_1x1 bias"));
        all.push_back(line("n2 ic5 oc", oc, " i5x19 k3x3 s1x1 p1x1_1x1 bias"));
        all.push_back(line("n1 ic8 oc", oc, " i5x16 k2x2 s2x2"));
        all.push_back(line("n1 ic9 oc", oc, " i3x21 k6x6 s3x3 p1x2_2x1"));
        all.push_back(line("n1 ic6 oc", oc, " i37 k8 s4 p2_2 bias"));
    }

    // Taps that kernels are built for (taps in kernels/table.py), tiles that are whole and tiles that are not.
    for (const int w : {5, 18, 32, 67}) {
        const int oc = w % 2 ? 1 : 20;
        all.push_back(line("n1 ic5 oc", oc, " i4x", w, " k9x9 s2x2 p4x4_4x4 op1x1 bias"));
        all.push_back(line("n2 ic3 oc", oc, " i3x", w, " k5x5 s2x2 p2x2_2x2 op1x1"));
        all.push_back(line("n1 ic4 oc", oc, " i3x", w, " k9x9 s3x3 p4x4_4x4 op2x2"));
        all.push_back(line("n2 ic6 oc", oc, " i", w, " k16 s8 p0_0"));
        all.push_back(line("n1 ic7 oc", oc, " i", w, " k4 s2 p1_1 bias"));
        all.push_back(line("n1 ic5 oc", oc + 15, " i4x", w, " k4x4 s4x4 bias"));
        all.push_back(line("n1 g3 ic3 oc3 i5x", w, " k8x8 s4x4 p2x2_2x2 bias"));
        all.push_back(line("n2 g2 ic2 oc2 i4x", w, " k4x4 s2x2 p1x1_1x1 bias"));
        all.push_back(line("n1 g5 ic5 oc5 i", w, " k4 s2 p1_1"));
        all.push_back(line("n2 g3 ic3 oc3 i3x", w, " k1x3 s1x2 p0x1_0x1 op0x1 bias"));
    }
    // Tiles of several rows.
    for (const int h : {4, 5, 7, 10}) {
        for (const int w : {3, 16, 37}) {
            const std::string image = line(" i", h, "x", w);
            all.push_back(line("n2 g3 ic3 oc3", image, " k3x3 s1x1 p1x1_1x1 bias"));
            all.push_back(line("n1 g4 ic4 oc4", image, " k5x5 s1x1 p2x2_2x2"));
            all.push_back(line("n1 g3 ic3 oc3", image, " k2x2 s2x2"));
            all.push_back(line("n1 g2 ic2 oc2", image, " k3x3 s2x2 p1x1_1x1 bias"));
            all.push_back(line("n2 g3 ic3 oc3", image, " k4x4 s2x2 p1x1_1x1"));
        }
    }

    // Groups: few channels each, many, unequal on the two sides, and one (depthwise), with and without a multiplier.
    all.emplace_back("n1 g2 ic2 oc2 i4x5 k3x3 s2x2 bias");
    all.emplace_back("n1 g3 ic9 oc15 i4x5 k3x3 s2x2 p1x1_1x1");
    all.emplace_back("n2 g4 ic12 oc4 i4x9 k4x4 s2x2 p1x1_1x1 bias");
    all.emplace_back("n1 g4 ic4 oc12 i4x9 k4x4 s2x2 p1x1_1x1");
    all.emplace_back("n1 g2 ic34 oc66 i3x4 k3x3 s2x2 p1x1_1x1 bias");
    all.emplace_back("n1 g17 ic34 oc17 i3x5 k2x2 s2x2");
    for (const int c : kChannels) {
        all.push_back(line("n1 g", c, " ic", c, " oc", c, " i5x", c, " k4x4 s2x2 p1x1_1x1 bias"));
        all.push_back(line("n2 g", c, " ic", c, " oc", c, " i4x7 k3x3 s1x1 p1x1_1x1"));
        all.push_back(line("n1 g", c, " ic", c, " oc", 3 * c, " i3x4 k3x2 s2x2 bias"));
    }
    for (const int w : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 49}) {
        all.push_back(line("n1 g5 ic5 oc5 i4x", w, " k3x3 s2x2 p1x1_1x1 op1x1"));
        all.push_back(line("n1 g6 ic6 oc6 i3x", w, " k16x16 s8x8 p4x4_4x4 bias"));
        all.push_back(line("n1 g4 ic4 oc4 i3x", w, " k6x6 s3x3 p1x1_2x2"));
        all.push_back(line("n1 g3 ic3 oc3 i3x", w, " k3x5 s3x1 p0x2_0x2 d2x1"));
    }
    all.emplace_back("n1 g9 ic9 oc9 i4x6 k3x3 s4x4 d2x2 op3x3 bias");
    all.emplace_back("n1 g9 ic9 oc9 i4x6 k2x2 s4x4 os20x31 bias");

    // One, three, four and five axes.
    all.emplace_back("n1 ic8 oc17 i37 k3 s1 p1_1");
    all.emplace_back("n2 ic8 oc17 i37 k4 s2 p1_1 bias");
    all.emplace_back("n1 ic3 oc1 i50 k25 s5 p10_10");
    all.emplace_back("n1 g7 ic7 oc7 i37 k4 s2 p1_1");
    all.emplace_back("n1 g35 ic35 oc35 i37 k9 s1 bias"); // more columns of zeros before x than rows
    all.emplace_back("n1 ic5 oc9 i3x4x5 k3x3x3 s2x2x2 p1x1x1_1x1x1 op1x1x1 bias");
    all.emplace_back("n2 ic4 oc8 i2x3x9 k2x2x2 s2x2x2");
    all.emplace_back("n1 ic4 oc17 i4x3x6 k4x3x1 s3x1x2 p1x1x0_0x1x0 d2x1x1");
    all.emplace_back("n1 g6 ic6 oc6 i3x3x5 k3x4x4 s1x2x2 p1x1x1_1x1x1 bias");
    all.emplace_back("n1 ic3 oc2 i3x3x17 k4x4x4 s2x2x2 p1x1x1_1x1x1");
    all.emplace_back("n1 ic3 oc9 i2x3x3x4 k2x3x2x3 s2x1x2x2 p1x0x0x1_0x0x1x1 bias");
    all.emplace_back("n1 ic2 oc3 i2x2x2x3x4 k2x1x2x2x3 s2x1x2x2x1");
    return all;
}

} // namespace

std::vector<Problem> variant_problems(convt_dtype dtype, convt_layout layout) {
    std::vector<Problem> problems;
    for (const std::string &text : lines()) {
        Problem problem =
            parse_problem(line(convt_dtype_name(dtype), layout == CONVT_CHANNELS_FIRST ? " nchw " : " nhwc ", text));
        Geometry geometry;
        // Small strides and dilations may leave nothing of what the pads crop.
        if (resolve(detail::view(problem), &geometry)) problems.push_back(std::move(problem));
    }
    return problems;
}

} // namespace convtranspose::test
