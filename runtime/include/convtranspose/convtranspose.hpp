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
    /// The value and the rule that it broke; empty for success.
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

/// The reals that integers stand for: real = (integer - zero_point) * scale; see convt_quantization.
struct Quantization {
    float x_scale = 1;                            ///< Scale of x.
    std::int32_t x_zero_point = 0;                ///< Zero point of x.
    std::vector<float> w_scale = {1};             ///< Scales of w: one, or one for each output channel.
    std::vector<std::int32_t> w_zero_point = {0}; ///< Zero points of w, likewise.
    float y_scale = 1;                            ///< Scale of an 8-bit y.
    std::int32_t y_zero_point = 0;                ///< Zero point of an 8-bit y.
    std::optional<std::array<float, 2>> y_range;  ///< Least and greatest real that y is clamped to.
};

/// The steps that follow the convolution; see convt_post_ops.
struct PostOps {
    int adds_residual = 0;                             ///< Nonzero: a residual, which comes with each run, is added.
    convt_activation activation = CONVT_NO_ACTIVATION; ///< The function that is applied last.
    float alpha = 0;                                   ///< The slope of leaky relu, or the lower bound of clip.
    float beta = 0;                                    ///< The upper bound of clip.
};

/// A layer: the node, its types and its shapes; see convt_problem. An x of type u8 or s8 makes it quantized.
struct Problem {
    int opset = 22;                     ///< Version of the operator, or any opset of a model.
    convt_dtype dtype = CONVT_F32;      ///< Type of x.
    std::optional<convt_dtype> w_dtype; ///< Type of w; absent: the type of x. With an f32 x also f16, bf16, u8, s8.
    std::optional<convt_dtype> y_dtype; ///< Type of y; absent: the type of x.
    std::optional<Quantization> quantization;   ///< For w of u8 or s8; absent: it comes with each run.
    convt_layout layout = CONVT_CHANNELS_FIRST; ///< Layout of x, y and the residual.
    Attributes attributes;                      ///< The attributes of the node.
    Shape x_shape;                              ///< Shape of x, in the layout's order.
    Shape w_shape;                              ///< Shape of w: (C, M/group, K1..Kn).
    Ints b_shape;                               ///< Assigned, as (M): the layer has a bias.
    PostOps post_ops = {};                      ///< The steps that follow the convolution.
    int quantizes_x = 0;                        ///< Nonzero: each run quantizes its f32 x, for 8-bit weights.
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
    Shape strides;                           ///< Distances in elements, as many as extents; empty: dense.
    convt_memory memory = CONVT_HOST_MEMORY; ///< Where the data is.
};

