#include "core.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core_parts.h"
#include "kernel_tables.h"
#include "machine.h"

namespace convtranspose {

halide_type_t type_of(convt_dtype dtype) {
    switch (dtype) {
    case CONVT_F16: return halide_type_t(halide_type_float, 16);
    case CONVT_BF16: return halide_type_t(halide_type_bfloat, 16);
    case CONVT_F32: return halide_type_t(halide_type_float, 32);
    case CONVT_F64: return halide_type_t(halide_type_float, 64);
    case CONVT_U8: return halide_type_t(halide_type_uint, 8);
    case CONVT_S8: return halide_type_t(halide_type_int, 8);
    case CONVT_S32: break;
    }
    return halide_type_t(halide_type_int, 32);
}

OperandTypes types_of(const Variant &v) {
    const halide_type_t s32(halide_type_int, 32), s16(halide_type_int, 16);
    switch (v.arithmetic) {
    case Arithmetic::kFloat:
    case Arithmetic::kHalf: break;
    case Arithmetic::kBf16: return {type_of(CONVT_BF16), type_of(CONVT_BF16), type_of(CONVT_F32)};
    case Arithmetic::kInt8: return {type_of(CONVT_S8), type_of(kByteX), s32};
    case Arithmetic::kInt16: return {s16, s16, s32};
    }
    const halide_type_t sum = type_of(sum_dtype(v));
    return {sum, sum, sum};
}

TensorStrides tensor_strides(const Geometry &geometry, const Strides &strides) {
    TensorStrides s;
    const bool channels_last = geometry.layout == CONVT_CHANNELS_LAST;
    s.n = strides.front();
    s.c = channels_last ? strides.back() : strides[1];
    const std::size_t last = strides.size() - (channels_last ? 2 : 1);
    for (std::size_t a = 0; a < std::min(geometry.axes.size(), s.axes.size()); a++) s.axes[a] = strides[last - a];
    return s;
}

namespace {

// Halide takes any number of int32 of a table: (residue, column), one row after the other.
Buffer<2> table_buffer(const AxisPlan &axis, std::int64_t first_residue) {
    Buffer<2> b(axis.table.data() + kTapColumns * first_residue, halide_type_t(halide_type_int, 32));
    b.set(0, 0, axis.residues - first_residue, kTapColumns);
    b.set(1, 0, kTapColumns, 1);
    return b;
}

// What a strip of x may take. It is read once per tile of output channels and residue, so it should stay in the second-level
// cache; but every strip reads all weights. Where those would then be far more to read than x is from the third-level cache,
// a strip is as large as the weights.
constexpr std::int64_t kLeastStripBytes = 256 << 10, kMostStripBytes = 4 << 20;
// Times. 512 to 256 channels of 56x56 take 0.96 of the time in near strips (Zen 5, AVX-512).
constexpr std::int64_t kFarMore = 3;
// Of y, so that what follows finds it in that cache still.
constexpr std::int64_t kPieceBytes = 512 << 10;
// Weights that every thread may read for itself, strip by strip, and larger ones where strips are many; strips enough that none
// waits long for the last. 256 to 128 channels of 112x112 take 0.85 of the time of sharing each strip on Zen 5 (two
// threads).
constexpr std::int64_t kSharedWeightsBytes = 384 << 10, kStripsPerThread = 4, kManyStrips = 32, kDwarfs = 16;

// Multiply-adds of an element of y, on the average, that do not hide what storing it takes.
constexpr std::int64_t kFewSteps = 32;

// So many times as many tasks as are wanted, that one thread has one more than another tells.
constexpr std::int64_t kMostUneven = 4;

// Makes two boxes of one: of half of its residues each.
void part_residues(Boxes *boxes) {
    Box &first = boxes->box[0], &second = boxes->box[1];
    if (boxes->count != 1 || first.count < 2) return;
    second = first;
    first.count /= 2;
    second.first += first.count;
    second.count -= first.count;
    boxes->count = 2;
}

} // namespace

Boxes boxes_of(const AxisPlan &axis, bool whole, std::int64_t q_begin, std::int64_t q_end) {
    const AxisGeometry &g = axis.geometry;
    Boxes boxes;
    if (whole) {
        boxes.box[boxes.count++] = {0, g.stride, q_begin, q_end};
        return boxes;
    }
    const std::int64_t more = g.out % g.stride, positions = g.out / g.stride;
    if (more) boxes.box[boxes.count++] = {0, more, q_begin, std::min(q_end, positions + 1)};
    if (positions > q_begin) boxes.box[boxes.count++] = {more, g.stride - more, q_begin, std::min(q_end, positions)};
    return boxes;
}

Core::Core(const CoreProblem &problem, const Candidate &choice, int threads, const PackedLayout *packed)
    : variant_(choice.variant), problem_(problem), copies_x_(choice.copies_x), copies_ends_(choice.copies_ends),
      in_place_(choice.in_place) {
    const Variant &v = *variant_;
    const Geometry &g = problem.geometry;
    whole_ = {v.stride_w != 0, v.stride_h != 0, false};
    packed_ = packed ? *packed : packing_of(v);
    for (std::size_t a = 0; a < 3; a++) {
        axes_[a] = whole_[a] ? plan_axis(problem.axes[a], problem.weight_stride[a], true) : problem.plan[a];
        if (a == 0 && pairs_taps(v)) pair_taps(&axes_[a]);
        packed_.taps[a] = static_cast<std::int64_t>(axes_[a].elements.size()) / (axes_[a].paired ? 2 : 1);
    }
    packed_.group = g.group;
    packed_.ic = problem.ic();
    packed_.oc = problem.oc();
    if (choice.narrower_ends) narrower_ = narrower_tiles(v);
    copy_order_ = copy_order(v, g.layout);
    const CopyOrder order = pairs_taps(v) ? CopyOrder::kPlanar : copy_order_; // see copy_parts()
    const convt_dtype x_bits = is_float(v.arithmetic) ? problem.x_dtype : CONVT_U8;
    copy_ = transposes() ? find_copy(v.isa, CopyOrder::kTransposed, v.arithmetic, x_bits, 1)
                         : find_copy(v.isa, order, v.arithmetic, x_bits, static_cast<int>(x_block()));
    plan_strips(threads);
}

std::uint64_t Core::weight_bytes() const {
    std::int64_t elements = packed_.weights();
    if (kByElement)
        elements += packed_.block * std::max<std::int64_t>(packed_.oc_tile, 1); // those of one more input channel
    return static_cast<std::uint64_t>(ceil_div(elements * operand_size(*variant_), kCacheLine) * kCacheLine);
}

std::uint64_t Core::packed_bytes() const {
    std::int64_t bytes = packed_.biases() * types_of(*variant_).bias.bytes();
    if (packed_.arithmetic == Arithmetic::kInt8) bytes = packed_.biases() * packed_.taps_volume() * 4;
    if (packed_.arithmetic == Arithmetic::kInt16) bytes = 0;
    return weight_bytes() + static_cast<std::uint64_t>(ceil_div(bytes, kCacheLine) * kCacheLine);
}

std::uint64_t Core::epilogue_bytes() const {
    if (is_float(packed_.arithmetic)) return 0;
    return static_cast<std::uint64_t>(ceil_div(epilogue_of(packed_, axes_).bytes(), kCacheLine) * kCacheLine);
}

bool Core::pack(const WeightsView &w, const void *bias, void *packed) const {
    return pack_weights(packed_, axes_, problem_.x_dtype, w, bias, packed,
                        static_cast<char *>(packed) + weight_bytes());
}

void Core::pack(const WeightsView &w, const QuantizationValues &q, void *packed) const {
    void *const sums = static_cast<char *>(packed) + weight_bytes();
    pack_quantized(packed_, axes_, problem_.geometry, q, w, packed, static_cast<std::int32_t *>(sums));
}

void Core::unpack(const WeightsView &w, const QuantizationValues *q, const void *packed, void *w_out) const {
    unpack_weights(packed_, axes_, problem_.x_dtype, q, packed, w, w_out);
}

void Core::prepare(const QuantizationValues &q, const void *packed, const void *bias, void *epilogue) const {
    const void *const sums = static_cast<const char *>(packed) + weight_bytes();
    make_epilogue(packed_, axes_, problem_.geometry, q, static_cast<const std::int32_t *>(sums), bias, epilogue);
}

bool Core::transposes() const {
    return copy_order_ == CopyOrder::kToChannels && variant_->arithmetic == Arithmetic::kBf16;
}

std::int64_t Core::x_block() const { return block_of(*variant_); }

std::int64_t Core::x_blocks() const { return packed_.blocks() * packed_.block / x_block(); }

std::int64_t Core::copied_channels() const { return packed_.groups() * packed_.blocks() * packed_.block; }

bool Core::copies_channels_inside() const {
    return copy_order_ == CopyOrder::kChannels || copy_order_ == CopyOrder::kToChannels;
}

std::int64_t Core::copied_column() const {
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
std::int64_t Core::copied_row(const Strip &s) const {
    if (copies_channels_inside() || !has_vectors_along_w(*variant_)) return s.x_extent[0];
    const std::int64_t row = (ceil_div(s.x_extent[0], std::int64_t{variant_->lanes}) | 1) * variant_->lanes;
    return 2 * row <= 3 * s.x_extent[0] ? row : s.x_extent[0];
}

void Core::plan_strips(int threads) {
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
    const std::int64_t image_bytes =
        std::max<std::int64_t>(whole.x_extent[0] * whole.x_extent[1] * whole.x_extent[2] * channels * size, 1);
    if (v.family != Family::kReference) {
        const std::int64_t weights_bytes = packed_.weights() * size;
        const std::int64_t near =
            std::clamp(weights_bytes, std::min(kLeastStripBytes, machine().near_strip), machine().near_strip);
        const std::int64_t residues =
            (v.stride_w ? 1 : axes_[0].residues) * (v.stride_h ? 1 : axes_[1].residues) * axes_[2].residues;
        const std::int64_t near_bytes = ceil_div(image_bytes, near) * weights_bytes,
                           far_bytes = weights_bytes + packed_.tiles() * residues * image_bytes;
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
                                packed_.ic * packed_.taps_volume() <= kFewSteps * residues &&
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
            weights_bytes <= kSharedWeightsBytes || (is_near && possible >= machine().fine_strips * threads);
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
    if (copies_ends_ && strip_axis_ == 0 && !problem_.reads_outside() && positions > strip_tile_ &&
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
    const std::int64_t column = copies_channels_inside() ? channels : x_block();
    copy_bytes_ =
        static_cast<std::uint64_t>(ceil_div((most + (v.tile_q + v.lanes) * column) * size, kCacheLine) * kCacheLine);
}

// Where the i-th strip of an image begins: they are of as many whole tiles each as can be, and the last has the rest, or is it.
std::int64_t Core::strip_begin(std::int64_t i) const {
    const std::int64_t q = axes_[strip_axis_].q_extent(), of_whole_tiles = rest_apart_ ? strips_ - 1 : strips_;
    return i == strips_ ? q : q / strip_tile_ * i / of_whole_tiles * strip_tile_;
}

std::int64_t Core::strip_count() const { return ceil_div(problem_.geometry.batch, images_) * strips_; }

Core::Strip Core::strip(std::int64_t images, std::int64_t q_begin, std::int64_t q_end) const {
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

void Core::run(const Operands &o, const Parallel &parallel) const {
    if (axes_[strip_axis_].q_extent() == 0) return;
    const auto count = static_cast<std::size_t>(strip_count());
    if (workers_ <= 1) {
        for (std::size_t i = 0; i < count; i++) run_strip(i, o, parallel);
        return;
    }
    parallel.for_each_by(workers_, count, [&](std::size_t i, std::size_t worker) {
        Operands own = o;
        own.workspace = static_cast<char *>(o.workspace) + worker * copy_bytes_;
        run_strip(i, own, Parallel());
    });
}

// But for taps that the kernel leaves out; whole tiles, too, where it reads such.
bool Core::is_inside(const Strip &s) const {
    for (std::size_t a = 0; a < 3; a++) {
        if (skips_outside(*variant_, a)) continue;
        std::int64_t end = s.x_min[a] + s.x_extent[a];
        if (a == 0 && strip_axis_ == 0 && whole_[0])
            end += ceil_div(s.q_end - s.q_begin, strip_tile_) * strip_tile_ - (s.q_end - s.q_begin);
        if (s.x_min[a] < 0 || end > axes_[a].geometry.in) return false;
    }
    return true;
}

void Core::run_strip(std::size_t i, const Operands &o, const Parallel &parallel) const {
    const std::int64_t first = static_cast<std::int64_t>(i) / strips_ * images_,
                       at = static_cast<std::int64_t>(i) % strips_;
    Strip s = strip(std::min(images_, problem_.geometry.batch - first), strip_begin(at), strip_begin(at + 1));
    s.first_image = first;
    StripParts parts = parts_of_rows(s);
    char *copy = static_cast<char *>(o.workspace);
    for (std::size_t k = 0; k < parts.count; k++) {
        Strip &part = parts.part[k];
        if (is_copied(part)) {
            locate_copy(&part, copy);
            copy_strip(part, o, parallel);
            copy += copied_elements(part) * operand_size(*variant_);
        } else {
            locate_in_place(&part, o);
        }
    }
    compute_strip(parts, o, parallel);
}

bool Core::is_copied(const Strip &s) const {
    if (in_place_.any()) return s.columns.begin != in_place_.begin;
    return copies_x_ && !(copies_ends_ && is_inside(s));
}

void Core::locate_in_place(Strip *s, const Operands &o) const {
    s->strides = o.x_strides;
    s->group_stride = packed_.ic * s->strides.c;
    s->strides.c *= x_block();
    const auto x_size = static_cast<std::int64_t>(convt_dtype_size(problem_.x_dtype));
    s->x = static_cast<const char *>(o.x) + s->first_image * o.x_strides.n * x_size;
    if (variant_->family == Family::kReference) return;
    for (std::size_t a = 0; a < 3; a++) {
        if (skips_outside(*variant_, a)) { // and so do not read what is outside
            const std::int64_t in = axes_[a].geometry.in,
                               end = std::clamp<std::int64_t>(s->x_min[a] + s->x_extent[a], 0, in);
            s->x_min[a] = std::clamp<std::int64_t>(s->x_min[a], 0, end);
            s->x_extent[a] = end - s->x_min[a];
        }
        s->x += s->x_min[a] * o.x_strides.axes[a] * x_size;
    }
}

Core::StripParts Core::parts_of_rows(const Strip &s) const {
    StripParts parts;
    const AxisPlan &w = axes_[0];
    const auto add = [&](std::int64_t begin, std::int64_t end) {
        if (begin >= end) return;
        Strip &part = parts.part[parts.count++];
        part = s;
        part.columns = {begin, end};
        if (!in_place_.any()) return;
        part.x_min[0] = begin + w.low;
        part.x_extent[0] = end + w.high - 1 - part.x_min[0];
    };
    add(0, in_place_.begin);
    add(in_place_.begin, in_place_.end);
    add(in_place_.end, w.q_extent());
    return parts;
}

void Core::compute_strip(const StripParts &rows, const Operands &o, const Parallel &parallel) const {
    const Strip &s = rows.part[0];
    const std::int64_t q_begin = s.q_begin, q_end = s.q_end;
    const Variant &v = *variant_;

    // About four tasks a thread, by groups, then tiles of output channels, then positions of the strip axis; by positions first
    // where all groups of one are side by side in y.
    const std::int64_t wanted = std::max<std::int64_t>(
        parallel.threads > 1 ? 4 * static_cast<std::int64_t>(parallel.threads) : 1, pieces(s, o));
    const std::int64_t group_tiles =
        overlaps_groups(v) ? packed_.group / packed_.group_tile : ceil_div(packed_.group, packed_.group_tile);
    const std::int64_t tile = strip_tile_, most_q_parts = std::max<std::int64_t>((q_end - q_begin) / (2 * tile), 1);
    const bool positions_first = v.family == Family::kDepthwise && v.store == Store::kChannels;
    const std::int64_t group_parts = std::min(group_tiles, positions_first ? ceil_div(wanted, most_q_parts) : wanted);
    // The reference takes the channels of one packed tile at a time, whatever their number.
    const bool each_tile = v.family == Family::kReference;
    const std::int64_t few_tile_parts = std::min(packed_.tiles(), ceil_div(wanted, group_parts));
    const bool are_uneven = parallel.threads > 1 && packed_.tiles() % few_tile_parts != 0;
    const std::int64_t tile_parts =
        each_tile || (are_uneven && packed_.tiles() <= kMostUneven * wanted) ? packed_.tiles() : few_tile_parts;
    const std::int64_t q_parts = std::min(most_q_parts, ceil_div(wanted, group_parts * tile_parts));
    // If threads cannot take as many each, residues of h are parted too, which have weights of their own.
    const std::int64_t parts = group_parts * tile_parts * q_parts;
    const bool knows_residues = whole_[1] || (v.built_in && v.built_in->axes[1].table);
    const bool in_halves =
        !o.post_ops && !knows_residues && !each_tile && parts % parallel.threads != 0 && parts <= kMostUneven * wanted;

    const auto positions_of_part = [&](std::int64_t part) {
        // Parts end on whole tiles, so that residues with one position less still fill one.
        const std::int64_t tiles = (q_end - q_begin) / tile;
        const std::int64_t from = q_begin + tiles * part / q_parts * tile;
        return std::pair(from, part + 1 == q_parts ? q_end : q_begin + tiles * (part + 1) / q_parts * tile);
    };
    // Tasks in an order by which each thread takes positions, whose x it has copied itself; channels where positions would leave
    // one with a tile more.
    const std::int64_t channel_parts = group_parts * tile_parts;
    const bool by_positions = positions_first || ceil_div(q_end - q_begin, tile) % parallel.threads == 0;
    const auto boxes_of_part = [&](std::int64_t part) {
        const auto [from, to] = positions_of_part(part);
        std::array<Boxes, 3> boxes;
        for (int a = 0; a < 3; a++) {
            const bool strip_axis = a == strip_axis_;
            boxes[a] = boxes_of(axes_[a], whole_[a], strip_axis ? from : 0, strip_axis ? to : axes_[a].q_extent());
        }
        if (in_halves) part_residues(&boxes[1]);
        return boxes;
    };
    // A part has as many boxes as the first one, or fewer: at the end of an axis all residues may have the same.
    std::array<std::size_t, 3> most = {};
    for (std::int64_t part = 0; part < q_parts; part++) {
        const std::array<Boxes, 3> boxes = boxes_of_part(part);
        for (std::size_t a = 0; a < 3; a++) most[a] = std::max(most[a], boxes[a].count);
    }
    const std::size_t per_part = most[0] * most[1] * most[2];
    // What follows wants all boxes of a part: between them lie no gaps.
    const std::size_t per_task = o.post_ops ? per_part : 1;
    const auto tasks = static_cast<std::size_t>(q_parts * channel_parts) * (per_part / per_task);
    parallel.for_each(tasks, [&](std::size_t task) {
        const std::size_t first = task * per_task;
        const auto rest = static_cast<std::int64_t>(first / per_part);
        const std::int64_t channels_part = by_positions ? rest % channel_parts : rest / q_parts,
                           part = by_positions ? rest / channel_parts : rest % q_parts;
        const std::int64_t tp = channels_part % tile_parts, gp = channels_part / tile_parts;
        const std::array<Boxes, 3> boxes = boxes_of_part(part);
        Call c;
        std::tie(c.q_begin, c.q_end) = positions_of_part(part);
        c.group_begin = group_tiles * gp / group_parts * packed_.group_tile;
        c.group_end = gp + 1 == group_parts ? packed_.group : group_tiles * (gp + 1) / group_parts * packed_.group_tile;
        c.oc_tile_begin = packed_.tiles() * tp / tile_parts;
        c.oc_tile_end = packed_.tiles() * (tp + 1) / tile_parts;
        for (std::size_t b = first % per_part; b < first % per_part + per_task; b++) {
            const std::size_t bw = b % most[0], bh = b / most[0] % most[1], bd = b / most[0] / most[1];
            if (bw >= boxes[0].count || bh >= boxes[1].count || bd >= boxes[2].count) continue;
            c.box = {boxes[0].box[bw], boxes[1].box[bh], boxes[2].box[bd]};
            call(rows, c, o);
        }
        if (o.post_ops) finish(s, c, o);
    });
}

// Pieces of the strip's y that fit into the second-level cache, for what follows to find them there.
std::int64_t Core::pieces(const Strip &s, const Operands &o) const {
    if (!o.post_ops) return 1;
    std::int64_t elements = s.images * problem_.geometry.out_channels;
    for (int a = 0; a < 3; a++) {
        const AxisGeometry &axis = axes_[a].geometry;
        elements *= a == strip_axis_ ? std::min((s.q_end - s.q_begin) * axis.stride, axis.out) : axis.out;
    }
    return ceil_div(elements * static_cast<std::int64_t>(convt_dtype_size(o.post_ops->dtype)), kPieceBytes);
}

// What follows, on the y of a task: its channels, and along the strip axis its positions.
void Core::finish(const Strip &s, const Call &c, const Operands &o) const {
    const std::int64_t tile = std::max<std::int64_t>(packed_.oc_tile, 1);
    const std::int64_t oc_begin = c.oc_tile_begin * tile, oc_end = std::min(c.oc_tile_end * tile, packed_.oc);
    const std::int64_t channel = c.group_begin * packed_.oc + oc_begin;
    const TensorStrides &y = o.y_strides, &r = o.residual ? o.residual_strides : o.y_strides;
    std::int64_t y_offset = s.first_image * y.n + channel * y.c, r_offset = s.first_image * r.n + channel * r.c;
    PostOpsBox box;
    box.add(s.images, y.n, r.n);
    box.add(c.group_end - c.group_begin, packed_.oc * y.c, packed_.oc * r.c);
    box.add(oc_end - oc_begin, y.c, r.c);
    for (int a = 0; a < 3; a++) {
        const AxisGeometry &axis = axes_[a].geometry;
        const std::int64_t begin = a == strip_axis_ ? c.q_begin * axis.stride : 0,
                           end = a == strip_axis_ ? std::min(c.q_end * axis.stride, axis.out) : axis.out;
        box.add(end - begin, y.axes[a], r.axes[a]);
        y_offset += begin * y.axes[a];
        r_offset += begin * r.axes[a];
    }
    const auto size = static_cast<std::int64_t>(convt_dtype_size(o.post_ops->dtype));
    run_post_ops(*o.post_ops, box, static_cast<char *>(o.y) + y_offset * size,
                 o.residual ? static_cast<const char *>(o.residual) + r_offset * size : nullptr);
}

void Core::call(const StripParts &rows, const Call &c, const Operands &o) const {
    for (std::size_t k = 0; k < rows.count; k++) {
        const Strip &s = rows.part[k];
        Call part = c;
        Box &row = part.box[0];
        row.q_begin = std::max(row.q_begin, s.columns.begin);
        row.q_end = std::min(row.q_end, s.columns.end);
        if (row.q_begin < row.q_end) call(s, part, o);
    }
}

void Core::call(const Strip &s, const Call &c, const Operands &o) const {
    const Box &row = c.box[0];
    const std::int64_t rest = (row.q_end - row.q_begin) % variant_->tile_q;
    const Variant *const narrower = narrower_.holding(rest);
    if (!narrower) return call(*variant_, s, c, o);
    Call tiles = c, end = c;
    tiles.box[0].q_end = end.box[0].q_begin = row.q_end - rest;
    if (tiles.box[0].q_end > row.q_begin) call(*variant_, s, tiles, o);
    call(*narrower, s, end, o);
}

void Core::call(const Variant &v, const Strip &s, const Call &c, const Operands &o) const {
    const TensorStrides &strides = o.y_strides;
    const OperandTypes types = types_of(v);
    const auto y_size = static_cast<std::int64_t>(convt_dtype_size(v.dtype));
    const bool in_place = v.family == Family::kReference && !copies_x_;
    const halide_type_t x_type = in_place ? type_of(problem_.x_dtype) : types.x;
    const std::int64_t x_size = x_type.bits / 8;
    const std::int64_t groups = c.group_end - c.group_begin;
    // Vectors along the groups read whole tiles of them: what is packed and copied is padded to such. Overlapping ones do not.
    const std::int64_t read_groups = ceil_div(groups, packed_.group_tile) * packed_.group_tile;
    const std::int64_t oc_begin = c.oc_tile_begin * std::max<std::int64_t>(packed_.oc_tile, 1);
    const std::int64_t oc_end = std::min(c.oc_tile_end * std::max<std::int64_t>(packed_.oc_tile, 1), packed_.oc);
    const std::int64_t block = packed_.block;
    const int blocked = block > 1 ? 1 : 0; // dimensions in front

    // q counts from 0 in a call: x moves instead.
    Buffer<7> x(s.x + c.group_begin * s.group_stride * x_size, x_type);
    if (blocked) x.set(0, 0, x_block(), 1);
    for (int a = 0; a < 3; a++) {
        std::int64_t begin = 0, end = s.x_extent[a];
        // Of an axis whose taps, or positions of a tile (schedules/cpu/row_ends.h), are left out where they leave x: x itself,
        // without what is around it.
        const bool leaves_out_positions = a == 0 && v.family == Family::kChannels && is_float(v.arithmetic);
        if (skips_outside(v, static_cast<std::size_t>(a)) || leaves_out_positions) {
            begin = std::clamp<std::int64_t>(-s.x_min[a], 0, end);
            end = std::clamp(axes_[a].geometry.in - s.x_min[a], begin, end);
        }
        x.raw.host += begin * s.strides.axes[a] * x_size;
        x.set(blocked + a, s.x_min[a] + begin - c.box[a].q_begin, end - begin, s.strides.axes[a]);
    }
    x.set(blocked + 3, 0, x_blocks(), s.strides.c);
    x.set(blocked + 4, 0, read_groups, s.group_stride);
    x.set(blocked + 5, 0, s.images, s.strides.n);
    x.raw.dimensions = 6 + blocked;

    const std::array<std::int64_t, 3> &taps = packed_.taps;
    const std::int64_t tap = packed_.tap_stride(), tile_stride = packed_.tile_stride();
    const std::int64_t group_stride = packed_.group_stride();
    const auto *const w_data = static_cast<const char *>(o.packed);
    Buffer<8> w(w_data + (c.group_begin * group_stride + c.oc_tile_begin * tile_stride) * operand_size(v), types.w);
    const bool one_channel = v.family == Family::kReference; // per step of dimension oo, not a tile of them
    if (blocked) w.set(0, 0, block, 1);
    w.set(blocked + 0, 0, one_channel ? 1 : std::max<std::int64_t>(packed_.oc_tile, 1), block);
    w.set(blocked + 1, 0, packed_.blocks(), packed_.block_stride());
    w.set(blocked + 2, 0, taps[0], tap);
    w.set(blocked + 3, 0, taps[1], tap * taps[0]);
    w.set(blocked + 4, 0, taps[2], packed_.plane_stride());
    w.set(blocked + 5, 0, one_channel ? oc_end - oc_begin : c.oc_tile_end - c.oc_tile_begin,
          one_channel ? 1 : tile_stride);
    w.set(blocked + 6, 0, read_groups, group_stride);
    w.raw.dimensions = 7 + blocked;

    const std::int64_t oc_padded = packed_.biases() / packed_.groups();
    const std::int64_t oc_extent = (c.oc_tile_end - c.oc_tile_begin) * std::max<std::int64_t>(packed_.oc_tile, 1);
    const std::int64_t first_bias = c.group_begin * oc_padded + oc_begin;
    const bool quantized = !is_float(v.arithmetic);
    const char *const biases = quantized ? static_cast<const char *>(o.epilogue) : w_data + weight_bytes();
    Buffer<5> bias(biases + first_bias * (types.bias.bits / 8), types.bias);
    bias.set(0, 0, oc_extent, 1);
    bias.set(1, 0, read_groups, oc_padded);
    bias.raw.dimensions = quantized ? 5 : 2;
    const EpilogueLayout epilogue = quantized ? epilogue_of(packed_, axes_) : EpilogueLayout();
    std::int64_t class_stride = epilogue.biases;
    for (int a = 0; a < 3; a++) { // int16 has one bias for all classes
        const bool classes = v.arithmetic == Arithmetic::kInt8;
        bias.set(2 + a, 0, static_cast<std::int64_t>(axes_[a].classes.size()), classes ? class_stride : 0);
        class_stride *= epilogue.classes[a];
    }
    Buffer<3> factors(biases + (epilogue.bias_count() + first_bias) * 4, type_of(CONVT_F32));
    factors.set(0, 0, oc_extent, 1);
    factors.set(1, 0, 2, epilogue.biases);
    factors.set(2, 0, read_groups, oc_padded);

    std::int64_t y_offset = s.first_image * strides.n + (c.group_begin * packed_.oc + oc_begin) * strides.c;
    Buffer<9> out(nullptr, type_of(v.dtype));
    int dim = 0;
    out.set(dim++, 0, oc_end - oc_begin, strides.c);
    for (int a = 0; a < 3; a++) {
        const Box &box = c.box[a];
        const std::int64_t stride = axes_[a].geometry.stride, begin = box.q_begin * stride + box.first;
        y_offset += begin * strides.axes[a];
        if (whole_[a]) {
            out.set(dim++, 0, std::min(box.q_end * stride, axes_[a].geometry.out) - begin, strides.axes[a]);
        } else {
            out.set(dim++, 0, box.q_end - box.q_begin, stride * strides.axes[a]);
            out.set(dim++, 0, box.count, strides.axes[a]);
        }
    }
    out.set(dim++, 0, groups, packed_.oc * strides.c);
    out.set(dim++, 0, s.images, strides.n);
    out.raw.dimensions = dim;
    out.raw.host = static_cast<std::uint8_t *>(o.y) + y_offset * y_size;

    Buffer<2> taps_w = table_buffer(axes_[0], c.box[0].first), taps_h = table_buffer(axes_[1], c.box[1].first),
              taps_d = table_buffer(axes_[2], c.box[2].first);
    const auto step = [&](int a) { return static_cast<std::int32_t>(axes_[a].step); };
    v.run(&x.raw, &w.raw, &bias.raw, &factors.raw, &taps_w.raw, &taps_h.raw, &taps_d.raw, step(0), step(1), step(2),
          axes_[0].max_count, axes_[1].max_count, axes_[2].max_count, axes_[0].shared_first, axes_[0].shared_count,
          axes_[1].shared_first, axes_[1].shared_count, o.range.zero_point, o.range.least, o.range.most, &out.raw);
}

} // namespace convtranspose
