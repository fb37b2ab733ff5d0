#include "other_layout.h"

#include <algorithm>
#include <array>
#include <utility>

#include "candidates.h"
#include "core_parts.h"
#include "error.h"
#include "kernel_tables.h"

namespace convtranspose {

namespace {

constexpr std::int64_t kMostBytes = 128 << 20; // of x and y together, which are both in the workspace
constexpr double kGain = 0.65;                 // estimates are not that exact
constexpr double kCyclesPerElement = 1;        // of transposing
constexpr double kCyclesPerPosition = 20;      // of storing sixteen channels of one, or fewer
constexpr double kCyclesPerTransposition = 500;

convt_layout other(convt_layout layout) {
    return layout == CONVT_CHANNELS_LAST ? CONVT_CHANNELS_FIRST : CONVT_CHANNELS_LAST;
}

} // namespace

OtherLayout::OtherLayout(const Geometry &geometry, const PlanSettings &settings)
    : geometry_(geometry), inner_(geometry), settings_(settings) {
    inner_.post_ops = {};
    inner_.layout = other(geometry.layout);
    move_channels(&inner_.x_shape, inner_.layout);
    move_channels(&inner_.y_shape, inner_.layout);
    settings_.keeps_layout = true;
    copy_ = find_copy(isa_of_floats(settings.isa), CopyOrder::kTransposed, Arithmetic::kFloat, geometry.dtype, 1);
}

Status OtherLayout::create(const Geometry &geometry, const PlanSettings &settings, const void *w, const void *b,
                           double cost, std::unique_ptr<OtherLayout> *made) {
    made->reset();
    // Copies of shorter types are of the sums' type.
    const bool copied = (geometry.dtype == CONVT_F32 || geometry.dtype == CONVT_F64) && !settings.sums_in_f16;
    const auto size = static_cast<std::int64_t>(convt_dtype_size(geometry.dtype));
    if (!copied || settings.keeps_layout || geometry.y_order != YOrder::kLayout || geometry.axes.size() > 3) {
        return Status();
    }
    const std::int64_t elements = volume(geometry.x_shape) + volume(geometry.y_shape);
    if (volume(geometry.x_shape) == 0 || volume(geometry.y_shape) == 0 || elements > kMostBytes / size) return Status();
    std::unique_ptr<OtherLayout> own(new OtherLayout(geometry, settings));
    if (!own->copy_) return Status();
    const bool last = geometry.layout == CONVT_CHANNELS_LAST; // then y is what is stored so
    const double stored = static_cast<double>(volume(last ? geometry.y_shape : geometry.x_shape));
    const std::int64_t together = std::min<std::int64_t>(last ? geometry.out_channels : geometry.in_channels, 16);
    own->cost_ = kCyclesPerElement * static_cast<double>(elements) +
                 kCyclesPerPosition * stored / static_cast<double>(together) + 2 * kCyclesPerTransposition;
    if (!(own->cost_ < kGain * cost)) return Status();
    own->cost_ += least_cost(own->inner_, settings.isa);
    if (!(own->cost_ < kGain * cost)) return Status();
    Status status = LayerPlan::create(own->inner_, own->settings_, nullptr, w, b, &own->layer_);
    if (!status) return status;
    own->plan_workspace();
    *made = std::move(own);
    return Status();
}

Status OtherLayout::reshape(const Geometry &geometry, std::unique_ptr<OtherLayout> *made) const {
    std::unique_ptr<OtherLayout> own(new OtherLayout(geometry, settings_));
    own->cost_ = cost_;
    if (Status status = layer_->reshape(own->inner_, &own->layer_); !status) return status;
    own->plan_workspace();
    *made = std::move(own);
    return Status();
}

void OtherLayout::plan_workspace() {
    const std::uint64_t size = convt_dtype_size(geometry_.dtype);
    layer_bytes_ = round_up(layer_->workspace_bytes());
    x_bytes_ = round_up(static_cast<std::uint64_t>(volume(geometry_.x_shape)) * size);
    y_bytes_ = round_up(static_cast<std::uint64_t>(volume(geometry_.y_shape)) * size);
}

Status OtherLayout::run(const RunTensors &t, void *workspace) const {
    char *const x = static_cast<char *>(workspace) + layer_bytes_, *const y = x + x_bytes_;
    RunTensors own;
    own.x = x;
    own.x_strides = dense_strides(inner_.x_shape);
    own.y = y;
    own.y_strides = dense_strides(inner_.y_shape);
    transpose(geometry_.x_shape, geometry_.layout, t.x, t.x_strides, x, own.x_strides);
    if (Status status = layer_->run(own, workspace); !status) return status;
    transpose(inner_.y_shape, inner_.layout, y, own.y_strides, t.y, t.y_strides);
    return Status();
}

// shape: in from_layout, as are from_strides; to_strides: in the other.
void OtherLayout::transpose(const Shape &shape, convt_layout from_layout, const void *from, const Strides &from_strides,
                            void *to, const Strides &to_strides) const {
    const bool from_last = from_layout == CONVT_CHANNELS_LAST;
    const std::size_t rank = shape.size(), last = rank - 1;
    struct Axis {
        std::int64_t extent = 1, from = 0, to = 0;
    };
    const Axis n = {shape[0], from_strides[0], to_strides[0]};
    const Axis channels = from_last ? Axis{shape[last], from_strides[last], to_strides[1]}
                                    : Axis{shape[1], from_strides[1], to_strides[last]};
    std::array<Axis, 3> axes; // w, h, d
    for (std::size_t a = 0; a + 2 < rank; a++) {
        const std::size_t first = last - a, second = last - a - 1; // where channels are first, and last
        axes[a] = from_last ? Axis{shape[second], from_strides[second], to_strides[first]}
                            : Axis{shape[first], from_strides[first], to_strides[second]};
    }
    for (int a = 0; a < 2; a++) { // rows without gaps between them are one
        Axis &w = axes[0], &h = axes[1];
        if (h.extent == 1 || (h.from == w.from * w.extent && h.to == w.to * w.extent)) {
            w.extent *= h.extent;
            h = std::exchange(axes[2], Axis());
        }
    }
    // Along the kernel's w the copy is dense, along its c1 x is.
    const Axis &dense_to = from_last ? axes[0] : channels, &dense_from = from_last ? channels : axes[0];
    const std::array<Axis, 7> dims = {Axis(),     dense_to, axes[1], axes[2],
                                      dense_from, Axis(),   n}; // c0, w, h, d, c1, g, n
    CopyBox box;
    for (std::size_t d = 0; d < dims.size(); d++) {
        box.extents[d] = dims[d].extent;
        box.from[d] = dims[d].from;
        box.to[d] = dims[d].to;
    }
    const halide_type_t type = type_of(geometry_.dtype);
    run_copy(copy_, box, {from, type}, {to, type}, {}, settings_.parallel);
}

} // namespace convtranspose
