// Plans whose weights, or whose x, are converted before a plan of other types computes the problem: light weights become weights
// of f32, and an x that is quantized by each run becomes one of u8.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/allocator.h"
#include "base/shape.h"
#include "plan/problem_plan.h"

namespace convtranspose {

namespace {

// The least and the greatest of some numbers and 0.
struct Range {
    float least = 0, most = 0;
    bool has_nan = false;

    void add(const Range &r) {
        least = std::min(least, r.least);
        most = std::max(most, r.most);
        has_nan = has_nan || r.has_nan;
    }
};

constexpr std::int64_t kAtOnce = 16; // numbers, in as many independent lanes

Range range_of(const float *numbers, std::int64_t count) {
    float least[kAtOnce] = {}, most[kAtOnce] = {};
    int nans[kAtOnce] = {};
    std::int64_t i = 0;
    const auto add = [&](float number, std::int64_t lane) {
        least[lane] = number < least[lane] ? number : least[lane];
        most[lane] = number > most[lane] ? number : most[lane];
        nans[lane] |= number != number;
    };
    for (; i + kAtOnce <= count; i += kAtOnce) {
        for (std::int64_t lane = 0; lane < kAtOnce; lane++) add(numbers[i + lane], lane);
    }
    for (; i < count; i++) add(numbers[i], 0);
    Range range;
    for (std::int64_t lane = 0; lane < kAtOnce; lane++) range.add({least[lane], most[lane], nans[lane] != 0});
    return range;
}

// Sets to[i] = saturate(round(numbers[i] / scale) + zero_point), ties to even. Numbers are in the range that scale was made for, so
// that the quotients are small, and adding 1.5 * 2^23 rounds them and leaves the result in the low bits.
void quantize(const float *numbers, std::int64_t count, float scale, std::int32_t zero_point, std::uint8_t *to) {
    constexpr float kRounding = 12582912;
    constexpr std::int32_t kRoundingBits = 0x4b400000;
    for (std::int64_t i = 0; i < count; i++) {
        const float rounded = numbers[i] / scale + kRounding;
        std::int32_t bits = 0;
        std::memcpy(&bits, &rounded, sizeof bits);
        const std::int32_t whole = bits - kRoundingBits + zero_point;
        to[i] = static_cast<std::uint8_t>(whole < 0 ? 0 : whole > 255 ? 255 : whole);
    }
}

// This is the plan of a problem through another plan, whose weights (light ones) or whose x (of plans that quantize it) are
// converted.
class ConvertingPlan : public ProblemPlan {
  public:
    ConvertingPlan(const Geometry &geometry, const PlanSettings &settings, const QuantizationValues *quantization)
        : geometry_(geometry), settings_(settings), workspaces_(settings.allocator) {
        if (quantization) quantization_ = *quantization;
    }

    const std::vector<AbleCandidate> &able() const override { return inner_->able(); }
    const std::vector<const char *> &kernels() const override { return inner_->kernels(); }
    TuningRecord record() const override { return inner_->record(); }

    std::string explain() const override {
        const char *const dtype = convt_dtype_name(geometry_.w_dtype);
        std::string said;
        if (geometry_.quantizes_x) {
            said = "x of f32 becomes u8 with each run\n";
        } else if (facts_.weights_at_run_time) {
            said = concat("weights of ", dtype, " become f32 with each run\n");
        } else if (!light_.exist()) {
            said = concat("weights of ", dtype, " are f32: less their zero points, they are no s8\n");
        }
        return said + inner_->explain();
    }

    Status run(const RunTensors &tensors, void *workspace) const override {
        if (volume(geometry_.y_shape) == 0) return Status();
        const std::uint64_t bytes = own_bytes_ ? own_bytes_ + inner_->facts().workspace_bytes : 0;
        return workspaces_.lend(workspace, bytes, [&](char *given) {
            return geometry_.quantizes_x ? run_quantized(tensors, given) : run_light(tensors, given);
        });
    }

    Status reshape(const Geometry &geometry, std::unique_ptr<ProblemPlan> *plan) const override {
        auto own = std::make_unique<ConvertingPlan>(geometry, settings_, facts_.quantization);
        own->light_ = light_;
        TRY(inner_->reshape(own->converted(), &own->inner_));
        TRY(own->finish());
        *plan = std::move(own);
        return Status();
    }

    // Makes inner_.
    Status create(const LayerWeights &weights, const MakePlan &make) {
        Block expanded;
        LayerWeights own = weights;
        if (!geometry_.quantizes_x && weights.w) {
            TRY(get_block(settings_.allocator, bytes_of_weights(), "weights of f32", &expanded));
            expand_weights(geometry_, weights.quantization, weights.w, static_cast<float *>(expanded.data()), &light_);
            own.w = expanded.data();
        }
        if (!geometry_.quantizes_x) own.quantization = nullptr;
        TRY(make(converted(), own, &inner_));
        return finish();
    }

  private:
    // Returns what inner_ computes.
    Geometry converted() const {
        Geometry g = geometry_;
        if (g.quantizes_x) {
            g.dtype = CONVT_U8;
            g.quantizes_x = false;
        } else {
            g.w_dtype = CONVT_F32;
            g.light = light_;
        }
        return g;
    }

    Status finish() {
        facts_ = inner_->facts();
        facts_.quantization = quantization_ ? &*quantization_ : nullptr;
        own_bytes_ = round_up(geometry_.quantizes_x        ? volume(geometry_.x_shape)
                              : facts_.weights_at_run_time ? bytes_of_weights()
                                                           : 0);
        const std::uint64_t bytes = own_bytes_ + facts_.workspace_bytes;
        facts_.workspace_bytes = static_cast<std::size_t>(bytes);
        return check_workspace(bytes);
    }

