// Blocking: in which strips, and how many images at a time, a layer is computed. The figures behind it:
// docs/measurements/2026-11-26-estimates.md.
#include <algorithm>

#include "cost/cost_profile.h"
#include "cpu/cpu.h"
#include "direct/direct_plan.h"
#include "direct/direct_plan_parts.h"
#include "selection/input_access.h"

namespace convtranspose {

namespace {

// Bytes of a strip of x. It is read once for each tile of output channels and each residue, so it should stay in the second-level
// cache; but every strip reads all weights. If that is far more to read than x from the third-level cache, strips are as large as
// the weights, within these bounds.
constexpr std::int64_t kLeastStripBytes = 256 << 10, kMostStripBytes = 4 << 20;
// Strips that stay in the second-level cache are taken if the weights that they read anew are at most 1 / kFarMore of the bytes that are
// read otherwise.
constexpr std::int64_t kFarMore = 3;
// Bytes of weights up to which every thread may read all of them for itself, strip by strip; it may read larger ones if strips are many.
// Then kStripsPerThread strips a thread are enough that none waits long for the last, and with kManyStrips a thread it does not matter
// how evenly they divide. A y of more than kDwarfs times the elements of x dwarfs it.
constexpr std::int64_t kSharedWeightsBytes = 384 << 10, kStripsPerThread = 4, kManyStrips = 32, kDwarfs = 16;

// With fewer multiply-adds than this for an element of y, on the average, storing the element is not hidden.
constexpr std::int64_t kFewSteps = 32;

} // namespace

std::int64_t DirectPlan::copied_column() const {
    const std::int64_t channels = copied_channels(), size = operand_size(*variant_);
    const bool apart = (reads_any_strides(*variant_) || variant_->family == Family::kMatrix) &&
                       copies_channels_inside() && in_few_sets(channels * size);
    return apart ? channels + kCacheLine / size : channels;
}

// Rows that are loaded by vectors begin at multiples of a vector, so that the loads of one tap do not cross cache lines, and lie an
// odd number of vectors apart, as an even number would bring the channels of a position into a part of the sets of the first-level
// cache. Narrow rows, which the gaps would dominate, have none. Gaps are filled like the surroundings of x, because tiles read them
// and leftover memory may hold subnormal numbers, which some cores multiply slowly.
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
    // Only kernels that read the channels of a position side by side gain by strips without a copy: they read x once for each tile of
    // output channels and each residue.
    if (!copies_x_ && !reads_any_strides(v) && v.family != Family::kMatrix) return;

    // These are the bytes of the copy of one image.
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
        // Returns the most strips that have `least` positions each, and two tiles, so that residues with a position less fill a tile too.
        const auto at_least = [&](std::int64_t least) {
            return std::max<std::int64_t>(positions / std::max({2 * strip_tile_, least}), 1);
        };
        const Geometry &g = problem_.geometry;
        std::int64_t x_volume = g.in_channels, y_volume = g.out_channels;
        for (const AxisGeometry &axis : problem_.axes) {
            x_volume *= axis.in;
            y_volume *= axis.out;
        }
        // With y channels last, each tile of output channels and each residue walks all of y and stores parts of its cache lines. If a
        // strip of y stays in the second-level cache, those parts meet there.
        const std::int64_t y_bytes = y_volume * static_cast<std::int64_t>(convt_dtype_size(v.dtype));
        const bool meets_in_y = v.family == Family::kChannels && v.store == Store::kChannels &&
                                packed_.tiles() * residues > 1 && weights_bytes <= kSharedWeightsBytes &&
                                packed_.ic * packed_.taps_volume() / kFewSteps < residues &&
                                y_bytes * batch > kPieceBytes;
        // Returns how many strips an image makes of at most of_x bytes of x and, if parts of lines meet in y, of_y bytes of y.
        const auto strips_of = [&](std::int64_t of_x, std::int64_t of_y) {
            return std::max(ceil_div(image_bytes, of_x), meets_in_y ? ceil_div(y_bytes, of_y) : 1);
        };
        // Each thread takes whole strips of its own and waits for others only at the end. If the weights are small, it costs nothing
        // that all threads read all of them. A strip is several times as long as the halo that neighbours both read; if it is one
        // piece of memory, it may be shorter where that leaves a strip for each thread. If y dwarfs x, there is little to copy and
        // to wait for, and finer tasks share the work better.
        const std::int64_t halo = axes_[strip_axis_].high - axes_[strip_axis_].low;
        const std::int64_t wanted = std::max(kStripsPerThread * threads, strips_of(strip_bytes, kPieceBytes) * batch);
        const std::int64_t coarse = at_least(3 * halo),
                           fine = std::min(at_least(1), ceil_div(std::int64_t{threads}, batch));
        const bool in_one_piece = copies_channels_inside() || strip_axis_ == 2;
        const std::int64_t most = in_one_piece && coarse * batch < threads ? std::max(at_least(halo), fine) : coarse;
        // A strip of a single row has at least four tiles, because the weights are read anew for each strip.
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
                // With few strips it matters if one thread takes one more than another, so their number becomes a multiple of the
                // threads: a smaller one if there are less than kStripsPerThread for each, else a larger one.
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
            // All threads wait for the slowest at the end of each strip, so an image that is hardly too large for one strip stays one.
            const std::int64_t of_all =
                threads > 1 && 2 * image_bytes <= 3 * strip_bytes * threads ? image_bytes : strip_bytes * threads;
            strips_ = std::min(strips_of(of_all, kPieceBytes * threads), at_least(2));
            std::int64_t images = strip_bytes * threads / image_bytes;
            if (meets_in_y) images = std::min(images, kPieceBytes * threads / y_bytes);
            images_ = strips_ > 1 ? 1 : std::clamp<std::int64_t>(images, 1, batch);
        }
    }
    if (!copies_x_) return;
    // If x ends within the last tile of a row, only that tile is copied.
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
    // Kernels read whole tiles, so there must be memory past the last column of the last row.
    const std::int64_t column = copies_channels_inside() ? channels : x_block(),
                       elements = most + (v.tile_q + v.lanes) * column;
    if (elements > kMostElements)
        overflow_ = too_large("its copy of x has # elements; a kernel counts up to #", elements);
    copy_bytes_ = static_cast<std::uint64_t>(ceil_div(capped_product({elements, size}), kCacheLine) * kCacheLine);
}

// Returns where the i-th strip of an image begins. Strips have equally many whole tiles, as far as possible; the last one has the rest
// too, or, with rest_apart_, is the rest.
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
        if (variant_->family == Family::kReference) { // it tests for itself where x ends
            s.x_min[a] = 0;
            s.x_extent[a] = axis.geometry.in;
        }
    }
    return s;
}

} // namespace convtranspose
