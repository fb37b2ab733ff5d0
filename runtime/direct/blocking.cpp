// The figures behind it: docs/measurements/2026-11-26-estimates.md, of groups 2026-11-29-depthwise.md.
#include "direct/blocking.h"

#include "kernel_contract/fetching.h"

namespace convtranspose {

namespace {

// Bytes of a strip of x. It is read once for each tile of output channels and each phase, so it should stay in the second-level
// cache; but every strip reads all weights. If that is far more to read than x from the third-level cache, strips are as large as
// the weights, within these bounds.
constexpr std::int64_t kLeastStripBytes = 256 << 10, kMostStripBytes = 4 << 20;
// A near strip takes 3/8 of the second-level cache, within these bounds.
constexpr std::int64_t kLeastNearBytes = 64 << 10, kMostNearBytes = 768 << 10;
// Strips that stay in the second-level cache are taken if the weights that they read anew are at most 1 / kFarMore of the bytes
// that are read otherwise.
constexpr std::int64_t kFarMore = 3;
// Bytes of weights up to which every thread may read all of them for itself, strip by strip; it may read larger ones if strips are
// many. Then kStripsPerThread strips a thread are enough that none waits long for the last, and with kManyStrips a thread it does
// not matter how evenly they divide. A y of more than kDwarfs times the elements of x dwarfs it.
constexpr std::int64_t kSharedWeightsBytes = 384 << 10, kStripsPerThread = 4, kManyStrips = 32, kDwarfs = 16;

// With fewer multiply-adds than this for an element of y, on the average, storing the element is not hidden.
constexpr std::int64_t kFewSteps = 32;

} // namespace

// The amounts that decide how a layer is cut into strips.
struct Blocking::Amounts {
    std::int64_t image_bytes, weights_bytes;      // image_bytes: of the copy of one image
    std::int64_t x_elements, y_elements, y_bytes; // of one image
    std::int64_t strip_bytes;                     // of a strip of x
    bool is_near;                                 // strips of x stay in the second-level cache
    bool meets_in_y;                              // parts of cache lines of y do
    double fine_strips;                           // of CostProfile

