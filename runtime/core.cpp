#include "core.h"

#include <HalideRuntime.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace convtranspose {

namespace {

// A Halide buffer over somebody's memory.
template<int Dimensions>
struct Buffer {
    halide_dimension_t dims[Dimensions] = {};
    halide_buffer_t raw = {};

    Buffer(const void *host, halide_type_t type) {
        raw.host = static_cast<std::uint8_t *>(const_cast<void *>(host));
        raw.type = type;
        raw.dimensions = Dimensions;
        raw.dim = dims;
    }

    void set(int d, std::int64_t min, std::int64_t extent, std::int64_t stride) {
        dims[d] = halide_dimension_t(static_cast<std::int32_t>(min), static_cast<std::int32_t>(extent),
                                     static_cast<std::int32_t>(stride));
    }
};

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

// Of packed weights, of the copy of x, and of the packed bias.
struct Types {
    halide_type_t w, x, bias;
};

Types types_of(const Variant &v) {
    const halide_type_t s32(halide_type_int, 32), s16(halide_type_int, 16);
    switch (v.arithmetic) {
    case Arithmetic::kFloat: break;
    case Arithmetic::kInt8: return {type_of(CONVT_S8), type_of(kByteX), s32};
    case Arithmetic::kInt16: return {s16, s16, s32};
    }
    const halide_type_t sum = type_of(sum_dtype(v.dtype));
    return {sum, sum, sum};
}

// Halide takes any number of int32 of a table: (residue, column), one row after the other.
Buffer<2> table_buffer(const AxisPlan &axis, std::int64_t first_residue) {
    Buffer<2> b(axis.table.data() + kTapColumns * first_residue, halide_type_t(halide_type_int, 32));
    b.set(0, 0, axis.residues - first_residue, kTapColumns);
    b.set(1, 0, kTapColumns, 1);
    return b;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The part of an axis of y that one call computes: residues first..first+count-1 of positions q, all of which exist. An
// axis with built-in stride has all residues, and positions past the end of y that are not stored.
struct Box {
    std::int64_t first = 0, count = 1;
    std::int64_t q_begin = 0, q_end = 0;
};

// y has out % stride residues of one position more than the rest: at most two boxes.
std::vector<Box> boxes_of(const AxisPlan &axis, bool whole, std::int64_t q_begin, std::int64_t q_end) {
    const AxisGeometry &g = axis.geometry;
    if (whole) return {{0, g.stride, q_begin, q_end}};
    const std::int64_t more = g.out % g.stride, positions = g.out / g.stride;
    std::vector<Box> boxes;
    if (more) boxes.push_back({0, more, q_begin, std::min(q_end, positions + 1)});
    if (positions > q_begin) boxes.push_back({more, g.stride - more, q_begin, std::min(q_end, positions)});
    return boxes;
}

constexpr std::int64_t kCacheLine = 64;
// What a strip of x may take: it is read once per tile of output channels, so it should stay in the second-level cache;
// but every strip reads all weights, so it should not be much smaller than those.
constexpr std::int64_t kLeastStripBytes = 256 << 10, kMostStripBytes = 4 << 20;

} // namespace

// What is computed at a time: some images, some positions along one axis, and the part of x that they read.
struct Core::Strip {
    std::int64_t first_image = 0, images = 1;
    std::int64_t q_begin = 0, q_end = 0;         // of the strip axis
    std::array<std::int64_t, 3> x_min, x_extent; // w, h, d
    // Where that part of x is; strides in elements. The pointer is to x_min. strides.c is from one block of channels to the
    // next, where they come in blocks.
    const char *x = nullptr;
    TensorStrides strides;
    std::int64_t group_stride = 0;
};

// One call of the pipeline.
struct Core::Call {
    std::array<Box, 3> box;
    std::int64_t oc_tile_begin = 0, oc_tile_end = 1;
    std::int64_t group_begin = 0, group_end = 1;
};

Core::Core(const CoreProblem &problem, const Candidate &choice, int threads, const PackedLayout *packed)
    : variant_(choice.variant), problem_(problem), copies_x_(choice.copies_x) {
    const Variant &v = *variant_;
    const Geometry &g = problem.geometry;
    whole_ = {v.stride_w != 0, v.stride_h != 0, false};
    for (std::size_t a = 0; a < 3; a++) {
        axes_[a] = whole_[a] ? plan_axis(problem.axes[a], problem.weight_stride[a], true) : problem.plan[a];
        if (a == 0 && pairs_taps(v)) pair_taps(&axes_[a]);
        packed_.taps[a] = static_cast<std::int64_t>(axes_[a].elements.size()) / (axes_[a].paired ? 2 : 1);
    }
    const PackedLayout packing = packed ? *packed : packing_of(v);
    packed_.arithmetic = packing.arithmetic;
    packed_.block = packing.block;
    packed_.pairs_taps = packing.pairs_taps;
    packed_.oc_tile = packing.oc_tile;
    packed_.group_tile = packing.group_tile;
    packed_.group = g.group;
    packed_.ic = problem.ic();
    packed_.oc = problem.oc();
    pad_order_ = pad_order(v, g.layout);
    for (std::size_t i = 0; i < kPadVariantCount; i++) {
        const PadVariant &pad = kPadVariants[i];
        if (pad.isa == v.isa && pad.order == pad_order_ && pad.dtype == problem.x_dtype) pad_ = pad.run;
    }
    for (std::size_t i = 0; i < kCopyVariantCount; i++) {
        const CopyVariant &copy = kCopyVariants[i];
        const PadOrder order = pairs_taps(v) ? PadOrder::kPlanar : pad_order_; // see copy_parts()
        if (copy.isa == v.isa && copy.order == order && copy.arithmetic == v.arithmetic && copy.block == packed_.block)
            copy_ = copy.run;
    }
    plan_strips(threads);
}

std::size_t Core::weight_bytes() const {
    return static_cast<std::size_t>(ceil_div(packed_.weights() * operand_size(*variant_), kCacheLine) * kCacheLine);
}

std::size_t Core::packed_bytes() const {
    std::int64_t bytes = packed_.biases() * operand_size(*variant_);
    if (packed_.arithmetic == Arithmetic::kInt8) bytes = packed_.biases() * packed_.taps_volume() * 4;
    if (packed_.arithmetic == Arithmetic::kInt16) bytes = 0;
    return weight_bytes() + static_cast<std::size_t>(ceil_div(bytes, kCacheLine) * kCacheLine);
}

std::size_t Core::epilogue_bytes() const {
    if (packed_.arithmetic == Arithmetic::kFloat) return 0;
    return static_cast<std::size_t>(ceil_div(epilogue_of(packed_, axes_).bytes(), kCacheLine) * kCacheLine);
}

bool Core::pack(const WeightsView &w, const void *bias, void *packed) const {
    return pack_weights(packed_, axes_, problem_.x_dtype, w, bias, packed,
                        static_cast<char *>(packed) + weight_bytes());
}

void Core::pack(const WeightsView &w, const QuantizationValues &q, void *packed) const {
    void *const sums = static_cast<char *>(packed) + weight_bytes();
    pack_quantized(packed_, axes_, problem_.geometry, q, w, packed, static_cast<std::int32_t *>(sums));
}

void Core::unpack(const WeightsView &w, const QuantizationValues &q, const void *packed, void *w_out) const {
    unpack_quantized(packed_, axes_, q, packed, w, w_out);
}

void Core::prepare(const QuantizationValues &q, const void *packed, const void *bias, void *epilogue) const {
    const void *const sums = static_cast<const char *>(packed) + weight_bytes();
    make_epilogue(packed_, axes_, problem_.geometry, q, static_cast<const std::int32_t *>(sums), bias, epilogue);
}

std::int64_t Core::copied_channels() const { return packed_.groups() * packed_.blocks() * packed_.block; }

bool Core::copies_channels_inside() const {
    return pad_order_ == PadOrder::kChannels || pad_order_ == PadOrder::kToChannels;
}

void Core::plan_strips(int threads) {
    const Variant &v = *variant_;
    const std::array<std::int64_t, 3> q = {axes_[0].q_extent(), axes_[1].q_extent(), axes_[2].q_extent()};
    strip_axis_ = q[2] > 1 ? 2 : q[1] > 1 ? 1 : 0;
    const std::int64_t batch = problem_.geometry.batch;
    strip_q_ = q[strip_axis_];
    images_ = std::max<std::int64_t>(batch, 1);
    if (!copies_x_) return;

    // Bytes of the copy of one image.
    const std::int64_t size = operand_size(v), channels = copied_channels();
    const Strip whole = strip(1, 0, strip_q_);
    const std::int64_t image_bytes =
        std::max<std::int64_t>(whole.x_extent[0] * whole.x_extent[1] * whole.x_extent[2] * channels * size, 1);
    const std::int64_t weights_bytes = packed_.weights() * size;
    const std::int64_t budget = std::clamp(weights_bytes, kLeastStripBytes, kMostStripBytes) * threads;
    if (image_bytes > budget && v.family != Family::kReference) {
        // Never less than a tile and one, so that the residues with one position less fill a tile too.
        const std::int64_t tile = strip_axis_ == 0 ? v.tile_q : strip_axis_ == 1 ? v.tile_qh : 1;
        std::int64_t strips = ceil_div(image_bytes, budget);
        std::int64_t positions = std::max(ceil_div(strip_q_, strips), std::max<std::int64_t>(2 * tile, 2));
        positions = ceil_div(positions, tile) * tile;
        if (positions < strip_q_) strip_q_ = positions;
        images_ = 1;
    } else if (v.family != Family::kReference) {
        images_ = std::clamp<std::int64_t>(budget / image_bytes, 1, images_);
    }
    std::int64_t most = 0;
    for (std::int64_t begin = 0; begin < q[strip_axis_]; begin = strip_end(begin)) {
        const Strip s = strip(images_, begin, strip_end(begin));
        most = std::max(most, s.images * s.x_extent[0] * s.x_extent[1] * s.x_extent[2] * channels);
    }
    // Tiles are read whole: past the last column of the last row there must be memory.
    const std::int64_t column = copies_channels_inside() ? channels : packed_.block;
    workspace_bytes_ =
        static_cast<std::size_t>(ceil_div((most + (v.tile_q + v.lanes) * column) * size, kCacheLine) * kCacheLine);
}

// The last strip takes what would be too little for one of its own.
std::int64_t Core::strip_end(std::int64_t q_begin) const {
    const std::int64_t q = axes_[strip_axis_].q_extent();
    return q_begin + 2 * strip_q_ > q ? q : q_begin + strip_q_;
}

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

// Strides of the copy of x: dense, in the order that the variant reads.
void Core::lay_out_copy(Strip *s) const {
    const std::int64_t channels = copied_channels();
    TensorStrides &to = s->strides;
    if (copies_channels_inside()) {
        to.c = packed_.block;
        to.axes[0] = channels;
        to.axes[1] = to.axes[0] * s->x_extent[0];
    } else {
        to.axes[0] = packed_.block;
        to.c = to.axes[0] * s->x_extent[0];
        to.axes[1] = channels * s->x_extent[0];
    }
    s->group_stride = packed_.blocks() * to.c;
    to.axes[2] = to.axes[1] * s->x_extent[1];
    to.n = to.axes[2] * s->x_extent[2];
}

void Core::run(const Operands &o, const Parallel &parallel) const {
    const std::int64_t batch = problem_.geometry.batch, q = axes_[strip_axis_].q_extent();
    const auto x_size = static_cast<std::int64_t>(convt_dtype_size(problem_.x_dtype));
    for (std::int64_t image = 0; image < batch; image += images_) {
        for (std::int64_t begin = 0; begin < q;) {
            const std::int64_t end = strip_end(begin);
            Strip s = strip(std::min(images_, batch - image), begin, end);
            s.first_image = image;
            if (copies_x_) {
                s.x = static_cast<const char *>(o.workspace);
                lay_out_copy(&s);
                if (packed_.arithmetic == Arithmetic::kFloat) {
                    copy_strip(s, o, parallel);
                } else {
                    copy_strip_quantized(s, o, parallel);
                }
            } else {
                s.strides = o.x_strides;
                s.group_stride = packed_.ic * s.strides.c;
                s.strides.c *= packed_.block;
                s.x = static_cast<const char *>(o.x) + image * o.x_strides.n * x_size;
                if (variant_->family != Family::kReference) {
                    for (int a = 0; a < 3; a++) s.x += s.x_min[a] * o.x_strides.axes[a] * x_size;
                }
            }
            compute_strip(s, o, parallel);
            begin = end;
        }
    }
}

void Core::copy_strip(const Strip &s, const Operands &o, const Parallel &parallel) const {
    const TensorStrides &strides = o.x_strides;
    const auto x_size = static_cast<std::int64_t>(convt_dtype_size(problem_.x_dtype));
    const auto sum_size = static_cast<std::int64_t>(convt_dtype_size(sum_dtype(problem_.x_dtype)));
    const std::int64_t channels = packed_.group * packed_.ic;
    const std::array<std::int64_t, 5> extents = {s.x_extent[0], s.x_extent[1], s.x_extent[2], channels, s.images};
    const std::array<std::int64_t, 5> x_strides = {strides.axes[0], strides.axes[1], strides.axes[2], strides.c,
                                                   strides.n};
    const std::array<std::int64_t, 5> to_strides = {s.strides.axes[0], s.strides.axes[1], s.strides.axes[2],
                                                    s.strides.c, s.strides.n};
    if (*std::min_element(extents.begin(), extents.end()) == 0) return;
    // Split along the longest dimension but the dense one.
    const std::array<int, 5> order = {4, 2, 1, pad_order_ == PadOrder::kChannels ? 1 : 3, 1};
    const int split =
        *std::max_element(order.begin(), order.end(), [&](int a, int b) { return extents[a] < extents[b]; });
    const std::int64_t parts = std::min<std::int64_t>(extents[split], parallel.threads);
    parallel.for_each(static_cast<std::size_t>(parts), [&](std::size_t part) {
        const std::int64_t begin = extents[split] * static_cast<std::int64_t>(part) / parts;
        const std::int64_t end = extents[split] * (static_cast<std::int64_t>(part) + 1) / parts;
        Buffer<5> from(static_cast<const char *>(o.x) + s.first_image * strides.n * x_size, type_of(problem_.x_dtype));
        Buffer<5> padded(static_cast<char *>(o.workspace) + begin * to_strides[split] * sum_size,
                         type_of(sum_dtype(problem_.x_dtype)));
        for (int d = 0; d < 5; d++) {
            const std::int64_t min = d < 3 ? s.x_min[d] : 0;
            from.set(d, 0, d < 3 ? axes_[d].geometry.in : extents[d], x_strides[d]);
            padded.set(d, d == split ? min + begin : min, d == split ? end - begin : extents[d], to_strides[d]);
        }
        pad_(&from.raw, &padded.raw);
    });
}

// Extents and strides (c0, w, h, d, c1, g, n) of what one call of a copy kernel copies, and where it begins, in elements.
struct Core::CopyPart {
    std::array<std::int64_t, 7> extents, from, to;
    std::int64_t from_offset = 0, to_offset = 0;
};

// begin, inside: the part of each axis of the copy that is in x.
std::vector<Core::CopyPart> Core::copy_parts(const Strip &s, const Operands &o,
                                             const std::array<std::int64_t, 3> &begin,
                                             const std::array<std::int64_t, 3> &inside) const {
    const TensorStrides &x = o.x_strides, &to = s.strides;
    const std::int64_t block = packed_.block, ic = packed_.ic;
    const auto part = [&](std::int64_t c0, std::int64_t c1, std::int64_t group) {
        CopyPart p;
        p.extents = {c0, inside[0], inside[1], inside[2], c1, group, s.images};
        p.from = {x.c, x.axes[0], x.axes[1], x.axes[2], block * x.c, ic * x.c, x.n};
        p.to = {1, to.axes[0], to.axes[1], to.axes[2], to.c, s.group_stride, to.n};
        for (std::size_t a = 0; a < 3; a++) {
            p.from_offset += (s.x_min[a] + begin[a]) * x.axes[a];
            p.to_offset += begin[a] * to.axes[a];
        }
        return p;
    };
    std::vector<CopyPart> parts;
    if (packed_.pairs_taps) {
        // Each position holds x there and offset_step further on, where that is: in between both, near the ends one.
        const std::int64_t step = axes_[0].geometry.offset_step, end = begin[0] + inside[0];
        const std::int64_t next_begin = std::clamp<std::int64_t>(-s.x_min[0] - step, 0, s.x_extent[0]);
        const std::int64_t next_end = std::clamp(axes_[0].geometry.in - s.x_min[0] - step, next_begin, s.x_extent[0]);
        const auto add = [&](std::int64_t from, std::int64_t until, std::int64_t first, std::int64_t count) {
            if (from >= until) return;
            CopyPart p = part(count, 1, packed_.group);
            p.extents[1] = until - from;
            p.from[0] = step * x.axes[0];
            p.from_offset += (from - begin[0] + first * step) * x.axes[0];
            p.to_offset += (from - begin[0]) * to.axes[0] + first;
            if (copies_channels_inside()) { // then groups are what is dense: they take the kernel's dimension w
                for (std::array<std::int64_t, 7> *list : {&p.extents, &p.from, &p.to})
                    std::swap((*list)[1], (*list)[5]);
            }
            parts.push_back(p);
        };
        const std::int64_t both_begin = std::max(begin[0], next_begin),
                           both_end = std::max(std::min(end, next_end), both_begin);
        add(both_begin, both_end, 0, 2);
        add(next_begin, std::min(next_end, both_begin), 1, 1);
        add(both_end, next_end, 1, 1);
        add(begin[0], std::min(end, both_begin), 0, 1);
        add(both_end, end, 0, 1);
    } else if (copies_channels_inside()) {
        if (ic % block != 0) {
            parts.push_back(part(ic, 1, packed_.group));
        } else {
            parts.push_back(part(ic * packed_.group, 1, 1));
            CopyPart &p = parts.back();
            if (p.from[0] == 1 && p.from[1] == p.extents[0] && p.to[1] == p.extents[0]) { // a row in one go
                p.extents[0] *= std::exchange(p.extents[1], 1);
            }
        }
    } else {
        // Where channels do not fill the last block of a group, that takes a second call.
        const std::int64_t whole = ic / block, rest = ic % block;
        if (whole) parts.push_back(part(block, whole, packed_.group));
        if (rest) {
            parts.push_back(part(rest, 1, packed_.group));
            parts.back().from_offset += whole * block * x.c;
            parts.back().to_offset += whole * to.c;
        }
    }
    return parts;
}

// As copy_strip, with channels in two dimensions, (c0, c1, g). The elements of the copy that fill up blocks and vectors of
// channels are left as they are: whatever they hold meets weights of zero, which with integers makes zero.
void Core::copy_strip_quantized(const Strip &s, const Operands &o, const Parallel &parallel) const {
    const TensorStrides &strides = o.x_strides;
    const std::int64_t size = operand_size(*variant_);

    // The part of each axis that exists in x, and what of the copy comes before it.
    std::array<std::int64_t, 3> begin, inside;
    bool outside = false;
    for (std::size_t a = 0; a < 3; a++) {
        begin[a] = std::clamp<std::int64_t>(-s.x_min[a], 0, s.x_extent[a]);
        inside[a] = std::clamp(axes_[a].geometry.in - s.x_min[a], begin[a], s.x_extent[a]) - begin[a];
        outside = outside || inside[a] != s.x_extent[a];
    }
    if (packed_
            .pairs_taps) { // of the last positions only the first of a pair is in x, of those before x only the second
        std::array<std::int64_t, 3> both = inside;
        both[0] = std::max<std::int64_t>(inside[0] - axes_[0].geometry.offset_step, 0);
        fill_around(s, begin, both, o, parallel);
    } else if (outside) {
        fill_around(s, begin, inside, o, parallel);
    }
    if (inside[1] * inside[2] == 0) return;

    for (const CopyPart &p : copy_parts(s, o, begin, inside)) {
        if (*std::min_element(p.extents.begin(), p.extents.end()) == 0) continue;
        const std::array<std::size_t, 5> order = {6, 3, 2, 4, 5};
        const std::size_t split = *std::max_element(
            order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p.extents[a] < p.extents[b]; });
        const std::int64_t count = std::min<std::int64_t>(p.extents[split], parallel.threads);
        parallel.for_each(static_cast<std::size_t>(count), [&](std::size_t i) {
            const std::int64_t first = p.extents[split] * static_cast<std::int64_t>(i) / count;
            const std::int64_t last = p.extents[split] * (static_cast<std::int64_t>(i) + 1) / count;
            const std::int64_t from_offset = s.first_image * strides.n + p.from_offset + first * p.from[split];
            const std::int64_t to_offset = p.to_offset + first * p.to[split];
            Buffer<7> from(static_cast<const char *>(o.x) + from_offset, type_of(CONVT_U8));
            Buffer<7> to(static_cast<char *>(o.workspace) + to_offset * size, types_of(*variant_).x);
            for (std::size_t d = 0; d < 7; d++) {
                const std::int64_t extent = d == split ? last - first : p.extents[d];
                from.set(static_cast<int>(d), 0, extent, p.from[d]);
                to.set(static_cast<int>(d), 0, extent, p.to[d]);
            }
            copy_(&from.raw, o.byte_x.flip, o.byte_x.zero, &to.raw);
        });
    }
}

