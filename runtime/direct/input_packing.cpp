// DirectPlan's copies of x, in the order and type that a family reads, with the value that stands for zero around x.
#include <algorithm>
#include <cstring>
#include <utility>

#include "direct/direct_plan.h"
#include "direct/direct_plan_parts.h"

namespace convtranspose {

void run_copy(const Copier &copy, const CopyBox &box, const Typed<const void> &from, const Typed<void> &to,
              const ByteX &byte_x, const Parallel &parallel) {
    const std::array<std::size_t, 5> order = {6, 3, 2, 4, 5};
    const std::size_t split = *std::max_element(
        order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return box.extents[a] < box.extents[b]; });
    const std::int64_t count = std::min<std::int64_t>(box.extents[split], parallel.threads);
    parallel.for_each(static_cast<std::size_t>(count), [&](std::size_t i) {
        const std::int64_t first = box.extents[split] * static_cast<std::int64_t>(i) / count;
        const std::int64_t last = box.extents[split] * (static_cast<std::int64_t>(i) + 1) / count;
        Buffer<7> x(static_cast<const char *>(from.data) + first * box.from[split] * from.type.bytes(), from.type);
        Buffer<7> y(static_cast<char *>(to.data) + first * box.to[split] * to.type.bytes(), to.type);
        for (std::size_t d = 0; d < 7; d++) {
            const std::int64_t extent = d == split ? last - first : box.extents[d];
            x.set(static_cast<int>(d), 0, extent, box.from[d]);
            y.set(static_cast<int>(d), 0, extent, box.to[d]);
        }
        const bool tiles = copy.tiles && std::min(x.dims[1].extent, x.dims[4].extent) >= kCopyTile;
        (tiles ? copy.tiles : copy.any)(&x.raw, byte_x.flip, byte_x.zero, &y.raw);
    });
}

// Sets where the strip's x is copied to: dense, in the order that the variant reads.
void DirectPlan::locate_copy(Strip *s, char *copy) const {
    s->x = s->copy = copy;
    TensorStrides &to = s->strides;
    if (copies_channels_inside()) {
        to.c = x_block();
        to.axes[0] = copied_column();
        to.axes[1] = to.axes[0] * s->x_extent[0];
    } else {
        to.axes[0] = x_block();
        to.c = to.axes[0] * copied_row(*s);
        to.axes[1] = copied_channels() * copied_row(*s);
    }
    s->group_stride = x_blocks() * to.c;
    to.axes[2] = to.axes[1] * s->x_extent[1];
    to.n = to.axes[2] * s->x_extent[2];
}

// Returns the elements of the strip's copy, without those past the last row.
std::int64_t DirectPlan::copied_elements(const Strip &s) const {
    return capped_product({s.images, copied_row(s), s.x_extent[1], s.x_extent[2], copied_column()});
}

// The box that one call of a copy kernel copies, and where it begins in x and in the copy, in elements.
struct DirectPlan::CopyPart : CopyBox {
    std::int64_t from_offset = 0, to_offset = 0;
};

struct DirectPlan::CopyParts {
    std::array<CopyPart, 5> part;
    std::size_t count = 0;

    CopyPart &add(const CopyPart &p) { return part[count++] = p; }
};

// Returns the boxes that make up the copy. begin, inside: where the part that lies in x begins on each axis of the copy, and its extent.
DirectPlan::CopyParts DirectPlan::copy_parts(const Strip &s, const Operands &o,
                                             const std::array<std::int64_t, 3> &begin,
                                             const std::array<std::int64_t, 3> &inside) const {
    const TensorStrides &x = o.x_strides, &to = s.strides;
    const std::int64_t block = x_block(), ic = packed_.ic;
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
    CopyParts parts;
    if (packed_.pairs_taps) {
        // Each position of the copy holds x there and x offset_step further on: both in the middle of a row, one of them near its ends.
        // The kernel for planar copies makes them, with the pair as its dimension c0.
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
            if (copies_channels_inside()) { // groups are dense then, so they take the kernel's dimension w
                for (std::array<std::int64_t, 7> *list : {&p.extents, &p.from, &p.to})
                    std::swap((*list)[1], (*list)[5]);
            }
            parts.add(p);
        };
        const std::int64_t both_begin = std::max(begin[0], next_begin),
                           both_end = std::max(std::min(end, next_end), both_begin);
        add(both_begin, both_end, 0, 2);
        add(next_begin, std::min(next_end, both_begin), 1, 1);
        add(both_end, next_end, 1, 1);
        add(begin[0], std::min(end, both_begin), 0, 1);
        add(both_end, end, 0, 1);
    } else if (transposes()) {
        CopyPart &p = parts.add(part(ic, 1, packed_.group));
        for (std::array<std::int64_t, 7> *const list : {&p.extents, &p.from, &p.to}) {
            std::swap((*list)[1], (*list)[4]);
            std::swap((*list)[0], (*list)[1]);
        }
    } else if (copies_channels_inside()) {
        if (x_blocks() * block != ic) {
            parts.add(part(ic, 1, packed_.group));
        } else {
            CopyPart &p = parts.add(part(ic * packed_.group, 1, 1));
            if (p.from[0] == 1 && p.from[1] == p.extents[0] && p.to[1] == p.extents[0]) { // a row is one run
                p.extents[0] *= std::exchange(p.extents[1], 1);
            }
        }
    } else {
        // If channels do not fill the last block of a group, that block takes a second call.
        const std::int64_t whole = ic / block, rest = ic % block;
        if (x_blocks() * block == ic) { // all groups as one
            parts.add(part(block, whole * packed_.group, 1));
        } else if (whole) {
            parts.add(part(block, whole, packed_.group));
        }
        if (rest) {
            CopyPart &p = parts.add(part(rest, 1, packed_.group));
            p.from_offset += whole * block * x.c;
            p.to_offset += whole * to.c;
        }
    }
    return parts;
}

