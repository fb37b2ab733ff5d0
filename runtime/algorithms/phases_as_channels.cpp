#include "algorithms/phases_as_channels.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/division.h"
#include "base/error.h"
#include "selection/candidates.h"

namespace convtranspose {

namespace {

// In place, at most so many output channels are each a layer of their own; with more, there would only be overhead, unless strides
// are so long that the phases are vectors, or that integers have no kernels that store whole runs of a row
// (docs/measurements/2026-11-29-long-strides.md).
constexpr std::int64_t kMostChannels = 16, kMostOfLongStride = 256, kLongStride = 32, kLongOfIntegers = 9;
// In place, at most so many output channels are in one layer, each times the phases.
constexpr std::int64_t kMostFolded = 64;
// These are for tensors that are moved.
constexpr std::int64_t kMostOfGroup = 16;          // output channels of a group, unless y is sparse
constexpr double kSparse = 2;                      // y is sparse if it has so many times the elements that taps reach
constexpr std::int64_t kMostTensorBytes = 4 << 20; // limit for the tensor, to stay in the cache
// So many images are computed at a time that the tensor stays in a near cache (docs/measurements/2026-11-26-algorithms.md).
constexpr std::int64_t kNearBytes = 512 << 10;
constexpr std::int64_t kManyGroups = 16;

constexpr const char *kTooManyElements = "what is rearranged has more elements than kernels count";

} // namespace

PhasesAsChannels::PhasesAsChannels(const Geometry &geometry, const PlanSettings &settings, bool of_all_axes)
    : ComposedPlan(geometry, settings), of_all_axes_(of_all_axes), has_gaps_(of_all_axes && has_gaps(geometry)),
      has_planes_(has_gaps_ && (!geometry.y_channels_last() || geometry.out_channels == 1)) {
    list_layers();
}

bool PhasesAsChannels::has_gaps(const Geometry &geometry) {
    return std::any_of(geometry.axes.begin(), geometry.axes.end(),
                       [](const AxisGeometry &axis) { return phases_of(axis) < axis.stride; });
}

std::int64_t PhasesAsChannels::repetitions() const { return of_all_axes_ || folds() ? 1 : geometry_.out_channels; }

// Returns the phases of an axis, those with a tap more first. The positions are those at which at least one of the phases is inside
// y. Phase r of position q is output q * stride + r * dilation - pad_begin.
std::vector<PhasesAsChannels::Phases> PhasesAsChannels::phase_sets_of(const AxisGeometry &axis) {
    const std::int64_t period = -axis.kernel_step(), taps = axis.kernel / period, more = axis.kernel % period;
    std::vector<Phases> sets;
    if (more) sets.push_back({0, more, taps + 1, period, 0, 0});
    if (taps) sets.push_back({more, period - more, taps, period, 0, 0});
    for (Phases &r : sets) {
        const std::int64_t last = r.first + r.count - 1;
        r.q_begin = ceil_div(axis.pad_begin - last * axis.dilation, axis.stride);
        r.q_count = floor_div(axis.out - 1 + axis.pad_begin - r.first * axis.dilation, axis.stride) + 1 - r.q_begin;
        r.q_count = std::max<std::int64_t>(r.q_count, 1); // none here: y of another size may have some
    }
    return sets;
}

// Lists the layers. Chooses how many images they compute at a time: all, or a divisor of the batch such that the tensor that is
// moved stays near.
void PhasesAsChannels::list_layers() {
    std::vector<Layer> all(1);
    all[0] = {{}, 0, repetitions() > 1 ? 1 : geometry_.out_channels, false};
    for (std::size_t a = 0; a < geometry_.axes.size(); a++) {
        const AxisGeometry &axis = geometry_.axes[a];
        Phases whole;
        whole.taps = axis.kernel;
        whole.q_count = axis.out;
        std::vector<Layer> longer;
        for (const Phases &r : is_axis_split(a) ? phase_sets_of(axis) : std::vector<Phases>{whole}) {
            for (const Layer &layer : all) {
                longer.push_back(layer);
                longer.back().axes.push_back(r);
            }
        }
        all = std::move(longer);
    }
    layers_ = std::move(all);
    if (!of_all_axes_) {
        divide_at_crops();
        images_ = geometry_.batch;
        return;
    }
    const std::int64_t of_image = std::max<std::int64_t>(most_elements(), 1) * size_of(geometry_.y_dtype); // in bytes
    images_ = divisor_up_to(std::max<std::int64_t>(geometry_.batch, 1), kNearBytes / of_image);
}

void PhasesAsChannels::divide_at_crops() {
    const AxisGeometry &w = geometry_.axes.back();
    std::vector<Layer> pieces;
    for (const Layer &layer : layers_) {
        const Phases &r = layer.axes.back();
        const auto add = [&](std::int64_t q_begin, std::int64_t q_count, bool in_place) {
            pieces.push_back(layer);
            pieces.back().in_place = in_place;
            pieces.back().axes.back().q_begin = q_begin;
            pieces.back().axes.back().q_count = q_count;
        };
        // At these positions all phases are inside y.
        const std::int64_t end = r.q_begin + r.q_count, last = r.first + r.count - 1;
        const std::int64_t whole_begin = std::min(ceil_div(w.pad_begin - r.first, w.stride), end),
                           whole_end = std::max(floor_div(w.out - 1 + w.pad_begin - last, w.stride) + 1, whole_begin);
        if (whole_end > whole_begin) add(whole_begin, whole_end - whole_begin, true);
        for (std::int64_t q = r.q_begin; q < whole_begin; q++) add(q, 1, false);
        for (std::int64_t q = whole_end; q < end; q++) add(q, 1, false);
    }
    layers_ = std::move(pieces);
}

Geometry PhasesAsChannels::geometry_of(const Layer &layer) const {
    Geometry g = geometry_;
    g.y_order = has_planes_ ? YOrder::kPlanar : YOrder::kChannels;
    g.batch = images_;
    if (!of_all_axes_) {
        g.group = 1;
        g.in_channels = geometry_.in_channels_per_group();
    }
    g.out_channels = layer.channels * layer.phases();
    if (g.light.scales) g.light.scales = std::make_shared<const std::vector<float>>(values_of(layer, *g.light.scales));
    for (std::size_t a = 0; a < g.axes.size(); a++) {
        if (!is_axis_split(a)) continue;
        const Phases &r = layer.axes[a];
        AxisGeometry &axis = g.axes[a];
        axis.out = r.q_count;
        axis.kernel = r.taps;
        axis.dilation = axis.offset_step();
        axis.stride = 1;
        axis.pad_begin = r.q_begin;
        // A layer that reads less than half of x has that part alone: some algorithms multiply or copy all of the x that they are given.
        const AxisGeometry::Inputs x = axis.read_by(0, axis.out);
        if (2 * (x.end - x.begin) >= axis.in) continue;
        g.x_part_of_bytes = std::max(geometry_.x_part_of_bytes, static_cast<std::int64_t>(geometry_.x_bytes()));
        axis.in = x.end - x.begin;
        axis.pad_begin -= x.begin;
    }
    g.set_shapes();
    return g;
}

std::unique_ptr<AlgorithmPlan> propose_phases_as_channels(const AlgorithmProblem &problem, UnsupportedReason *why) {
    const Geometry &geometry = problem.geometry;
    const AxisGeometry &axis = geometry.axes.back();
    const bool last = geometry.layout == CONVT_CHANNELS_LAST;
    const bool is_long =
        geometry.quantized() ? axis.stride >= kLongOfIntegers : axis.stride >= kLongStride && geometry.group == 1;
    const std::int64_t most_channels = last ? kMostFolded : is_long ? kMostOfLongStride : kMostChannels;
    const bool supported =
        supports({{problem.constant_weights, kNeedsConstantWeights},
                  {geometry.axes.size() <= 3, kNeedsThreeAxes},
                  {has_elements(geometry), kNeedsElements},
                  {axis.stride > 1, "the stride along the last axis is 1"},
                  {axis.dilation == 1, "the last axis is dilated"},
                  {axis.kernel >= axis.stride, "the kernel is shorter than the stride"},
                  {geometry.out_channels <= most_channels, "too many output channels to be worth it"},
                  {!last || geometry.group == 1, "groups, and channels last"}},
                 why);
    if (!supported) return nullptr;
    std::unique_ptr<PhasesAsChannels> own(new PhasesAsChannels(geometry, problem.settings, false));
    if (!supports({{own->most_elements() <= kMostElements, kTooManyElements}}, why)) return nullptr;
    own->estimate(own->estimated_in_place(problem.facts));
    return own;
}

EstimatedCycles PhasesAsChannels::estimated_in_place(const WeightFacts &facts) const {
    double cycles = 0;
    for (const Layer &layer : layers_)
        cycles += least_cost(geometry_of(layer), settings_.isa, *settings_.profile, facts);
    const double layers = real(layers_.size()), channels = real(repetitions());
    return {channels * cycles, channels > 1 ? channels * layers * settings_.profile->per_layer : 0};
}

std::unique_ptr<AlgorithmPlan> propose_depth_to_space(const AlgorithmProblem &problem, UnsupportedReason *why) {
    const Geometry &geometry = problem.geometry;
    const bool gaps = PhasesAsChannels::has_gaps(geometry), many = geometry.out_channels_per_group() > kMostOfGroup;
    bool near = true;
    std::int64_t phases = 1;
    for (const AxisGeometry &axis : geometry.axes) {
        // The phases of a position span about the length of y at most, so that few positions reach beyond y.
        near = near && axis.stride <= kMostTensorBytes &&
               (PhasesAsChannels::phases_of(axis) - 1) * axis.dilation <= axis.stride + axis.out;
        phases *= near ? axis.stride : 1;
        near = near && phases <= kMostTensorBytes;
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
    std::unique_ptr<PhasesAsChannels> own(new PhasesAsChannels(geometry, problem.settings, true));
    const double elements = own->elements_moved(), times = own->times(),
                 y_elements = real(volume(geometry.y_shape)) / times,
                 bytes = elements * real(size_of(geometry.y_dtype));
    const bool leaves_cache = !gaps && bytes > kNearBytes && bytes * times > kMostTensorBytes;
    if (!supports({{!leaves_cache, "what is rearranged does not fit in the cache"},
                   {!many || y_elements >= kSparse * elements, "too many output channels to be worth it"},
                   {own->most_elements() <= kMostElements, kTooManyElements}},
                  why)) {
        return nullptr;
    }
    own->estimate(own->estimated_moved(problem.facts));
    return own;
}

std::int64_t PhasesAsChannels::most_elements() const {
    std::int64_t most = 0;
    for (const Layer &layer : layers_) {
        if (!layer.in_place) most = std::max(most, volume(geometry_of(layer).y_shape));
    }
    return most;
}

// Returns the number of elements that are moved at a time, without those that are cropped.
double PhasesAsChannels::elements_moved() const {
    double elements = 0;
    for (const Layer &layer : layers_) elements += real(volume(geometry_of(layer).y_shape));
    return std::min(elements, real(volume(geometry_.y_shape)) / times());
}

EstimatedCycles PhasesAsChannels::estimated_moved(const WeightFacts &facts) const {
    const CostProfile &profile = *settings_.profile;
    const AxisGeometry &w = geometry_.axes.back();
    const bool are_planes = geometry_.layout == CONVT_CHANNELS_FIRST;
    const double elements = elements_moved(), planes = real(geometry_.out_channels * images_);
    double cycles = 0, of_layers = 0;
    if (has_gaps_) {
        // All of y is written, row by row, and what taps computed is copied by elements of planes, or by channels of a group.
        double rows = has_planes_ ? planes : 1;
        for (std::size_t a = 0; a + 1 < geometry_.axes.size(); a++) rows *= real(geometry_.axes[a].out);
        const double copies = has_planes_ ? profile.spread + profile.per_phase_row / real(w.in)
                                          : profile.per_group_copied / real(geometry_.out_channels_per_group());
        cycles =
            real(geometry_.y_bytes()) / times() / profile.filled_rate + rows * profile.per_gap_row + elements * copies;
    } else {
        cycles = elements * (profile.rearranged + profile.per_run / real(std::min(w.stride, w.kernel)));
    }
    for (const Layer &layer : layers_) {
        double rows = are_planes && !has_gaps_ ? planes : 0;
        for (std::size_t a = 0; a + 1 < layer.axes.size(); a++)
            rows *= real(layer.axes[a].q_count * layer.axes[a].count);
        cycles += rows * profile.per_plane_row;
        of_layers += least_cost(geometry_of(layer), settings_.isa, profile, facts);
    }
    double factor = times();
    if (are_planes) factor *= profile.depth_to_space;
    if (geometry_.group >= kManyGroups) factor *= profile.groups_to_space;
    return {factor * of_layers, factor * cycles};
}

// Gathers the weights of a layer, whose geometry is g, as (C, M/group * phases, taps...), with the phases of the last axis
// innermost, and repeats each bias for all phases.
void PhasesAsChannels::gather(const Layer &layer, const Geometry &g, const LayerWeights &of, char *w_out,
                              char *b_out) const {
    const std::int64_t size = size_of(geometry_.w_dtype), b_size = size_of(geometry_.b_dtype);
    const std::int64_t kernel = geometry_.kernel_volume(), phases = layer.phases(), taps = g.kernel_volume(),
                       of_group = geometry_.out_channels_per_group(), channels = layer.channels / g.group;
    const std::int64_t first_m = layer.channel % of_group,
                       first_c = layer.channel / of_group * geometry_.in_channels_per_group();
    std::vector<std::int64_t> elements; // of w, for each phase and tap
    elements.reserve(static_cast<std::size_t>(phases * taps));
    for (std::int64_t i = 0; i < phases * taps; i++) {
        std::int64_t element = 0, stride = 1, r = i / taps, t = i % taps;
        for (std::size_t a = geometry_.axes.size(); a-- > 0;) {
            const Phases &axis = layer.axes[a];
            element += (axis.first + r % axis.count + t % axis.taps * axis.period) * stride;
            stride *= geometry_.axes[a].kernel;
            r /= axis.count;
            t /= axis.taps;
        }
        elements.push_back(element);
    }
    for (std::int64_t pair = 0; pair < g.in_channels * channels; pair++) { // of an input and an output channel
        const std::int64_t c = pair / channels, m = pair % channels;
        const char *const from = element_at(of.w, ((first_c + c) * of_group + first_m + m) * kernel, size);
        const std::int64_t *element = elements.data();
        for (std::int64_t r = 0; r < phases; r++) {
            const std::int64_t place = has_phases_outside() ? r * channels + m : m * phases + r;
            char *to = w_out + (c * channels * phases + place) * taps * size;
            for (std::int64_t t = 0; t < taps; t++, element++, to += size)
                std::memcpy(to, from + *element * size, static_cast<std::size_t>(size));
        }
    }
    for (std::int64_t i = 0; of.b && i < g.out_channels; i++) {
        std::memcpy(b_out + i * b_size, element_at(of.b, channel_of(layer, i), b_size),
                    static_cast<std::size_t>(b_size));
    }
}

// Returns the channel of y that output channel i of a layer is a phase of.
std::int64_t PhasesAsChannels::channel_of(const Layer &layer, std::int64_t i) const {
    const std::int64_t phases = layer.phases(), channels = layer.channels / (of_all_axes_ ? geometry_.group : 1),
                       of_group = channels * phases, first = layer.channel + i / of_group * channels;
    return first + (has_phases_outside() ? i % channels : i % of_group / phases);
}

// Returns values of the output channels of a layer. values: one, or one for each channel of y.
template<typename T>
std::vector<T> PhasesAsChannels::values_of(const Layer &layer, const std::vector<T> &values) const {
    if (values.size() == 1) return values;
    std::vector<T> own(static_cast<std::size_t>(layer.channels * layer.phases()));
    for (std::size_t i = 0; i < own.size(); i++)
        own[i] = of_channel(values, channel_of(layer, static_cast<std::int64_t>(i)));
    return own;
}

QuantizationValues PhasesAsChannels::quantization_of(const QuantizationValues &q, const Layer &layer) const {
    QuantizationValues own = q;
    own.w_scale = values_of(layer, q.w_scale);
    own.w_zero_point = values_of(layer, q.w_zero_point);
    return own;
}

Status PhasesAsChannels::plan_gathered(const LayerWeights &weights, Layer *layer) {
    const Geometry g = geometry_of(*layer);
    Block gathered;
    const std::uint64_t w_bytes = round_up(g.w_bytes()); // the bias is aligned, too
    TRY(get_block(settings_.allocator, w_bytes + g.b_bytes(), "weights", &gathered));
    auto *const w = static_cast<char *>(gathered.data()), *const b = w + w_bytes;
    gather(*layer, g, weights, w, b);
    LayerWeights own = {w, weights.b ? b : nullptr, nullptr};
    QuantizationValues values;
    if (weights.quantization) {
        values = quantization_of(*weights.quantization, *layer);
        own.quantization = &values;
    }
    return add_plan(g, own, nullptr, &layer->plan);
}

// Returns the last plan with the weights of a layer that writes as the layer does, or null. or_first: if there is none, the
// first one with the weights.
const LayerPlan *PhasesAsChannels::plan_with_weights_of(const Layer &layer, bool or_first) const {
    const LayerPlan *first = nullptr, *alike = nullptr;
    for (const Layer &other : layers_) {
        if (!other.plan || !other.has_weights_of(layer)) continue;
        if (other.in_place == layer.in_place) alike = other.plan;
        if (!first) first = other.plan;
    }
    return alike || !or_first ? alike : first;
}

// Plans all layers, for each channel: with the weights of another one, of this plan or of `from`, or else with these.
Status PhasesAsChannels::plan_layers(const PhasesAsChannels *from, const LayerWeights &weights) {
    const std::size_t of_channel = layers_.size();
    for (std::int64_t channel = 1; channel < repetitions(); channel++) {
        for (std::size_t i = 0; i < of_channel; i++) {
            layers_.push_back(layers_[i]);
            layers_.back().channel = channel;
        }
    }
    for (Layer &layer : layers_) {
        const LayerPlan *like = plan_with_weights_of(layer, !from);
        if (!like && from) like = from->plan_with_weights_of(layer, true);
        TRY(like ? add_plan(geometry_of(layer), {}, like, &layer.plan) : plan_gathered(weights, &layer));
        if (!layer.in_place) own_bytes_ = std::max(own_bytes_, round_up(layer.plan->geometry().y_bytes()));
    }
    return Status();
}

Status PhasesAsChannels::build(const LayerWeights &weights) {
    TRY(plan_layers(nullptr, weights));
    if (folds()) {
        PlanSettings settings = settings_;
        settings.excluded = all_but_direct();
        std::unique_ptr<LayerPlan> for_gaps;
        TRY(LayerPlan::create(geometry_, settings, weights, &for_gaps));
        for_gaps_ = add_plan(std::move(for_gaps));
    }
    return has_gaps_ ? make_bias(weights.b) : Status();
}

Status PhasesAsChannels::reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const {
    std::unique_ptr<PhasesAsChannels> own(new PhasesAsChannels(problem.geometry, problem.settings, of_all_axes_));
    if (const std::int64_t elements = own->most_elements(); elements > kMostElements) {
        const char *const name = of_all_axes_ ? "depth_to_space" : "phases_as_channels";
        return too_large_to_reshape(name, problem.geometry, "what is rearranged", elements);
    }
    if (has_gaps_) TRY(own->make_bias(bias_.data()));
    TRY(own->plan_layers(this, {})); // every layer finds one of its weights here
    if (for_gaps_) TRY(own->add_plan(own->geometry_, {}, for_gaps_, &own->for_gaps_));
    *made = std::move(own);
    return Status();
}

Status PhasesAsChannels::make_bias(const void *b) {
    if (b) return copy_block(settings_.allocator, b, geometry_.b_bytes(), "biases", &bias_);
    TRY(get_block(settings_.allocator, geometry_.b_bytes(), "biases", &bias_));
    std::memset(bias_.data(), 0, bias_.size());
    return Status();
}

std::string PhasesAsChannels::summary() const {
    return concat("phases of ", of_all_axes_ ? "all axes" : "w", " as output channels, of ", layers_.size(),
                  " layers of stride 1", of_all_axes_ ? ", rearranged" : "");
}

Status PhasesAsChannels::run(const RunTensors &t, char *workspace) const {
    if (for_gaps_ && t.y.strides[geometry_.dimensions().last_axis] != geometry_.out_channels)
        return for_gaps_->run(t, workspace);
    std::vector<QuantizationValues> values; // all are made before y is written, because memory may run out
    if (t.quantization) {
        for (const Layer &layer : layers_) values.push_back(quantization_of(*t.quantization, layer));
    }
    for (std::int64_t image = 0; image < geometry_.batch; image += images_) {
        for (std::size_t i = 0; i < layers_.size(); i++) {
            const QuantizationValues *const own = values.empty() ? nullptr : &values[i];
            TRY(run_layer(layers_[i], image, t, own, workspace));
        }
    }
    return Status();
}

Status PhasesAsChannels::run_layer(const Layer &layer, std::int64_t first_image, const RunTensors &t,
                                   const QuantizationValues *values, char *workspace) const {
    const Geometry &g = layer.plan->geometry();
    const DimensionOrder at = geometry_.dimensions();
    const std::int64_t group = layer.channel / geometry_.out_channels_per_group();
    RunTensors own;
    const std::int64_t first_c = group * geometry_.in_channels_per_group();
    std::int64_t from = first_image * t.x.strides[0] + first_c * t.x.strides[at.channel];
    for (std::size_t a = 0; a < geometry_.axes.size(); a++) {
        const std::int64_t x_begin = is_axis_split(a) ? layer.axes[a].q_begin - g.axes[a].pad_begin : 0;
        from += x_begin * t.x.strides[at.first_axis + a];
    }
    own.x = t.x;
    own.x.data = element_at(t.x.data, from, size_of(geometry_.dtype));
    own.y.strides = t.y.strides;
    own.quantization = values;
    if (layer.in_place) {
        const AxisGeometry &w = geometry_.axes.back();
        const std::int64_t w_stride = t.y.strides[at.last_axis], first = layer.axes.back().start(w);
        const std::int64_t offset =
            first_image * t.y.strides[0] + layer.channel * t.y.strides[at.channel] + first * w_stride;
        own.y.data = element_at(t.y.data, offset, size_of(geometry_.y_dtype));
        own.y.strides[at.channel] = 1;
        own.y.strides[at.last_axis] = w.stride * w_stride;
        return layer.plan->run(own, workspace);
    }
    char *const depth = workspace + layer_bytes_;
    own.y.data = depth;
    std::int64_t stride = 1;
    const auto add = [&](std::size_t dimension) {
        own.y.strides[dimension] = stride;
        stride *= g.y_shape[dimension];
    };
    if (!has_planes_) add(at.channel);
    for (std::size_t a = g.axes.size(); a-- > 0;) add(at.first_axis + a);
    if (has_planes_) add(at.channel);
    add(0);
    TRY(layer.plan->run(own, workspace));
    has_gaps_ ? spread(layer, depth, first_image, t) : rearrange(layer, depth, first_image, t);
    return Status();
}

} // namespace convtranspose
