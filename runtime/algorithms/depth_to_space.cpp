// This file moves the tensor of a layer whose output channels are phases into y. Where no tap reaches some of the phases, a piece
// of y that fits in a near cache is filled with the bias, and what taps computed is spread over it at once.
#include <algorithm>
#include <array>
#include <cstring>

#include "algorithms/phases_as_channels.h"
#include "base/division.h"

namespace convtranspose {

namespace {

// Runs of elements, and the distances between elements: of runs in the source and the target, and in a run of the target.
struct Runs {
    std::int64_t from_step, step, apart;
    std::int64_t runs, count; // count: elements of a run
};

// Copies runs of elements. kCount: the length of a run if it is a constant, else 0. kDense: they are not apart.
template<typename T, std::int64_t kCount, bool kDense>
void copy_runs(const char *from, char *to, const Runs &r) {
    const auto *source = reinterpret_cast<const T *>(from);
    auto *target = reinterpret_cast<T *>(to);
    for (std::int64_t q = 0; q < r.runs; q++, source += r.from_step, target += r.step) {
        if constexpr (kCount > 0 && kDense) {
            std::memcpy(target, source, kCount * sizeof(T));
        } else {
            for (std::int64_t i = 0; i < (kCount ? kCount : r.count); i++) target[i * r.apart] = source[i];
        }
    }
}

using CopyRuns = void (*)(const char *, char *, const Runs &);

template<typename T>
CopyRuns copy_of(std::int64_t count, bool dense) {
    switch (count) {
    case 1: return dense ? copy_runs<T, 1, true> : copy_runs<T, 1, false>;
    case 2: return dense ? copy_runs<T, 2, true> : copy_runs<T, 2, false>;
    case 3: return dense ? copy_runs<T, 3, true> : copy_runs<T, 3, false>;
    case 4: return dense ? copy_runs<T, 4, true> : copy_runs<T, 4, false>;
    case 8: return dense ? copy_runs<T, 8, true> : copy_runs<T, 8, false>;
    default: return dense ? copy_runs<T, 0, true> : copy_runs<T, 0, false>;
    }
}

// Returns the function that copies runs of `count` elements of `size` bytes.
CopyRuns copy_of(std::int64_t size, std::int64_t count, bool dense) {
    switch (size) {
    case 1: return copy_of<std::uint8_t>(count, dense);
    case 2: return copy_of<std::uint16_t>(count, dense);
    case 4: return copy_of<std::uint32_t>(count, dense);
    default: return copy_of<std::uint64_t>(count, dense);
    }
}

constexpr std::int64_t kBytesAtOnce = 8192; // bytes of y that are filled before values are spread over them

template<typename T>
void fill(char *to, std::int64_t bytes, const char *value) {
    T element;
    std::memcpy(&element, value, sizeof element);
    std::fill_n(reinterpret_cast<T *>(to), bytes / static_cast<std::int64_t>(sizeof element), element);
}

// Fills memory with a value of several elements, from what is there already.
void repeat(char *to, std::int64_t bytes, const char *value, std::int64_t value_bytes) {
    std::memcpy(to, value, static_cast<std::size_t>(std::min(bytes, value_bytes)));
    for (std::int64_t done = value_bytes; done < bytes;) {
        const std::int64_t count = std::min(done, bytes - done);
        std::memcpy(to + done, to, static_cast<std::size_t>(count));
        done += count;
    }
}

// A position of y holds `size` bytes: an element of a plane, or all channels, in groups of `run` bytes. Positions are `pitch` bytes
// apart.
struct Position {
    std::int64_t size, run, pitch;
    bool is_element;

