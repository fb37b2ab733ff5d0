// The C interface, asked for any layer with any attributes: what is valid must be computed, by whatever is asked for, as the
// reference does, and what is not must be refused. Nothing beside the tensors and the blocks of a plan may be touched.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/fail.h"
#include "fuzz/guarded.h"
#include "reference/descriptor.h"
#include "reference/layer.h"
#include "reference/quantized.h"
#include "reference/reference.h"
#include "tools/problem_line.h"

namespace convtranspose::fuzz {
namespace {

using test::Axis;
using test::Expected;
using test::Inputs;
using test::Layer;
using test::Tensor;

// Limits of layers that are computed, so that the reference takes a moment.
constexpr double kMostElements = 1 << 14, kMostMacs = 3e5;
constexpr std::size_t kMostMemory = 64 << 20; // for packed weights and workspaces of such layers

using Wide = __int128;
constexpr Wide kMostAttribute = Wide{1} << 61, kMostExtent = (Wide{1} << 31) - 1; // both are the library's limits

class Draw {
  public:
    Draw(const std::uint8_t *data, std::size_t size) : data_(data, size) {}

    bool one_in(int n) { return data_.ConsumeIntegralInRange<int>(1, n) == n; } // false where the input has ended
    std::int64_t small(std::int64_t low, std::int64_t high) { return data_.ConsumeIntegralInRange(low, high); }
    std::int64_t any() {
        if (data_.ConsumeBool()) return data_.ConsumeIntegral<std::int64_t>();
        const std::uint64_t power = std::uint64_t{1} << small(0, 63);
        return static_cast<std::int64_t>(power + static_cast<std::uint64_t>(small(-2, 2)));
    }
    template<typename T>
    T pick(const std::vector<T> &values) {
        return values[static_cast<std::size_t>(small(0, static_cast<std::int64_t>(values.size()) - 1))];
    }

