#include "direct/input_packing.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/allocator.h"
#include "base/division.h"
#include "direct/copy_box.h"
#include "kernel_contract/fetching.h"
#include "kernels/halide_buffer.h"

namespace convtranspose {

namespace {

// The part of a strip's copy that lies inside x: where it begins on each axis of the copy, and its extent.
struct InsideX {
    std::array<std::int64_t, 3> begin, extent;
};

// The box that one call of a copy kernel copies, and where it begins in x and in the copy, in elements.
struct CopyPart : CopyBox {
    std::int64_t from_offset = 0, to_offset = 0;
};

struct CopyParts {
    std::array<CopyPart, 5> part;
    std::size_t count = 0;

    CopyPart &add(const CopyPart &p) { return part[count++] = p; }
};

// Returns whether no tap leaves x in the strip. Taps that the kernel skips do not count; a kernel that reads x for whole tiles must
// find all of them inside.
bool reads_inside(const Blocking &blocking, const Strip &s) {
    const DirectLayer &layer = blocking.layer;
    for (std::size_t a = 0; a < 3; a++) {
        if (skips_outside(layer.variant, a)) continue;
        std::int64_t end = s.x_min[a] + s.x_extent[a];
        if (a == 0 && blocking.strip_axis == 0 && layer.whole[0])
            end += ceil_div(s.q_end - s.q_begin, blocking.strip_tile) * blocking.strip_tile - (s.q_end - s.q_begin);
        if (s.x_min[a] < 0 || end > layer.axes[a].geometry.in) return false;
    }
    return true;
}

// Returns the part of the strip's copy that is inside x.
InsideX inside_x(const DirectLayer &layer, const Strip &s) {
    InsideX inside;
    for (std::size_t a = 0; a < 3; a++) {
        const std::int64_t begin = std::clamp<std::int64_t>(-s.x_min[a], 0, s.x_extent[a]);
        inside.begin[a] = begin;
        inside.extent[a] = std::clamp(layer.axes[a].geometry.in - s.x_min[a], begin, s.x_extent[a]) - begin;
    }
    return inside;
}

// Returns the boxes that make up the copy.
CopyParts copy_parts(const DirectLayer &layer, const LocatedStrip &s, const InsideX &inside, const TensorStrides &x) {
    const TensorStrides &to = s.strides;
    const std::int64_t block = layer.x_block(), ic = layer.packed.ic;
    const auto part = [&](std::int64_t c0, std::int64_t c1, std::int64_t group) {
        CopyPart p;
        p.from_offset = s.first_group * ic * x.c;
        p.axes[0] = {c0, x.c, 1};
        for (std::size_t a = 0; a < 3; a++) {
            p.axes[1 + a] = {inside.extent[a], x.axes[a], to.axes[a]};
            p.from_offset += (s.x_min[a] + inside.begin[a]) * x.axes[a];
            p.to_offset += inside.begin[a] * to.axes[a];
        }
        p.axes[4] = {c1, block * x.c, to.c};
        p.axes[5] = {group, ic * x.c, s.group_stride};
        p.axes[6] = {s.images, x.n, to.n};
        return p;
    };
    CopyParts parts;
    if (layer.packed.pairs_taps) {
        // Each position of the copy holds x there and x offset_step further on: both in the middle of a row, one of them near its
        // ends. The kernel for planar copies makes them, with the pair as its dimension c0.
        const std::int64_t step = layer.axes[0].geometry.offset_step(), begin = inside.begin[0],
                           end = begin + inside.extent[0];
        const std::int64_t next_begin = std::clamp<std::int64_t>(-s.x_min[0] - step, 0, s.x_extent[0]);
        const std::int64_t next_end =
            std::clamp(layer.axes[0].geometry.in - s.x_min[0] - step, next_begin, s.x_extent[0]);
        const auto add = [&](std::int64_t from, std::int64_t until, std::int64_t first, std::int64_t count) {
            if (from >= until) return;
            CopyPart p = part(count, 1, s.groups);
            p.axes[1].extent = until - from;
            p.axes[0].from = step * x.axes[0];
            p.from_offset += (from - begin + first * step) * x.axes[0];
            p.to_offset += (from - begin) * to.axes[0] + first;
            // With channels inside, groups are dense, so they take the kernel's dimension w.
            if (layer.copies_channels_inside()) std::swap(p.axes[1], p.axes[5]);
            parts.add(p);
        };
        const std::int64_t both_begin = std::max(begin, next_begin),
                           both_end = std::max(std::min(end, next_end), both_begin);
        add(both_begin, both_end, 0, 2);
        add(next_begin, std::min(next_end, both_begin), 1, 1);
        add(both_end, next_end, 1, 1);
        add(begin, std::min(end, both_begin), 0, 1);
        add(both_end, end, 0, 1);
    } else if (layer.transposes()) {
        CopyPart &p = parts.add(part(ic, 1, s.groups));
        std::swap(p.axes[1], p.axes[4]);
        std::swap(p.axes[0], p.axes[1]);
    } else if (layer.copies_channels_inside()) {
        if (layer.x_blocks() * block != ic) {
            parts.add(part(ic, 1, s.groups));
        } else {
            CopyPart &p = parts.add(part(ic * s.groups, 1, 1));
            CopyBox::Axis &c = p.axes[0], &w = p.axes[1];
            if (c.from == 1 && w.from == c.extent && w.to == c.extent)
                c.extent *= std::exchange(w.extent, 1); // one run
        }
    } else {
        // If channels do not fill the last block of a group, that block takes a second call.
        const std::int64_t whole = ic / block, rest = ic % block;
        if (layer.x_blocks() * block == ic) { // all groups as one
            parts.add(part(block, whole * s.groups, 1));
        } else if (whole) {
            parts.add(part(block, whole, s.groups));
        }
        if (rest) {
            CopyPart &p = parts.add(part(rest, 1, s.groups));
            p.from_offset += whole * block * x.c;
            p.to_offset += whole * to.c;
        }
    }
    return parts;
}

// Copies N bytes of `block` to all of `bytes` bytes, which are at least N.
template<std::int64_t N>
void repeat_block(const char *block, char *to, std::int64_t bytes) {
    for (std::int64_t i = 0; i < bytes - N; i += N) std::memcpy(to + i, block, N);
    std::memcpy(to + bytes - N, block, N);
}

// Sets the bytes between two rows, mostly few. There are as many gaps as rows, and memset takes about as long as copying a short
// row.
void fill_gap(char *at, int value, std::int64_t bytes) {
    constexpr std::int64_t kFew = 256;
    std::array<char, 16> block;
    block.fill(static_cast<char>(value));
    if (bytes < 4 || bytes > kFew) {
        std::memset(at, value, static_cast<std::size_t>(bytes));
    } else if (bytes < 8) {
        repeat_block<4>(block.data(), at, bytes);
    } else if (bytes < 16) {
        repeat_block<8>(block.data(), at, bytes);
    } else {
        repeat_block<16>(block.data(), at, bytes);
    }
}

// Fills the copy around x, and between its rows, with the value that stands for zero.
void fill_around(const Blocking &blocking, const LocatedStrip &s, const InsideX &inside, int value,
                 const Parallel &parallel) {
    const DirectLayer &layer = blocking.layer;
    // A row along w has `column` bytes for each position. With channels inside, one row holds all channels; else each block has its
    // own.
    const std::int64_t size = operand_size(layer.variant), column = s.strides.axes[0] * size;
    const std::int64_t rows =
        layer.copies_channels_inside() ? 1 : layer.copied_column(blocking.groups) / layer.x_block();
    const std::int64_t row_stride = s.strides.c * size, before = inside.begin[0] * column,
                       end = before + inside.extent[0] * column, after = layer.copied_row(s.x_extent[0]) * column - end;
    parallel.for_each(s.x_extent[1] * s.x_extent[2] * s.images, [&](std::int64_t i) {
        const std::int64_t h = i % s.x_extent[1], d = i / s.x_extent[1] % s.x_extent[2],
                           n = i / s.x_extent[1] / s.x_extent[2];
        char *row = s.copy + (n * s.strides.n + d * s.strides.axes[2] + h * s.strides.axes[1]) * size;
        const auto is_inside = [&](std::int64_t at, std::size_t a) {
            return at >= inside.begin[a] && at < inside.begin[a] + inside.extent[a];
        };
        if (!is_inside(h, 1) || !is_inside(d, 2)) {
            std::memset(row, value, static_cast<std::size_t>(rows * (end + after)));
            return;
        }
        // The bytes behind a row and those before the next one lie side by side.
        std::memset(row, value, static_cast<std::size_t>(before));
        for (std::int64_t r = 1; r < rows; r++, row += row_stride) fill_gap(row + end, value, after + before);
        std::memset(row + end, value, static_cast<std::size_t>(after));
    });
}

// Fills what tiles read around x.
void fill_copy(const Blocking &blocking, const LocatedStrip &s, const DirectOperands &o, const Parallel &parallel) {
    const DirectLayer &layer = blocking.layer;
    const InsideX inside = inside_x(layer, s);
    const std::int64_t size = operand_size(layer.variant);
    const bool has_gaps = layer.copied_row(s.x_extent[0]) != s.x_extent[0];
    const int value = layer.packed.arithmetic == Arithmetic::kInt8 ? o.byte_x.zero : 0;
    if (layer.packed.pairs_taps) {
        // At the last positions only the first of a pair is in x, and at positions before x only the second.
        InsideX both = inside;
        both.extent[0] = std::max<std::int64_t>(inside.extent[0] - layer.axes[0].geometry.offset_step(), 0);
        fill_around(blocking, s, both, value, parallel);
    } else if (inside.extent != s.x_extent || has_gaps) {
        fill_around(blocking, s, inside, value, parallel);
    }
    if (!layer.copies_channels_inside()) { // the last tile reads past the last row
        const std::int64_t past = (layer.variant.tile_q + layer.variant.lanes) * layer.x_block() * size;
        std::memset(s.copy + s.images * s.strides.n * size, 0, static_cast<std::size_t>(past));
    }
}

// Writes zeros behind the last input channel of each group. It comes before x is copied, as a block may hold both.
void fill_up_blocks(const DirectLayer &layer, const LocatedStrip &s, const Parallel &parallel) {
    const std::int64_t size = operand_size(layer.variant), rows = s.x_extent[1] * s.x_extent[2] * s.images;
    // The channels behind the last one are apart for each position, or together for a whole row.
    const std::int64_t whole = layer.packed.ic / layer.x_block();
    const std::int64_t first = layer.copies_channels_inside() ? layer.packed.ic : whole * s.strides.c,
                       count = layer.copies_channels_inside() ? s.x_extent[0] : 1;
    const auto bytes = static_cast<std::size_t>((s.group_stride - first) * size);
    parallel.for_each(rows, [&](std::int64_t row) {
        char *at = s.copy + row * s.strides.axes[1] * size;
        for (std::int64_t w = 0; w < count; w++, at += s.strides.axes[0] * size) {
            for (std::int64_t g = 0; g < s.groups; g++) {
                std::memset(at + (g * s.group_stride + first) * size, 0, bytes);
            }
        }
    });
}

} // namespace

InputPacking::InputPacking(const Blocking &blocking) : blocking_(blocking), layer_(blocking.layer) {
    const Variant &v = layer_.variant;
    const Geometry &g = layer_.problem.geometry;
    fetches_x_ =
        g.layout == CONVT_CHANNELS_FIRST ? fetches_copied(g.x_bytes(), g.in_channels) : g.x_bytes() >= kLeavesLastCache;
    const CopyOrder order = pairs_taps(v) ? CopyOrder::kPlanar : layer_.copy_order; // copy_parts() says why
    const convt_dtype x_bits = is_float(v.arithmetic) ? g.dtype : CONVT_U8;
    copy_ = layer_.transposes()
                ? find_copy(v.isa, CopyOrder::kTransposed, v.arithmetic, x_bits, 1)
                : find_copy(v.isa, order, has_light_weights(v.arithmetic) ? Arithmetic::kFloat : v.arithmetic, x_bits,
                            static_cast<int>(layer_.x_block()));
    if (layer_.reads_x == ReadsX::kInPlace || g.batch == 0) return;
    const std::int64_t column = layer_.copied_column(blocking.groups);
    std::int64_t most = 0;
    for (std::int64_t i = 0; i < blocking.strips; i++) {
        const StripParts parts = parts_of_rows(blocking.strip(i));
        std::int64_t elements = 0;
        for (std::size_t k = 0; k < parts.count; k++) {
            const LocatedStrip &s = parts.part[k];
            if (is_copied(s))
                elements +=
                    capped_product({s.images, layer_.copied_row(s.x_extent[0]), s.x_extent[1], s.x_extent[2], column});
        }
        most = std::max(most, elements);
    }
    // Kernels read whole tiles, so there must be memory past the last column of the last row. locate_copy() leaves some before the
    // first.
    elements_ = most + (v.tile_q + 2 * v.lanes) * (layer_.copies_channels_inside() ? column : layer_.x_block());
}

std::uint64_t InputPacking::bytes() const {
    return round_up(capped_product({elements_, operand_size(layer_.variant)}));
}

UnsupportedReason InputPacking::overflow() const {
    if (elements_ <= kMostElements) return {};
    return too_large("its copy of x has # elements; a kernel counts up to #", elements_);
}

bool InputPacking::is_copied(const LocatedStrip &s) const {
    switch (layer_.reads_x) {
    case ReadsX::kInPlace: return false;
    case ReadsX::kCopy: return true;
    case ReadsX::kCopyOfEdgeStrips: return !reads_inside(blocking_, s);
    case ReadsX::kCopyOfRowEnds: return s.columns.begin != layer_.in_place.begin;
    }
    return true;
}

StripParts InputPacking::parts_of_rows(const Strip &s) const {
    StripParts parts;
    const AxisPlan &w = layer_.axes[0];
    const auto add = [&](std::int64_t begin, std::int64_t end) {
        if (begin >= end) return;
        LocatedStrip &part = parts.part[parts.count++];
        part = LocatedStrip(s);
        part.columns = {begin, end};
        if (layer_.reads_x != ReadsX::kCopyOfRowEnds) return;
        part.x_min[0] = begin + w.low;
        part.x_extent[0] = end + w.high - 1 - part.x_min[0];
    };
    add(0, layer_.in_place.begin);
    add(layer_.in_place.begin, layer_.in_place.end);
    add(layer_.in_place.end, w.q_extent());
    return parts;
}

// Sets where the strip's x is copied to: dense, in the order that the variant reads. Of a planar copy, the first column inside x
// lies at a multiple of a vector, so that stores of vectors do not cross cache lines
// (docs/measurements/2026-11-30-planar-copies.md).
void InputPacking::locate_copy(char *copy, LocatedStrip *s) const {
    TensorStrides &to = s->strides;
    const std::int64_t column = layer_.copied_column(blocking_.groups), row = layer_.copied_row(s->x_extent[0]);
    if (layer_.copies_channels_inside()) {
        to.c = layer_.x_block();
        to.axes[0] = column;
        to.axes[1] = to.axes[0] * s->x_extent[0];
    } else {
        to.axes[0] = layer_.x_block();
        to.c = to.axes[0] * row;
        const std::int64_t lanes = layer_.variant.lanes, outside = std::max<std::int64_t>(-s->x_min[0], 0) % lanes;
        copy += (lanes - outside) % lanes * to.axes[0] * operand_size(layer_.variant);
        to.axes[1] = column * row;
    }
    s->x = s->copy = copy;
    s->group_stride = layer_.x_blocks() * to.c;
    to.axes[2] = to.axes[1] * s->x_extent[1];
    to.n = to.axes[2] * s->x_extent[2];
}

void InputPacking::locate_in_place(const DirectOperands &o, LocatedStrip *s) const {
    s->strides = o.x_strides;
    s->group_stride = layer_.packed.ic * s->strides.c;
    s->strides.c *= layer_.x_block();
    const std::int64_t x_size = size_of(layer_.problem.geometry.dtype);
    s->x = element_at(o.x, s->first_image * o.x_strides.n + s->first_group * s->group_stride, x_size);
    if (layer_.variant.family == Family::kReference) return;
    for (std::size_t a = 0; a < 3; a++) {
        if (skips_outside(layer_.variant, a)) { // such kernels do not read around x
            const std::int64_t in = layer_.axes[a].geometry.in,
                               end = std::clamp<std::int64_t>(s->x_min[a] + s->x_extent[a], 0, in);
            s->x_min[a] = std::clamp<std::int64_t>(s->x_min[a], 0, end);
            s->x_extent[a] = end - s->x_min[a];
        }
        s->x += s->x_min[a] * o.x_strides.axes[a] * x_size;
    }
}

void InputPacking::begin(const DirectOperands &o, char *copies, const Parallel &parallel) const {
    if (!are_filled_alike()) return;
    LocatedStrip s(blocking_.strip(0));
    if (!is_copied(s)) return;
    for (int worker = 0; worker < blocking_.workers; worker++) {
        locate_copy(element_at(copies, worker, bytes()), &s);
        fill_copy(blocking_, s, o, parallel);
    }
}

StripParts InputPacking::pack(const Strip &s, const DirectOperands &o, char *copy, const Parallel &parallel) const {
    StripParts parts = parts_of_rows(s);
    for (std::size_t k = 0; k < parts.count; k++) {
        LocatedStrip &part = parts.part[k];
        if (is_copied(part)) {
            locate_copy(copy, &part);
            copy_strip(part, o, parallel);
            copy += part.images * part.strides.n * operand_size(layer_.variant);
        } else {
            locate_in_place(o, &part);
        }
    }
    return parts;
}

// Elements of the copy that fill up blocks of channels meet weights of zero. With floats they must be zeros; with integers the
// product is zero whatever they hold, so they are left as they are. Elements that fill up vectors along groups are left too, as
// no sum of theirs is stored.
void InputPacking::copy_strip(const LocatedStrip &s, const DirectOperands &o, const Parallel &parallel) const {
    if (!are_filled_alike()) fill_copy(blocking_, s, o, parallel); // else begin() has
    const InsideX inside = inside_x(layer_, s);
    if (inside.extent[1] * inside.extent[2] == 0) return;

    const bool quantized = !is_float(layer_.packed.arithmetic);
    if (!quantized && layer_.x_blocks() * layer_.x_block() != layer_.packed.ic) fill_up_blocks(layer_, s, parallel);
    const halide_type_t x_type = type_of(quantized ? CONVT_U8 : layer_.problem.geometry.dtype);
    const std::int64_t size = operand_size(layer_.variant), x_size = size_of(layer_.problem.geometry.dtype);
    CopyParts parts = copy_parts(layer_, s, inside, o.x_strides);
    for (std::size_t k = 0; k < parts.count; k++) {
        CopyPart &p = parts.part[k];
        p.fetches_from = fetches_x_;
        const auto is_empty = [](const CopyBox::Axis &axis) { return axis.extent == 0; };
        if (std::any_of(p.axes.begin(), p.axes.end(), is_empty)) continue;
        const std::int64_t from = s.first_image * o.x_strides.n + p.from_offset;
        run_copy(copy_, p, {element_at(o.x, from, x_size), x_type},
                 {s.copy + p.to_offset * size, operand_types(layer_.variant).x}, o.byte_x, parallel);
    }
}

} // namespace convtranspose
