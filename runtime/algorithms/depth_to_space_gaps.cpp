// How depth_to_space writes y where no tap reaches some of its phases: a piece of y that fits in a near cache is filled with the
// bias, and what taps computed is spread over it at once.
#include <algorithm>
#include <array>
#include <cstring>

#include "algorithms/copy_runs.h"
#include "algorithms/depth_to_space.h"
#include "base/division.h"

namespace convtranspose {

namespace {

constexpr std::int64_t kAtOnce = 8192; // bytes of y that are filled before values are spread over them

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

Status DepthToSpace::make_bias(const void *b) {
    if (b) return copy_block(settings_.allocator, b, geometry_.b_bytes(), "biases", &bias_);
    Status status = get_block(settings_.allocator, geometry_.b_bytes(), "biases", &bias_);
    if (status) std::memset(bias_.data(), 0, bias_.size());
    return status;
}

// Spreads the tensor of a layer over y, all of which the first layer fills with the bias. The tensor is (n, channel, phase of each
// axis, q of each axis), or channels last (n, q of each axis, group, phase of each axis, channel).
void DepthToSpace::spread(const Layer &layer, const char *depth, std::int64_t first_image, const RunTensors &t) const {
    const std::array<LayerAxis, 3> axes = axes_of(layer, t.y_strides);
    const LayerAxis &d = axes[0], &h = axes[1], &w = axes[2];
    const std::int64_t phases = layer.phases(), q_volume = d.q_count * h.q_count * w.q_count,
                       size = size_of(geometry_.y_dtype), all = geometry_.out_channels,
                       of_group = geometry_.out_channels_per_group(), channels = has_planes_ ? all : 1;
    // Groups whose only phase this is lie together.
    const Position position = {has_planes_ ? size : all * size,
                               has_planes_ ? size : (phases == 1 ? all : of_group) * size, w.y_stride * size,
                               has_planes_};
    const std::int64_t of_row = w.out * position.size, c_stride = t.y_strides[geometry_.dimensions().channel];
    const std::int64_t rows_at_once = std::clamp<std::int64_t>(kAtOnce / std::max<std::int64_t>(of_row, 1), 1, h.out),
                       w_at_once = std::max<std::int64_t>(kAtOnce / position.size, 1),
                       parts = ceil_div(h.out, rows_at_once);
    const bool fills = &layer == layers_.data(),
               rows_are_dense = h.y_stride * size == of_row && position.pitch == position.size;
    const auto bias = static_cast<const char *>(bias_.data());
    const auto tasks = static_cast<std::size_t>(images_ * channels * d.out * parts);
    settings_.parallel.for_each(tasks, [&](std::size_t task) {
        auto rest = static_cast<std::int64_t>(task);
        const std::int64_t h_begin = rest % parts * rows_at_once, h_end = std::min(h_begin + rows_at_once, h.out);
        rest /= parts;
        const std::int64_t od = rest % d.out, c = rest / d.out % channels, n = rest / d.out / channels;
        char *const plane =
            static_cast<char *>(t.y) + ((first_image + n) * t.y_strides[0] + c * c_stride + od * d.y_stride) * size;
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
