/// @file
/// Transposed convolution: the C++17 interface, a thin header over convtranspose.h, which states the rules.
///
///     convtranspose::Problem problem;
///     problem.x_shape = {1, 256, 16, 16};
///     problem.w_shape = {256, 128, 4, 4};
///     problem.attributes.strides = {{2, 2}};
///     problem.attributes.pads = {{1, 1, 1, 1}};
///     convtranspose::Plan plan;
///     convtranspose::Status status = convtranspose::Plan::create(problem, {}, weights, nullptr, &plan);
///     if (status) status = plan.run(x, y); // x, y: dense float data of plan.x_shape() and plan.y_shape()
///     if (!status) std::cerr << status.message();
#ifndef CONVTRANSPOSE_CONVTRANSPOSE_HPP_
#define CONVTRANSPOSE_CONVTRANSPOSE_HPP_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convtranspose/convtranspose.h"

namespace convtranspose {

/// Extents or strides, in elements.
using Shape = std::vector<std::int64_t>;

/// Success, or a code and a message that names the value and the rule. In a condition, true means success.
class [[nodiscard]] Status {
  public:
    /// Success.
    Status() = default;
    /// A failure with its message.
    Status(convt_status code, std::string message) : code_(code), message_(std::move(message)) {}

    /// True for success.
    explicit operator bool() const { return code_ == CONVT_OK; }
    /// CONVT_OK, or the kind of failure.
    convt_status code() const { return code_; }
    /// Which value broke which rule; empty for success.
    const std::string &message() const { return message_; }

    /// The status of a C call that has just been made on this thread.
    static Status from(convt_status code) { return code == CONVT_OK ? Status() : Status(code, convt_last_error()); }

  private:
    convt_status code_ = CONVT_OK;
    std::string message_;
};

/// An ONNX attribute that holds integers: absent unless assigned.
using Ints = std::optional<Shape>;

/// The attributes of an ONNX ConvTranspose node, by their ONNX names; see convt_attributes.
struct Attributes {
    std::optional<std::string> auto_pad; ///< "NOTSET", "SAME_UPPER", "SAME_LOWER" or "VALID".
    Ints dilations;                      ///< One for each spatial axis; 1 if absent.
    std::int64_t group = 1;              ///< Divides the input channels.
    Ints kernel_shape;                   ///< If assigned, the extents of the kernel.
    Ints output_padding;                 ///< One for each spatial axis; 0 if absent.
    Ints output_shape;                   ///< Extents of y; N and C may stand in front.
    Ints pads;                           ///< Begins of all axes, then ends; 0 if absent.
    Ints strides;                        ///< One for each spatial axis; 1 if absent.
};

/// How integers stand for reals: real = (integer - zero_point) * scale; see convt_quantization.
struct Quantization {
    float x_scale = 1;                            ///< Scale of x.
    std::int32_t x_zero_point = 0;                ///< Zero point of x.
    std::vector<float> w_scale = {1};             ///< Scales of w: one, or one for each output channel.
    std::vector<std::int32_t> w_zero_point = {0}; ///< Zero points of w, likewise.
    float y_scale = 1;                            ///< Scale of an 8-bit y.
    std::int32_t y_zero_point = 0;                ///< Zero point of an 8-bit y.
    std::optional<std::array<float, 2>> y_range;  ///< Least and greatest real that y is clamped to.
};

/// What follows the convolution; see convt_post_ops.
using PostOps = convt_post_ops;

/// A layer: the node, its types and its shapes. An x of type u8 or s8 makes it quantized.
struct Problem {
    int opset = 22;                             ///< Version of the operator, or any opset of a model.
    convt_dtype dtype = CONVT_F32;              ///< Type of x.
    std::optional<convt_dtype> w_dtype;         ///< Type of w; absent: the type of x.
    std::optional<convt_dtype> y_dtype;         ///< Type of y; absent: the type of x.
    std::optional<Quantization> quantization;   ///< For quantized layers; absent: it comes with each run.
    convt_layout layout = CONVT_CHANNELS_FIRST; ///< Layout of x, y and the residual.
    Attributes attributes;                      ///< The attributes of the node.
    Shape x_shape;                              ///< Shape of x, in the layout's order.
    Shape w_shape;                              ///< Shape of w: (C, M/group, K1..Kn).
    Ints b_shape;                               ///< Assigned, as (M): the layer has a bias.
    PostOps post_ops = {};                      ///< What follows the convolution.
};

/// The type of the bias: that of x; for quantized layers s32, or f32 with an f32 y.
inline convt_dtype bias_dtype(const Problem &p) {
    if (p.dtype != CONVT_U8 && p.dtype != CONVT_S8) return p.dtype;
    return p.y_dtype == CONVT_F32 ? CONVT_F32 : CONVT_S32;
}

/// A tensor in the caller's memory that is written; see convt_tensor.
struct TensorView {
    void *data = nullptr;                    ///< The first element.
    convt_dtype dtype = CONVT_F32;           ///< Type of the elements.
    Shape shape;                             ///< Extents.
    Shape strides;                           ///< Distances in elements; empty: dense.
    convt_memory memory = CONVT_HOST_MEMORY; ///< Where the data is.
};

/// A tensor in the caller's memory that is read; see convt_tensor.
struct ConstTensorView {
    const void *data = nullptr;              ///< The first element.
    convt_dtype dtype = CONVT_F32;           ///< Type of the elements.
    Shape shape;                             ///< Extents.
    Shape strides;                           ///< Distances in elements; empty: dense.
    convt_memory memory = CONVT_HOST_MEMORY; ///< Where the data is.

