// DirectPlan's copies of x, in the order and type that a family reads, with the value that stands for zero around x.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/division.h"
#include "direct/copy_box.h"
#include "direct/direct_plan.h"

namespace convtranspose {

void run_copy(const Copier &copy, const CopyBox &box, const Typed<const void> &from, const Typed<void> &to,
              const ByteX &byte_x, const Parallel &parallel) {
    const std::array<std::size_t, 5> order = {6, 3, 2, 4, 5};
    const CopyBox::Axis &split =
        box.axes[*std::max_element(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return box.axes[a].extent < box.axes[b].extent;
        })];
    const std::int64_t count = std::min<std::int64_t>(split.extent, parallel.threads);
    parallel.for_each(count, [&](std::int64_t i) {
        const std::int64_t first = split.extent * i / count, last = split.extent * (i + 1) / count;
        Buffer<7> x(element_at(from.data, first * split.from, from.type.bytes()), from.type);
        Buffer<7> y(element_at(to.data, first * split.to, to.type.bytes()), to.type);
        for (const CopyBox::Axis &axis : box.axes) {
            const std::int64_t extent = &axis == &split ? last - first : axis.extent;
            x.add(extent, axis.from);
            y.add(extent, axis.to);
        }
        const bool tiles = copy.tiles && std::min(x.dims[1].extent, x.dims[copy.channels].extent) >= kCopyTile;
        (tiles ? copy.tiles : copy.any)(&x.raw, byte_x.flip, byte_x.zero, box.fetches_from, box.fetches_to, &y.raw);
    });
}

// Sets where the strip's x is copied to: dense, in the order that the variant reads. Of a planar copy, the first column inside x lies at a
// multiple of a vector, so that stores of vectors do not cross cache lines (docs/measurements/2026-11-30-planar-copies.md).
void DirectPlan::locate_copy(Strip *s, char *copy) const {
    TensorStrides &to = s->strides;
    if (copies_channels_inside()) {
        to.c = x_block();
        to.axes[0] = copied_column();
        to.axes[1] = to.axes[0] * s->x_extent[0];
    } else {
        to.axes[0] = x_block();
        to.c = to.axes[0] * copied_row(*s);
        const std::int64_t lanes = variant_->lanes, outside = std::max<std::int64_t>(-s->x_min[0], 0) % lanes;
        copy += (lanes - outside) % lanes * to.axes[0] * operand_size(*variant_);
        to.axes[1] = copied_channels() * copied_row(*s);
    }
    s->x = s->copy = copy;
    s->group_stride = x_blocks() * to.c;
    to.axes[2] = to.axes[1] * s->x_extent[1];
    to.n = to.axes[2] * s->x_extent[2];
}

// Returns the elements of the strip's copy, without those past the last row.
std::int64_t DirectPlan::copied_elements(const Strip &s) const {
    return capped_product({s.images, copied_row(s), s.x_extent[1], s.x_extent[2], copied_column()});
}

// The part of a strip's copy that lies inside x: where it begins on each axis of the copy, and its extent.
struct DirectPlan::InsideX {
    std::array<std::int64_t, 3> begin, extent;
};

// The box that one call of a copy kernel copies, and where it begins in x and in the copy, in elements.
struct DirectPlan::CopyPart : CopyBox {
    std::int64_t from_offset = 0, to_offset = 0;
};

struct DirectPlan::CopyParts {
    std::array<CopyPart, 5> part;
    std::size_t count = 0;

    CopyPart &add(const CopyPart &p) { return part[count++] = p; }
};

