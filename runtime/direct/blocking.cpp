// In what strips and images at a time a layer is computed.
#include <algorithm>

#include "cost/cost_profile.h"
#include "cpu/cpu.h"
#include "direct/direct_plan.h"
#include "direct/direct_plan_parts.h"
#include "selection/input_access.h"

namespace convtranspose {

namespace {

// What a strip of x may take. It is read once per tile of output channels and residue, so it should stay in the second-level
// cache; but every strip reads all weights. Where those would then be far more to read than x is from the third-level cache,
// a strip is as large as the weights.
constexpr std::int64_t kLeastStripBytes = 256 << 10, kMostStripBytes = 4 << 20;
// Times. 512 to 256 channels of 56x56 take 0.96 of the time in near strips (Zen 5, AVX-512).
constexpr std::int64_t kFarMore = 3;
// Weights that every thread may read for itself, strip by strip, and larger ones where strips are many; strips enough that none
// waits long for the last. 256 to 128 channels of 112x112 take 0.85 of the time of sharing each strip on Zen 5 (two
// threads).
constexpr std::int64_t kSharedWeightsBytes = 384 << 10, kStripsPerThread = 4, kManyStrips = 32, kDwarfs = 16;

// Multiply-adds of an element of y, on the average, that do not hide what storing it takes.
constexpr std::int64_t kFewSteps = 32;

} // namespace

std::int64_t DirectPlan::copied_column() const {
    const std::int64_t channels = copied_channels(), size = operand_size(*variant_);
    const bool apart = (reads_any_strides(*variant_) || variant_->family == Family::kMatrix) &&
                       copies_channels_inside() && in_few_sets(channels * size);
    return apart ? channels + kCacheLine / size : channels;
}

// Rows that are loaded by vectors begin where a vector may, so that those of one tap in each row do not cross cache lines, and
// lie an odd number of vectors apart: an even number brings the channels of a position into a part of the sets of the
// first-level cache. Xeon (Granite Rapids, AVX-512), f32, against rows without gaps: 256 channels of 64x64, 3x3 stride 2, 0.87
// of the time, 128 of 128x128 0.89, 3x3 stride 1 0.95; 0.97 in the mean of 15 layers. Not of narrow rows, of which the gaps would
// be most. Gaps are filled as what is around x is: tiles read them, and of memory as it comes some numbers are subnormal, which
// takes 25 times as long.
std::int64_t DirectPlan::copied_row(const Strip &s) const {
    if (copies_channels_inside() || !has_vectors_along_w(*variant_)) return s.x_extent[0];
    const std::int64_t row = (ceil_div(s.x_extent[0], std::int64_t{variant_->lanes}) | 1) * variant_->lanes;
    return 2 * row <= 3 * s.x_extent[0] ? row : s.x_extent[0];
}

void DirectPlan::plan_strips(int threads) {
    const Variant &v = *variant_;
    const std::array<std::int64_t, 3> q = {axes_[0].q_extent(), axes_[1].q_extent(), axes_[2].q_extent()};
    strip_axis_ = static_cast<int>(problem_.strip_axis());
    strip_tile_ = strip_axis_ == 0 ? v.tile_q : strip_axis_ == 1 ? v.tile_qh : 1;
    const std::int64_t batch = std::max<std::int64_t>(problem_.geometry.batch, 1);
    images_ = batch;
    // Positions of x whose channels are side by side are read once per tile of output channels and residue, copied or not.
    if (!copies_x_ && !reads_any_strides(v) && v.family != Family::kMatrix) return;

    // Bytes of the copy of one image.
    const std::int64_t size = operand_size(v), channels = copied_column(), positions = q[strip_axis_];
    const Strip whole = strip(1, 0, positions);
    const std::int64_t image_bytes = std::max<std::int64_t>(
        capped_product({whole.x_extent[0], whole.x_extent[1], whole.x_extent[2], channels, size}), 1);
    if (v.family != Family::kReference) {
        const std::int64_t weights_bytes = packed_.weights() * size;
        const std::int64_t near =
            std::clamp(weights_bytes, std::min(kLeastStripBytes, cost_profile().near_strip), cost_profile().near_strip);
        const std::int64_t residues =
            capped_product({v.stride_w ? 1 : axes_[0].residues, v.stride_h ? 1 : axes_[1].residues, axes_[2].residues});
        const std::int64_t near_bytes = capped_product({ceil_div(image_bytes, near), weights_bytes}),
                           far_bytes = weights_bytes + capped_product({packed_.tiles(), residues, image_bytes});
        const bool is_near = kFarMore * near_bytes <= far_bytes;
        const std::int64_t strip_bytes = is_near ? near : std::clamp(weights_bytes, kLeastStripBytes, kMostStripBytes);
        // Never less than a tile and one, so that the residues with one position less fill a tile too.
        const auto at_least = [&](std::int64_t least) {
            return std::max<std::int64_t>(positions / std::max({2 * strip_tile_, least}), 1);
        };
        const Geometry &g = problem_.geometry;
        std::int64_t x_volume = g.in_channels, y_volume = g.out_channels;
        for (const AxisGeometry &axis : problem_.axes) {
            x_volume *= axis.in;
            y_volume *= axis.out;
        }
        // Channels last, each tile of output channels and each residue stores parts of cache lines on a way of its own through
        // all of y. In strips that stay in the second-level cache they meet there. Xeon (Granite Rapids, AVX-512), f32, one
        // thread and two: 3 to 100 channels 2x2 stride 2, y of 9 MB, 1.8 and 1.5 times as fast; 12 layers like it 1.0 to 1.4
        // and 1.0 to 2.8.
        const std::int64_t y_bytes = y_volume * static_cast<std::int64_t>(convt_dtype_size(v.dtype));
        const bool meets_in_y = v.family == Family::kChannels && v.store == Store::kChannels &&
                                packed_.tiles() * residues > 1 && weights_bytes <= kSharedWeightsBytes &&
                                packed_.ic * packed_.taps_volume() / kFewSteps < residues &&
                                y_bytes * batch > kPieceBytes;
        // Strips that an image makes of so many bytes of either.
        const auto strips_of = [&](std::int64_t of_x, std::int64_t of_y) {
            return std::max(ceil_div(image_bytes, of_x), meets_in_y ? ceil_div(y_bytes, of_y) : 1);
        };
        // Each thread takes strips of its own, whole, and waits for nobody but at the end: where the weights are small, that
        // all threads read all of them costs nothing. A strip is several times what two strips both read, or, where it is one
        // piece of memory, less if that leaves one for each thread: measured with two, 18 layers by groups took 1.3 to 2.8
        // times as long shared, but rows of planes 0.8 to 0.9 times (Xeon, Granite Rapids). Where y dwarfs x, the copy is
        // nothing to wait for, and finer tasks share the work better.
        const std::int64_t halo = axes_[strip_axis_].high - axes_[strip_axis_].low;
        const std::int64_t wanted = std::max(kStripsPerThread * threads, strips_of(strip_bytes, kPieceBytes) * batch);
        const std::int64_t coarse = at_least(3 * halo),
                           fine = std::min(at_least(1), ceil_div(std::int64_t{threads}, batch));
        const bool in_one_piece = copies_channels_inside() || strip_axis_ == 2;
        const std::int64_t most = in_one_piece && coarse * batch < threads ? std::max(at_least(halo), fine) : coarse;
        // Of a row at least four tiles, where the weights are read anew for each.
        const std::int64_t possible =
            std::min({wanted, most * batch, strip_axis_ == 0 ? at_least(4 * strip_tile_) * batch : wanted});
        const bool may_share =
            weights_bytes <= kSharedWeightsBytes || (is_near && possible >= cost_profile().fine_strips * threads);
        if (threads > 1 && may_share && (meets_in_y || y_volume / kDwarfs <= x_volume)) {
            if (batch >= wanted) {
                images_ = std::min(batch / wanted, std::max<std::int64_t>(strip_bytes / image_bytes, 1));
                workers_ = threads;
            } else {
                strips_ = std::min(ceil_div(wanted, batch), most);
                // So few that it tells when one thread gets one more than another: as many for each, fewer if that is few.
                if (batch == 1 && strips_ < kStripsPerThread * threads) {
                    strips_ = strips_ / threads * threads;
                } else if (batch == 1 && strips_ < kManyStrips * threads) {
                    strips_ = std::min(ceil_div(strips_, threads) * threads, most);
                }
                images_ = 1;
                workers_ = strips_ * batch >= threads ? threads : 1;
            }
        }
        if (workers_ == 1) {
            // At the end of each all threads wait for the slowest: 16 images of 8x8 take 0.85 of the time in one strip instead
            // of in two (two threads).
            const std::int64_t of_all =
                threads > 1 && 2 * image_bytes <= 3 * strip_bytes * threads ? image_bytes : strip_bytes * threads;
            strips_ = std::min(strips_of(of_all, kPieceBytes * threads), at_least(2));
            std::int64_t images = strip_bytes * threads / image_bytes;
            if (meets_in_y) images = std::min(images, kPieceBytes * threads / y_bytes);
            images_ = strips_ > 1 ? 1 : std::clamp<std::int64_t>(images, 1, batch);
        }
    }
    if (!copies_x_) return;
    // Where x ends within the last tile of a row, that tile alone is copied.
    if (packs_edge_strips_ && strip_axis_ == 0 && !problem_.reads_outside() && positions > strip_tile_ &&
        positions % strip_tile_ != 0) {
        strips_++;
        rest_apart_ = true;
    }
    std::int64_t most = 0;
    for (std::int64_t i = 0; i < strips_; i++) {
        const Strip s = strip(images_, strip_begin(i), strip_begin(i + 1));
        const StripParts parts = parts_of_rows(s);
        std::int64_t elements = 0;
        for (std::size_t k = 0; k < parts.count; k++) {
            if (is_copied(parts.part[k])) elements += copied_elements(parts.part[k]);
        }
        most = std::max(most, elements);
    }
    // Tiles are read whole: past the last column of the last row there must be memory.
    const std::int64_t column = copies_channels_inside() ? channels : x_block(),
                       elements = most + (v.tile_q + v.lanes) * column;
    if (elements > kMostElements)
        overflow_ = too_large("its copy of x has # elements, a kernel counts up to #", elements);
    copy_bytes_ = static_cast<std::uint64_t>(ceil_div(capped_product({elements, size}), kCacheLine) * kCacheLine);
}

// Where the i-th strip of an image begins: they are of as many whole tiles each as can be, and the last has the rest, or is it.
std::int64_t DirectPlan::strip_begin(std::int64_t i) const {
    const std::int64_t q = axes_[strip_axis_].q_extent(), of_whole_tiles = rest_apart_ ? strips_ - 1 : strips_;
    return i == strips_ ? q : q / strip_tile_ * i / of_whole_tiles * strip_tile_;
}

std::int64_t DirectPlan::strip_count() const { return ceil_div(problem_.geometry.batch, images_) * strips_; }

DirectPlan::Strip DirectPlan::strip(std::int64_t images, std::int64_t q_begin, std::int64_t q_end) const {
    Strip s;
    s.images = images;
    s.q_begin = q_begin;
    s.q_end = q_end;
    for (int a = 0; a < 3; a++) {
        const AxisPlan &axis = axes_[a];
        const std::int64_t begin = a == strip_axis_ ? q_begin : 0, end = a == strip_axis_ ? q_end : axis.q_extent();
        const bool reads = axis.low != axis.high;
        s.x_min[a] = reads ? begin + axis.low : 0;
        s.x_extent[a] = reads ? end + axis.high - 1 - s.x_min[a] : 0;
        if (variant_->family == Family::kReference) { // which tests where x ends
            s.x_min[a] = 0;
            s.x_extent[a] = axis.geometry.in;
        }
    }
    return s;
}

} // namespace convtranspose