    Problem problem() {
        Problem p;
        Attributes &a = p.attributes;
        p.opset = pick<int>({22, 11, 1});
        p.dtype = pick<convt_dtype>({CONVT_F32, CONVT_F64, CONVT_F16, CONVT_BF16, CONVT_U8, CONVT_S8});
        p.layout = pick<convt_layout>({CONVT_CHANNELS_FIRST, CONVT_CHANNELS_LAST});
        const std::int64_t axes = small(1, 4);
        a.group = one_in(4) ? small(1, 5) : 1;
        const std::int64_t ic = one_in(3) ? small(0, 40) : small(1, 5), oc = one_in(3) ? small(0, 40) : small(1, 5);
        p.x_shape = {one_in(3) ? small(0, 9) : 1};
        p.w_shape = {a.group * ic, oc};
        Shape strides, dilations, begins, ends, output_padding, output_shape;
        for (std::int64_t i = 0; i < axes; ++i) {
            const std::int64_t in = one_in(8) ? small(0, axes > 1 ? 60 : 400) : small(1, 9),
                               kernel = one_in(8) ? small(1, axes > 1 ? 20 : 60) : small(1, 4);
            p.x_shape.push_back(in);
            p.w_shape.push_back(kernel);
            const auto step = [this] { return one_in(4) ? any() : small(1, 4); };
            strides.push_back(step());
            dilations.push_back(one_in(4) ? strides.back() : step());
            output_padding.push_back(one_in(4) ? any() : small(0, 2));
            output_shape.push_back(one_in(8) ? any() : small(1, 20));
            if (data_.ConsumeBool()) { // pads that leave a few positions around one where an input and a tap meet
                const auto product = [](std::int64_t x, std::int64_t y) {
                    return static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y);
                };
                const std::uint64_t natural =
                    product(strides.back(), in - 1) + product(dilations.back(), kernel - 1) + 1;
                const std::uint64_t meeting = product(strides.back(), small(0, std::max<std::int64_t>(in - 1, 0))) +
                                              product(dilations.back(), small(0, kernel - 1));
                const auto size = static_cast<std::uint64_t>(small(1, 20));
                begins.push_back(static_cast<std::int64_t>(meeting - static_cast<std::uint64_t>(small(0, 19))));
                ends.push_back(static_cast<std::int64_t>(natural - size - static_cast<std::uint64_t>(begins.back())));
            } else {
                begins.push_back(one_in(8) ? any() : small(0, 4));
                ends.push_back(one_in(8) ? any() : small(0, 4));
            }
        }
        p.x_shape.insert(p.layout == CONVT_CHANNELS_FIRST ? p.x_shape.begin() + 1 : p.x_shape.end(), a.group * ic);
        if (one_in(16)) p.w_shape[static_cast<std::size_t>(small(0, axes + 1))] = any();
        if (one_in(16)) p.x_shape[static_cast<std::size_t>(small(0, axes + 1))] = any();
        if (one_in(16)) a.group = any();
        begins.insert(begins.end(), ends.begin(), ends.end());
        a.strides = list(strides, 5);
        a.dilations = list(dilations, 3);
        a.pads = list(begins, 2);
        if (one_in(4)) a.output_padding = list(output_padding, 5);
        if (one_in(4)) a.output_shape = list(output_shape, 5);
        if (one_in(16)) a.kernel_shape = Shape(p.w_shape.begin() + 2, p.w_shape.end());
        if (one_in(4)) {
            a.auto_pad = pick<std::string>({"SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", "", "SAME"});
            if (!one_in(8)) a.pads = std::nullopt;
        }
        std::int64_t channels = 0;
        const bool too_many = __builtin_mul_overflow(p.w_shape[1], a.group, &channels);
        if (too_many) channels = 0;
        if (data_.ConsumeBool()) p.b_shape = Shape{one_in(32) ? any() : channels};
        if (test::is_quantized(p.dtype)) {
            p.w_dtype = pick<convt_dtype>({CONVT_S8, CONVT_U8});
            p.y_dtype = pick<convt_dtype>({CONVT_U8, CONVT_S8, CONVT_F32});
        }
        if (p.dtype == CONVT_F32 && one_in(4) && !too_many && channels < 1000) {
            test::make_light(&p, pick<convt_dtype>({CONVT_F16, CONVT_BF16, CONVT_S8, CONVT_U8}),
                             static_cast<std::int32_t>(small(0, 127)));
            p.quantizes_x = p.quantization && data_.ConsumeBool();
        }
        if (one_in(3) && p.y_dtype.value_or(CONVT_F32) != CONVT_U8 && p.y_dtype.value_or(CONVT_F32) != CONVT_S8) {
            p.post_ops.adds_residual = data_.ConsumeBool();
            p.post_ops.activation = pick<convt_activation>(
                {CONVT_NO_ACTIVATION, CONVT_RELU, CONVT_LEAKY_RELU, CONVT_CLIP, CONVT_SIGMOID, CONVT_TANH});
            p.post_ops.alpha = static_cast<float>(small(-12, 4)) / 4;
            p.post_ops.beta = 1 + static_cast<float>(small(0, 12)) / 4;
        }
        return p;
    }

    test::QuantizedAs quantized_as(const Problem &p) {
        test::QuantizedAs as;
        const auto zero_point = [this](convt_dtype dtype) {
            return static_cast<std::int32_t>(small(0, 255)) - (dtype == CONVT_S8 ? 128 : 0);
        };
        as.w = *p.w_dtype;
        as.y = *p.y_dtype;
        as.x_zero_point = zero_point(p.dtype);
        as.w_zero_point = zero_point(as.w);
        as.y_zero_point = as.y == CONVT_F32 ? 0 : zero_point(as.y);
        as.per_channel = data_.ConsumeBool();
        as.relu = one_in(4);
        return as;
    }

  private:
    // Absent one time in `absent`, of a wrong size now and then.
    Ints list(Shape values, int absent) {
        if (one_in(absent)) return std::nullopt;
        if (one_in(64)) values.push_back(1);
        if (one_in(64)) values.pop_back();
        return values;
    }

    FuzzedDataProvider data_;
};

// Whether the library says that it takes a layer of such sizes.
bool is_within_limits(const Problem &p, const Layer &layer) {
    const Attributes &a = p.attributes;
    for (const Ints *list : {&a.strides, &a.dilations, &a.output_padding, &a.pads}) {
        for (const std::int64_t value : list->value_or(Shape())) {
            if (value >= kMostAttribute) return false;
        }
    }
    const auto count = [](const Shape &shape) { // one more than the limit stands for all above it
        Wide elements = 1;
        for (const std::int64_t extent : shape)
            elements = std::min<Wide>(elements * std::min<Wide>(extent, kMostExtent + 1), kMostExtent + 1);
        return elements;
    };
    const auto fits = [](const Shape &shape) {
        return std::all_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent <= kMostExtent; });
    };
    if (!fits(layer.y_shape) || !fits(p.x_shape) || !fits(p.w_shape)) return false;
    if (std::max({count(layer.y_shape), count(p.x_shape), count(p.w_shape)}) > kMostExtent) return false;
    for (std::size_t i = 0; i < layer.axes.size(); ++i) {
        const Axis &axis = layer.axes[i];
        const Wide natural = Wide{axis.stride} * (axis.in - 1) + Wide{axis.dilation} * (axis.kernel - 1) + 1 +
                             (a.output_padding ? (*a.output_padding)[i] : 0);
        if (natural >= kMostAttribute) return false;
    }
    return true;
}