// Fills what of the copy lies around x with what stands for zero. begin, inside: the part of each axis that is x.
void Core::fill_around(const Strip &s, const std::array<std::int64_t, 3> &begin,
                       const std::array<std::int64_t, 3> &inside, const Operands &o, const Parallel &parallel) const {
    const int value = packed_.arithmetic == Arithmetic::kInt8 ? o.byte_x.zero : 0;
    // Runs along w, each `column` wide: one for each position with the channels inside, else one for each block of channels.
    const std::int64_t size = operand_size(*variant_), column = s.strides.axes[0] * size;
    const std::int64_t rows = copies_channels_inside() ? 1 : copied_channels() / packed_.block;
    const std::int64_t row_stride = s.strides.c * size, before = begin[0] * column,
                       end = (begin[0] + inside[0]) * column, after = s.x_extent[0] * column - end;
    const auto task = [&](std::size_t i) {
        const std::int64_t h = static_cast<std::int64_t>(i) % s.x_extent[1],
                           d = static_cast<std::int64_t>(i) / s.x_extent[1] % s.x_extent[2],
                           n = static_cast<std::int64_t>(i) / s.x_extent[1] / s.x_extent[2];
        char *row =
            static_cast<char *>(o.workspace) + (n * s.strides.n + d * s.strides.axes[2] + h * s.strides.axes[1]) * size;
        const auto is_inside = [&](std::int64_t at, std::size_t a) {
            return at >= begin[a] && at < begin[a] + inside[a];
        };
        if (!is_inside(h, 1) || !is_inside(d, 2)) {
            std::memset(row, value, static_cast<std::size_t>(rows * (end + after)));
            return;
        }
        for (std::int64_t r = 0; r < rows; r++, row += row_stride) {
            std::memset(row, value, static_cast<std::size_t>(before));
            std::memset(row + end, value, static_cast<std::size_t>(after));
        }
    };
    parallel.for_each(static_cast<std::size_t>(s.x_extent[1] * s.x_extent[2] * s.images), task);
}