    void fill_with(const char *bias, char *to, std::int64_t positions) const {
        if (is_element && pitch == size) {
            const auto fill_by = size == 2   ? fill<std::uint16_t>
                                 : size == 4 ? fill<std::uint32_t>
                                             : fill<std::uint64_t>;
            fill_by(to, positions * size, bias);
        } else if (pitch == size) {
            repeat(to, positions * size, bias, size);
        } else {
            for (std::int64_t i = 0; i < positions; i++)
                std::memcpy(to + i * pitch, bias, static_cast<std::size_t>(size));
        }
    }
    // Copies to positions that are so many apart. from_step, group_step: between positions and between groups of the source.
    void copy(const char *from, char *to, std::int64_t apart, std::int64_t count, std::int64_t from_step,
              std::int64_t group_step) const {
        if (is_element) {
            copy_of(size, 1, false)(from, to, {1, apart * (pitch / size), 1, count, 1});
            return;
        }
        for (std::int64_t i = 0; i < count; i++, from += from_step, to += apart * pitch) {
            for (std::int64_t done = 0, group = 0; done < size; done += run, group += group_step) {
                std::memcpy(to + done, from + group, static_cast<std::size_t>(run));
            }
        }
    }
};

} // namespace

std::array<PhasesAsChannels::LayerAxis, 3> PhasesAsChannels::axes_of(const Layer &layer,
                                                                     const Strides &y_strides) const {
    std::array<LayerAxis, 3> all;
    const std::size_t missing = all.size() - layer.axes.size();
    for (std::size_t a = 0; a < layer.axes.size(); a++) {
        const Phases &r = layer.axes[a];
        const AxisGeometry &axis = geometry_.axes[a];
        const std::int64_t y_stride = y_strides[geometry_.dimensions().first_axis + a];
        all[missing + a] = is_axis_split(a) ? LayerAxis{r.start(axis), r.q_count, r.count, axis.stride,
                                                        axis.dilation, axis.out,  y_stride}
                                            : LayerAxis{0, axis.out, 1, 1, 1, axis.out, y_stride};
    }
    if (folds()) { // y is dense along channels and w: (phase, channel) are outputs of a longer row
        LayerAxis &w = all.back();
        for (std::int64_t *const scaled : {&w.start, &w.count, &w.stride, &w.out}) *scaled *= geometry_.out_channels;
        w.y_stride = 1;
    }
    return all;
}

// Moves the tensor of a layer into y. It is (n, q of each axis, channel, phase of each axis), dense, of images from
// first_image on.
void PhasesAsChannels::rearrange(const Layer &layer, const char *depth, std::int64_t first_image,
                                 const RunTensors &t) const {
    const std::int64_t size = size_of(geometry_.y_dtype);
    const DimensionOrder at = geometry_.dimensions();
    const std::array<LayerAxis, 3> axes = axes_of(layer, t.y.strides);
    const LayerAxis &d = axes[0], &h = axes[1], &w = axes[2];
    const std::int64_t c_stride = t.y.strides[at.channel], channels = layer.channels * layer.phases(), // of a position
        planes = folds() ? 1 : layer.channels;
    const std::int64_t step = w.stride * w.y_stride,
                       apart = w.dilation * w.y_stride; // between positions; between phases
    const CopyRuns whole_runs = copy_of(size, w.count, apart == 1), a_run = copy_of(size, 0, apart == 1);
    const auto copy = [&](CopyRuns way, const char *from, std::int64_t to, std::int64_t runs, std::int64_t count) {
        way(from, element_at(t.y.data, to, size), {channels, step, apart, runs, count});
    };
    // At these positions all phases are inside y. Those before and after them are cropped.
    const std::int64_t whole_begin = w.q_at(0, 0), whole_end = std::max(w.q_at(w.out, w.count - 1), whole_begin);
    // Few are cropped where the others are in place.
    const Parallel parallel = of_all_axes_ ? settings_.parallel : Parallel();
    parallel.for_each(images_ * d.q_count * h.q_count, [&](std::int64_t row) {
        const std::int64_t qh = row % h.q_count, qd = row / h.q_count % d.q_count,
                           n = first_image + row / h.q_count / d.q_count;
        const char *const from_row = depth + row * w.q_count * channels * size;
        for (std::int64_t c = 0; c < planes; c++) {
            for (std::int64_t rd = 0; rd < d.count; rd++) {
                const std::int64_t od = d.at(qd, rd);
                if (od < 0 || od >= d.out) continue;
                for (std::int64_t rh = 0; rh < h.count; rh++) {
                    const std::int64_t oh = h.at(qh, rh);
                    if (oh < 0 || oh >= h.out) continue;
                    const std::int64_t y_row =
                        n * t.y.strides[0] + (layer.channel + c) * c_stride + od * d.y_stride + oh * h.y_stride;
                    const char *const from = from_row + ((c * d.count + rd) * h.count + rh) * w.count * size;
                    copy(whole_runs, from + whole_begin * channels * size, y_row + w.at(whole_begin, 0) * w.y_stride,
                         whole_end - whole_begin, w.count);
                    for (std::int64_t q = 0; q < w.q_count; q++) {
                        if (q == whole_begin) q = whole_end;
                        if (q >= w.q_count) break;
                        const std::int64_t o = w.at(q, 0), skip = std::max<std::int64_t>(ceil_div(-o, w.dilation), 0),
                                           end = std::min(w.count, ceil_div(w.out - o, w.dilation));
                        if (skip >= end) continue;
                        copy(a_run, from + (q * channels + skip) * size, y_row + o * w.y_stride + skip * apart, 1,
                             end - skip);
                    }
                }
            }
        }
    });
}

// Spreads the tensor of a layer over y, all of which the first layer fills with the bias. The tensor is (n, channel, phase of each
// axis, q of each axis), or channels last (n, q of each axis, group, phase of each axis, channel).
void PhasesAsChannels::spread(const Layer &layer, const char *depth, std::int64_t first_image,
                              const RunTensors &t) const {
    const std::array<LayerAxis, 3> axes = axes_of(layer, t.y.strides);
    const LayerAxis &d = axes[0], &h = axes[1], &w = axes[2];
    const std::int64_t phases = layer.phases(), q_volume = d.q_count * h.q_count * w.q_count,
                       size = size_of(geometry_.y_dtype), all = geometry_.out_channels,
                       of_group = geometry_.out_channels_per_group(), channels = has_planes_ ? all : 1;
    // Groups whose only phase this is lie together.
    const Position position = {has_planes_ ? size : all * size,
                               has_planes_ ? size : (phases == 1 ? all : of_group) * size, w.y_stride * size,
                               has_planes_};
    const std::int64_t of_row = w.out * position.size, c_stride = t.y.strides[geometry_.dimensions().channel];
    const std::int64_t rows_at_once =
                           std::clamp<std::int64_t>(kBytesAtOnce / std::max<std::int64_t>(of_row, 1), 1, h.out),
                       w_at_once = std::max<std::int64_t>(kBytesAtOnce / position.size, 1),
                       parts = ceil_div(h.out, rows_at_once);
    const bool fills = &layer == layers_.data(),
               rows_are_dense = h.y_stride * size == of_row && position.pitch == position.size;
    const auto bias = static_cast<const char *>(bias_.data());
    settings_.parallel.for_each(images_ * channels * d.out * parts, [&](std::int64_t task) {
        const std::int64_t h_begin = task % parts * rows_at_once, h_end = std::min(h_begin + rows_at_once, h.out);
        const std::int64_t rest = task / parts;
        const std::int64_t od = rest % d.out, c = rest / d.out % channels, n = rest / d.out / channels;
        char *const plane =
            element_at(t.y.data, (first_image + n) * t.y.strides[0] + c * c_stride + od * d.y_stride, size);
        const std::int64_t w_step = h_end - h_begin == 1 ? w_at_once : w.out;
        for (std::int64_t w_begin = 0; w_begin < w.out; w_begin += w_step) {
            const std::int64_t w_end = std::min(w_begin + w_step, w.out);
            if (fills && rows_are_dense && h_end - h_begin > 1) {
                position.fill_with(bias + c * size, plane + h_begin * of_row, (h_end - h_begin) * w.out);
            } else if (fills) {
                for (std::int64_t oh = h_begin; oh < h_end; oh++) {
                    position.fill_with(bias + c * size, plane + oh * h.y_stride * size + w_begin * position.pitch,
                                       w_end - w_begin);
                }
            }
            d.each(od, od + 1, [&](std::int64_t qd, std::int64_t rd, std::int64_t) {
                h.each(h_begin, h_end, [&](std::int64_t qh, std::int64_t rh, std::int64_t oh) {
                    char *const row = plane + oh * h.y_stride * size;
                    const std::int64_t q = (qd * h.q_count + qh) * w.q_count;
                    for (std::int64_t rw = 0; rw < w.count; rw++) {
                        const std::int64_t r = (rd * h.count + rh) * w.count + rw, q_begin = w.q_at(w_begin, rw),
                                           q_end = w.q_at(w_end, rw);
                        if (q_begin == q_end) continue;
                        const std::int64_t from = has_planes_
                                                      ? ((n * all + c) * phases + r) * q_volume + q + q_begin
                                                      : (n * q_volume + q + q_begin) * all * phases + r * of_group;
                        position.copy(depth + from * size, row + w.at(q_begin, rw) * position.pitch, w.stride,
                                      q_end - q_begin, all * phases * size, of_group * phases * size);
                    }
                });
            });
        }
    });
}

} // namespace convtranspose