// Applies what follows the convolution, and widens the tolerance by how far that may be off.
void follow(const PostOps &p, const Tensor &residual, Expected *expected) {
    const convt_dtype dtype = expected->dtype;
    const double computed = std::ldexp(1.0, dtype == CONVT_F64 ? -53 : -24);
    const double stored = std::ldexp(1.0, dtype == CONVT_F16    ? -11
                                          : dtype == CONVT_BF16 ? -8
                                          : dtype == CONVT_F32  ? -24
                                                                : -53);
    const double least = dtype == CONVT_F16 ? std::ldexp(1.0, -24) : std::ldexp(1.0, -126);
    for (std::size_t i = 0; i < expected->value.size(); ++i) {
        double v = expected->value[i], off = expected->tolerance[i];
        off += 2 * stored * std::fabs(v); // rounded before what follows
        if (p.adds_residual) v += residual.get(static_cast<std::int64_t>(i));
        off += 4 * computed * std::fabs(v);
        const double alpha = static_cast<double>(p.alpha), beta = static_cast<double>(p.beta);
        switch (p.activation) {
        case CONVT_NO_ACTIVATION: break;
        case CONVT_RELU: v = v < 0 ? 0 : v; break;
        case CONVT_LEAKY_RELU:
            v = v < 0 ? v * alpha : v;
            off = off * std::fmax(1, std::fabs(alpha)) + 4 * computed * std::fabs(v);
            break;
        case CONVT_CLIP: v = v < alpha ? alpha : v > beta ? beta : v; break;
        case CONVT_SIGMOID:
            v = 1 / (1 + std::exp(-v));
            off += 16 * computed;
            break;
        case CONVT_TANH:
            v = std::tanh(v);
            off += 16 * computed;
            break;
        }
        expected->value[i] = v;
        expected->tolerance[i] = off + 2 * stored * std::fabs(v) + least;
    }
}

// A tensor in memory that ends where it does: dense, or with gaps along every axis but the last.
class Placed {
  public:
    Placed(const Tensor &dense, bool gaps) : shape_(dense.shape()), dtype_(dense.dtype()) {
        strides_.assign(shape_.size(), 1);
        std::int64_t span = 1;
        for (std::size_t i = shape_.size(); i-- > 0;) {
            if (i + 1 < shape_.size()) {
                strides_[i] = strides_[i + 1] * std::max<std::int64_t>(shape_[i + 1], 1) + (gaps ? 3 : 0);
            }
            span += std::max<std::int64_t>(shape_[i] - 1, 0) * strides_[i];
        }
        memory_.emplace(static_cast<std::size_t>(dense.size() ? span : 0) * convt_dtype_size(dtype_),
                        convt_dtype_size(dtype_));
        for (std::int64_t i = 0; i < dense.size(); ++i) test::store(dtype_, memory_->data(), place(i), dense.get(i));
    }
    ConstTensorView view() const { return {memory_->data(), dtype_, shape_, strides_}; }
    TensorView view() { return {memory_->data(), dtype_, shape_, strides_}; }
    Tensor get() const {
        Tensor dense(dtype_, shape_);
        for (std::int64_t i = 0; i < dense.size(); ++i) dense.set(i, test::load(dtype_, memory_->data(), place(i)));
        return dense;
    }
    // Whether all but the elements is as it was.
    bool gaps_are_whole() const {
        std::vector<char> expected(memory_->size(), static_cast<char>(0xff));
        for (std::int64_t i = 0; i < test::element_count(shape_); ++i) {
            const std::size_t size = convt_dtype_size(dtype_), at = static_cast<std::size_t>(place(i)) * size;
            std::memcpy(&expected[at], memory_->data() + at, size);
        }
        return std::equal(expected.begin(), expected.end(), memory_->data());
    }

