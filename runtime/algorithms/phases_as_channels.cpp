#include "algorithms/phases_as_channels.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/division.h"
#include "base/error.h"
#include "selection/candidates.h"

namespace convtranspose {

namespace {

// At most so many output channels are each a layer of their own; with more, there would only be overhead.
constexpr std::int64_t kMostChannels = 16;
// At most so many output channels are in one layer, each times the phases.
constexpr std::int64_t kMostFolded = 64;

std::uint64_t y_bytes(const Geometry &geometry) {
    return round_up(static_cast<std::uint64_t>(volume(geometry.y_shape)) * convt_dtype_size(geometry.y_dtype));
}

} // namespace

std::vector<PhasesAsChannels::Phases> PhasesAsChannels::phases_of(const AxisGeometry &w) {
    const std::int64_t taps = w.kernel / w.stride, more = w.kernel % w.stride;
    if (more == 0) return {{0, w.stride, taps}};
    return {{0, more, taps + 1}, {more, w.stride - more, taps}};
}

Geometry PhasesAsChannels::without_post_ops() const {
    Geometry g = geometry_;
    g.post_ops = {};
    return g;
}

Geometry PhasesAsChannels::layer(const Phases &phases, std::int64_t q_begin, std::int64_t q_count) const {
    Geometry g = without_post_ops();
    g.y_order = YOrder::kChannels;
    g.group = 1;
    g.in_channels = geometry_.in_channels_per_group();
    g.out_channels = phases.count * (folds() ? geometry_.out_channels : 1);
    AxisGeometry &w = g.axes.back();
    w.out = q_count;
    w.kernel = phases.taps;
    w.stride = w.dilation = 1;
    w.output_padding = 0;
    w.pad_begin = q_begin;
    w.pad_end = w.in - 1 + w.kernel - w.out - w.pad_begin;
    w.kernel_step = -1;
    w.offset_step = 1;
    const DimensionOrder at = g.dimensions();
    g.x_shape[at.channel] = g.in_channels;
    g.y_shape[at.channel] = g.out_channels;
    g.y_shape[at.last_axis] = q_count;
    g.w_shape[0] = g.in_channels;
    g.w_shape[1] = g.out_channels;
    g.w_shape.back() = phases.taps;
    return g;
}

std::vector<PhasesAsChannels::Piece> PhasesAsChannels::pieces_of(const Phases &r) const {
    const AxisGeometry &w = geometry_.axes.back();
    const std::int64_t last = r.first + r.count - 1;
    // These are the positions at which some phase is inside y, and those at which all are.
    const std::int64_t begin = ceil_div(w.pad_begin - last, w.stride),
                       end = floor_div(w.out - 1 + w.pad_begin - r.first, w.stride) + 1;
    const std::int64_t whole_begin = std::min(ceil_div(w.pad_begin - r.first, w.stride), end),
                       whole_end = std::max(floor_div(w.out - 1 + w.pad_begin - last, w.stride) + 1, whole_begin);
    std::vector<Piece> pieces;
    if (whole_end > whole_begin) pieces.push_back({nullptr, r, 0, whole_begin, whole_end - whole_begin, false});
    for (std::int64_t q = begin; q < end; q++) {
        if (q >= whole_begin && q < whole_end) {
            q = whole_end - 1;
        } else {
            pieces.push_back({nullptr, r, 0, q, 1, true});
        }
    }
    if (pieces.empty()) pieces.push_back({nullptr, r, 0, begin, 1, true}); // keeps one: y of another size may have some
    return pieces;
}

void PhasesAsChannels::gather(const Phases &r, std::int64_t channel, const void *w, const void *b, char *w_out,
                              char *b_out) const {
    const auto size = static_cast<std::int64_t>(convt_dtype_size(geometry_.w_dtype));
    const Shape &shape = geometry_.w_shape; // (C, M/group, K1..Kn)
    const std::int64_t kernel = shape.back(), stride = geometry_.axes.back().stride;
    std::int64_t rows = 1; // rows of kernel elements along w, for a pair of channels
    for (std::size_t i = 2; i + 1 < shape.size(); i++) rows *= shape[i];
    const std::int64_t oc = geometry_.out_channels_per_group(), ic = geometry_.in_channels_per_group();
    const std::int64_t folded = folds() ? oc : 1, first_m = channel % oc;
    const auto *const from = static_cast<const char *>(w) + channel / oc * ic * oc * rows * kernel * size;
    for (std::int64_t c = 0; c < ic; c++) {
        for (std::int64_t i = 0; i < r.count; i++) {
            for (std::int64_t m = first_m; m < first_m + folded; m++) {
                for (std::int64_t row = 0; row < rows; row++) {
                    const char *element = from + (((c * oc + m) * rows + row) * kernel + r.first + i) * size;
                    for (std::int64_t t = 0; t < r.taps; t++, element += stride * size, w_out += size) {
                        std::memcpy(w_out, element, static_cast<std::size_t>(size));
                    }
                }
            }
        }
    }
    if (!b) return;
    const auto b_size = static_cast<std::int64_t>(convt_dtype_size(geometry_.b_dtype));
    for (std::int64_t i = 0; i < r.count; i++, b_out += folded * b_size) {
        std::memcpy(b_out, static_cast<const char *>(b) + channel * b_size, static_cast<std::size_t>(folded * b_size));
    }
}

QuantizationValues PhasesAsChannels::quantization_of(const QuantizationValues &q, std::int64_t channel,
                                                     std::int64_t phases) const {
    const std::int64_t folded = folds() ? geometry_.out_channels : 1;
    return for_channels(q, phases * folded, [&](std::int64_t i) { return channel + i % folded; });
}

double PhasesAsChannels::estimated(const WeightFacts &facts) const {
    double cycles = 0;
    for (const Phases &r : phases_of(geometry_.axes.back())) {
        for (const Piece &piece : pieces_of(r)) {
            cycles += least_cost(layer(r, piece.q_begin, piece.q_count), settings_.isa, *settings_.profile, facts);
        }
    }
    return static_cast<double>(channels()) * cycles;
}

std::unique_ptr<AlgorithmPlan> PhasesAsChannels::propose(const AlgorithmProblem &problem, const Planner & /*planner*/,
                                                         UnsupportedReason *why) {
    const Geometry &geometry = problem.geometry;
    const AxisGeometry &axis = geometry.axes.back();
    const bool last = geometry.layout == CONVT_CHANNELS_LAST;
    const bool supported = supports(
        {{problem.constant_weights, kNeedsConstantWeights},
         {geometry.axes.size() <= 3, kNeedsThreeAxes},
         {has_elements(geometry), kNeedsElements},
         {axis.stride > 1, "the stride along the last axis is 1"},
         {axis.dilation == 1, "the last axis is dilated"},
         {axis.kernel >= axis.stride, "the kernel is shorter than the stride"},
         {geometry.out_channels <= (last ? kMostFolded : kMostChannels), "too many output channels to be worth it"},
         {!last || geometry.group == 1, "groups, and channels last"}},
        why);
    if (!supported) return nullptr;
    std::unique_ptr<PhasesAsChannels> own(new PhasesAsChannels(geometry, problem.settings));
    own->quantization_ = problem.quantization;
    const CostProfile &profile = *problem.settings.profile;
    own->estimate({own->estimated(problem.facts)},
                  last ? profile.margin_phases_as_channels_last : profile.margin_phases_as_channels);
    return own;
}

Status PhasesAsChannels::build(const LayerWeights &weights, const Planner &planner) {
    for (std::int64_t channel = 0; channel < channels(); channel++) {
        for (const Phases &r : phases_of(geometry_.axes.back())) {
            const Piece piece = std::move(pieces_of(r).front());
            const Geometry sub = layer(r, piece.q_begin, piece.q_count);
            Block gathered;
            const std::uint64_t w_bytes = round_up(sub.w_bytes()); // the bias is aligned, too
            Status status = get_block(settings_.allocator, w_bytes + sub.b_bytes(), "weights", &gathered);
            if (!status) return status;
            auto *const sub_w = static_cast<char *>(gathered.data()), *const sub_b = sub_w + w_bytes;
            gather(r, channel, weights.w, weights.b, sub_w, sub_b);
            std::unique_ptr<SubPlan> first;
            QuantizationValues values;
            if (quantization_) values = quantization_of(*quantization_, channel, r.count);
            status = planner.plan(sub, settings_, quantization_ ? &values : nullptr,
                                  {sub_w, weights.b ? sub_b : nullptr}, &first);
            const SubPlan *const whole = first.get();
            if (status) status = add_pieces(r, channel, whole, nullptr, std::move(first));
            if (!status) return status;
        }
    }
    if (folds()) {
        PlanSettings settings = settings_;
        settings.excluded = all_but_direct();
        Status status = planner.plan(without_post_ops(), settings, quantization_, weights, &for_gaps_);
        if (!status) return status;
    }
    quantization_ = nullptr;
    plan_workspace();
    return Status();
}

Status PhasesAsChannels::add_pieces(const Phases &r, std::int64_t channel, const SubPlan *whole, const SubPlan *aside,
                                    std::unique_ptr<SubPlan> first) {
    for (Piece &piece : pieces_of(r)) {
        piece.channel = channel;
        piece.plan = std::move(first);
        if (!piece.plan) {
            const SubPlan *const from = piece.aside && aside ? aside : whole;
            Status status = from->reshape(layer(r, piece.q_begin, piece.q_count), settings_.parallel, &piece.plan);
            if (!status) return status;
        }
        if (piece.aside) aside = piece.plan.get();
        pieces_.push_back(std::move(piece));
    }
    return Status();
}

Status PhasesAsChannels::reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const {
    const Geometry &geometry = problem.geometry;
    std::unique_ptr<PhasesAsChannels> own(new PhasesAsChannels(geometry, problem.settings));
    for (std::size_t i = 0; i < pieces_.size();) {
        const Piece &first = pieces_[i];
        const SubPlan *aside = nullptr;
        for (; i < pieces_.size() && first.is_beside(pieces_[i]); i++) {
            if (pieces_[i].aside) aside = pieces_[i].plan.get();
        }
        Status status = own->add_pieces(first.phases, first.channel, first.plan.get(), aside, nullptr);
        if (!status) return status;
    }
    if (for_gaps_) {
        if (Status status = for_gaps_->reshape(own->without_post_ops(), own->settings_.parallel, &own->for_gaps_);
            !status)
            return status;
    }
    own->plan_workspace();
    *made = std::move(own);
    return Status();
}

std::string PhasesAsChannels::summary() const {
    return concat("phases of w as output channels, of ", pieces_.size(), " layers of stride 1");
}

std::vector<const SubPlan *> PhasesAsChannels::layers() const {
    std::vector<const SubPlan *> plans = plans_of(pieces_);
    if (for_gaps_) plans.push_back(for_gaps_.get());
    return plans;
}

void PhasesAsChannels::plan_workspace() {
    for (const Piece &piece : pieces_) {
        layer_bytes_ = std::max(layer_bytes_, round_up(piece.plan->workspace_bytes()));
        if (!piece.aside) continue;
        aside_bytes_ = std::max(aside_bytes_, y_bytes(piece.plan->geometry()));
    }
    if (for_gaps_) layer_bytes_ = std::max(layer_bytes_, round_up(for_gaps_->workspace_bytes()));
}

Status PhasesAsChannels::run(const RunTensors &t, char *workspace) const {
    if (for_gaps_) {
        const std::size_t w = geometry_.y_shape.size() - 2;
        if (t.y_strides[w] != geometry_.out_channels) return for_gaps_->run(t, workspace);
    }
    std::vector<QuantizationValues> values; // all are made before y is written, because memory may run out
    if (t.quantization) {
        for (const Piece &piece : pieces_)
            values.push_back(quantization_of(*t.quantization, piece.channel, piece.phases.count));
    }
    for (std::size_t i = 0; i < pieces_.size(); i++) {
        const QuantizationValues *const own = values.empty() ? nullptr : &values[i];
        if (Status status = run_piece(pieces_[i], t, own, workspace); !status) return status;
    }
    return Status();
}

Status PhasesAsChannels::run_piece(const Piece &piece, const RunTensors &t, const QuantizationValues *values,
                                   char *workspace) const {
    const AxisGeometry &axis = geometry_.axes.back();
    const std::size_t rank = t.y_strides.size(), c_at = geometry_.dimensions().channel,
                      w_at = geometry_.dimensions().last_axis;
    const auto x_size = static_cast<std::int64_t>(convt_dtype_size(geometry_.dtype)),
               y_size = static_cast<std::int64_t>(convt_dtype_size(geometry_.y_dtype));
    const std::int64_t group = piece.channel / geometry_.out_channels_per_group();
    const std::int64_t first = piece.q_begin * axis.stride + piece.phases.first - axis.pad_begin; // negative: before y
    const std::int64_t w_stride = t.y_strides[w_at], channel_offset = piece.channel * t.y_strides[c_at];

    RunTensors own;
    own.x = static_cast<const char *>(t.x) + group * geometry_.in_channels_per_group() * t.x_strides[c_at] * x_size;
    own.x_strides = t.x_strides;
    own.y_strides = t.y_strides;
    own.quantization = values;
    if (!piece.aside) {
        own.y = static_cast<char *>(t.y) + (channel_offset + first * w_stride) * y_size;
        own.y_strides[c_at] = 1;
        own.y_strides[w_at] = axis.stride * w_stride;
        return piece.plan->run(own, workspace);
    }

    // The result is one position, dense: (n, outer axes, phases).
    const Shape &shape = piece.plan->geometry().y_shape;
    const std::int64_t channels = shape[c_at], folded = channels / piece.phases.count;
    char *const aside = workspace + layer_bytes_;
    own.y = aside;
    own.y_strides[c_at] = 1;
    std::int64_t stride = channels;
    for (std::size_t i = rank; i-- > 0;) {
        if (i == c_at) continue;
        own.y_strides[i] = stride;
        stride *= shape[i]; // the extent of w is 1
    }
    if (Status status = piece.plan->run(own, workspace); !status) return status;
    const std::int64_t begin = std::max<std::int64_t>(-first, 0), end = std::min(piece.phases.count, axis.out - first);
    Strides at(rank);
    for (;;) {
        std::int64_t from = 0, to = channel_offset + first * w_stride;
        for (std::size_t i = 0; i < rank; i++) {
            from += at[i] * own.y_strides[i];
            to += at[i] * t.y_strides[i];
        }
        for (std::int64_t r = begin; r < end; r++) {
            std::memcpy(static_cast<char *>(t.y) + (to + r * w_stride) * y_size, aside + (from + r * folded) * y_size,
                        static_cast<std::size_t>(folded * y_size));
        }
        std::size_t i = rank;
        while (i-- > 0) {
            if (i == c_at || i == w_at) continue;
            if (++at[i] < shape[i]) break;
            at[i] = 0;
        }
        if (i == static_cast<std::size_t>(-1)) return Status();
    }
}

} // namespace convtranspose