    /// No tensor.
    ConstTensorView() = default;
    /// A view of data.
    ConstTensorView(const void *data_, convt_dtype dtype_, Shape shape_, Shape strides_ = {},
                    convt_memory memory_ = CONVT_HOST_MEMORY)
        : data(data_), dtype(dtype_), shape(std::move(shape_)), strides(std::move(strides_)), memory(memory_) {}
    /// A view that is written can be read.
    ConstTensorView(const TensorView &t)
        : data(t.data), dtype(t.dtype), shape(t.shape), strides(t.strides), memory(t.memory) {}
};

/// How to plan and run; see convt_options.
using Options = convt_options;

/// Everything that a run can take; see convt_arguments.
struct Arguments {
    ConstTensorView x;                        ///< The input.
    std::optional<ConstTensorView> w;         ///< Weights, if they come with each run.
    std::optional<ConstTensorView> b;         ///< Bias, likewise.
    std::optional<ConstTensorView> residual;  ///< The residual, if the problem adds one.
    TensorView y;                             ///< The output.
    std::optional<Quantization> quantization; ///< Absent: as planned.
    void *workspace = nullptr;                ///< Plan::workspace_bytes() bytes aligned to 64; null: the plan's own.
    void *stream = nullptr;                   ///< For plans for a device.
};

namespace detail {

inline convt_ints view(const Shape &v) {
    static const std::int64_t nothing = 0; // an empty vector may hold null, which would mean "not given"
    return {v.empty() ? &nothing : v.data(), v.size()};
}

inline convt_ints view(const Ints &v) { return v ? view(*v) : convt_ints{nullptr, 0}; }

inline convt_quantization view(const Quantization &q) {
    return {q.x_scale,        q.x_zero_point,        q.w_scale.data(),
            q.w_scale.size(), q.w_zero_point.data(), q.w_zero_point.size(),
            q.y_scale,        q.y_zero_point,        q.y_range ? q.y_range->data() : nullptr};
}

inline convt_problem view(const Problem &p) {
    const Attributes &a = p.attributes;
    convt_problem c{};
    c.opset = p.opset;
    c.dtype = p.dtype;
    c.w_dtype = p.w_dtype.value_or(p.dtype);
    c.y_dtype = p.y_dtype.value_or(p.dtype);
    if (p.quantization) c.quantization = view(*p.quantization);
    c.layout = p.layout;
    c.attributes.auto_pad = a.auto_pad ? a.auto_pad->c_str() : nullptr;
    c.attributes.dilations = view(a.dilations);
    c.attributes.group = a.group;
    c.attributes.kernel_shape = view(a.kernel_shape);
    c.attributes.output_padding = view(a.output_padding);
    c.attributes.output_shape = view(a.output_shape);
    c.attributes.pads = view(a.pads);
    c.attributes.strides = view(a.strides);
    c.x_shape = view(p.x_shape);
    c.w_shape = view(p.w_shape);
    c.b_shape = view(p.b_shape);
    c.post_ops = p.post_ops;
    return c;
}

inline convt_tensor view(const ConstTensorView &t) {
    return {const_cast<void *>(t.data),
            t.dtype,
            t.shape.data(),
            t.strides.empty() ? nullptr : t.strides.data(),
            t.shape.size(),
            t.memory};
}

inline convt_tensor view(const TensorView &t) {
    return {t.data, t.dtype, t.shape.data(), t.strides.empty() ? nullptr : t.strides.data(), t.shape.size(), t.memory};
}

} // namespace detail

/// Computes the shape of y from attributes and shapes alone.
inline Status infer_shape(const Problem &problem, Shape *y_shape) {
    const convt_problem c = detail::view(problem);
    Shape shape(problem.x_shape.size());
    std::size_t rank = 0;
    const convt_status code = convt_infer_shape(&c, shape.data(), shape.size(), &rank);
    if (code == CONVT_OK) *y_shape = std::move(shape);
    return Status::from(code);
}

/// A planned layer: movable, immutable, and safe to run from several threads at once. Runs fail with the status of
/// convt_plan_run().
class Plan {
  public:
    /// No plan.
    Plan() = default;