// Elements of the copy that fill up blocks of channels meet weights of zero. With floats they must be zeros; with integers the
// product is zero whatever they hold, so they are left as they are. Elements that fill up vectors along groups are left too, as
// no sum of theirs is stored.
void DirectPlan::copy_strip(const Strip &s, const Operands &o, const Parallel &parallel) const {
    const TensorStrides &strides = o.x_strides;
    const std::int64_t size = operand_size(*variant_),
                       x_size = static_cast<std::int64_t>(convt_dtype_size(problem_.x_dtype));

    // The extent of each axis of the copy that lies inside x, and where it begins.
    std::array<std::int64_t, 3> begin, inside;
    bool outside = false;
    for (std::size_t a = 0; a < 3; a++) {
        begin[a] = std::clamp<std::int64_t>(-s.x_min[a], 0, s.x_extent[a]);
        inside[a] = std::clamp(axes_[a].geometry.in - s.x_min[a], begin[a], s.x_extent[a]) - begin[a];
        outside = outside || inside[a] != s.x_extent[a];
    }
    const bool has_gaps = copied_row(s) != s.x_extent[0];
    if (packed_.pairs_taps) {
        // At the last positions only the first of a pair is in x, and at positions before x only the second.
        std::array<std::int64_t, 3> both = inside;
        both[0] = std::max<std::int64_t>(inside[0] - axes_[0].geometry.offset_step, 0);
        fill_around(s, begin, both, o, parallel);
    } else if (outside || has_gaps) {
        fill_around(s, begin, inside, o, parallel);
    }
    if (!copies_channels_inside()) { // the last tile reads past the last row
        const std::int64_t past = (variant_->tile_q + variant_->lanes) * x_block() * size;
        std::memset(s.copy + s.images * s.strides.n * size, 0, static_cast<std::size_t>(past));
    }
    if (inside[1] * inside[2] == 0) return;

    const bool quantized = !is_float(packed_.arithmetic);
    if (!quantized && x_blocks() * x_block() != packed_.ic) fill_up_blocks(s, parallel);
    const halide_type_t x_type = type_of(quantized ? CONVT_U8 : problem_.x_dtype);
    const CopyParts parts = copy_parts(s, o, begin, inside);
    for (std::size_t k = 0; k < parts.count; k++) {
        const CopyPart &p = parts.part[k];
        if (*std::min_element(p.extents.begin(), p.extents.end()) == 0) continue;
        const std::int64_t from = s.first_image * strides.n + p.from_offset;
        run_copy(copy_, p, {static_cast<const char *>(o.x) + from * x_size, x_type},
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
    parallel.for_each(static_cast<std::size_t>(rows), [&](std::size_t row) {
        char *at = s.copy + static_cast<std::int64_t>(row) * s.strides.axes[1] * size;
        for (std::int64_t w = 0; w < count; w++, at += s.strides.axes[0] * size) {
            for (std::int64_t g = 0; g < packed_.group; g++) {
                std::memset(at + (g * s.group_stride + first) * size, 0, bytes);
            }
        }
    });
}

// Fills the copy around x, and between its rows, with the value that stands for zero. begin, inside: where x begins on each axis of the
// copy, and its extent there.
void DirectPlan::fill_around(const Strip &s, const std::array<std::int64_t, 3> &begin,
                             const std::array<std::int64_t, 3> &inside, const Operands &o,
                             const Parallel &parallel) const {
    const int value = packed_.arithmetic == Arithmetic::kInt8 ? o.byte_x.zero : 0;
    // A row along w has `column` bytes for each position. With channels inside, one row holds all channels; else each block has its own.
    const std::int64_t size = operand_size(*variant_), column = s.strides.axes[0] * size;
    const std::int64_t rows = copies_channels_inside() ? 1 : copied_channels() / x_block();
    const std::int64_t row_stride = s.strides.c * size, before = begin[0] * column,
                       end = (begin[0] + inside[0]) * column, after = copied_row(s) * column - end;
    const auto task = [&](std::size_t i) {
        const std::int64_t h = static_cast<std::int64_t>(i) % s.x_extent[1],
                           d = static_cast<std::int64_t>(i) / s.x_extent[1] % s.x_extent[2],
                           n = static_cast<std::int64_t>(i) / s.x_extent[1] / s.x_extent[2];
        char *row = s.copy + (n * s.strides.n + d * s.strides.axes[2] + h * s.strides.axes[1]) * size;
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

} // namespace convtranspose