  private:
    std::int64_t place(std::int64_t i) const {
        std::int64_t at = 0;
        for (std::size_t axis = shape_.size(); axis-- > 0; i /= shape_[axis]) at += i % shape_[axis] * strides_[axis];
        return at;
    }

    Shape shape_, strides_;
    convt_dtype dtype_;
    std::optional<Guarded> memory_;
};

bool is_small(const Problem &p, const Layer &layer) {
    double macs = static_cast<double>(layer.in_channels) * static_cast<double>(layer.out_per_group()) *
                  static_cast<double>(layer.batch);
    for (const Axis &axis : layer.axes) macs *= static_cast<double>(axis.in) * static_cast<double>(axis.kernel);
    const auto elements = [](const Shape &shape) {
        double count = 1;
        // The reference keeps accounts of an image, even of no images.
        for (const std::int64_t extent : shape) count *= static_cast<double>(std::max<std::int64_t>(extent, 1));
        return count;
    };
    return macs <= kMostMacs && elements(p.x_shape) <= kMostElements && elements(p.w_shape) <= kMostElements &&
           elements(layer.y_shape) <= kMostElements && layer.out_channels <= kMostElements;
}

struct Way {
    bool weights_with_run, gaps, own_workspace;
};

// Runs a plan of `problem` and compares. failing: an allocation may fail.
void run(const Plan &plan, const Problem &problem, const Inputs &inputs, const Tensor &residual, const Way &way,
         const Expected &expected, const GuardedAllocator &allocator) {
    const Placed x(inputs.x, way.gaps), w(inputs.w, false), r(residual, way.gaps);
    std::optional<Placed> b;
    if (inputs.b) b.emplace(*inputs.b, false);
    Placed y(Tensor(expected.dtype, expected.shape), way.gaps);
    const Guarded workspace(way.own_workspace ? plan.workspace_bytes() : 0, 64);

    // These refer to the views.
    const ConstTensorView x_view = x.view(), w_view = w.view(), r_view = r.view(),
                          b_view = b ? std::as_const(*b).view() : x_view;
    const TensorView y_view = y.view();
    const convt_tensor x_c = detail::view(x_view), w_c = detail::view(w_view), r_c = detail::view(r_view),
                       b_c = detail::view(b_view), y_c = detail::view(y_view);
    convt_arguments arguments{};
    arguments.struct_size = sizeof arguments;
    arguments.x = &x_c;
    arguments.y = &y_c;
    if (way.weights_with_run) arguments.w = &w_c;
    if (way.weights_with_run && b) arguments.b = &b_c;
    if (problem.post_ops.adds_residual) arguments.residual = &r_c;
    if (way.own_workspace) arguments.workspace = workspace.data();
    const convt_status status = convt_plan_run_with(plan.get(), &arguments);
    require(y.gaps_are_whole(), "something between the elements of y was written");
    if (status == CONVT_OUT_OF_MEMORY && allocator.failed()) return;
    require(status == CONVT_OK, std::string("the run says ") + convt_last_error());
    const testing::AssertionResult right = test::agrees(y.get(), expected);
    require(right, std::string(right.message()) + "\n" + plan.explain());
}

