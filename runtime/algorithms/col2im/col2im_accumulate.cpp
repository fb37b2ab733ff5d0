// This file adds up columns: it calls the kernels, and estimates the time that they take.
#include <algorithm>

#include "algorithms/col2im/col2im.h"
#include "base/division.h"
#include "cost/cost.h"
#include "kernels/halide_buffer.h"

namespace convtranspose {

namespace {

std::int32_t number(std::int64_t n) { return static_cast<std::int32_t>(n); }

} // namespace

double Col2im::cycles_to_add_planes() const {
    const CostProfile &profile = *settings_.profile;
    const AxisPlan &w = axes_[0];
    const double vectors = real(ceil_div(w.q_extent(), kernel_->lanes)),
                 channels = real(geometry_.out_channels * geometry_.batch);
    double taps = channels * vectors, stored = channels * vectors * real(w.phases);
    for (const AxisPlan &axis : axes_) taps *= real(axis.geometry.kernel);
    for (std::size_t a = 1; a < 3; a++) {
        const AxisGeometry &axis = axes_[a].geometry;
        taps *= real(std::min(axes_[a].q_extent(), axis.in));
        stored *= real(axis.out);
    }
    const bool scattered = w.geometry.stride != 1 && kernel_->stride_w == 0;
    const bool among_others = geometry_.layout == CONVT_CHANNELS_LAST && geometry_.out_channels > 1;
    const double per_element = among_others ? cycles_to_scatter(geometry_, profile)
                               : scattered  ? profile.col2im_element
                                            : 0;
    const double y_bytes = stored * kernel_->lanes * real(size_of(geometry_.y_dtype));
    const bool is_far = y_bytes >= profile.far_from;
    const double from_far = is_far ? profile.far_product * taps * kernel_->lanes : 0;
    return from_far + kernel_->vectors * (taps * profile.col2im_tap + stored * profile.col2im_vector) +
           stored * kernel_->lanes * per_element;
}

double Col2im::cycles_to_add_runs() const {
    const CostProfile &profile = *settings_.profile;
    const AxisGeometry &w = axes_[0].geometry;
    double stored = real((w.in + ceil_div(w.kernel, w.stride) - 1) * ceil_div(run(), kernel_->lanes) * geometry_.batch),
           taps = stored * real(ceil_div(w.kernel, w.stride));
    for (std::size_t a = 1; a < 3; a++) {
        const AxisGeometry &axis = axes_[a].geometry;
        taps *= real(axis.kernel * std::min(axes_[a].q_extent(), axis.in));
        stored *= real(axis.out);
    }
    const auto far = [&](const Shape &shape, convt_dtype dtype) {
        const double elements = real(volume(shape));
        return elements * real(size_of(dtype)) >= profile.far_from ? elements : 0;
    };
    return taps * profile.col2im_run_tap + stored * profile.col2im_run +
           profile.col2im_from_far * far(geometry_.x_shape, geometry_.dtype) +
           profile.col2im_to_far * far(geometry_.y_shape, geometry_.y_dtype);
}

void Col2im::add_up(const Columns &columns, const RunTensors &t, Range q, const char *bias) const {
    const std::int64_t wanted = settings_.parallel.threads > 1 ? 4 * std::int64_t{settings_.parallel.threads} : 1;
    const std::int64_t unit = strip_axis_ == 0 ? kernel_->lanes : 1;
    const std::int64_t q_parts = std::clamp<std::int64_t>(q.extent() / unit, 1, wanted),
                       oc_parts = planar_ ? std::clamp<std::int64_t>(wanted / q_parts, 1, geometry_.out_channels) : 1;
    settings_.parallel.for_each(q_parts * oc_parts, [&](std::int64_t task) {
        const std::int64_t q_part = task / oc_parts, oc_part = task % oc_parts;
        const std::int64_t units = q.extent() / unit, from = q.begin + units * q_part / q_parts * unit,
                           to = q_part + 1 == q_parts ? q.end : q.begin + units * (q_part + 1) / q_parts * unit;
        if (planar_) {
            add_planes(columns, t, {from, to},
                       {geometry_.out_channels * oc_part / oc_parts, geometry_.out_channels * (oc_part + 1) / oc_parts},
                       bias);
        } else {
            add_runs(columns, t, {from, to}, bias);
        }
    });
}

// Returns the outputs of positions q.begin .. q.end - 1 along an axis. Only the strip axis is divided.
Col2im::Range Col2im::outputs(std::size_t a, Range q) const {
    const AxisGeometry &axis = axes_[a].geometry;
    if (a != strip_axis_) return {0, axis.out};
    return {q.begin * axis.stride, std::min(q.end * axis.stride, axis.out)};
}

// Returns the taps of some outputs, or phases of w, as kernels take them.
Buffer<2> Col2im::taps(std::size_t a, Range of) const {
    return table_buffer(tables_[a].data() + of.begin * kTapColumns, of.extent(), kTapColumns);
}

void Col2im::add_planes(const Columns &columns, const RunTensors &t, Range q, Range oc, const char *bias) const {
    const std::int64_t y_size = size_of(geometry_.y_dtype);
    const std::size_t c_at = geometry_.dimensions().channel, w_at = geometry_.dimensions().last_axis;
    const std::int64_t lanes = kernel_->lanes;
    const std::size_t axes = geometry_.axes.size();

    Buffer<8> in(nullptr, type_of(sum_dtype_));
    std::int64_t stride = 1;
    for (std::size_t a = 0; a < 3; a++) {
        const std::int64_t extent = a == strip_axis_ ? strip_rows_ + kept_rows_ : axes_[a].geometry.in;
        in.add(extent, stride, a == strip_axis_ ? columns.first_row : 0);
        if (a < strip_axis_) stride *= extent;
    }
    // Along w the buffer has a vector more at either end, and q counts from 0 in each call.
    const std::int64_t held = strip_axis_ == 0 ? std::min(capacity(), columns.rows) : in.dims[0].extent;
    const std::int64_t shift = strip_axis_ == 0 ? q.begin : 0;
    in.set(0, in.dims[0].min - shift - lanes, held + 2 * lanes, 1);
    stride = capacity();
    for (const AxisPlan &axis : axes_) {
        in.add(axis.geometry.kernel, stride);
        stride *= axis.geometry.kernel;
    }
    in.add(oc.extent(), stride);
    in.add(images_, stride * geometry_.out_channels);
    in.locate(columns.data + (oc.begin * stride - lanes) * size_);
    Buffer<1> b(bias + oc.begin * size_, type_of(sum_dtype_), {{oc.extent(), 1}});

    const Range along_w = outputs(0, q), h = outputs(1, q), d = outputs(2, q);
    Buffer<2> taps_h = taps(1, h), taps_d = taps(2, d);
    const auto y_stride = [&](std::size_t a) { return a < axes ? t.y.strides[w_at - a] : 0; };
    const std::int64_t y_offset = columns.first_image * t.y.strides[0] + oc.begin * t.y.strides[c_at] +
                                  h.begin * y_stride(1) + d.begin * y_stride(2);
    const AxisGeometry &w = axes_[0].geometry;
    const std::int64_t between_positions = capped_product({w.stride, y_stride(0)}); // of no meaning where one is in y
    // phases: those of the table of w. extent: along w, of y or, if kernels have a dimension of phases, of positions.
    const auto call = [&](Range phases, std::int64_t extent, std::int64_t o) {
        Buffer<2> taps_w = taps(0, phases);
        Buffer<6> out(element_at(t.y.data, y_offset + o * y_stride(0), y_size), type_of(geometry_.y_dtype));
        if (!kernel_->stride_w) out.add(extent, between_positions);
        out.add(kernel_->stride_w ? extent : phases.extent(), y_stride(0));
        out.add(h.extent(), y_stride(1));
        out.add(d.extent(), y_stride(2));
        out.add(oc.extent(), t.y.strides[c_at]);
        out.add(images_, t.y.strides[0]);
        const auto &[aw, ah, ad] = axes_;
        kernel_->run(&in.raw, &b.raw, &taps_w.raw, &taps_h.raw, &taps_d.raw, number(aw.geometry.offset_step()),
                     number(ah.geometry.offset_step()), number(ad.geometry.offset_step()),
                     number(aw.geometry.kernel_step()), number(ah.geometry.kernel_step()),
                     number(ad.geometry.kernel_step()), aw.max_count, ah.max_count, ad.max_count, &out.raw);
    };
    if (kernel_->stride_w) {
        call({0, w.stride}, along_w.extent(), along_w.begin);
        return;
    }
    for (const PhaseRun &run : axes_[0].runs) {
        const Box box = box_of(run, strip_axis_ == 0 ? q.begin : 0, strip_axis_ == 0 ? q.end : axes_[0].q_extent());
        if (!box.any()) continue;
        call({box.first, box.first + box.count}, box.q_end - box.q_begin, along_w.begin + box.first);
    }
}

void Col2im::add_runs(const Columns &columns, const RunTensors &t, Range range, const char *bias) const {
    const std::int64_t y_size = size_of(geometry_.y_dtype);
    const std::size_t w_at = t.y.strides.size() - 2, axes = geometry_.axes.size();
    const std::int64_t channels = geometry_.out_channels;
    const AxisGeometry &w = axes_[0].geometry;

    Buffer<8> in(nullptr, type_of(sum_dtype_));
    std::int64_t stride = elements();
    for (std::size_t a = 0; a < 3; a++) {
        const bool strips = a == strip_axis_;
        const std::int64_t extent = strips ? std::min(strip_rows_ + kept_rows_, columns.rows) : axes_[a].geometry.in;
        in.add(extent, stride, strips ? columns.first_row : 0);
        stride *= extent;
    }
    stride = channels;
    for (const AxisPlan &axis : axes_) {
        in.add(axis.geometry.kernel, stride);
        stride *= axis.geometry.kernel;
    }
    in.add(0, 1); // set for each call
    in.add(images_, capacity() * elements());

    const Range along_w = outputs(0, range), h = outputs(1, range), d = outputs(2, range);
    Buffer<2> taps_h = taps(1, h), taps_d = taps(2, d);
    const auto y_stride = [&](std::size_t a) { return a < axes ? t.y.strides[w_at - a] : 0; };
    const std::int64_t y_offset = columns.first_image * t.y.strides[0] + h.begin * y_stride(1) + d.begin * y_stride(2);
    // If y has gaps between positions, each phase is a run of its own.
    const bool is_dense = y_stride(0) == channels;
    // Computes `count` phases, from `first` on, of positions q .. q + positions - 1, which begin at output o and have the
    // same taps. Tap t of position q reads column q - t.
    const std::int64_t least = in.dims[0].min, last = least + in.dims[0].extent - 1,
                       most_taps = ceil_div(w.kernel, w.stride);
    const auto call = [&](std::int64_t q, std::int64_t positions, std::int64_t first, std::int64_t count,
                          std::int64_t o) {
        const std::int64_t tap = std::clamp<std::int64_t>(q - last, 0, most_taps),
                           tap_count = std::clamp<std::int64_t>(q - least + 1, tap, most_taps) - tap;
        in.set(6, 0, (w.kernel - first) * channels, 1);
        in.locate(columns.data + first * channels * size_);
        Buffer<1> b(bias + first * channels * size_, type_of(sum_dtype_), {{run(), 1}});
        Buffer<6> out(element_at(t.y.data, y_offset + o * y_stride(0), y_size), type_of(geometry_.y_dtype),
                      {{is_dense ? count * channels : channels, 1},
                       {is_dense ? 1 : count, y_stride(0)},
                       {positions, w.stride * y_stride(0)},
                       {h.extent(), y_stride(1)},
                       {d.extent(), y_stride(2)},
                       {images_, t.y.strides[0]}});
        const std::array<std::int32_t, kTapColumns> of_first = {number(q - tap), number(tap_count), number(tap * run()),
                                                                0};
        Buffer<2> taps_w = table_buffer(of_first.data(), 1, kTapColumns);
        const AxisPlan &ah = axes_[1], &ad = axes_[2];
        kernel_->run(&in.raw, &b.raw, &taps_w.raw, &taps_h.raw, &taps_d.raw, -1, number(ah.geometry.offset_step()),
                     number(ad.geometry.offset_step()), number(run()), number(ah.geometry.kernel_step()),
                     number(ad.geometry.kernel_step()), number(tap_count), ah.max_count, ad.max_count, &out.raw);
    };
    // Some positions need calls of their own: those with phases outside of y or of this part, and those with fewer taps at
    // either end.
    const std::int64_t end = along_w.end;
    for (std::int64_t o = along_w.begin; o < end;) {
        const std::int64_t q = (o + w.pad_begin) / w.stride, first = (o + w.pad_begin) % w.stride,
                           count = std::min(w.stride - first, end - o);
        const bool have_all_taps = q >= least + most_taps - 1 && q <= last, have_none = q >= last + most_taps;
        std::int64_t positions = 1;
        if (count == w.stride && (have_all_taps || have_none)) {
            positions = std::min((end - o) / w.stride, have_all_taps ? last - q + 1 : end);
        }
        call(q, positions, first, count, o);
        o += (positions - 1) * w.stride + count;
    }
}

} // namespace convtranspose