/// A tensor in the caller's memory that is read; see convt_tensor.
struct ConstTensorView {
    const void *data = nullptr;              ///< The first element.
    convt_dtype dtype = CONVT_F32;           ///< Type of the elements.
    Shape shape;                             ///< Extents.
    Shape strides;                           ///< Distances in elements, as many as extents; empty: dense.
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

/// The device that a plan runs on; see convt_device.
struct Device {
    const char *name = nullptr; ///< "cuda" or "opencl"; null or "cpu": the CPU.
    int index = 0;              ///< Number of the device, from 0.
    void *context = nullptr;    ///< A CUcontext or a cl_context; null: the primary one, or one of the library's own.
    int falls_back = 0;         ///< Nonzero: the plan is made for the CPU if it cannot be made for the device.
};

/// Settings of a plan and its runs; see convt_options.
struct Options {
    int threads = 0;                           ///< The most of a run; 0: one.
    convt_parallel_for parallel_for = nullptr; ///< Null: the library's own threads.
    void *parallel_user = nullptr;             ///< Passed to parallel_for.
    convt_allocate allocate = nullptr;         ///< Null, as deallocate then is: operator new.
    convt_deallocate deallocate = nullptr;     ///< Takes back what allocate gave.
    void *allocate_user = nullptr;             ///< Passed to both.
    const char *variant = nullptr;             ///< The name of what is to compute; null: that is chosen.
    const char *isa = nullptr;                 ///< The name of the ISA; null: the best that this CPU runs.
    int sums_in_f16 = 0;                       ///< Nonzero: f16 layers may be summed in f16.
    int winograd = 0;                          ///< Nonzero: Winograd's algorithm is allowed.
    const convt_tuning *tuning = nullptr;      ///< Null: those of the file that CONVTRANSPOSE_TUNING names.
    Device device;                             ///< The device that the plan runs on.
    convt_planning planning = CONVT_ESTIMATE;  ///< The way in which a candidate is chosen.
    int planning_ms = 0;                       ///< Milliseconds of runs for CONVT_MEASURE; 0: 50.
    int all_threads = 0;                       ///< Nonzero: all `threads` are used, however small the layer is.
};

/// Everything that a run can take; see convt_arguments.
struct Arguments {
    ConstTensorView x;                         ///< The input.
    std::optional<ConstTensorView> w;          ///< Weights, if they come with each run.
    std::optional<ConstTensorView> b;          ///< Bias, likewise.
    std::optional<ConstTensorView> residual;   ///< The residual, if the problem adds one.
    TensorView y;                              ///< The output.
    std::optional<Quantization> quantization;  ///< Absent: as planned.
    void *workspace = nullptr;                 ///< Plan::workspace_bytes() bytes aligned to 64; null: the plan's own.
    void *stream = nullptr;                    ///< For plans for a device.
    convt_parallel_for parallel_for = nullptr; ///< Threads of this run alone; null: those of the plan.
    void *parallel_user = nullptr;             ///< Passed to parallel_for.
};

namespace detail {

// Returns the elements of a list. An empty vector may hold null, which would mean "not given".
template<typename T>
const T *elements(const std::vector<T> &v) {
    static const T nothing = 0;
    return v.empty() ? &nothing : v.data();
}

inline convt_ints view(const Shape &v) { return {elements(v), v.size()}; }

inline convt_ints view(const Ints &v) { return v ? view(*v) : convt_ints{nullptr, 0}; }

inline convt_attributes view(const Attributes &a) {
    convt_attributes c{};
    c.struct_size = sizeof c;
    c.auto_pad = a.auto_pad ? a.auto_pad->c_str() : nullptr;
    c.dilations = view(a.dilations);
    c.group = a.group;
    c.kernel_shape = view(a.kernel_shape);
    c.output_padding = view(a.output_padding);
    c.output_shape = view(a.output_shape);
    c.pads = view(a.pads);
    c.strides = view(a.strides);
    return c;
}

inline convt_quantization view(const Quantization &q) {
    return {sizeof(convt_quantization),
            q.x_scale,
            q.x_zero_point,
            elements(q.w_scale),
            q.w_scale.size(),
            elements(q.w_zero_point),
            q.w_zero_point.size(),
            q.y_scale,
            q.y_zero_point,
            q.y_range ? q.y_range->data() : nullptr};
}

// A problem of the C interface, with the structs that it refers to: valid where it is, and as long as the Problem is.
struct ProblemView : convt_problem {
    explicit ProblemView(const Problem &p)
        : convt_problem{},
          own_attributes(view(p.attributes)), own_post_ops{sizeof(convt_post_ops), p.post_ops.adds_residual,
                                                           p.post_ops.activation, p.post_ops.alpha, p.post_ops.beta} {
        struct_size = sizeof(convt_problem);
        opset = p.opset;
        dtype = p.dtype;
        w_dtype = p.w_dtype.value_or(p.dtype);
        y_dtype = p.y_dtype.value_or(p.dtype);
        layout = p.layout;
        x_shape = view(p.x_shape);
        w_shape = view(p.w_shape);
        b_shape = view(p.b_shape);
        attributes = &own_attributes;
        if (p.quantization) quantization = &(own_quantization = view(*p.quantization));
        post_ops = &own_post_ops;
        quantizes_x = p.quantizes_x;
    }
    ProblemView(const ProblemView &) = delete;
    ProblemView &operator=(const ProblemView &) = delete;

    convt_attributes own_attributes;
    convt_quantization own_quantization{};
    convt_post_ops own_post_ops;
};

inline ProblemView view(const Problem &p) { return ProblemView(p); }

// Options of the C interface, with the device that they refer to, likewise.
struct OptionsView : convt_options {
    explicit OptionsView(const Options &o)
        : convt_options{sizeof(convt_options), o.threads,  o.parallel_for, o.parallel_user, o.allocate, o.deallocate,
                        o.allocate_user,       o.variant,  o.isa,          o.sums_in_f16,   o.winograd, o.tuning,
                        &own_device,           o.planning, o.planning_ms,  o.all_threads},
          own_device{sizeof(convt_device), o.device.name, o.device.index, o.device.context, o.device.falls_back} {}
    OptionsView(const OptionsView &) = delete;
    OptionsView &operator=(const OptionsView &) = delete;

