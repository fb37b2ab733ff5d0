#include "layer_plan.h"

#include <algorithm>
#include <cstring>

#include "error.h"
#include "half.h"
#include "shape.h"

namespace convtranspose {

namespace {

std::size_t count(const Shape &shape) {
    std::size_t n = 1;
    for (const std::int64_t extent : shape) n *= static_cast<std::size_t>(extent);
    return n;
}

// Advances `at` as a number whose digits run below `extents`; false after the last.
bool next(const std::vector<std::int64_t> &extents, std::vector<std::int64_t> *at) {
    for (std::size_t i = extents.size(); i-- > 0;) {
        if (++(*at)[i] < extents[i]) return true;
        (*at)[i] = 0;
    }
    return false;
}

// Copies a dense tensor to one with gaps.
void copy(const Shape &shape, std::size_t size, const char *from, void *to, const std::vector<std::int64_t> &strides) {
    std::vector<std::int64_t> at(shape.size(), 0);
    do {
        std::int64_t offset = 0;
        for (std::size_t d = 0; d < shape.size(); d++) offset += at[d] * strides[d];
        std::memcpy(static_cast<char *>(to) + offset * static_cast<std::int64_t>(size), from, size);
        from += size;
    } while (next(shape, &at));
}

// Rounds sums to y's type, the only rounding there is.
void finish(convt_dtype dtype, double sum, void *y) {
    switch (dtype) {
    case CONVT_F16: *static_cast<F16 *>(y) = to_f16(static_cast<float>(sum)); break;
    case CONVT_BF16: *static_cast<Bf16 *>(y) = to_bf16(static_cast<float>(sum)); break;
    case CONVT_F32: *static_cast<float *>(y) = static_cast<float>(sum); break;
    case CONVT_F64: *static_cast<double *>(y) = sum; break;
    }
}

double load(convt_dtype dtype, const void *p) {
    switch (dtype) {
    case CONVT_F16: return static_cast<double>(static_cast<float>(*static_cast<const F16 *>(p)));
    case CONVT_BF16: return static_cast<double>(static_cast<float>(*static_cast<const Bf16 *>(p)));
    case CONVT_F32: return static_cast<double>(*static_cast<const float *>(p));
    case CONVT_F64: break;
    }
    return *static_cast<const double *>(p);
}

const char *family_rule(Family family) {
    switch (family) {
    case Family::kReference: return "any problem, one element at a time";
    case Family::kChannels: return "vectors along the output channels";
    case Family::kWide: return "vectors along rows, weights broadcast";
    case Family::kFew: return "vectors along rows, one load of x for all residues";
    case Family::kDepthwise: return "one input channel per group";
    }
    return "";
}

} // namespace

LayerPlan::LayerPlan(const Geometry &geometry, const PlanSettings &settings)
    : geometry_(geometry), settings_(settings) {
    leading_ = geometry.axes.size() > 3 ? geometry.axes.size() - 3 : 0;
    core_geometry_ = geometry;
    core_geometry_.axes.erase(core_geometry_.axes.begin(),
                              core_geometry_.axes.begin() + static_cast<std::ptrdiff_t>(leading_));
    problem_ = core_problem(core_geometry_, leading_ ? sum_dtype(geometry.dtype) : geometry.dtype, true);
}

std::int64_t LayerPlan::leading_elements() const {
    std::int64_t n = 1;
    for (std::size_t a = 0; a < leading_; a++) n *= geometry_.axes[a].kernel;
    return n;
}

Status LayerPlan::choose(bool may_be_infinite, const Packed *packed) {
    problem_.may_be_infinite = may_be_infinite;
    candidates_ = convtranspose::candidates(problem_, settings_.isa);
    const Candidate *best = nullptr;
    for (Candidate &c : candidates_) {
        const Variant &v = *c.variant;
        if (c.refusal.empty() && packed && v.family != Family::kReference) {
            const PackedLayout wanted = packing_of(v);
            if (wanted.oc_tile != packed->layout.oc_tile || wanted.group_tile != packed->layout.group_tile) {
                c.refusal = "weights are packed otherwise";
            }
        }
        if (!settings_.variant.empty()) {
            if (settings_.variant != v.name) continue;
            if (!c.refusal.empty()) {
                return Status(CONVT_UNSUPPORTED, concat("variant ", v.name, " on ", isa_name(v.isa),
                                                        " cannot run this problem: ", c.refusal));
            }
        }
        if (c.refusal.empty() && (!best || c.cost < best->cost)) best = &c;
    }
    if (!best) {
        return Status(CONVT_UNSUPPORTED,
                      concat("variant ", settings_.variant, " is not built for ", isa_name(settings_.isa)));
    }
    reason_ = !settings_.variant.empty() ? "asked for by name"
              : best->variant->family == Family::kReference
                  ? "no other variant can"
                  : concat("least estimated cost; ", family_rule(best->variant->family));
    core_ = Core(problem_, *best, settings_.parallel.threads, packed ? &packed->layout : nullptr);
    return Status();
}

void LayerPlan::finish_planning() {
    std::size_t core_bytes = core_.workspace_bytes();
    run_packed_bytes_ = 0;
    if (weights_at_run_time()) {
        run_packed_bytes_ = core_.packed_bytes() * static_cast<std::size_t>(leading_elements());
        if (core_.variant().family != Family::kReference && problem_.reads_outside()) {
            const auto reference = std::find_if(candidates_.begin(), candidates_.end(), [](const Candidate &c) {
                return c.refusal.empty() && c.variant->family == Family::kReference;
            });
            exact_ = std::make_unique<Core>(problem_, *reference, settings_.parallel.threads, &core_.packed_layout());
            core_bytes = std::max(core_bytes, exact_->workspace_bytes());
        }
        packed_bytes_ = 0;
    } else {
        packed_bytes_ = packed_->block.size();
    }
    const bool planar = core_.variant().family != Family::kReference && core_.variant().store == Store::kPlanar;
    dense_y_bytes_ = 0;
    if (!leading_ && planar && geometry_.layout == CONVT_CHANNELS_LAST) {
        dense_y_bytes_ = round_up(count(geometry_.y_shape) * convt_dtype_size(geometry_.dtype));
    }
    partial_bytes_ = 0;
    if (leading_) {
        // One position of the leading axes: what a core computes, and the sum of those.
        Shape inner = {core_geometry_.batch, core_geometry_.out_channels};
        for (const AxisGeometry &a : core_geometry_.axes) inner.push_back(a.out);
        partial_bytes_ =
            round_up(count(inner) * convt_dtype_size(problem_.y_dtype)) + round_up(count(inner) * sizeof(double));
    }
    core_workspace_bytes_ = round_up(core_bytes);
    workspace_bytes_ = core_workspace_bytes_ + round_up(run_packed_bytes_) + partial_bytes_ + dense_y_bytes_;
}

Status LayerPlan::create(const Geometry &geometry, const PlanSettings &settings, const void *w, const void *b,
                         std::unique_ptr<LayerPlan> *plan) {
    std::unique_ptr<LayerPlan> p(new LayerPlan(geometry, settings));
    Status status = p->choose(false, nullptr);
    if (!status) return status;
    if (w) {
        auto packed = std::make_shared<Packed>();
        packed->layout = p->core_.packed_layout();
        const std::size_t bytes = p->core_.packed_bytes() * static_cast<std::size_t>(p->leading_elements());
        packed->block = Block(settings.allocator, bytes);
        if (!packed->block) {
            return Status(CONVT_OUT_OF_MEMORY, concat("no memory for ", bytes, " bytes of packed weights"));
        }
        packed->finite = p->pack(p->core_, w, b, packed->block.data());
        if (!packed->finite) {
            status = p->choose(true, packed.get());
            if (!status) return status;
        }
        for (std::int64_t m = 0; b && p->leading_ && m < geometry.out_channels; m++) {
            packed->bias.push_back(
                load(geometry.dtype,
                     static_cast<const char *>(b) + static_cast<std::size_t>(m) * convt_dtype_size(geometry.dtype)));
        }
        p->packed_ = std::move(packed);
    }
    p->finish_planning();
    *plan = std::move(p);
    return Status();
}

Status LayerPlan::reshape(const Geometry &geometry, std::unique_ptr<LayerPlan> *plan) const {
    std::unique_ptr<LayerPlan> p(new LayerPlan(geometry, settings_));
    // The variant that fits best may be another now, if it reads the weights as they are packed.
    const bool may_be_infinite = packed_ && !packed_->finite;
    Status status = p->choose(may_be_infinite, packed_.get());
    if (!status || p->core_.variant().family == Family::kReference) {
        // Of a single position, the node's own stride leaves more variants than the one that spares multiplies.
        p->problem_ = core_problem(p->core_geometry_, p->problem_.y_dtype, false);
        status = p->choose(may_be_infinite, packed_.get());
    }
    if (!status) return status;
    p->packed_ = packed_;
    p->finish_planning();
    *plan = std::move(p);
    return Status();
}

const std::string &LayerPlan::explanation() const {
    std::call_once(explained_, [this] { explanation_ = explain(*this); });
    return explanation_;
}

bool LayerPlan::pack(const Core &core, const void *w, const void *b, void *packed) const {
    // Strides of dense (C, M/group, K1..Kn).
    const Shape &shape = geometry_.w_shape;
    const std::vector<std::int64_t> strides = dense_strides(shape);
    WeightsView view;
    view.c = strides[0];
    view.m = strides[1];
    const std::size_t axes = core_geometry_.axes.size();
    for (std::size_t a = 0; a < axes; a++) view.k[a] = strides[strides.size() - 1 - a];

    bool finite = true;
    const std::vector<std::int64_t> extents(shape.begin() + 2,
                                            shape.begin() + 2 + static_cast<std::ptrdiff_t>(leading_));
    std::vector<std::int64_t> at(leading_, 0);
    char *to = static_cast<char *>(packed);
    do {
        std::int64_t offset = 0;
        for (std::size_t a = 0; a < leading_; a++) offset += at[a] * strides[2 + a];
        view.data =
            static_cast<const char *>(w) + offset * static_cast<std::int64_t>(convt_dtype_size(geometry_.dtype));
        // With leading axes the bias is added once, when their taps have been summed.
        finite &= core.pack(view, leading_ ? nullptr : b, to);
        to += core.packed_bytes();
    } while (next(extents, &at));
    return finite;
}

TensorStrides LayerPlan::core_strides(const std::vector<std::int64_t> &strides) const {
    TensorStrides s;
    const bool channels_last = geometry_.layout == CONVT_CHANNELS_LAST;
    s.n = strides.front();
    s.c = channels_last ? strides.back() : strides[1];
    const std::size_t last = strides.size() - (channels_last ? 2 : 1);
    for (std::size_t a = 0; a < core_geometry_.axes.size(); a++) s.axes[a] = strides[last - a];
    return s;
}

Status LayerPlan::run(const void *x, const std::vector<std::int64_t> &x_strides, const void *w, const void *b, void *y,
                      const std::vector<std::int64_t> &y_strides, void *workspace) const {
    if (count(geometry_.y_shape) == 0) return Status();

    Block block;
    if (!workspace && workspace_bytes_) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (!free_workspaces_.empty()) {
                block = std::move(free_workspaces_.back());
                free_workspaces_.pop_back();
            }
        }
        if (!block) block = Block(settings_.allocator, workspace_bytes_);
        if (!block) {
            return Status(CONVT_OUT_OF_MEMORY, concat("no memory for ", workspace_bytes_, " bytes of workspace"));
        }
        workspace = block.data();
    }
    char *const base = static_cast<char *>(workspace);
    const Core *core = &core_;
    const void *packed = packed_ ? packed_->block.data() : nullptr;
    if (!packed_) {
        if (!pack(*core, w, b, base) && exact_) core = exact_.get();
        packed = base;
    }
    char *const core_workspace = base + round_up(run_packed_bytes_);
    if (leading_) {
        run_leading(*core, x, x_strides, packed, b, y, y_strides, core_workspace);
    } else {
        const TensorStrides from = core_strides(x_strides), to = core_strides(y_strides);
        if (dense_y_bytes_ && to.axes[0] != 1 && geometry_.y_shape[geometry_.y_shape.size() - 2] > 1) {
            char *const dense = core_workspace + core_workspace_bytes_;
            core->run(x, from, packed, dense, core_strides(dense_strides(geometry_.y_shape)), core_workspace,
                      settings_.parallel);
            copy(geometry_.y_shape, convt_dtype_size(geometry_.dtype), dense, y, y_strides);
        } else {
            core->run(x, from, packed, y, to, core_workspace, settings_.parallel);
        }
    }
    if (block) {
        const std::lock_guard<std::mutex> lock(mutex_);
        free_workspaces_.push_back(std::move(block));
    }
    return Status();
}