// Returns the boxes that make up the copy.
DirectPlan::CopyParts DirectPlan::copy_parts(const Strip &s, const Operands &o, const InsideX &inside) const {
    const TensorStrides &x = o.x_strides, &to = s.strides;
    const std::int64_t block = x_block(), ic = packed_.ic;
    const auto part = [&](std::int64_t c0, std::int64_t c1, std::int64_t group) {
        CopyPart p;
        p.fetches_from = fetches_x_;
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
    if (packed_.pairs_taps) {
        // Each position of the copy holds x there and x offset_step further on: both in the middle of a row, one of them near its ends.
        // The kernel for planar copies makes them, with the pair as its dimension c0.
        const std::int64_t step = axes_[0].geometry.offset_step, begin = inside.begin[0],
                           end = begin + inside.extent[0];
        const std::int64_t next_begin = std::clamp<std::int64_t>(-s.x_min[0] - step, 0, s.x_extent[0]);
        const std::int64_t next_end = std::clamp(axes_[0].geometry.in - s.x_min[0] - step, next_begin, s.x_extent[0]);
        const auto add = [&](std::int64_t from, std::int64_t until, std::int64_t first, std::int64_t count) {
            if (from >= until) return;
            CopyPart p = part(count, 1, s.groups);
            p.axes[1].extent = until - from;
            p.axes[0].from = step * x.axes[0];
            p.from_offset += (from - begin + first * step) * x.axes[0];
            p.to_offset += (from - begin) * to.axes[0] + first;
            // With channels inside, groups are dense, so they take the kernel's dimension w.
            if (copies_channels_inside()) std::swap(p.axes[1], p.axes[5]);
            parts.add(p);
        };
        const std::int64_t both_begin = std::max(begin, next_begin),
                           both_end = std::max(std::min(end, next_end), both_begin);
        add(both_begin, both_end, 0, 2);
        add(next_begin, std::min(next_end, both_begin), 1, 1);
        add(both_end, next_end, 1, 1);
        add(begin, std::min(end, both_begin), 0, 1);
        add(both_end, end, 0, 1);
    } else if (transposes()) {
        CopyPart &p = parts.add(part(ic, 1, s.groups));
        std::swap(p.axes[1], p.axes[4]);
        std::swap(p.axes[0], p.axes[1]);
    } else if (copies_channels_inside()) {
        if (x_blocks() * block != ic) {
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
        if (x_blocks() * block == ic) { // all groups as one
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

// Returns the part of the strip's copy that is inside x.
DirectPlan::InsideX DirectPlan::inside_x(const Strip &s) const {
    InsideX inside;
    for (std::size_t a = 0; a < 3; a++) {
        const std::int64_t begin = std::clamp<std::int64_t>(-s.x_min[a], 0, s.x_extent[a]);
        inside.begin[a] = begin;
        inside.extent[a] = std::clamp(axes_[a].geometry.in - s.x_min[a], begin, s.x_extent[a]) - begin;
    }
    return inside;
}

// Fills what tiles read around x.
void DirectPlan::fill(const Strip &s, const InsideX &inside, const Operands &o, const Parallel &parallel) const {
    const std::int64_t size = operand_size(*variant_);
    const bool has_gaps = copied_row(s) != s.x_extent[0];
    if (packed_.pairs_taps) {
        // At the last positions only the first of a pair is in x, and at positions before x only the second.
        InsideX both = inside;
        both.extent[0] = std::max<std::int64_t>(inside.extent[0] - axes_[0].geometry.offset_step, 0);
        fill_around(s, both, o, parallel);
    } else if (inside.extent != s.x_extent || has_gaps) {
        fill_around(s, inside, o, parallel);
    }
    if (!copies_channels_inside()) { // the last tile reads past the last row
        const std::int64_t past = (variant_->tile_q + variant_->lanes) * x_block() * size;
        std::memset(s.copy + s.images * s.strides.n * size, 0, static_cast<std::size_t>(past));
    }
}

// Fills the copies of all workers, of strips that are filled alike.
void DirectPlan::fill_copies(const Operands &o, char *copies, const Parallel &parallel) const {
    Strip s = strip(images_, groups_, strip_begin(0), strip_begin(1));
    if (!is_copied(s)) return;
    for (int worker = 0; worker < workers_; worker++) {
        locate_copy(&s, copies + worker * copy_bytes_);
        fill(s, inside_x(s), o, parallel);
    }
}

// Elements of the copy that fill up blocks of channels meet weights of zero. With floats they must be zeros; with integers the
// product is zero whatever they hold, so they are left as they are. Elements that fill up vectors along groups are left too, as
// no sum of theirs is stored.
void DirectPlan::copy_strip(const Strip &s, const Operands &o, const Parallel &parallel) const {
    const TensorStrides &strides = o.x_strides;
    const std::int64_t size = operand_size(*variant_), x_size = size_of(problem_.geometry.dtype);

    const InsideX inside = inside_x(s);
    if (!are_filled_alike()) fill(s, inside, o, parallel); // else run() has
    if (inside.extent[1] * inside.extent[2] == 0) return;

    const bool quantized = !is_float(packed_.arithmetic);
    if (!quantized && x_blocks() * x_block() != packed_.ic) fill_up_blocks(s, parallel);
    const halide_type_t x_type = type_of(quantized ? CONVT_U8 : problem_.geometry.dtype);
    const CopyParts parts = copy_parts(s, o, inside);
    for (std::size_t k = 0; k < parts.count; k++) {
        const CopyPart &p = parts.part[k];
        const auto is_empty = [](const CopyBox::Axis &axis) { return axis.extent == 0; };
        if (std::any_of(p.axes.begin(), p.axes.end(), is_empty)) continue;
        const std::int64_t from = s.first_image * strides.n + p.from_offset;
        run_copy(copy_, p, {element_at(o.x, from, x_size), x_type},
                 {s.copy + p.to_offset * size, types_of(*variant_).x}, o.byte_x, parallel);
    }
}

// Writes zeros behind the last input channel of each group. It comes before x is copied, as a block may hold both.
void DirectPlan::fill_up_blocks(const Strip &s, const Parallel &parallel) const {
    const std::int64_t size = operand_size(*variant_), rows = s.x_extent[1] * s.x_extent[2] * s.images;
    // The channels behind the last one are apart for each position, or together for a whole row.
    const std::int64_t whole = packed_.ic / x_block();
    const std::int64_t first = copies_channels_inside() ? packed_.ic : whole * s.strides.c,
                       count = copies_channels_inside() ? s.x_extent[0] : 1;
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

// Copies N bytes of `block` to all of `bytes` bytes, which are at least N.
template<std::int64_t N>
static void repeat(const char *block, char *to, std::int64_t bytes) {
    for (std::int64_t i = 0; i < bytes - N; i += N) std::memcpy(to + i, block, N);
    std::memcpy(to + bytes - N, block, N);
}

// Sets the bytes between two rows, mostly few. There are as many gaps as rows, and memset takes about as long as copying a short row.
static void fill_gap(char *at, int value, std::int64_t bytes) {
    constexpr std::int64_t kFew = 256;
    std::array<char, 16> block;
    block.fill(static_cast<char>(value));
    if (bytes < 4 || bytes > kFew) {
        std::memset(at, value, static_cast<std::size_t>(bytes));
    } else if (bytes < 8) {
        repeat<4>(block.data(), at, bytes);
    } else if (bytes < 16) {
        repeat<8>(block.data(), at, bytes);
    } else {
        repeat<16>(block.data(), at, bytes);
    }
}

// Fills the copy around x, and between its rows, with the value that stands for zero.
void DirectPlan::fill_around(const Strip &s, const InsideX &inside, const Operands &o, const Parallel &parallel) const {
    const int value = packed_.arithmetic == Arithmetic::kInt8 ? o.byte_x.zero : 0;
    // A row along w has `column` bytes for each position. With channels inside, one row holds all channels; else each block has its own.
    const std::int64_t size = operand_size(*variant_), column = s.strides.axes[0] * size;
    const std::int64_t rows = copies_channels_inside() ? 1 : copied_channels() / x_block();
    const std::int64_t row_stride = s.strides.c * size, before = inside.begin[0] * column,
                       end = before + inside.extent[0] * column, after = copied_row(s) * column - end;
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

} // namespace convtranspose