    convt_device own_device;
};

// strides: null if the tensor is dense.
inline convt_tensor tensor(const void *data, convt_dtype dtype, const std::int64_t *shape, std::size_t rank,
                           const std::int64_t *strides = nullptr, convt_memory memory = CONVT_HOST_MEMORY) {
    return {sizeof(convt_tensor), const_cast<void *>(data), dtype, shape, strides, rank, memory};
}

// A view whose strides and extents differ in number has rank 0, which the library refuses.
template<typename View>
convt_tensor view(const View &t) {
    const bool dense = t.strides.empty();
    const std::size_t rank = dense || t.strides.size() == t.shape.size() ? t.shape.size() : 0;
    return tensor(t.data, t.dtype, t.shape.data(), rank, dense ? nullptr : t.strides.data(), t.memory);
}

} // namespace detail

/// Computes the shape of y from attributes and shapes alone.
inline Status infer_shape(const Problem &problem, Shape *y_shape) {
    const detail::ProblemView c(problem);
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
    /// @param options  Settings; {} for the defaults.
    /// @param weights  Dense (C, M/group, K1..Kn). Null, as the bias then is: they come with each run.
    /// @param bias     Dense (M), or null if the problem has none.
    /// @param plan     Gets the plan.
    static Status create(const Problem &problem, const Options &options, const void *weights, const void *bias,
                         Plan *plan) {
        const detail::ProblemView c(problem);
        const detail::OptionsView how(options);
        const ConstTensorView w(weights, problem.w_dtype.value_or(problem.dtype), problem.w_shape);
        const ConstTensorView b(bias, bias_dtype(problem), problem.b_shape.value_or(Shape()));
        const convt_tensor cw = detail::view(w), cb = detail::view(b);
        convt_plan *made = nullptr;
        const convt_status code = convt_plan_create(&c, weights ? &cw : nullptr, bias ? &cb : nullptr, &how, &made);
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
    Status run(const void *x, void *y) const { return run(x, nullptr, y); }

    /// Computes a dense y from a dense x and, if it is not null, a dense residual of y's type and shape.
    Status run(const void *x, const void *residual, void *y) const {
        const std::size_t rank = convt_plan_rank(plan_.get());
        const std::int64_t *const y_shape = convt_plan_y_shape(plan_.get());
        const convt_tensor cx = detail::tensor(x, x_dtype_, convt_plan_x_shape(plan_.get()), rank),
                           cr = detail::tensor(residual, y_dtype_, y_shape, rank),
                           cy = detail::tensor(y, y_dtype_, y_shape, rank);
        convt_arguments arguments{};
        arguments.struct_size = sizeof arguments;
        arguments.x = &cx;
        arguments.residual = residual ? &cr : nullptr;
        arguments.y = &cy;
        return Status::from(convt_plan_run_with(plan_.get(), &arguments));
    }

    /// Computes y with everything that a run can take.
    Status run(const Arguments &a) const {
        const convt_tensor x = detail::view(a.x), y = detail::view(a.y);
        convt_tensor w{}, b{}, residual{};
        convt_quantization q{};
        convt_arguments arguments{};
        arguments.struct_size = sizeof arguments;
        arguments.x = &x;
        if (a.w) arguments.w = &(w = detail::view(*a.w));
        if (a.b) arguments.b = &(b = detail::view(*a.b));
        if (a.residual) arguments.residual = &(residual = detail::view(*a.residual));
        arguments.y = &y;
        if (a.quantization) arguments.quantization = &(q = detail::view(*a.quantization));
        arguments.workspace = a.workspace;
        arguments.stream = a.stream;
        arguments.parallel_for = a.parallel_for;
        arguments.parallel_user = a.parallel_user;
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
    /// Number of threads that was asked for. A run may use fewer.
    int threads() const { return convt_plan_threads(plan_.get()); }
    /// Name of the kernel that computes the layer, or the first of the layers that it is computed through.
    std::string variant() const { return convt_plan_variant(plan_.get()); }
    /// Name of the chosen algorithm.
    std::string algorithm() const { return convt_plan_algorithm(plan_.get()); }
    /// Name of the ISA that it runs on.
    std::string isa() const { return convt_plan_isa(plan_.get()); }
    /// "cpu", or the name of the device.
    std::string device() const { return convt_plan_device(plan_.get()); }
    /// The plan's choice as a tuning record; see convt_plan_record().
    std::string record() const { return convt_plan_record(plan_.get()); }
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