// Each position of the leading axes is the sum, over the taps of those, of a core's results.
void LayerPlan::run_leading(const Core &core, const void *x, const std::vector<std::int64_t> &x_strides,
                            const void *packed, const void *b, void *y, const std::vector<std::int64_t> &y_strides,
                            char *workspace) const {
    const bool channels_last = geometry_.layout == CONVT_CHANNELS_LAST;
    const std::size_t first_axis = channels_last ? 1 : 2; // of the leading axes in x and y
    const TensorStrides from = core_strides(x_strides);
    const auto size = static_cast<std::int64_t>(convt_dtype_size(geometry_.dtype));

    // The partial result, dense in y's layout; the sums, in the same order.
    Shape inner = {core_geometry_.batch};
    if (!channels_last) inner.push_back(core_geometry_.out_channels);
    for (const AxisGeometry &a : core_geometry_.axes) inner.push_back(a.out);
    if (channels_last) inner.push_back(core_geometry_.out_channels);
    const TensorStrides partial_strides = core_strides(dense_strides(inner));
    const std::size_t elements = count(inner), channel = channels_last ? inner.size() - 1 : 1;
    char *const partial = workspace + round_up(core_workspace_bytes_);
    auto *const total = reinterpret_cast<double *>(partial + round_up(elements * convt_dtype_size(problem_.y_dtype)));

    std::vector<std::int64_t> out_extents, at(leading_, 0), tap_extents(leading_), tap(leading_);
    for (std::size_t a = 0; a < leading_; a++) out_extents.push_back(geometry_.axes[a].out);
    do {
        std::vector<std::int64_t> position(inner.size(), 0);
        for (std::size_t i = 0; i < elements; i++) {
            const auto m = static_cast<std::size_t>(position[channel]);
            total[i] =
                packed_
                    ? (packed_->bias.empty() ? 0 : packed_->bias[m])
                    : (b ? load(geometry_.dtype, static_cast<const char *>(b) + m * convt_dtype_size(geometry_.dtype))
                         : 0);
            next(inner, &position);
        }
        std::vector<Taps> taps(leading_);
        bool any = true;
        for (std::size_t a = 0; a < leading_; a++) {
            taps[a] = taps_of(geometry_.axes[a], at[a] % geometry_.axes[a].stride);
            tap_extents[a] = taps[a].count;
            any = any && taps[a].count > 0;
        }
        std::fill(tap.begin(), tap.end(), 0);
        if (any) {
            do {
                std::int64_t element = 0, offset = 0;
                bool inside = true;
                for (std::size_t a = 0; a < leading_; a++) {
                    const AxisGeometry &axis = geometry_.axes[a];
                    const std::int64_t i = at[a] / axis.stride + taps[a].offset + tap[a] * axis.offset_step;
                    inside = inside && i >= 0 && i < axis.in;
                    offset += i * x_strides[first_axis + a];
                    element = element * axis.kernel + taps[a].kernel_begin + tap[a] * axis.kernel_step;
                }
                if (!inside) continue;
                core.run(static_cast<const char *>(x) + offset * size, from,
                         static_cast<const char *>(packed) + element * static_cast<std::int64_t>(core.packed_bytes()),
                         partial, partial_strides, workspace, settings_.parallel);
                for (std::size_t i = 0; i < elements; i++) {
                    total[i] += load(problem_.y_dtype, partial + i * convt_dtype_size(problem_.y_dtype));
                }
            } while (next(tap_extents, &tap));
        }
        std::int64_t y_offset = 0;
        for (std::size_t a = 0; a < leading_; a++) y_offset += at[a] * y_strides[first_axis + a];
        std::vector<std::int64_t> strides = y_strides;
        strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(first_axis),
                      strides.begin() + static_cast<std::ptrdiff_t>(first_axis + leading_));
        std::fill(position.begin(), position.end(), 0);
        for (std::size_t i = 0; i < elements; i++) {
            std::int64_t to = y_offset;
            for (std::size_t d = 0; d < inner.size(); d++) to += position[d] * strides[d];
            finish(geometry_.dtype, total[i], static_cast<char *>(y) + to * size);
            next(inner, &position);
        }
    } while (next(out_extents, &at));
}

} // namespace convtranspose
