// Plans whose weights, or whose x, are converted before a plan of other types computes the problem: light weights become weights
// of f32, and an x that is quantized by each run becomes one of u8.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/allocator.h"
#include "base/division.h"
#include "base/shape.h"
#include "plan/problem_plan.h"

namespace convtranspose {

namespace {

// This is the plan of a problem through another plan, which has converted operands.
class ConvertingPlan : public ProblemPlan {
  public:
    ConvertingPlan(const Geometry &geometry, const PlanSettings &settings)
        : geometry_(geometry), settings_(settings), workspaces_(settings.allocator) {}

    bool weights_at_run_time() const override { return inner_->weights_at_run_time(); }
    const QuantizationValues *quantization() const override { return quantization_ ? &*quantization_ : nullptr; }
    std::size_t workspace_bytes() const override {
        const std::uint64_t bytes = own_bytes_ + inner_->workspace_bytes();
        return static_cast<std::size_t>(std::min<std::uint64_t>(bytes, PTRDIFF_MAX));
    }
    std::size_t packed_bytes() const override { return inner_->packed_bytes(); }
    int threads() const override { return inner_->threads(); }
    bool is_on_device() const override { return inner_->is_on_device(); }
    const char *isa() const override { return inner_->isa(); }
    const char *variant() const override { return inner_->variant(); }
    const char *algorithm() const override { return inner_->algorithm(); }
    const std::vector<AbleCandidate> &able() const override { return inner_->able(); }
    const CostProfile *profile() const override { return inner_->profile(); }
    const std::vector<const char *> &kernels() const override { return inner_->kernels(); }
    TuningRecord record() const override { return inner_->record(); }
    const std::string &explanation() const override {
        std::call_once(explained_, [this] { explanation_ = preface() + inner_->explanation(); });
        return explanation_;
    }

    Status run(const RunTensors &tensors, void *workspace) const override {
        if (volume(geometry_.y_shape) == 0) return Status();
        Block block;
        if (!workspace && own_bytes_) {
            block = workspaces_.take(own_bytes_ + inner_->workspace_bytes());
            if (!block) return out_of_memory(own_bytes_ + inner_->workspace_bytes(), "workspace");
            workspace = block.data();
        }
        Status status = run_in(tensors, static_cast<char *>(workspace));
        workspaces_.put(std::move(block));
        return status;
    }

    Status reshape(const Geometry &geometry, std::unique_ptr<ProblemPlan> *plan) const override {
        std::unique_ptr<ConvertingPlan> own = other(geometry);
        own->quantization_ = quantization_;
        Status status = inner_->reshape(own->converted(), &own->inner_);
        if (status) status = own->finish();
        if (status) *plan = std::move(own);
        return status;
    }

    Status create(const QuantizationValues *quantization, const LayerWeights &weights, const MakePlan &make) {
        if (quantization) quantization_ = *quantization;
        Status status = make_inner(weights, make);
        return status ? finish() : status;
    }

  protected:
    virtual Geometry converted() const = 0;                                            // what inner_ computes
    virtual std::unique_ptr<ConvertingPlan> other(const Geometry &geometry) const = 0; // without an inner plan
    virtual Status make_inner(const LayerWeights &weights, const MakePlan &make) = 0;
    virtual std::uint64_t bytes_of_run() const = 0; // of converted operands
    virtual std::string preface() const = 0;        // of the explanation
    // workspace: workspace_bytes(), of which the first own_bytes_ are those of converted operands; null if there are none of these.
    virtual Status run_in(const RunTensors &tensors, char *workspace) const = 0;

    // Returns the quantization of a run.
    const QuantizationValues *quantization_of(const RunTensors &t) const {
        return t.quantization ? t.quantization : quantization();
    }
    // The workspace of inner_ in a run's; null if it has a workspace of its own.
    char *behind_own(char *workspace) const { return inner_->workspace_bytes() ? workspace + own_bytes_ : nullptr; }

    const Geometry geometry_;
    const PlanSettings settings_;
    std::optional<QuantizationValues> quantization_;
    std::unique_ptr<ProblemPlan> inner_;
    std::uint64_t own_bytes_ = 0;

  private:
    Status finish() {
        own_bytes_ = round_up(bytes_of_run());
        const std::uint64_t bytes = own_bytes_ + inner_->workspace_bytes();
        if (bytes <= static_cast<std::uint64_t>(PTRDIFF_MAX)) return Status();
        return Status(CONVT_OUT_OF_MEMORY, concat("a workspace of ", bytes, " bytes does not fit in memory"));
    }

    mutable SpareBlocks workspaces_;
    mutable std::once_flag explained_;
    mutable std::string explanation_;
};

class LightWeightsPlan : public ConvertingPlan {
  public:
    using ConvertingPlan::ConvertingPlan;

  private:
    Geometry converted() const override {
        Geometry g = geometry_;
        g.w_dtype = CONVT_F32;
        g.light = light_;
        return g;
    }

    std::unique_ptr<ConvertingPlan> other(const Geometry &geometry) const override {
        auto plan = std::make_unique<LightWeightsPlan>(geometry, settings_);
        plan->light_ = light_;
        return plan;
    }

