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
// Estimates are not that exact; those of bf16 that is multiplied as such are of the same kernels in both layouts.
constexpr double kGain = 0.75, kGainOfMatrices = 0.85;
// Of transposing an element: by tiles; the same from or to memory further away than kNear, also with all channels of a position
// in few sets of the first-level cache; and of few channels or positions.
constexpr double kCyclesPerElement = 0.5, kCyclesFromFar = 0.7, kCyclesOfFewSets = 1.3, kCyclesOfFew = 1.5;
constexpr double kFarFirstOnIntel = 3;  // times as long, of layers with channels first: 3.3 to 5.5 on Granite Rapids
constexpr std::int64_t kFewSets = 4096; // planes of a multiple of so many bytes
constexpr double kNear = 1 << 20;       // bytes
constexpr double kCyclesPerTransposition = 500;

convt_layout other(convt_layout layout) {
    return layout == CONVT_CHANNELS_LAST ? CONVT_CHANNELS_FIRST : CONVT_CHANNELS_LAST;
}

// layout: of the layer whose x or y it is.
double cycles_to_transpose(const Shape &shape, convt_layout layout, std::int64_t channels, convt_dtype dtype) {
    if (channels == 1) return 0; // the layouts are one
    const std::int64_t positions = volume(shape) / (shape[0] * channels);
    const auto elements = static_cast<double>(volume(shape));
    const auto size = static_cast<std::int64_t>(convt_dtype_size(dtype));
    const bool near = elements * static_cast<double>(size) <= kNear;
    const double each = std::min(channels, positions) < kCopyTile ? kCyclesOfFew
                        : near                                    ? kCyclesPerElement
                        : positions * size % kFewSets == 0        ? kCyclesOfFewSets
                                                                  : kCyclesFromFar;
    const bool slower = !near && layout == CONVT_CHANNELS_FIRST && cycles_per_load() > 0;
    return kCyclesPerTransposition + each * elements * (slower ? kFarFirstOnIntel : 1);
}

} // namespace

OtherLayout::OtherLayout(const Geometry &geometry, const PlanSettings &settings)
    : geometry_(geometry), inner_(geometry), settings_(settings) {
    inner_.post_ops = {};
    inner_.layout = other(geometry.layout);
    move_channels(&inner_.x_shape, inner_.layout);
    move_channels(&inner_.y_shape, inner_.layout);
    settings_.keeps_layout = true;
    const bool bf16 = geometry.dtype == CONVT_BF16;
    copy_ = find_copy(bf16 ? settings.isa : isa_of_floats(settings.isa), CopyOrder::kTransposed,
                      bf16 ? Arithmetic::kBf16 : Arithmetic::kFloat, geometry.dtype, 1);
}

std::string OtherLayout::summary() const {
    return concat("as a layer with channels ", inner_.layout == CONVT_CHANNELS_LAST ? "last" : "first",
                  ", x and y transposed (other_layout)");
}

Status OtherLayout::create(const MethodRequest &request, MadeMethod *made) {
    const Geometry &geometry = request.geometry;
    // Copies of f16 are of the sums' type, as are those of bf16 for ISAs that do not multiply it.
    const bool copied = !geometry.quantized() && geometry.dtype != CONVT_F16;
    const auto size = static_cast<std::int64_t>(convt_dtype_size(geometry.dtype));
    if (!copied || request.settings.keeps_layout || geometry.y_order != YOrder::kLayout || geometry.axes.size() > 3) {
        return Status();
    }
    const std::int64_t elements = volume(geometry.x_shape) + volume(geometry.y_shape);
    if (volume(geometry.x_shape) == 0 || volume(geometry.y_shape) == 0 || elements > kMostBytes / size) return Status();
    std::unique_ptr<OtherLayout> own(new OtherLayout(geometry, request.settings));
    if (!own->copy_.any) return Status();
    const double transposing =
        cycles_to_transpose(geometry.x_shape, geometry.layout, geometry.in_channels, geometry.dtype) +
        cycles_to_transpose(geometry.y_shape, geometry.layout, geometry.out_channels, geometry.dtype);
    const double gain = geometry.dtype == CONVT_BF16 ? kGainOfMatrices : kGain;
    if (!(transposing < gain * request.most)) return Status();
    made->cost = transposing + least_cost(own->inner_, request.settings.isa);
    if (!(made->cost < gain * request.most)) return Status();
    Status status = LayerPlan::create(own->inner_, own->settings_, nullptr, request.w, request.b, &own->layer_);
    if (!status) return status;
    own->plan_workspace();
    made->method = std::move(own);
    return Status();
}

Status OtherLayout::reshape(const Geometry &geometry, std::unique_ptr<Method> *made) const {
    std::unique_ptr<OtherLayout> own(new OtherLayout(geometry, settings_));
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

Status OtherLayout::run(const RunTensors &t, char *workspace) const {
    char *const x = workspace + layer_bytes_, *const y = x + x_bytes_;
    RunTensors own;
    own.x = t.x;
    if (!is_in_both(geometry_.in_channels, t.x_strides, &own.x_strides)) {
        own.x = x;
        own.x_strides = dense_strides(inner_.x_shape);
        transpose(geometry_.x_shape, geometry_.layout, t.x, t.x_strides, x, own.x_strides);
    }
    own.y = t.y;
    const bool in_both = is_in_both(geometry_.out_channels, t.y_strides, &own.y_strides);
    if (!in_both) {
        own.y = y;
        own.y_strides = dense_strides(inner_.y_shape);
    }
    if (Status status = layer_->run(own, workspace); !status) return status;
    if (!in_both) transpose(inner_.y_shape, inner_.layout, y, own.y_strides, t.y, t.y_strides);
    return Status();
}

// Whether a tensor of this layout is one of the other too, as those of a single channel are if what is innermost there has no
// gaps; moved: its strides then.
bool OtherLayout::is_in_both(std::int64_t channels, const Strides &strides, Strides *moved) const {
    if (channels != 1) return false;
    *moved = strides;
    move_channels(moved, inner_.layout);
    if (inner_.layout == CONVT_CHANNELS_LAST) *(moved->end() - 1) = 1; // of one channel
    return moved->back() == 1;
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
