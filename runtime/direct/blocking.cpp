// Blocking: in which strips, and how many images at a time, a layer is computed. The figures behind it:
// docs/measurements/2026-11-26-estimates.md, of groups 2026-11-29-depthwise.md.
#include <algorithm>

#include "base/allocator.h"
#include "base/division.h"
#include "direct/direct_plan.h"
#include "kernel_contract/fetching.h"
#include "selection/candidates.h"

namespace convtranspose {

namespace {

// Bytes of a strip of x. It is read once for each tile of output channels and each phase, so it should stay in the second-level
// cache; but every strip reads all weights. If that is far more to read than x from the third-level cache, strips are as large as
// the weights, within these bounds.
constexpr std::int64_t kLeastStripBytes = 256 << 10, kMostStripBytes = 4 << 20;
// A near strip takes 3/8 of the second-level cache, within these bounds.
constexpr std::int64_t kLeastNearBytes = 64 << 10, kMostNearBytes = 768 << 10;
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
    const bool apart = (reads_any_strides(*variant_) || variant_->family == Family::kAmx) && copies_channels_inside() &&
                       in_few_sets(channels * size);
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

// The amounts that decide how a layer is cut into strips.
struct DirectPlan::Amounts {
    std::int64_t batch, image_bytes, weights_bytes; // image_bytes: of the copy of one image
    std::int64_t x_elements, y_elements, y_bytes;   // of one image
    std::int64_t strip_bytes;                       // of a strip of x
    bool is_near;                                   // strips of x stay in the second-level cache
    bool meets_in_y;                                // parts of cache lines of y do
    double fine_strips;                             // of CostProfile