    std::uint64_t bytes_of_weights() const { return volume(geometry_.w_shape) * sizeof(float); }

    // Returns the quantization of a run.
    const QuantizationValues *quantization_of(const RunTensors &t) const {
        return t.quantization ? t.quantization : facts_.quantization;
    }
    // The workspace of inner_ in a run's; null if it has a workspace of its own.
    char *behind_own(char *workspace) const {
        return inner_->facts().workspace_bytes ? workspace + own_bytes_ : nullptr;
    }

    // workspace: facts_.workspace_bytes, of which the first own_bytes_ are those of converted operands; null if there are none of
    // these.
    Status run_light(const RunTensors &t, char *workspace) const {
        RunTensors own = t;
        own.quantization = nullptr;
        if (!facts_.weights_at_run_time) return inner_->run(own, workspace);
        expand_weights(geometry_, quantization_of(t), t.w, reinterpret_cast<float *>(workspace), nullptr);
        own.w = workspace;
        return inner_->run(own, behind_own(workspace));
    }

    Status run_quantized(const RunTensors &t, char *workspace) const {
        if (t.x.memory != CONVT_HOST_MEMORY) {
            return unsupported("x is in device memory: quantizes_x is for x in host memory");
        }
        auto *const x = reinterpret_cast<std::uint8_t *>(workspace);
        QuantizationValues q = *quantization_of(t);
        const Range range = range_of_x(t);
        const float width = range.most - range.least;
        const bool is_finite = !range.has_nan && std::isfinite(range.least) && std::isfinite(range.most);
        // The difference of two finite numbers may be infinite, and a 255th of it may be zero.
        q.x_scale = std::isfinite(width) ? width / 255
                                         : static_cast<float>((static_cast<double>(range.most) - range.least) / 255);
        if (!is_finite || q.x_scale == 0) q.x_scale = 1;
        q.x_zero_point = is_finite ? static_cast<std::int32_t>(std::nearbyint(-range.least / q.x_scale)) : 0;
        q.x_zero_point = std::min(q.x_zero_point, 255);
        if (is_finite) {
            for_each_run(t, [&](std::int64_t, std::int64_t from, std::int64_t to, std::int64_t count) {
                quantize(static_cast<const float *>(t.x.data) + from, count, q.x_scale, q.x_zero_point, x + to);
            });
        } else {
            // The sums are whole numbers, and their product with a NaN is NaN, whatever they are.
            std::memset(x, 0, static_cast<std::size_t>(volume(geometry_.x_shape)));
            q.x_scale = std::numeric_limits<float>::quiet_NaN();
        }
        RunTensors own = t;
        own.x = {x, dense_strides(geometry_.x_shape)};
        own.quantization = &q;
        return inner_->run(own, behind_own(workspace));
    }

    static constexpr std::int64_t kLeastOfTask = 1 << 16, kMostTasks = 64;

    Range range_of_x(const RunTensors &t) const {
        std::array<Range, kMostTasks> ranges;
        for_each_run(t, [&](std::int64_t task, std::int64_t from, std::int64_t, std::int64_t count) {
            ranges[static_cast<std::size_t>(task)].add(range_of(static_cast<const float *>(t.x.data) + from, count));
        });
        Range all;
        for (const Range &range : ranges) all.add(range);
        return all;
    }

    // Calls f(task, from, to, count) for runs of elements of x that lie side by side: `from` in x, `to` in a dense copy. The calls
    // of a task are made one after the other.
    template<typename F>
    void for_each_run(const RunTensors &t, const F &f) const {
        const Shape &shape = geometry_.x_shape;
        std::size_t outer = shape.size(); // the number of axes that do not continue those inside them
        std::int64_t length = 1;
        while (outer > 0 && (shape[outer - 1] == 1 || t.x.strides[outer - 1] == length)) length *= shape[--outer];
        const std::int64_t elements = volume(shape),
                           tasks = std::clamp<std::int64_t>(
                               elements / kLeastOfTask, 1,
                               std::min(kMostTasks, std::int64_t{4} * settings_.parallel.threads));
        settings_.parallel.for_each(tasks, [&](std::int64_t task) {
            const auto part = [&](std::int64_t i) { return elements / tasks * i + std::min(i, elements % tasks); };
            const std::int64_t end = part(task + 1);
            for (std::int64_t begin = part(task); begin < end;) {
                std::int64_t from = begin % length, rest = begin / length;
                for (std::size_t a = outer; a-- > 0; rest /= shape[a]) from += rest % shape[a] * t.x.strides[a];
                const std::int64_t count = std::min(length - begin % length, end - begin);
                f(task, from, begin, count);
                begin += count;
            }
        });
    }

    const Geometry geometry_;
    const PlanSettings settings_;
    std::optional<QuantizationValues> quantization_;
    LightWeights light_; // those of inner_
    std::unique_ptr<ProblemPlan> inner_;
    std::uint64_t own_bytes_ = 0;
    mutable SpareBlocks workspaces_;
};

} // namespace

Status plan_by_converting(const Geometry &geometry, const PlanSettings &settings, const LayerWeights &weights,
                          const MakePlan &make, std::unique_ptr<ProblemPlan> *plan) {
    auto own = std::make_unique<ConvertingPlan>(geometry, settings, weights.quantization);
    TRY(own->create(weights, make));
    *plan = std::move(own);
    return Status();
}

} // namespace convtranspose