void Core::compute_strip(const Strip &s, const Operands &o, const Parallel &parallel) const {
    const std::int64_t q_begin = s.q_begin, q_end = s.q_end;
    const Variant &v = *variant_;

    // About four tasks a thread, by groups, then tiles of output channels, then positions of the strip axis.
    const std::int64_t wanted = parallel.threads > 1 ? 4 * static_cast<std::int64_t>(parallel.threads) : 1;
    const std::int64_t group_tiles =
        overlaps_groups(v) ? packed_.group / packed_.group_tile : ceil_div(packed_.group, packed_.group_tile);
    const std::int64_t group_parts = std::min(group_tiles, wanted);
    // The reference takes the channels of one packed tile at a time, whatever their number.
    const bool each_tile = v.family == Family::kReference;
    const std::int64_t tile_parts =
        each_tile ? packed_.tiles() : std::min(packed_.tiles(), ceil_div(wanted, group_parts));
    const std::int64_t tile = strip_axis_ == 0 ? v.tile_q : strip_axis_ == 1 ? v.tile_qh : 1;
    const std::int64_t q_parts =
        std::clamp<std::int64_t>((q_end - q_begin) / (2 * tile), 1, ceil_div(wanted, group_parts * tile_parts));

    std::vector<Call> calls;
    for (std::int64_t part = 0; part < q_parts; part++) {
        // Parts end on whole tiles, so that residues with one position less still fill one.
        const std::int64_t tiles = (q_end - q_begin) / tile;
        const std::int64_t from = q_begin + tiles * part / q_parts * tile;
        const std::int64_t to = part + 1 == q_parts ? q_end : q_begin + tiles * (part + 1) / q_parts * tile;
        std::array<std::vector<Box>, 3> boxes;
        for (int a = 0; a < 3; a++) {
            const bool strip_axis = a == strip_axis_;
            boxes[a] = boxes_of(axes_[a], whole_[a], strip_axis ? from : 0, strip_axis ? to : axes_[a].q_extent());
        }
        for (std::int64_t gp = 0; gp < group_parts; gp++) {
            for (std::int64_t tp = 0; tp < tile_parts; tp++) {
                Call c;
                c.group_begin = group_tiles * gp / group_parts * packed_.group_tile;
                c.group_end =
                    gp + 1 == group_parts ? packed_.group : group_tiles * (gp + 1) / group_parts * packed_.group_tile;
                c.oc_tile_begin = packed_.tiles() * tp / tile_parts;
                c.oc_tile_end = packed_.tiles() * (tp + 1) / tile_parts;
                for (const Box &bd : boxes[2]) {
                    for (const Box &bh : boxes[1]) {
                        for (const Box &bw : boxes[0]) {
                            c.box = {bw, bh, bd};
                            calls.push_back(c);
                        }
                    }
                }
            }
        }
    }
    parallel.for_each(calls.size(), [&](std::size_t i) { call(s, calls[i], o); });
}