    // Returns how many strips an image makes of at most of_x bytes of x and, if parts of lines meet in y, of_y bytes of y.
    std::int64_t strips_of(std::int64_t of_x, std::int64_t of_y) const {
        return std::max(ceil_div(image_bytes, of_x), meets_in_y ? ceil_div(y_bytes, of_y) : 1);
    }
};

DirectPlan::Amounts DirectPlan::amounts(const CostProfile &profile) const {
    const Variant &v = *variant_;
    const std::int64_t size = operand_size(v);
    Amounts a = {};
    a.batch = std::max<std::int64_t>(problem_.geometry.batch, 1);
    const Strip whole = strip(1, groups_, 0, axes_[strip_axis_].q_extent());
    a.image_bytes = std::max<std::int64_t>(
        capped_product({whole.x_extent[0], whole.x_extent[1], whole.x_extent[2], copied_column(), size}), 1);
    a.weights_bytes = packed_.weights() * size;
    a.x_elements = problem_.geometry.in_channels;
    a.y_elements = problem_.geometry.out_channels;
    for (const AxisPlan &axis : axes_) {
        a.x_elements *= axis.geometry.in;
        a.y_elements *= axis.geometry.out;
    }
    a.y_bytes = a.y_elements * size_of(v.dtype);
    a.fine_strips = profile.fine_strips;
    const double cache = std::min<double>(profile.second_level_cache, 4 * kMostNearBytes); // it may be infinite
    const std::int64_t most_near =
                           std::clamp(static_cast<std::int64_t>(cache) / 8 * 3, kLeastNearBytes, kMostNearBytes),
                       near = std::clamp(a.weights_bytes, std::min(kLeastStripBytes, most_near), most_near);
    const std::int64_t phases =
        capped_product({v.stride_w ? 1 : axes_[0].phases, v.stride_h ? 1 : axes_[1].phases, axes_[2].phases});
    const std::int64_t near_bytes = capped_product({ceil_div(a.image_bytes, near), a.weights_bytes}),
                       far_bytes = a.weights_bytes + capped_product({packed_.tiles(), phases, a.image_bytes});
    a.is_near = kFarMore * near_bytes <= far_bytes;
    a.strip_bytes = a.is_near ? near : std::clamp(a.weights_bytes, kLeastStripBytes, kMostStripBytes);
    // With y channels last, each tile of output channels and each phase walks all of y and stores parts of its cache lines. If a
    // strip of y stays in the second-level cache, those parts meet there.
    a.meets_in_y = !rounds_y(v, problem_.y_dtype) && v.family == Family::kOcVectorized &&
                   v.output_order == OutputOrder::kChannels && packed_.tiles() * phases > 1 &&
                   a.weights_bytes <= kSharedWeightsBytes && packed_.ic * packed_.taps_volume() / kFewSteps < phases &&
                   a.y_bytes * a.batch > kPieceBytes;
    return a;
}

// Returns the most strips that have `least` positions each, and two tiles, so that phases with a position less fill a tile too.
std::int64_t DirectPlan::most_strips(std::int64_t least) const {
    return std::max<std::int64_t>(axes_[strip_axis_].q_extent() / std::max({2 * strip_tile_, least}), 1);
}

void DirectPlan::plan_strips(const CostProfile &profile, int threads) {
    const Variant &v = *variant_;
    strip_axis_ = static_cast<int>(problem_.strip_axis());
    strip_tile_ = tile_along(v, problem_.strip_axis());
    images_ = std::max<std::int64_t>(problem_.geometry.batch, 1);
    groups_ = packed_.group;
    // Only kernels that read the channels of a position side by side gain by strips without a copy: they read x once for each tile of
    // output channels and each phase.
    if (reads_x_ == ReadsX::kInPlace && !reads_any_strides(v) && v.family != Family::kAmx) return;
    if (v.family != Family::kReference) {
        const Amounts a = amounts(profile);
        if (!takes_groups_apart(a, threads)) {
            give_strips_to_threads(a, threads);
            if (workers_ == 1) share_strips(a, threads);
        }
    }
    if (reads_x_ != ReadsX::kInPlace && problem_.geometry.batch > 0) plan_copy();
}

// Makes strips of groups, and returns true, if all of x is copied and each group fits in a strip. Such strips read no position of x
// twice, and their copies are filled alike.
bool DirectPlan::takes_groups_apart(const Amounts &a, int threads) {
    const std::int64_t group_bytes = ceil_div(a.image_bytes, packed_.group);
    if (reads_x_ != ReadsX::kCopy || copies_channels_inside() || variant_->output_order != OutputOrder::kPlanar ||
        a.image_bytes <= a.strip_bytes || group_bytes > a.strip_bytes)
        return false;
    const std::int64_t wanted = threads > 1 ? ceil_div(kStripsPerThread * threads, a.batch) : 1;
    groups_ = std::max<std::int64_t>(std::min(a.strip_bytes / group_bytes, packed_.group / wanted), 1);
    images_ = 1;
    workers_ = group_parts() * a.batch >= threads ? threads : 1;
    return true;
}

// Lets each thread take whole strips of its own, so that it waits for others only at the end. If the weights are small, it costs
// nothing that all threads read all of them. A strip is several times as long as the halo that neighbours both read; if it is one piece
// of memory, it may be shorter where that leaves a strip for each thread. If y dwarfs x, there is little to copy and to wait for, and
// finer tasks share the work better.
void DirectPlan::give_strips_to_threads(const Amounts &a, int threads) {
    if (threads <= 1 || !(a.meets_in_y || a.y_elements / kDwarfs <= a.x_elements)) return;
    const std::int64_t halo = axes_[strip_axis_].high - axes_[strip_axis_].low;
    const std::int64_t wanted = std::max(kStripsPerThread * threads, a.strips_of(a.strip_bytes, kPieceBytes) * a.batch);
    const std::int64_t coarse = most_strips(3 * halo),
                       fine = std::min(most_strips(1), ceil_div(std::int64_t{threads}, a.batch));
    const bool in_one_piece = copies_channels_inside() || strip_axis_ == 2;
    const std::int64_t most = in_one_piece && coarse * a.batch < threads ? std::max(most_strips(halo), fine) : coarse;
    // A strip of a single row has at least four tiles, because the weights are read anew for each strip.
    const std::int64_t possible =
        std::min({wanted, most * a.batch, strip_axis_ == 0 ? most_strips(4 * strip_tile_) * a.batch : wanted});
    const bool are_many = a.is_near && real(possible) >= a.fine_strips * threads;
    if (a.weights_bytes > kSharedWeightsBytes && !are_many) return;
    if (a.batch >= wanted) {
        images_ = std::min(a.batch / wanted, std::max<std::int64_t>(a.strip_bytes / a.image_bytes, 1));
        workers_ = threads;
        return;
    }
    strips_ = std::min(ceil_div(wanted, a.batch), most);
    // With few strips it matters if one thread takes one more than another, so their number becomes a multiple of the threads: a smaller
    // one if there are less than kStripsPerThread for each, else a larger one.
    if (a.batch == 1 && strips_ < kStripsPerThread * threads) {
        strips_ = strips_ / threads * threads;
    } else if (a.batch == 1 && strips_ < kManyStrips * threads) {
        strips_ = std::min(ceil_div(strips_, threads) * threads, most);
    }
    images_ = 1;
    workers_ = strips_ * a.batch >= threads ? threads : 1;
}

// Lets all threads share each strip. They wait for the slowest at the end of each, so an image that is hardly too large for one strip
// stays one.
void DirectPlan::share_strips(const Amounts &a, int threads) {
    const std::int64_t of_all =
        threads > 1 && 2 * a.image_bytes <= 3 * a.strip_bytes * threads ? a.image_bytes : a.strip_bytes * threads;
    strips_ = std::min(a.strips_of(of_all, kPieceBytes * threads), most_strips(2));
    std::int64_t images = a.strip_bytes * threads / a.image_bytes;
    if (a.meets_in_y) images = std::min(images, kPieceBytes * threads / a.y_bytes);
    images_ = strips_ > 1 ? 1 : std::clamp<std::int64_t>(images, 1, a.batch);
}

// Plans the memory for the copy of the largest strip.
void DirectPlan::plan_copy() {
    const std::int64_t positions = axes_[strip_axis_].q_extent();
    // If x ends within the last tile of a row, only that tile is copied.
    if (reads_x_ == ReadsX::kCopyOfEdgeStrips && strip_axis_ == 0 && !problem_.reads_outside() &&
        positions > strip_tile_ && positions % strip_tile_ != 0) {
        strips_++;
        rest_apart_ = true;
    }
    std::int64_t most = 0;
    for (std::int64_t i = 0; i < strips_; i++) {
        const Strip s = strip(images_, groups_, strip_begin(i), strip_begin(i + 1));
        const StripParts parts = parts_of_rows(s);
        std::int64_t elements = 0;
        for (std::size_t k = 0; k < parts.count; k++) {
            if (is_copied(parts.part[k])) elements += copied_elements(parts.part[k]);
        }
        most = std::max(most, elements);
    }
    // Kernels read whole tiles, so there must be memory past the last column of the last row. locate_copy() leaves some before the first.
    const std::int64_t column = copies_channels_inside() ? copied_column() : x_block(),
                       elements = most + (variant_->tile_q + 2 * variant_->lanes) * column;
    if (elements > kMostElements)
        overflow_ = too_large("its copy of x has # elements; a kernel counts up to #", elements);
    copy_bytes_ = round_up(capped_product({elements, operand_size(*variant_)}));
}

// Returns where the i-th strip of an image begins. Strips have equally many whole tiles, as far as possible; the last one has the rest
// too, or, with rest_apart_, is the rest.
std::int64_t DirectPlan::strip_begin(std::int64_t i) const {
    const std::int64_t q = axes_[strip_axis_].q_extent(), of_whole_tiles = rest_apart_ ? strips_ - 1 : strips_;
    return i == strips_ ? q : q / strip_tile_ * i / of_whole_tiles * strip_tile_;
}

std::int64_t DirectPlan::strip_count() const {
    return ceil_div(problem_.geometry.batch, images_) * group_parts() * strips_;
}

std::int64_t DirectPlan::group_parts() const { return ceil_div(packed_.group, groups_); }

DirectPlan::Strip DirectPlan::strip(std::int64_t images, std::int64_t groups, std::int64_t q_begin,
                                    std::int64_t q_end) const {
    Strip s;
    s.images = images;
    s.groups = groups;
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