    // Returns how many strips an image makes of at most of_x bytes of x and, if parts of lines meet in y, of_y bytes of y.
    std::int64_t strips_of(std::int64_t of_x, std::int64_t of_y) const {
        return std::max(ceil_div(image_bytes, of_x), meets_in_y ? ceil_div(y_bytes, of_y) : 1);
    }
};

Blocking::Amounts Blocking::amounts(const CostProfile &profile) const {
    const Variant &v = layer.variant;
    const std::int64_t size = operand_size(v);
    Amounts a = {};
    const Strip whole = strip(0);
    a.image_bytes = std::max<std::int64_t>(
        capped_product({whole.x_extent[0], whole.x_extent[1], whole.x_extent[2], layer.copied_column(groups), size}),
        1);
    a.weights_bytes = layer.packed.weights() * size;
    a.x_elements = layer.problem.geometry.in_channels;
    a.y_elements = layer.problem.geometry.out_channels;
    for (const AxisPlan &axis : layer.axes) {
        a.x_elements *= axis.geometry.in;
        a.y_elements *= axis.geometry.out;
    }
    a.y_bytes = a.y_elements * size_of(v.dtype);
    a.fine_strips = profile.fine_strips;
    const double cache = std::min<double>(profile.second_level_cache, 4 * kMostNearBytes); // it may be infinite
    const std::int64_t most_near =
                           std::clamp(static_cast<std::int64_t>(cache) / 8 * 3, kLeastNearBytes, kMostNearBytes),
                       near = std::clamp(a.weights_bytes, std::min(kLeastStripBytes, most_near), most_near);
    const std::int64_t phases = capped_product(
        {v.stride_w ? 1 : layer.axes[0].phases, v.stride_h ? 1 : layer.axes[1].phases, layer.axes[2].phases});
    const std::int64_t near_bytes = capped_product({ceil_div(a.image_bytes, near), a.weights_bytes}),
                       far_bytes = a.weights_bytes + capped_product({layer.packed.tiles(), phases, a.image_bytes});
    a.is_near = kFarMore * near_bytes <= far_bytes;
    a.strip_bytes = a.is_near ? near : std::clamp(a.weights_bytes, kLeastStripBytes, kMostStripBytes);
    // With y channels last, each tile of output channels and each phase walks all of y and stores parts of its cache lines. If a
    // strip of y stays in the second-level cache, those parts meet there.
    a.meets_in_y = !rounds_y(v, layer.problem.y_dtype) && v.family == Family::kOcVectorized &&
                   v.output_order == OutputOrder::kChannels && layer.packed.tiles() * phases > 1 &&
                   a.weights_bytes <= kSharedWeightsBytes &&
                   layer.packed.ic * layer.packed.taps_volume() / kFewSteps < phases &&
                   a.y_bytes * batch() > kPieceBytes;
    return a;
}

// Returns the most strips that have `least` positions each, and two tiles, so that phases with a position less fill a tile too.
std::int64_t Blocking::most_strips(std::int64_t least) const {
    return std::max<std::int64_t>(positions() / std::max({2 * strip_tile, least}), 1);
}

Blocking::Blocking(const DirectLayer &of, const CostProfile &profile, int threads)
    : layer(of), strip_axis(of.problem.strip_axis()), strip_tile(tile_along(of.variant, strip_axis)), images(batch()),
      groups(of.packed.group) {
    const Variant &v = layer.variant;
    // Only kernels that read the channels of a position side by side gain by strips without a copy: they read x once for each tile
    // of output channels and each phase.
    if (v.family == Family::kReference ||
        (layer.reads_x == ReadsX::kInPlace && !reads_any_strides(v) && v.family != Family::kAmx))
        return;
    const Amounts a = amounts(profile);
    if (!takes_groups_apart(a, threads)) {
        give_strips_to_threads(a, threads);
        if (workers == 1) share_strips(a, threads);
    }
    // If x ends within the last tile of a row, only that tile is copied.
    rest_apart = layer.reads_x == ReadsX::kCopyOfEdgeStrips && strip_axis == 0 && !layer.problem.reads_outside() &&
                 positions() > strip_tile && positions() % strip_tile != 0;
    if (rest_apart) strips++;
}

// Makes strips of groups, and returns true, if all of x is copied and each group fits in a strip. Such strips read no position of x
// twice, and their copies are filled alike.
bool Blocking::takes_groups_apart(const Amounts &a, int threads) {
    const std::int64_t group_bytes = ceil_div(a.image_bytes, layer.packed.group);
    if (layer.reads_x != ReadsX::kCopy || layer.copies_channels_inside() ||
        layer.variant.output_order != OutputOrder::kPlanar || a.image_bytes <= a.strip_bytes ||
        group_bytes > a.strip_bytes)
        return false;
    const std::int64_t wanted = threads > 1 ? ceil_div(kStripsPerThread * threads, batch()) : 1;
    groups = std::max<std::int64_t>(std::min(a.strip_bytes / group_bytes, layer.packed.group / wanted), 1);
    images = 1;
    workers = group_parts() * batch() >= threads ? threads : 1;
    return true;
}

// Lets each thread take whole strips of its own, so that it waits for others only at the end. If the weights are small, it costs
// nothing that all threads read all of them. A strip is several times as long as the halo that neighbours both read; if it is one
// piece of memory, it may be shorter where that leaves a strip for each thread. If y dwarfs x, there is little to copy and to wait
// for, and finer tasks share the work better.
void Blocking::give_strips_to_threads(const Amounts &a, int threads) {
    if (threads <= 1 || !(a.meets_in_y || a.y_elements / kDwarfs <= a.x_elements)) return;
    const std::int64_t halo = layer.axes[strip_axis].high - layer.axes[strip_axis].low;
    const std::int64_t wanted = std::max(kStripsPerThread * threads, a.strips_of(a.strip_bytes, kPieceBytes) * batch());
    const std::int64_t coarse = most_strips(3 * halo),
                       fine = std::min(most_strips(1), ceil_div(std::int64_t{threads}, batch()));
    const bool in_one_piece = layer.copies_channels_inside() || strip_axis == 2;
    const std::int64_t most = in_one_piece && coarse * batch() < threads ? std::max(most_strips(halo), fine) : coarse;
    // A strip of a single row has at least four tiles, because the weights are read anew for each strip.
    const std::int64_t possible =
        std::min({wanted, most * batch(), strip_axis == 0 ? most_strips(4 * strip_tile) * batch() : wanted});
    const bool are_many = a.is_near && real(possible) >= a.fine_strips * threads;
    if (a.weights_bytes > kSharedWeightsBytes && !are_many) return;
    if (batch() >= wanted) {
        images = std::min(batch() / wanted, std::max<std::int64_t>(a.strip_bytes / a.image_bytes, 1));
        workers = threads;
        return;
    }
    strips = std::min(ceil_div(wanted, batch()), most);
    // With few strips it matters if one thread takes one more than another, so their number becomes a multiple of the threads: a
    // smaller one if there are less than kStripsPerThread for each, else a larger one.
    if (batch() == 1 && strips < kStripsPerThread * threads) {
        strips = strips / threads * threads;
    } else if (batch() == 1 && strips < kManyStrips * threads) {
        strips = std::min(ceil_div(strips, threads) * threads, most);
    }
    images = 1;
    workers = strips * batch() >= threads ? threads : 1;
}

// Lets all threads share each strip. They wait for the slowest at the end of each, so an image that is hardly too large for one
// strip stays one.
void Blocking::share_strips(const Amounts &a, int threads) {
    const std::int64_t of_all =
        threads > 1 && 2 * a.image_bytes <= 3 * a.strip_bytes * threads ? a.image_bytes : a.strip_bytes * threads;
    strips = std::min(a.strips_of(of_all, kPieceBytes * threads), most_strips(2));
    std::int64_t fit = a.strip_bytes * threads / a.image_bytes;
    if (a.meets_in_y) fit = std::min(fit, kPieceBytes * threads / a.y_bytes);
    images = strips > 1 ? 1 : std::clamp<std::int64_t>(fit, 1, batch());
}

// Returns where the i-th strip of an image begins. Strips have equally many whole tiles, as far as possible; the last one has the
// rest too, or, with rest_apart, is the rest.
std::int64_t Blocking::strip_begin(std::int64_t i) const {
    const std::int64_t q = positions(), of_whole_tiles = rest_apart ? strips - 1 : strips;
    return i == strips ? q : q / strip_tile * i / of_whole_tiles * strip_tile;
}

Strip Blocking::strip(std::int64_t i) const {
    const std::int64_t of_axis = i / strips, parts = group_parts();
    Strip s;
    s.first_image = of_axis / parts * images;
    s.images = std::min(images, batch() - s.first_image);
    s.first_group = of_axis % parts * groups;
    s.groups = std::min(groups, layer.packed.group - s.first_group);
    s.q_begin = strip_begin(i % strips);
    s.q_end = strip_begin(i % strips + 1);
    for (std::size_t a = 0; a < 3; a++) {
        const AxisPlan &axis = layer.axes[a];
        const std::int64_t begin = a == strip_axis ? s.q_begin : 0, end = a == strip_axis ? s.q_end : axis.q_extent();
        const bool reads = axis.low != axis.high;
        s.x_min[a] = reads ? begin + axis.low : 0;
        s.x_extent[a] = reads ? end + axis.high - 1 - s.x_min[a] : 0;
        if (layer.variant.family == Family::kReference) { // it tests for itself where x ends
            s.x_min[a] = 0;
            s.x_extent[a] = axis.geometry.in;
        }
    }
    return s;
}

} // namespace convtranspose