void Core::call(const Strip &s, const Call &c, const Operands &o) const {
    const Variant &v = *variant_;
    const TensorStrides &strides = o.y_strides;
    const Types types = types_of(v);
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
    if (blocked) x.set(0, 0, block, 1);
    for (int a = 0; a < 3; a++) x.set(blocked + a, s.x_min[a] - c.box[a].q_begin, s.x_extent[a], s.strides.axes[a]);
    x.set(blocked + 3, 0, packed_.blocks(), s.strides.c);
    x.set(blocked + 4, 0, read_groups, s.group_stride);
    x.set(blocked + 5, 0, s.images, s.strides.n);
    x.raw.dimensions = 6 + blocked;

    const std::array<std::int64_t, 3> &taps = packed_.taps;
    const std::int64_t tap = packed_.oc_tile ? packed_.blocks() * packed_.oc_tile * block : packed_.groups() * block;
    const std::int64_t tile_stride = packed_.taps_volume() * tap;
    const std::int64_t group_stride = packed_.oc_tile ? packed_.tiles() * tile_stride : block;
    const auto *const w_data = static_cast<const char *>(o.packed);
    Buffer<8> w(w_data + (c.group_begin * group_stride + c.oc_tile_begin * tile_stride) * operand_size(v), types.w);
    const bool one_channel = v.family == Family::kReference; // per step of dimension oo, not a tile of them
    if (blocked) w.set(0, 0, block, 1);
    w.set(blocked + 0, 0, one_channel ? 1 : std::max<std::int64_t>(packed_.oc_tile, 1), block);
    w.set(blocked + 1, 0, packed_.blocks(), packed_.oc_tile * block);
    w.set(blocked + 2, 0, taps[0], tap);
    w.set(blocked + 3, 0, taps[1], tap * taps[0]);
    w.set(blocked + 4, 0, taps[2], tap * taps[0] * taps[1]);
    w.set(blocked + 5, 0, one_channel ? oc_end - oc_begin : c.oc_tile_end - c.oc_tile_begin,
          one_channel ? 1 : tile_stride);
    w.set(blocked + 6, 0, read_groups, group_stride);
    w.raw.dimensions = 7 + blocked;

    const std::int64_t oc_padded = packed_.biases() / packed_.groups();
    const std::int64_t oc_extent = (c.oc_tile_end - c.oc_tile_begin) * std::max<std::int64_t>(packed_.oc_tile, 1);
    const std::int64_t first_bias = c.group_begin * oc_padded + oc_begin;
    const bool quantized = v.arithmetic != Arithmetic::kFloat;
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