    Status make_inner(const LayerWeights &weights, const MakePlan &make) override {
        if (!weights.w) return make(converted(), nullptr, weights, &inner_);
        Block expanded;
        Status status = get_block(settings_.allocator, bytes_of_weights(), "weights of f32", &expanded);
        if (!status) return status;
        expand_weights(geometry_, quantization(), weights.w, static_cast<float *>(expanded.data()), &light_);
        return make(converted(), nullptr, {expanded.data(), weights.b}, &inner_);
    }

    std::uint64_t bytes_of_weights() const { return volume(geometry_.w_shape) * sizeof(float); }
    std::uint64_t bytes_of_run() const override { return weights_at_run_time() ? bytes_of_weights() : 0; }
    std::string preface() const override {
        const char *const dtype = convt_dtype_name(geometry_.w_dtype);
        if (weights_at_run_time()) return concat("weights of ", dtype, " become f32 with each run\n");
        if (!light_.exist()) return concat("weights of ", dtype, " are f32: less their zero points, they are no s8\n");
        return "";
    }

    Status run_in(const RunTensors &t, char *workspace) const override {
        RunTensors own = t;
        own.quantization = nullptr;
        if (!weights_at_run_time()) return inner_->run(own, workspace);
        expand_weights(geometry_, quantization_of(t), t.w, reinterpret_cast<float *>(workspace), nullptr);
        own.w = workspace;
        return inner_->run(own, behind_own(workspace));
    }

    LightWeights light_;
};

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

class QuantizedInputPlan : public ConvertingPlan {
  public:
    using ConvertingPlan::ConvertingPlan;

  private:
    Geometry converted() const override {
        Geometry g = geometry_;
        g.dtype = CONVT_U8;
        g.quantizes_x = false;
        return g;
    }

    std::unique_ptr<ConvertingPlan> other(const Geometry &geometry) const override {
        return std::make_unique<QuantizedInputPlan>(geometry, settings_);
    }

    Status make_inner(const LayerWeights &weights, const MakePlan &make) override {
        return make(converted(), quantization(), weights, &inner_);
    }

    std::uint64_t bytes_of_run() const override { return volume(geometry_.x_shape); }
    std::string preface() const override { return "x of f32 becomes u8 with each run\n"; }

    Status run_in(const RunTensors &t, char *workspace) const override {
        if (t.x_memory != CONVT_HOST_MEMORY) {
            return Status(CONVT_UNSUPPORTED, "x is in device memory: quantizes_x is for x in host memory");
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
            for_each_run(t, [&](std::size_t, std::int64_t from, std::int64_t to, std::int64_t count) {
                quantize(static_cast<const float *>(t.x) + from, count, q.x_scale, q.x_zero_point, x + to);
            });
        } else {
            // The sums are whole numbers, and their product with a NaN is NaN, whatever they are.
            std::memset(x, 0, static_cast<std::size_t>(volume(geometry_.x_shape)));
            q.x_scale = std::numeric_limits<float>::quiet_NaN();
        }
        RunTensors own = t;
        own.x = x;
        own.x_strides = dense_strides(geometry_.x_shape);
        own.quantization = &q;
        return inner_->run(own, behind_own(workspace));
    }

    static constexpr std::int64_t kLeastOfTask = 1 << 16, kMostTasks = 64;

    Range range_of_x(const RunTensors &t) const {
        std::array<Range, kMostTasks> ranges;
        for_each_run(t, [&](std::size_t task, std::int64_t from, std::int64_t, std::int64_t count) {
            ranges[task].add(range_of(static_cast<const float *>(t.x) + from, count));
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
        while (outer > 0 && (shape[outer - 1] == 1 || t.x_strides[outer - 1] == length)) length *= shape[--outer];
        const std::int64_t elements = volume(shape),
                           tasks = std::clamp<std::int64_t>(
                               elements / kLeastOfTask, 1,
                               std::min(kMostTasks, std::int64_t{4} * settings_.parallel.threads));
        settings_.parallel.for_each(static_cast<std::size_t>(tasks), [&](std::size_t task) {
            const auto part = [&](std::size_t i) {
                return elements / tasks * i + std::min<std::int64_t>(i, elements % tasks);
            };
            const std::int64_t end = part(task + 1);
            for (std::int64_t begin = part(task); begin < end;) {
                std::int64_t from = begin % length, rest = begin / length;
                for (std::size_t a = outer; a-- > 0; rest /= shape[a]) from += rest % shape[a] * t.x_strides[a];
                const std::int64_t count = std::min(length - begin % length, end - begin);
                f(task, from, begin, count);
                begin += count;
            }
        });
    }
};

} // namespace

Status plan_by_converting(const Geometry &geometry, const PlanSettings &settings,
                          const QuantizationValues *quantization, const LayerWeights &weights, const MakePlan &make,
                          std::unique_ptr<ProblemPlan> *plan) {
    std::unique_ptr<ConvertingPlan> own;
    if (geometry.quantizes_x) {
        own = std::make_unique<QuantizedInputPlan>(geometry, settings);
    } else {
        own = std::make_unique<LightWeightsPlan>(geometry, settings);
    }
    Status status = own->create(quantization, weights, make);
    if (status) *plan = std::move(own);
    return status;
}

} // namespace convtranspose
