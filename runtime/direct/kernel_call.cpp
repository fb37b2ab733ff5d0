// Calls a kernel for a box of y, with x, w and y as buffers (strip_tasks.h).
#include "direct/strip_tasks.h"

#include <algorithm>

#include "base/division.h"
#include "kernel_contract/table_columns.h"
#include "kernels/halide_buffer.h"

namespace convtranspose {

namespace {

// Vectors along the groups read whole tiles of groups, to which packed weights and copies of x are padded. Kernels whose tiles
// overlap do not read that padding.
std::int64_t groups_read(const PackedLayout &packed, const KernelCall &c) {
    return ceil_div(c.groups(), packed.group_tile) * packed.group_tile;
}

void describe_x(const DirectLayer &layer, const Variant &v, const LocatedStrip &s, const KernelCall &c, Buffer<7> *x) {
    const std::int64_t size = x->raw.type.bits / 8;
    const char *host = s.x + (c.group_begin - s.first_group) * s.group_stride * size;
    if (layer.packed.block > 1) x->add(layer.x_block(), 1); // a block of channels is a dimension in front of the others
    // In a call q counts from 0, and the minimum of x is moved instead. The buffer begins at a position that the call reads,
    // because kernels multiply its minimum by strides in 32 bits.
    for (std::size_t a = 0; a < 3; a++) {
        std::int64_t begin = 0, end = s.x_extent[a];
        // If the kernel skips what leaves x on this axis, taps or positions at the ends of rows, its buffer of x leaves out the
        // padding around x, and it skips what lies outside that buffer.
        if (skips_outside(v, a) || (a == 0 && skips_positions(v))) {
            begin = std::clamp<std::int64_t>(-s.x_min[a], 0, end);
            end = std::clamp(layer.axes[a].geometry.in - s.x_min[a], begin, end);
        }
        const AxisPlan &axis = layer.axes[a];
        const Box &box = c.box[a];
        const std::int64_t q_begin =
            std::min(box.q_begin, box.q_end - tile_along(v, a)); // of the last tile, if before the box
        if (axis.low != axis.high) begin = std::clamp(q_begin + axis.low - s.x_min[a], begin, std::max(begin, end));
        host += begin * s.strides.axes[a] * size;
        x->add(end - begin, s.strides.axes[a], s.x_min[a] + begin - box.q_begin);
    }
    x->add(layer.x_blocks(), s.strides.c);
    x->add(groups_read(layer.packed, c), s.group_stride);
    x->add(s.images, s.strides.n);
    x->locate(host);
}

void describe_w(const PackedLayout &packed, const Variant &v, const KernelCall &c, const void *data, Buffer<8> *w) {
    const std::array<std::int64_t, 3> &taps = packed.taps;
    const std::int64_t tap = packed.tap_stride(), tile_stride = packed.tile_stride();
    const bool one_channel = v.family == Family::kReference; // a step of dimension oo is one channel, not a tile
    if (packed.block > 1) w->add(packed.block, 1);
    w->add(one_channel ? 1 : packed.tile_channels(), packed.block);
    w->add(packed.blocks(), packed.block_stride());
    w->add(taps[0], tap);
    w->add(taps[1], tap * taps[0]);
    w->add(taps[2], packed.plane_stride());
    w->add(one_channel ? c.oc(packed) : c.oc_tile_end - c.oc_tile_begin, one_channel ? 1 : tile_stride);
    w->add(groups_read(packed, c), packed.group_stride());
    const std::int64_t first_weight = c.group_begin * packed.group_stride() + c.oc_tile_begin * tile_stride;
    w->locate(element_at(data, first_weight, weight_size(v)));
}

void describe_y(const DirectLayer &layer, const LocatedStrip &s, const KernelCall &c, const DirectOperands &o,
                Buffer<9> *y) {
    const PackedLayout &packed = layer.packed;
    const TensorStrides &strides = o.y_strides;
    std::int64_t offset = s.first_image * strides.n + (c.group_begin * packed.oc + c.oc_begin(packed)) * strides.c;
    y->add(c.oc(packed), strides.c);
    for (int a = 0; a < 3; a++) {
        const Box &box = c.box[a];
        const std::int64_t stride = layer.axes[a].geometry.stride, begin = box.q_begin * stride + box.first;
        offset += begin * strides.axes[a];
        if (layer.whole[a]) {
            y->add(std::min(box.q_end * stride, layer.axes[a].geometry.out) - begin, strides.axes[a]);
        } else {
            // The stride of a single position is never used, so its product may wrap around in 64 bits.
            const auto step = static_cast<std::uint64_t>(stride) * static_cast<std::uint64_t>(strides.axes[a]);
            y->add(box.q_end - box.q_begin, static_cast<std::int64_t>(step));
            y->add(box.count, strides.axes[a]);
        }
    }
    y->add(c.groups(), packed.oc * strides.c);
    y->add(s.images, strides.n);
    y->locate(element_at(o.y, offset - o.y_begin, y->raw.type.bytes()));
}

// Returns the phase of a box from which the offsets of taps along w are one more than those of the first; the number of phases if
// none are.
std::int32_t turn_of(const Box &box, const AxisGeometry &w) {
    return static_cast<std::int32_t>(std::min(w.stride - floor_mod(w.pad_begin + box.first, w.stride), box.count));
}

void call_variant(const DirectLayer &layer, const Variant &v, const LocatedStrip &s, const KernelCall &c,
                  const DirectOperands &o) {
    const PackedLayout &packed = layer.packed;
    const std::array<AxisPlan, 3> &axes = layer.axes;
    const OperandTypes types = operand_types(v);
    const bool in_place = v.family == Family::kReference && layer.reads_x == ReadsX::kInPlace;
    Buffer<7> x(nullptr, in_place ? type_of(layer.problem.geometry.dtype) : types.x);
    describe_x(layer, v, s, c, &x);
    Buffer<8> w(nullptr, types.w);
    describe_w(packed, v, c, o.packed, &w);
    const bool quantized = !is_float(v.arithmetic);
    const auto *const biases =
        quantized ? static_cast<const char *>(o.epilogue) : static_cast<const char *>(o.packed) + layer.weight_bytes();
    const std::int64_t oc_padded = packed.biases() / packed.groups(),
                       oc_extent = (c.oc_tile_end - c.oc_tile_begin) * packed.tile_channels(),
                       first = c.group_begin * oc_padded + c.oc_begin(packed), groups = groups_read(packed, c);
    Buffer<5> bias(biases + first * (types.bias.bits / 8), types.bias, {{oc_extent, 1}, {groups, oc_padded}});
    const EpilogueLayout epilogue = quantized ? epilogue_of(layer.packing()) : EpilogueLayout();
    std::int64_t class_stride = epilogue.biases;
    for (int a = 0; quantized && a < 3; a++) { // 16-bit integers have one bias for all classes of taps
        const bool classes = v.arithmetic == Arithmetic::kInt8;
        bias.add(static_cast<std::int64_t>(axes[a].classes.size()), classes ? class_stride : 0);
        class_stride *= epilogue.classes[a];
    }
    // The scales of light weights are factors, behind the biases.
    const std::int64_t bias_count = quantized ? epilogue.bias_count() : packed.biases();
    Buffer<3> factors(biases + (bias_count + first) * 4, type_of(CONVT_F32),
                      {{oc_extent, 1}, {kFactorColumns, quantized ? epilogue.biases : 0}, {groups, oc_padded}});

    Buffer<9> y(nullptr, type_of(v.dtype));
    describe_y(layer, s, c, o, &y);
    // The rows of an axis's tap table from the box's first phase on.
    const auto taps_of = [&](std::size_t a) {
        const std::int64_t row = c.box[a].row;
        return table_buffer(axes[a].row(row), axes[a].rows() - row, kTapColumns);
    };
    Buffer<2> taps_w = taps_of(0), taps_h = taps_of(1), taps_d = taps_of(2);
    const std::int32_t first_w =
        has_vectors_of_phases(v) ? turn_of(c.box[0], axes[0].geometry) : axes[0].shared_first();
    const auto step = [&](int a) { return static_cast<std::int32_t>(axes[a].step); };
    v.run(&x.raw, &w.raw, &bias.raw, &factors.raw, &taps_w.raw, &taps_h.raw, &taps_d.raw, step(0), step(1), step(2),
          axes[0].max_count, axes[1].max_count, axes[2].max_count, first_w, axes[0].shared_count(),
          axes[1].shared_first(), axes[1].shared_count(), o.range.zero_point, o.range.least, o.range.most, &y.raw);
}

void call_on_strip(const DirectLayer &layer, const LocatedStrip &s, const KernelCall &c, const DirectOperands &o) {
    const Box &row = c.box[0];
    const std::int64_t rest = (row.q_end - row.q_begin) % layer.variant.tile_q;
    const Variant *const narrower = layer.narrower.holding(rest);
    if (!narrower) return call_variant(layer, layer.variant, s, c, o);
    KernelCall tiles = c, end = c;
    tiles.box[0].q_end = end.box[0].q_begin = row.q_end - rest;
    if (tiles.box[0].q_end > row.q_begin) call_variant(layer, layer.variant, s, tiles, o);
    call_variant(layer, *narrower, s, end, o);
}

} // namespace

void call_kernels(const DirectLayer &layer, const StripParts &rows, const KernelCall &c, const DirectOperands &o) {
    for (std::size_t k = 0; k < rows.count; k++) {
        const LocatedStrip &s = rows.part[k];
        KernelCall part = c;
        Box &row = part.box[0];
        row.q_begin = std::max(row.q_begin, s.columns.begin);
        row.q_end = std::min(row.q_end, s.columns.end);
        if (row.q_begin < row.q_end) call_on_strip(layer, s, part, o);
    }
}

} // namespace convtranspose
