#include "algorithms/depth_to_space.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "algorithms/copy_runs.h"
#include "base/division.h"
#include "base/error.h"
#include "selection/candidates.h"

namespace convtranspose {

namespace {

constexpr std::int64_t kMostChannels = 16;   // output channels of a group, unless y is sparse
constexpr double kSparse = 2;                // y is sparse if it has so many times the elements that taps reach
constexpr std::int64_t kMostBytes = 4 << 20; // limit for the rearranged tensor, to stay in the cache
// So many images are computed at a time that the tensor between stays in a near cache
// (docs/measurements/2026-11-26-algorithms.md).
constexpr std::int64_t kNearBytes = 512 << 10;
constexpr std::int64_t kManyGroups = 16;
constexpr double kCyclesPerRun = 3, kCyclesPerElement = 0.5; // to rearrange; a run is one position along w
constexpr double kCyclesApart = 2;     // for an element, if other channels lie between those of a run
constexpr double kCyclesDilated = 1.0; // the same, if other phases do
// The same with gaps (docs/measurements/2026-11-27-gaps.md): bytes of y written per cycle; for each row of y, and each row of a
// phase; for an element of a plane, or the channels of a group, that is copied.
constexpr double kFilled = 16, kCyclesPerGapRow = 4, kCyclesPerPhaseRow = 15, kCyclesPerSpread = 1,
                 kCyclesPerCopy = 3.3;
constexpr double kCyclesPerRow = 18; // more for each row of a plane

} // namespace

DepthToSpace::DepthToSpace(const Geometry &geometry, const PlanSettings &settings)
    : geometry_(geometry), settings_(for_layers(settings)), has_gaps_(has_gaps(geometry)),
      has_planes_(has_gaps_ && (!geometry.y_channels_last() || geometry.out_channels == 1)) {}

std::vector<DepthToSpace::Layer> DepthToSpace::list() const {
    std::vector<Layer> all(1);
    for (const AxisGeometry &axis : geometry_.axes) {
        const std::int64_t period = period_of(axis), taps = axis.kernel / period, more = axis.kernel % period;
        std::vector<Phases> sets;
        if (more) sets.push_back({0, more, taps + 1});
        if (taps) sets.push_back({more, period - more, taps});
        std::vector<Layer> longer;
        for (Phases &r : sets) {
            const std::int64_t last = r.first + r.count - 1;
            r.q_begin = ceil_div(axis.pad_begin - last * axis.dilation, axis.stride);
            r.q_count = floor_div(axis.out - 1 + axis.pad_begin - r.first * axis.dilation, axis.stride) + 1 - r.q_begin;
            r.q_count = std::max<std::int64_t>(r.q_count, 1); // none here: y of another size may have some
            for (const Layer &layer : all) {
                Layer with;
                with.axes = layer.axes;
                with.axes.push_back(r);
                longer.push_back(std::move(with));
            }
        }
        all = std::move(longer);
    }
    return all;
}

Geometry DepthToSpace::geometry_of(const Layer &layer) const {
    Geometry g = geometry_;
    g.post_ops = {};
    g.y_order = has_planes_ ? YOrder::kPlanar : YOrder::kChannels;
    g.batch = g.x_shape[0] = g.y_shape[0] = images_;
    const DimensionOrder at = g.dimensions();
    for (std::size_t a = 0; a < g.axes.size(); a++) {
        const Phases &r = layer.axes[a];
        AxisGeometry &axis = g.axes[a];
        axis.out = r.q_count;
        axis.kernel = r.taps;
        axis.stride = 1;
        axis.dilation = axis.offset_step;
        axis.output_padding = 0;
        axis.pad_begin = r.q_begin;
        axis.pad_end = axis.in + (axis.kernel - 1) * axis.dilation - axis.out - axis.pad_begin;
        axis.kernel_step = -1;
        g.out_channels *= r.count;
        g.w_shape[2 + a] = r.taps;
        g.w_shape[1] *= r.count;
        g.y_shape[at.first_axis + a] = r.q_count;
    }
    g.y_shape[at.channel] = g.out_channels;
    return g;
}

// Lists the layers. Chooses how many images they compute at a time: a divisor of the batch, such that the tensor stays near.
void DepthToSpace::plan_layers() {
    layers_ = list();
    std::int64_t most = 1; // elements of an image
    for (const Layer &layer : layers_) most = std::max(most, volume(geometry_of(layer).y_shape));
    most *= static_cast<std::int64_t>(convt_dtype_size(geometry_.y_dtype));
    images_ = divisor_up_to(std::max<std::int64_t>(geometry_.batch, 1), kNearBytes / most);
}

// Gathers the weights as (C, M/group * phases, taps...), with the phases of the last axis innermost, and repeats each bias for
// all phases. Where y is spread channels last, the phases stand before the channels of a group.
void DepthToSpace::gather(const Layer &layer, const void *w, const void *b, char *w_out, char *b_out) const {
    const std::int64_t size = size_of(geometry_.w_dtype), b_size = size_of(geometry_.b_dtype);
    const std::size_t axes = geometry_.axes.size();
    const std::int64_t kernel = geometry_.kernel_volume(), channels = geometry_.w_shape[1], phases = layer.phases();
    std::int64_t taps = 1;
    for (const Phases &axis : layer.axes) taps *= axis.taps;
    const auto place_of = [&](std::int64_t m, std::int64_t r) {
        return has_gaps_ && !has_planes_ ? r * channels + m : m * phases + r;
    };
    for (std::int64_t pair = 0; pair < geometry_.w_shape[0] * channels; pair++) { // of an input and an output channel
        const std::int64_t c = pair / channels, m = pair % channels;
        for (std::int64_t r = 0; r < phases; r++) {
            char *to = w_out + (c * channels * phases + place_of(m, r)) * taps * size;
            for (std::int64_t t = 0; t < taps; t++, to += size) {
                std::int64_t element = 0, stride = 1, rest_r = r, rest_t = t;
                for (std::size_t a = axes; a-- > 0;) {
                    const Phases &axis = layer.axes[a];
                    element +=
                        (axis.first + rest_r % axis.count + rest_t % axis.taps * period_of(geometry_.axes[a])) * stride;
                    stride *= geometry_.axes[a].kernel;
                    rest_r /= axis.count;
                    rest_t /= axis.taps;
                }
                std::memcpy(to, static_cast<const char *>(w) + (pair * kernel + element) * size,
                            static_cast<std::size_t>(size));
            }
        }
    }
    for (std::int64_t i = 0; b && i < geometry_.out_channels * phases; i++) {
        const std::int64_t m = i / phases, first = m / channels * channels * phases;
        std::memcpy(b_out + (first + place_of(m % channels, i % phases)) * b_size,
                    static_cast<const char *>(b) + m * b_size, static_cast<std::size_t>(b_size));
    }
}

std::unique_ptr<AlgorithmPlan> DepthToSpace::propose(const AlgorithmProblem &problem, const Planner & /*planner*/,
                                                     UnsupportedReason *why) {
    const Geometry &geometry = problem.geometry;
    const bool gaps = has_gaps(geometry), many = geometry.out_channels_per_group() > kMostChannels;
    bool near = true;
    std::int64_t phases = 1;
    for (const AxisGeometry &axis : geometry.axes) {
        // The phases of a position span about the length of y at most, so that few positions reach beyond y.
        near = near && axis.stride <= kMostBytes && (phases_of(axis) - 1) * axis.dilation <= axis.stride + axis.out;
        phases *= near ? axis.stride : 1;
        near = near && phases <= kMostBytes;
    }
    const bool supported = supports({{problem.constant_weights, kNeedsConstantWeights},
                                     {!gaps || !geometry.quantized(), "phases without taps, and sums of integers"},
                                     {geometry.axes.size() <= 3, kNeedsThreeAxes},
                                     {has_elements(geometry), kNeedsElements},
                                     {gaps || !many, "too many output channels to be worth it"},
                                     {near, "strides or dilations are too long"},
                                     {phases > 1, "all strides are 1"}},
                                    why);
    if (!supported) return nullptr;
    std::unique_ptr<DepthToSpace> own(new DepthToSpace(geometry, problem.settings));
    own->quantization_ = problem.quantization;
    own->plan_layers();
    const double elements = own->elements_rearranged(), times = own->times(),
                 y_elements = static_cast<double>(volume(geometry.y_shape)) / times,
                 bytes = elements * static_cast<double>(convt_dtype_size(geometry.y_dtype));
    const bool leaves_cache = !gaps && bytes > kNearBytes && bytes * times > kMostBytes;
    if (!supports({{!leaves_cache, "what is rearranged does not fit in the cache"},
                   {!many || y_elements >= kSparse * elements, "too many output channels to be worth it"}},
                  why)) {
        return nullptr;
    }
    const bool dilated = geometry.axes.back().dilation > 1;
    const CostProfile &profile = *problem.settings.profile;
    own->estimate(own->estimated(problem.facts),
                  dilated ? profile.margin_depth_to_space_dilated : profile.margin_depth_to_space);
    return own;
}

// Returns the number of elements that are rearranged at a time, without those that are cropped.
double DepthToSpace::elements_rearranged() const {
    double elements = 0;
    for (const Layer &layer : layers_) elements += static_cast<double>(volume(geometry_of(layer).y_shape));
    return std::min(elements, static_cast<double>(volume(geometry_.y_shape)) / times());
}

QuantizationValues DepthToSpace::quantization_of(const QuantizationValues &q, const Layer &layer) const {
    const std::int64_t phases = layer.phases();
    return for_channels(q, geometry_.out_channels * phases, [&](std::int64_t i) { return i / phases; });
}

EstimatedCycles DepthToSpace::estimated(const WeightFacts &facts) const {
    const AxisGeometry &w = geometry_.axes.back();
    const bool are_planes = geometry_.layout == CONVT_CHANNELS_FIRST;
    const double elements = elements_rearranged(), planes = static_cast<double>(geometry_.out_channels * images_);
    double cycles = 0, of_layers = 0;
    if (has_gaps_) {
        // All of y is written, row by row, and what taps computed is copied by elements of planes, or by channels of a group.
        double rows = has_planes_ ? planes : 1;
        for (std::size_t a = 0; a + 1 < geometry_.axes.size(); a++) rows *= static_cast<double>(geometry_.axes[a].out);
        const double copies = has_planes_ ? kCyclesPerSpread + kCyclesPerPhaseRow / static_cast<double>(w.in)
                                          : kCyclesPerCopy / static_cast<double>(geometry_.out_channels_per_group());
        cycles =
            static_cast<double>(geometry_.y_bytes()) / times() / kFilled + rows * kCyclesPerGapRow + elements * copies;
    } else {
        const double each = !are_planes && geometry_.out_channels > 1 ? kCyclesApart
                            : w.dilation > 1                          ? kCyclesDilated
                                                                      : kCyclesPerElement;
        cycles = elements * (each + kCyclesPerRun / static_cast<double>(std::min(w.stride, w.kernel)));
    }
    for (const Layer &layer : layers_) {
        double rows = are_planes && !has_gaps_ ? planes : 0;
        for (std::size_t a = 0; a + 1 < layer.axes.size(); a++)
            rows *= static_cast<double>(layer.axes[a].q_count * layer.axes[a].count);
        cycles += rows * kCyclesPerRow;
        of_layers += least_cost(geometry_of(layer), settings_.isa, *settings_.profile, facts);
    }
    double factor = times();
    if (are_planes) factor *= settings_.profile->depth_to_space;
    if (geometry_.group >= kManyGroups) factor *= settings_.profile->groups_to_space;
    return {factor * of_layers, factor * cycles};
}

Status DepthToSpace::build(const LayerWeights &weights, const Planner &planner) {
    for (Layer &layer : layers_) {
        const Geometry g = geometry_of(layer);
        Block gathered;
        const std::uint64_t w_bytes = round_up(g.w_bytes()); // the bias is aligned, too
        Status status = get_block(settings_.allocator, w_bytes + g.b_bytes(), "weights", &gathered);
        if (!status) return status;
        auto *const layer_w = static_cast<char *>(gathered.data()), *const layer_b = layer_w + w_bytes;
        gather(layer, weights.w, weights.b, layer_w, layer_b);
        QuantizationValues values;
        if (quantization_) values = quantization_of(*quantization_, layer);
        status = planner.plan(g, settings_, quantization_ ? &values : nullptr, {layer_w, weights.b ? layer_b : nullptr},
                              &layer.plan);
        if (!status) return status;
    }
    quantization_ = nullptr;
    plan_workspace();
    return has_gaps_ ? make_bias(weights.b) : Status();
}

Status DepthToSpace::reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const {
    const Geometry &geometry = problem.geometry;
    std::unique_ptr<DepthToSpace> own(new DepthToSpace(geometry, problem.settings));
    own->plan_layers();
    Status status = has_gaps_ ? own->make_bias(bias_.data()) : Status();
    if (!status) return status;
    for (Layer &layer : own->layers_) {
        const Layer &from = layers_[static_cast<std::size_t>(&layer - own->layers_.data())]; // the same phases
        status = from.plan->reshape(own->geometry_of(layer), own->settings_.parallel, &layer.plan);
        if (!status) return status;
    }
    own->plan_workspace();
    *made = std::move(own);
    return Status();
}

std::string DepthToSpace::summary() const {
    return concat("phases of all axes as output channels, of ", layers_.size(), " layers of stride 1, rearranged");
}

void DepthToSpace::plan_workspace() {
    const auto size = static_cast<std::int64_t>(convt_dtype_size(geometry_.y_dtype));
    for (const Layer &layer : layers_) {
        layer_bytes_ = std::max(layer_bytes_, round_up(layer.plan->workspace_bytes()));
        const auto bytes = static_cast<std::uint64_t>(volume(layer.plan->geometry().y_shape) * size);
        depth_bytes_ = std::max(depth_bytes_, round_up(bytes));
    }
}

Status DepthToSpace::run(const RunTensors &t, char *workspace) const {
    char *const depth = workspace + layer_bytes_;
    const DimensionOrder at = geometry_.dimensions();
    const auto tasks = static_cast<std::size_t>(geometry_.batch / images_) * layers_.size();
    std::vector<QuantizationValues> values; // all are made before y is written, because memory may run out
    if (t.quantization) {
        for (const Layer &layer : layers_) values.push_back(quantization_of(*t.quantization, layer));
    }
    for (std::size_t task = 0; task < tasks; task++) {
        const auto first_image = static_cast<std::int64_t>(task / layers_.size()) * images_;
        const Layer &layer = layers_[task % layers_.size()];
        const Geometry &g = layer.plan->geometry();
        RunTensors own;
        own.x = static_cast<const char *>(t.x) +
                first_image * t.x_strides[0] * static_cast<std::int64_t>(convt_dtype_size(geometry_.dtype));
        own.x_strides = t.x_strides;
        own.y = depth;
        own.y_strides = t.y_strides; // for the rank; all entries are set below
        std::int64_t stride = 1;
        const auto add = [&](std::size_t dimension) {
            own.y_strides[dimension] = stride;
            stride *= g.y_shape[dimension];
        };
        if (t.quantization) own.quantization = &values[task % layers_.size()];
        if (!has_planes_) add(at.channel);
        for (std::size_t a = g.axes.size(); a-- > 0;) add(at.first_axis + a);
        if (has_planes_) add(at.channel);
        add(0);
        if (Status status = layer.plan->run(own, workspace); !status) return status;
        has_gaps_ ? spread(layer, depth, first_image, t) : rearrange(layer, depth, first_image, t);
    }
    return Status();
}

std::array<DepthToSpace::LayerAxis, 3> DepthToSpace::axes_of(const Layer &layer, const Strides &y_strides) const {
    std::array<LayerAxis, 3> all;
    const std::size_t missing = all.size() - layer.axes.size();
    for (std::size_t a = 0; a < layer.axes.size(); a++) {
        const Phases &r = layer.axes[a];
        const AxisGeometry &axis = geometry_.axes[a];
        const std::int64_t start = r.q_begin * axis.stride + r.first * axis.dilation - axis.pad_begin;
        all[missing + a] = {start,
                            r.q_count,
                            r.count,
                            axis.stride,
                            axis.dilation,
                            axis.out,
                            y_strides[geometry_.dimensions().first_axis + a]};
    }
    return all;
}

// Moves the tensor of a layer into y. It is (n, q of each axis, channel, phase of each axis), dense, of images from
// first_image on.
void DepthToSpace::rearrange(const Layer &layer, const char *depth, std::int64_t first_image,
                             const RunTensors &t) const {
    const std::int64_t size = size_of(geometry_.y_dtype);
    const DimensionOrder at = geometry_.dimensions();
    const std::array<LayerAxis, 3> axes = axes_of(layer, t.y_strides);
    const LayerAxis &d = axes[0], &h = axes[1], &w = axes[2];
    const std::int64_t c_stride = t.y_strides[at.channel], channels = geometry_.out_channels * layer.phases();
    const auto rows = static_cast<std::size_t>(images_ * d.q_count * h.q_count);
    const std::int64_t step = w.stride * w.y_stride,
                       apart = w.dilation * w.y_stride; // between positions; between phases
    const CopyRuns whole_runs = copy_of(size, w.count, apart == 1), a_run = copy_of(size, 0, apart == 1);
    const auto copy = [&](CopyRuns way, const char *from, std::int64_t to, std::int64_t runs, std::int64_t count) {
        way(from, static_cast<char *>(t.y) + to * size, {channels, step, apart, runs, count});
    };
    // At these positions all phases are inside y. Those before and after them are cropped.
    const std::int64_t whole_begin = w.q_at(0, 0), whole_end = std::max(w.q_at(w.out, w.count - 1), whole_begin);
    settings_.parallel.for_each(rows, [&](std::size_t row) {
        const auto index = static_cast<std::int64_t>(row);
        const std::int64_t qh = index % h.q_count, qd = index / h.q_count % d.q_count,
                           n = first_image + index / h.q_count / d.q_count;
        const char *const from_row = depth + index * w.q_count * channels * size;
        for (std::int64_t c = 0; c < geometry_.out_channels; c++) {
            for (std::int64_t rd = 0; rd < d.count; rd++) {
                const std::int64_t od = d.at(qd, rd);
                if (od < 0 || od >= d.out) continue;
                for (std::int64_t rh = 0; rh < h.count; rh++) {
                    const std::int64_t oh = h.at(qh, rh);
                    if (oh < 0 || oh >= h.out) continue;
                    const std::int64_t y_row = n * t.y_strides[0] + c * c_stride + od * d.y_stride + oh * h.y_stride;
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

} // namespace convtranspose