void try_interface(const std::uint8_t *data, std::size_t size) {
    Draw draw(data, size);
    Problem problem = draw.problem();
    set_context(test::describe(problem));
    Layer layer;
    std::string reason;
    const bool valid = test::derive(problem, &layer, &reason);
    Shape y_shape;
    Status status = infer_shape(problem, &y_shape);
    if (!valid) {
        require(status.code() == CONVT_INVALID_ARGUMENT || status.code() == CONVT_OVERFLOW,
                "taken, though " + reason + "; " + status.message());
        require(!status.message().empty(), "there is no message");
        Plan plan;
        require(!Plan::create(problem, Options{}, nullptr, nullptr, &plan), "planned, though " + reason);
        return;
    }
    if (!is_within_limits(problem, layer)) {
        // Tensors of which one dimension is 0 have no elements, however large the others are.
        require(status || status.code() == CONVT_OVERFLOW, "beyond the limits: " + status.message());
        return;
    }
    require(status, "refused: " + status.message());
    require(y_shape == layer.y_shape, "y has another shape");
    if (!is_small(problem, layer)) return;

    if (test::is_quantized(problem.dtype)) {
        test::quantize(&problem, draw.quantized_as(problem));
        set_context(test::describe(problem));
    }
    Options options{};
    options.winograd = draw.one_in(4) && !is_light(problem);
    if (draw.one_in(16)) {
        options.planning = CONVT_MEASURE;
        options.planning_ms = 1;
    }
    options.threads = static_cast<int>(draw.small(0, 4));
    options.all_threads = options.threads != 3;
    const auto isa = static_cast<std::size_t>(draw.small(0, static_cast<std::int64_t>(convt_isa_count())));
    if (convt_isa_supported(isa)) options.isa = convt_isa_name(isa);
    const Inputs inputs = [&] {
        const auto seed = static_cast<std::uint64_t>(draw.small(0, 1000));
        // Winograd's algorithm is exact of integers.
        Inputs drawn = test::draw(problem, seed,
                                  options.winograd || draw.one_in(2) ? test::Values::integers : test::Values::uniform);
        if (!options.winograd && !test::is_quantized(problem.dtype) && draw.one_in(4)) {
            const double value = draw.pick<double>({std::numeric_limits<double>::infinity(), std::nan("")});
            Tensor &tensor = draw.one_in(2) ? drawn.x : drawn.w;
            const bool is_float = !test::is_quantized(tensor.dtype()) && !problem.quantizes_x;
            if (tensor.size() && is_float) tensor.set(draw.small(0, tensor.size() - 1), value);
        }
        return drawn;
    }();
    Expected expected = test::reference(problem, inputs);
    Tensor residual(expected.dtype, problem.post_ops.adds_residual ? expected.shape : Shape(expected.shape.size(), 0));
    for (std::int64_t i = 0; i < residual.size(); ++i) residual.set(i, static_cast<double>(i % 7 - 3));
    if (problem.post_ops.adds_residual || problem.post_ops.activation != CONVT_NO_ACTIVATION) {
        follow(problem.post_ops, residual, &expected);
    }

    GuardedAllocator allocator(kMostMemory);
    allocator.add_to(&options);
    const Way way = {draw.one_in(3), draw.one_in(4), draw.one_in(4)};
    std::string variant;
    if (draw.one_in(2)) { // one of those that could compute it
        Plan any;
        status = Plan::create(problem, options, nullptr, nullptr, &any);
        require(status, "refused: " + status.message());
        const std::size_t count = convt_plan_candidate_count(any.get());
        if (count) {
            variant = convt_plan_candidate(
                any.get(), static_cast<std::size_t>(draw.small(0, static_cast<std::int64_t>(count) - 1)));
        }
        options.variant = variant.empty() ? nullptr : variant.c_str();
    }
    set_context(test::describe(problem, 0, options) + (way.gaps ? ", with gaps" : "") +
                (way.weights_with_run ? ", weights with the run" : "") + (options.winograd ? ", winograd" : ""));
    if (draw.one_in(8)) allocator.fail_at(static_cast<int>(draw.small(0, 9)));
    Plan plan;
    {
        const Placed w(inputs.w, false);
        std::optional<Placed> b;
        if (inputs.b) b.emplace(*inputs.b, false);
        const bool constant = !way.weights_with_run;
        status = Plan::create(problem, options, constant ? w.view().data : nullptr,
                              constant && b ? std::as_const(*b).view().data : nullptr, &plan);
    }
    if (status.code() == CONVT_UNSUPPORTED && options.variant) return;
    if (status.code() == CONVT_OUT_OF_MEMORY && allocator.failed()) return;
    require(status, "refused: " + status.message());
    require(plan.y_shape() == layer.y_shape, "y has another shape");
    if (draw.one_in(8)) plan.explain();
    run(plan, problem, inputs, residual, way, expected, allocator);
    if (draw.one_in(8)) { // again, as a plan that was made for another batch
        Shape other = problem.x_shape;
        other[0] = draw.small(0, 3);
        Plan there, back;
        status = plan.reshape(other, &there);
        if (status) status = there.reshape(problem.x_shape, &back);
        if (status.code() == CONVT_OUT_OF_MEMORY && allocator.failed()) return;
        require(status, "not reshaped: " + status.message());
        run(back, problem, inputs, residual, way, expected, allocator);
    }
}

} // namespace
} // namespace convtranspose::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    convtranspose::fuzz::try_interface(data, size);
    return 0;
}