    /// Validates the layer, packs the weights and chooses what computes it; see convt_plan_create().
    /// @param problem  The layer.
    /// @param options  How to plan and run; {} for the defaults.
    /// @param weights  Dense (C, M/group, K1..Kn). Null, as the bias then is: they come with each run.
    /// @param bias     Dense (M), or null if the problem has none.
    /// @param plan     Gets the plan.
    static Status create(const Problem &problem, const Options &options, const void *weights, const void *bias,
                         Plan *plan) {
        const convt_problem c = detail::view(problem);
        const ConstTensorView w(weights, problem.w_dtype.value_or(problem.dtype), problem.w_shape);
        const ConstTensorView b(bias, bias_dtype(problem), problem.b_shape.value_or(Shape()));
        const convt_tensor cw = detail::view(w), cb = detail::view(b);
        convt_plan *made = nullptr;
        const convt_status code = convt_plan_create(&c, weights ? &cw : nullptr, bias ? &cb : nullptr, &options, &made);
        if (code == CONVT_OK) *plan = Plan(made, problem.dtype, problem.y_dtype.value_or(problem.dtype));
        return Status::from(code);
    }

    /// Makes a plan for another shape of x, which shares the packed weights; see convt_plan_reshape().
    Status reshape(const Shape &x_shape, Plan *reshaped) const {
        convt_plan *made = nullptr;
        const convt_status code = convt_plan_reshape(plan_.get(), detail::view(x_shape), &made);
        if (code == CONVT_OK) *reshaped = Plan(made, x_dtype_, y_dtype_);
        return Status::from(code);
    }

    /// Computes a dense y from a dense x.
    Status run(const void *x, void *y) const {
        const std::size_t rank = convt_plan_rank(plan_.get());
        const convt_tensor cx = {const_cast<void *>(x), x_dtype_, convt_plan_x_shape(plan_.get()), nullptr, rank,
                                 CONVT_HOST_MEMORY};
        const convt_tensor cy = {y, y_dtype_, convt_plan_y_shape(plan_.get()), nullptr, rank, CONVT_HOST_MEMORY};
        return Status::from(convt_plan_run(plan_.get(), &cx, nullptr, nullptr, &cy, nullptr));
    }

    /// Computes a dense y from a dense x and a dense residual of y's type and shape.
    Status run(const void *x, const void *residual, void *y) const {
        const std::size_t rank = convt_plan_rank(plan_.get());
        const std::int64_t *const y_shape = convt_plan_y_shape(plan_.get());
        const convt_tensor cx = {const_cast<void *>(x), x_dtype_, convt_plan_x_shape(plan_.get()), nullptr, rank,
                                 CONVT_HOST_MEMORY};
        const convt_tensor cr = {const_cast<void *>(residual), y_dtype_, y_shape, nullptr, rank, CONVT_HOST_MEMORY};
        const convt_tensor cy = {y, y_dtype_, y_shape, nullptr, rank, CONVT_HOST_MEMORY};
        const convt_arguments arguments = {&cx, nullptr, nullptr, &cr, &cy, nullptr, nullptr, nullptr};
        return Status::from(convt_plan_run_with(plan_.get(), &arguments));
    }

