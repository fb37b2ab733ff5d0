#include "plan.h"
#include "array.h"
#include "errors.h"
#include "unlocked.h"

#include <nanobind/stl/string.h>

#include <array>
#include <utility>

namespace nb = nanobind;

namespace convtranspose::python {

namespace {

// A type as a string, or as numpy's dtype or class of scalars, which have a name.
convt_dtype dtype_argument(nb::handle object, const char *name) {
    const nb::object type = nb::isinstance<nb::str>(object)
                                ? nb::borrow(object)
                                : nb::getattr(object, PyType_Check(object.ptr()) ? "__name__" : "name", nb::none());
    if (!nb::isinstance<nb::str>(type))
        type_error(std::string(name) + " must be the name of a type, such as 'uint8', or a dtype");
    return dtype_of_name(text(type, name));
}

// A string that is kept as long as the object is, or null for None.
const char *optional_text(nb::handle object, const char *name) {
    if (object.is_none()) return nullptr;
    if (!nb::isinstance<nb::str>(object)) type_error(std::string(name) + " must be a string or None");
    return text(object, name);
}

// "cuda" or "cuda:1".
struct DeviceName {
    std::string kind;
    int index = 0;
};

DeviceName device_argument(nb::handle object) {
    const char *const name = optional_text(object, "device");
    DeviceName device;
    if (name == nullptr) return device;
    device.kind = name;
    const std::size_t colon = device.kind.find(':');
    if (colon == std::string::npos) return device;
    const std::string number = device.kind.substr(colon + 1);
    if (colon == 0 || number.empty() || number.size() > 4 ||
        number.find_first_not_of("0123456789") != std::string::npos)
        value_error("device is '" + device.kind +
                    "'; it must be a name such as 'cuda', or a name and a number such as 'cuda:1'");
    device.index = std::stoi(number);
    device.kind.resize(colon);
    return device;
}

Problem problem_of(const Array *w, const Array *b, const PlanArguments &arguments) {
    Problem p;
    p.x_shape = shape_argument(arguments.x_shape, "x_shape");
    p.w_shape = w != nullptr ? w->shape() : shape_argument(arguments.w_shape, "w_shape");
    if (b != nullptr) p.b_shape = b->shape();
    if (w == nullptr && arguments.bias) {
        std::int64_t channels = p.w_shape.size() > 1 ? p.w_shape[1] : 0;
        // The library refuses a product that does not fit, whatever stands here.
        if (__builtin_mul_overflow(channels, arguments.attributes.group, &channels)) channels = 0;
        p.b_shape = Shape(1, channels);
    }
    if (!arguments.x_dtype.is_none()) {
        p.dtype = dtype_argument(arguments.x_dtype, "x_dtype");
    } else if (w != nullptr) {
        p.dtype = w->tensor().dtype;
    } else {
        type_error("x_dtype is missing: without w it is not known");
    }
    if (w != nullptr) p.w_dtype = w->tensor().dtype;
    if (!arguments.w_dtype.is_none()) p.w_dtype = dtype_argument(arguments.w_dtype, "w_dtype");
    if (!arguments.y_dtype.is_none()) p.y_dtype = dtype_argument(arguments.y_dtype, "y_dtype");
    p.opset = arguments.opset;
    p.layout = layout(arguments.layout);
    const std::size_t axes = p.x_shape.size() > 2 ? p.x_shape.size() - 2 : 0;
    p.attributes = attributes(arguments.attributes, axes);
    p.quantization = quantization(arguments.quantization, p.dtype, p.y_dtype.value_or(p.dtype));
    p.post_ops = post_ops(arguments.activation, arguments.residual);
    p.quantizes_x = arguments.quantizes_x;
    return p;
}

// A type that is given with w must be w's.
void check_dtypes(const Problem &p, const Array *w, const Array *b) {
    if (w != nullptr && p.w_dtype != w->tensor().dtype)
        value_error("w_dtype is " + std::string(numpy_name(*p.w_dtype)) + ", but w holds " +
                    numpy_name(w->tensor().dtype));
    if (b != nullptr && bias_dtype(p) != b->tensor().dtype)
        value_error("b holds " + std::string(numpy_name(b->tensor().dtype)) + "; the bias of this layer is " +
                    numpy_name(bias_dtype(p)));
}

// measure: True, False, or a number of milliseconds.
void read_measure(nb::handle measure, Options *options) {
    if (is_flag(measure)) {
        options->planning = flag(measure, "measure") ? CONVT_MEASURE : CONVT_ESTIMATE;
        return;
    }
    options->planning_ms = integer(measure, "measure");
    if (options->planning_ms <= 0)
        throw nb::value_error("measure must be True, False or a number of milliseconds, at least 1");
    options->planning = CONVT_MEASURE;
}

} // namespace

Tuning::Tuning(const std::string &text) {
    convt_tuning *records = nullptr;
    check(Status::from(convt_tuning_read(text.data(), text.size(), &records)));
    records_.reset(records);
}

PythonPlan::PythonPlan(nb::handle w, nb::handle b, const PlanArguments &arguments) : tuning_(arguments.tuning) {
    std::optional<Array> weights, bias;
    if (!w.is_none()) weights.emplace(w, "w", Use::dense);
    if (!b.is_none()) bias.emplace(b, "b", Use::dense);
    if (!weights && bias) type_error("b was given without w: both are constant, or both come with each run");
    const Problem problem = problem_of(weights ? &*weights : nullptr, bias ? &*bias : nullptr, arguments);
    check_dtypes(problem, weights ? &*weights : nullptr, bias ? &*bias : nullptr);
    Shape y_shape;
    check(infer_shape(problem, &y_shape)); // before anything is copied
    if (weights) weights->prepare(problem.w_shape, nullptr);
    if (bias) bias->prepare(*problem.b_shape, nullptr);
    const DeviceName device = device_argument(arguments.device);
    Options options;
    options.threads = arguments.threads;
    options.variant = optional_text(arguments.variant, "variant");
    options.isa = optional_text(arguments.isa, "isa");
    read_measure(arguments.measure, &options);
    options.sums_in_f16 = arguments.sums_in_f16;
    options.winograd = arguments.winograd;
    options.tuning = tuning_ ? tuning_->get() : nullptr;
    options.device.name = device.kind.empty() ? nullptr : device.kind.c_str();
    options.device.index = device.index;
    Status status;
    {
        const Unlocked others_run;
        status = Plan::create(problem, options, weights ? weights->tensor().data : nullptr,
                              bias ? bias->tensor().data : nullptr, &plan_);
    }
    check(status);
    w_shape_ = problem.w_shape;
    b_shape_ = problem.b_shape.value_or(Shape());
    x_dtype_ = problem.dtype;
    y_dtype_ = problem.y_dtype.value_or(problem.dtype);
    device_ = plan_.device();
    if (device_ != "cpu") device_ += ":" + std::to_string(device.index);
}

nb::object PythonPlan::run(const RunArguments &arguments) const {
    Array x(arguments.x, "x", Use::input);
    std::optional<Array> w, b, residual;
    if (!arguments.w.is_none()) w.emplace(arguments.w, "w", Use::dense);
    if (!arguments.b.is_none()) b.emplace(arguments.b, "b", Use::dense);
    if (!arguments.residual.is_none()) residual.emplace(arguments.residual, "residual", Use::input);
    const std::optional<Quantization> q = quantization(arguments.quantization, x_dtype_, y_dtype_);
    nb::object out = arguments.out, finish;
    if (out.is_none()) {
        nb::list shape;
        for (const std::int64_t extent : plan_.y_shape()) shape.append(extent);
        const auto made =
            nb::cast<nb::tuple>(call_framework("empty", arguments.x, nb::tuple(shape), nb::str(numpy_name(y_dtype_))));
        out = made[0];
        finish = made[1];
    }
    const Array y(out, "out", Use::output);
    x.check_place("x", device_, y);
    if (residual) residual->check_place("residual", device_, y);
    y.check_place("out", device_, y);
    x.prepare(plan_.x_shape(), &y);
    if (w) w->prepare(w_shape_, &y);
    if (b) b->prepare(b_shape_, &y);
    if (residual) residual->prepare(plan_.y_shape(), &y);
    convt_arguments run{};
    run.struct_size = sizeof run;
    run.x = &x.tensor();
    if (w) run.w = &w->tensor();
    if (b) run.b = &b->tensor();
    if (residual) run.residual = &residual->tensor();
    run.y = &y.tensor();
    run.stream = x.stream();
    convt_quantization scales{};
    if (q) run.quantization = &(scales = detail::view(*q));
    Status status;
    {
        const Unlocked others_run;
        status = Status::from(convt_plan_run_with(plan_.get(), &run));
    }
    // The C interface calls it y.
    if (!status && status.message().rfind("y ", 0) == 0)
        status = Status(status.code(), "out" + status.message().substr(1));
    check(status);
    return finish.is_valid() && !finish.is_none() ? finish(out) : out;
}

PythonPlan PythonPlan::reshape(nb::handle x_shape) const {
    const Shape shape = shape_argument(x_shape, "x_shape");
    PythonPlan made;
    Status status;
    {
        const Unlocked others_run;
        status = plan_.reshape(shape, &made.plan_);
    }
    check(status);
    made.tuning_ = tuning_;
    made.w_shape_ = w_shape_;
    made.b_shape_ = b_shape_;
    made.x_dtype_ = x_dtype_;
    made.y_dtype_ = y_dtype_;
    made.device_ = device_;
    return made;
}

} // namespace convtranspose::python
