// Runs of Winograd's algorithm: its strips, and calls of the kernels that transform x and y.
#include <algorithm>
#include <cstring>

#include "algorithms/winograd/winograd.h"
#include "kernels/halide_buffer.h"

namespace convtranspose {

namespace {

// Returns the stride along w of a tensor with channels last. If there is one spatial axis, it is h.
std::int64_t stride_of_w(const Strides &strides) { return strides.size() > 3 ? strides[2] : 0; }

} // namespace

Status Winograd::run(const RunTensors &t, char *workspace) const {
    const std::int64_t count = strips_ * (geometry_.batch / images_);
    return for_each_task(count, workspace, [&](std::int64_t task, char *own_workspace) {
        const std::int64_t first = task % strips_ * tiles_of_strip_;
        const Strip strip = {task / strips_ * images_, first, std::min(tiles_of_strip_, h_.tiles - first)};
        return run_strip(strip, t, own_workspace);
    });
}

Status Winograd::run_strip(const Strip &strip, const RunTensors &t, char *workspace) const {
    char *const transformed = workspace, *const of_phases = transformed + transformed_bytes_;
    transform_input(strip, t, transformed);
    const Parallel parallel = phases_at_once_ > 1 ? threads_ : Parallel();
    const auto count = static_cast<std::int64_t>(layers_.size());
    return run_by(parallel, phases_at_once_, count, [&](std::int64_t i, std::int64_t worker) {
        const Layer &layer = layers_[static_cast<std::size_t>(i)];
        return run_layer(strip, layer, t, transformed, of_phases + worker * bytes_of_phase());
    });
}

Status Winograd::run_layer(const Strip &strip, const Layer &layer, const RunTensors &t, const char *transformed,
                           char *workspace) const {
    const Phase &h = layer.h, &w = layer.w;
    if (h.positions <= 2 * strip.first_tile || w.positions <= 0) return Status();
    const std::int64_t positions_here = positions(strip.tiles), of_entry = positions_here * pitch() * size_;
    char *const products = workspace + layer_bytes_;
    RunTensors own;
    own.x_strides = {positions_here * pitch(), pitch(), 1};
    own.y_strides = {positions_here * geometry_.out_channels, geometry_.out_channels, 1};
    const auto &plans = strip.tiles == tiles_of_strip_ ? layer.products : layer.rest;
    const std::size_t of_w = w.entries.size(), weights_w = w.count > 1 ? of_w : 1;
    for (std::size_t kh = 0; kh < h.entries.size(); kh++) {
        for (std::size_t kw = 0; kw < of_w; kw++) {
            const auto entry =
                static_cast<std::int64_t>(h.entries[kh]) * w_.entry_count() + static_cast<std::int64_t>(w.entries[kw]);
            const auto product = static_cast<std::int64_t>(kh * of_w + kw);
            own.x = transformed + entry * of_entry;
            own.y = products + product * product_stride() * size_;
            const std::size_t plan = (h.count > 1 ? kh : 0) * weights_w + (w.count > 1 ? kw : 0);
            TRY(plans[plan]->run(own, workspace));
        }
    }
    transform_output(strip, layer, products, t);
    return Status();
}

void Winograd::transform_input(const Strip &strip, const RunTensors &t, char *transformed) const {
    const bool has_w = geometry_.axes.size() > 1;
    const std::int64_t position = pitch(), of_row = w_.tiles * position, of_entry = positions(strip.tiles) * position;
    const auto entries_of = [](const Axis &axis) {
        return table_buffer(axis.entries.data(), axis.entry_count(), kEntryColumns);
    };
    if (volume(geometry_.x_shape) == 0) {
        std::memset(transformed, 0, static_cast<std::size_t>(transformed_bytes_));
        return;
    }
    // Threads that share the strip take parts of it.
    const Parallel parallel = workers_ > 1 ? Parallel() : threads_;
    const std::int64_t parts = std::min<std::int64_t>(parallel.threads, strip.tiles);
    parallel.for_each(images_ * parts, [&](std::int64_t index) {
        const std::int64_t image = index / parts, part = index % parts, begin = strip.tiles * part / parts,
                           end = strip.tiles * (part + 1) / parts;
        Buffer<3> x(element_at(t.x, (strip.first_image + image) * t.x_strides[0], size_), type_of(geometry_.dtype),
                    {{geometry_.in_channels, 1},
                     {has_w ? geometry_.axes.back().in : 1, stride_of_w(t.x_strides)},
                     {geometry_.axes.front().in, t.x_strides[1]}});
        Buffer<2> entries_h = entries_of(h_), entries_w = entries_of(w_);
        Buffer<5> to(transformed + (image * strip.tiles + begin) * of_row * size_, type_of(geometry_.dtype),
                     {{geometry_.in_channels, 1},
                      {w_.tiles, position},
                      {end - begin, of_row},
                      {w_.entry_count(), of_entry},
                      {h_.entry_count(), of_entry * w_.entry_count()}});
        input_(&x.raw, &entries_w.raw, &entries_h.raw, w_.first,
               h_.first + static_cast<std::int32_t>(2 * (strip.first_tile + begin)), &to.raw);
    });
}

// Divides each axis into at most two parts: tiles of which y has both outputs, and a tile of which y has only the first.
void Winograd::transform_output(const Strip &strip, const Layer &layer, const char *products,
                                const RunTensors &t) const {
    const std::int64_t channels = geometry_.out_channels, of_row = w_.tiles * channels, of_image = strip.tiles * of_row;
    const auto of_w = static_cast<std::int64_t>(layer.w.entries.size()),
               of_h = static_cast<std::int64_t>(layer.h.entries.size());
    struct Part {
        std::int64_t tile, tiles, outputs;
    };
    const auto parts = [](const Phase &r, std::int64_t first, std::int64_t tiles) {
        const int outputs = r.outputs();
        const std::int64_t left = std::min(r.positions - outputs * first, outputs * tiles), whole = left / outputs;
        return std::array<Part, 2>{Part{0, whole, outputs}, Part{whole, left % outputs, 1}};
    };
    const auto parts_h = parts(layer.h, strip.first_tile, strip.tiles), parts_w = parts(layer.w, 0, w_.tiles);
    const std::int64_t y_h = t.y_strides[1], y_w = stride_of_w(t.y_strides);
    settings_.parallel.for_each(images_, [&](std::int64_t image) {
        char *const y = element_at(t.y, (strip.first_image + image) * t.y_strides[0], size_);
        for (const Part &h : parts_h) {
            for (const Part &w : parts_w) {
                if (h.tiles == 0 || w.tiles == 0) continue;
                Buffer<5> from(products + (image * of_image + h.tile * of_row + w.tile * channels) * size_,
                               type_of(geometry_.dtype),
                               {{channels, 1},
                                {w.tiles, channels},
                                {h.tiles, of_row},
                                {of_w, product_stride()},
                                {of_h, product_stride() * of_w}});
                const std::int64_t outputs_h = layer.h.outputs(), outputs_w = layer.w.outputs(),
                                   q_h = outputs_h * (strip.first_tile + h.tile), q_w = outputs_w * w.tile,
                                   at = (q_h * h_.stride + layer.h.number) * y_h +
                                        (q_w * w_.stride + layer.w.number) * y_w;
                Buffer<5> to(y + at * size_, type_of(geometry_.dtype),
                             {{channels, 1},
                              {w.outputs, w_.stride * y_w},
                              {w.tiles, outputs_w * w_.stride * y_w},
                              {h.outputs, h_.stride * y_h},
                              {h.tiles, outputs_h * h_.stride * y_h}});
                layer.output(&from.raw, &to.raw);
            }
        }
    });
}

} // namespace convtranspose