    /// Computes y with everything that a run can take.
    Status run(const Arguments &a) const {
        const convt_tensor x = detail::view(a.x), y = detail::view(a.y);
        convt_tensor w{}, b{}, residual{};
        if (a.w) w = detail::view(*a.w);
        if (a.b) b = detail::view(*a.b);
        if (a.residual) residual = detail::view(*a.residual);
        convt_quantization q{};
        if (a.quantization) q = detail::view(*a.quantization);
        const convt_arguments arguments = {&x,
                                           a.w ? &w : nullptr,
                                           a.b ? &b : nullptr,
                                           a.residual ? &residual : nullptr,
                                           &y,
                                           a.quantization ? &q : nullptr,
                                           a.workspace,
                                           a.stream};
        return Status::from(convt_plan_run_with(plan_.get(), &arguments));
    }

    /// Computes y from x, each with strides.
    Status run(const ConstTensorView &x, const TensorView &y, void *workspace = nullptr) const {
        const convt_tensor cx = detail::view(x), cy = detail::view(y);
        return Status::from(convt_plan_run(plan_.get(), &cx, nullptr, nullptr, &cy, workspace));
    }

    /// Computes y with weights of this run; the bias is null if the problem has none.
    Status run(const ConstTensorView &x, const ConstTensorView &w, const ConstTensorView *b, const TensorView &y,
               void *workspace = nullptr) const {
        const convt_tensor cx = detail::view(x), cw = detail::view(w), cy = detail::view(y);
        convt_tensor cb{};
        if (b) cb = detail::view(*b);
        return Status::from(convt_plan_run(plan_.get(), &cx, &cw, b ? &cb : nullptr, &cy, workspace));
    }

    /// Computes y with scales, zero points and range of this run. w is null if weights are constant; so is b, or if there
    /// is no bias.
    Status run(const ConstTensorView &x, const ConstTensorView *w, const ConstTensorView *b, const TensorView &y,
               const Quantization &quantization, void *workspace = nullptr) const {
        const convt_tensor cx = detail::view(x), cy = detail::view(y);
        convt_tensor cw{}, cb{};
        if (w) cw = detail::view(*w);
        if (b) cb = detail::view(*b);
        const convt_quantization q = detail::view(quantization);
        return Status::from(
            convt_plan_run_quantized(plan_.get(), &cx, w ? &cw : nullptr, b ? &cb : nullptr, &cy, &q, workspace));
    }

    /// True if there is a plan.
    explicit operator bool() const { return plan_ != nullptr; }
    /// Shape of x, in the problem's layout.
    Shape x_shape() const {
        return Shape(convt_plan_x_shape(plan_.get()), convt_plan_x_shape(plan_.get()) + convt_plan_rank(plan_.get()));
    }
    /// Shape of y, in the problem's layout.
    Shape y_shape() const {
        return Shape(convt_plan_y_shape(plan_.get()), convt_plan_y_shape(plan_.get()) + convt_plan_rank(plan_.get()));
    }
    /// Bytes of workspace that a run needs.
    std::size_t workspace_bytes() const { return convt_plan_workspace_bytes(plan_.get()); }
    /// Bytes of packed weights and bias.
    std::size_t packed_bytes() const { return convt_plan_packed_bytes(plan_.get()); }
    /// Multiply-adds of the definition.
    double macs() const { return convt_plan_macs(plan_.get()); }
    /// Number of threads that was asked for.
    int threads() const { return convt_plan_threads(plan_.get()); }
    /// Name of the kernel that computes the layer, or the first of the layers that it is computed through.
    std::string variant() const { return convt_plan_variant(plan_.get()); }
    /// Name of the chosen algorithm.
    std::string algorithm() const { return convt_plan_algorithm(plan_.get()); }
    /// Name of the ISA that it runs on.
    std::string isa() const { return convt_plan_isa(plan_.get()); }
    /// "cpu", or the name of the device.
    std::string device() const { return convt_plan_device(plan_.get()); }
    /// Geometry, taps, candidates, choice and reason, as text for a person.
    std::string explain() const { return convt_plan_explain(plan_.get()); }
    /// The plan of the C interface.
    const convt_plan *get() const { return plan_.get(); }

  private:
    struct Destroy {
        void operator()(convt_plan *p) const { convt_plan_destroy(p); }
    };
    Plan(convt_plan *plan, convt_dtype x_dtype, convt_dtype y_dtype)
        : plan_(plan), x_dtype_(x_dtype), y_dtype_(y_dtype) {}

    std::unique_ptr<convt_plan, Destroy> plan_;
    convt_dtype x_dtype_ = CONVT_F32, y_dtype_ = CONVT_F32;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_CONVTRANSPOSE_HPP_
