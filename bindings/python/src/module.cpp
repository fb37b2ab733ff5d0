// The extension module convtranspose._native.
#include "array.h"
#include "docstrings.h"
#include "errors.h"
#include "plan.h"
#include "unlocked.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <new>
#include <utility>

namespace nb = nanobind;
using namespace nb::literals;

namespace convtranspose::python {

namespace {

using Extents = nb::typed<nb::tuple, int, nb::ellipsis>;
using Names = nb::typed<nb::tuple, nb::str, nb::ellipsis>;
// Arguments of one kind, which are read by problem.h: nanobind's own message for another kind lists the whole signature.
using Int = nb::typed<nb::object, int>;
using Bool = nb::typed<nb::object, bool>;
using Text = nb::typed<nb::object, nb::str>;

Extents shape_tuple(const Shape &shape) {
    nb::list extents;
    for (const std::int64_t extent : shape) extents.append(extent);
    return Extents(nb::tuple(extents));
}

// The type, shape and device of an array: ("float32", (1, 2, 3), None), with "cuda:0" for memory of a device.
nb::typed<nb::tuple, nb::str, Extents, nb::any> describe(nb::handle object, const char *name) {
    const Array array(object, name, Use::named);
    nb::object device = nb::none();
    if (array.on_device()) device = call_framework("device_of", object);
    return {nb::make_tuple(numpy_name(array.tensor().dtype), shape_tuple(array.shape()), device)};
}

Names names(std::size_t count, const char *(*name)(std::size_t)) {
    nb::list list;
    for (std::size_t i = 0; i < count; ++i) list.append(nb::str(name(i)));
    return Names(nb::tuple(list));
}

Extents infer_shape_of(nb::handle x_shape, nb::handle w_shape, const AttributeArguments &given, nb::handle opset,
                       nb::handle layout_name) {
    Problem p;
    p.x_shape = shape_argument(x_shape, "x_shape");
    p.w_shape = shape_argument(w_shape, "w_shape");
    p.attributes = attributes(given, p.x_shape.size() > 2 ? p.x_shape.size() - 2 : 0);
    p.opset = integer(opset, "opset");
    p.layout = layout(layout_name);
    Shape y_shape;
    check(infer_shape(p, &y_shape));
    return shape_tuple(y_shape);
}

Names candidates(const PythonPlan &p) {
    const convt_plan *const plan = p.plan().get();
    nb::list list;
    for (std::size_t i = 0, n = convt_plan_candidate_count(plan); i < n; ++i)
        list.append(nb::str(convt_plan_candidate(plan, i)));
    return Names(nb::tuple(list));
}

std::string repr(const PythonPlan &p) {
    const convt_plan *const plan = p.plan().get();
    return std::string("<convtranspose.Plan ") + convt_plan_problem(plan) + ": " + convt_plan_algorithm(plan) + " by " +
           convt_plan_variant(plan) + " on " + convt_plan_isa(plan) + ">";
}

nb::object refuse_to_pickle(const PythonPlan &, nb::handle) {
    type_error("a Plan cannot be pickled: it holds weights packed for this machine's kernels. Pickle w, b and the "
               "arguments, and "
               "make the plan where it is to run");
}

std::shared_ptr<Tuning> tuning_argument(nb::handle object) {
    std::shared_ptr<Tuning> tuning;
    if (!object.is_none() && !nb::try_cast(object, tuning))
        type_error("tuning must be a Tuning or None, not " + name_of_type(object));
    return tuning;
}

using PlanClass = nb::class_<PythonPlan>;

void define_init(PlanClass &plan) {
    plan.def(
        "__init__",
        [](PythonPlan *self, nb::object w, nb::object b, nb::object x_shape, nb::object strides, nb::object pads,
           nb::object dilations, Int group, nb::object output_padding, nb::object output_shape, nb::object auto_pad,
           nb::object kernel_shape, Int opset, Text layout, nb::object x_dtype, nb::object y_dtype, nb::object w_shape,
           nb::object w_dtype, Bool bias, nb::object x_scale, nb::object x_zero_point, nb::object w_scale,
           nb::object w_zero_point, nb::object y_scale, nb::object y_zero_point, nb::object y_range, Bool quantizes_x,
           nb::object activation, Bool residual, nb::object threads, Bool winograd, Bool sums_in_f16,
           nb::object variant, nb::object isa, nb::object measure, nb::typed<nb::object, Tuning> tuning,
           nb::object device) {
            PlanArguments a;
            a.x_shape = std::move(x_shape);
            a.attributes = {
                std::move(strides),      std::move(pads),     std::move(dilations),    std::move(output_padding),
                std::move(output_shape), std::move(auto_pad), std::move(kernel_shape), large_integer(group, "group")};
            a.opset = integer(opset, "opset");
            a.layout = std::move(layout);
            a.x_dtype = std::move(x_dtype);
            a.y_dtype = std::move(y_dtype);
            a.w_shape = std::move(w_shape);
            a.w_dtype = std::move(w_dtype);
            a.bias = flag(bias, "bias");
            a.quantization = {std::move(x_scale), std::move(x_zero_point), std::move(w_scale), std::move(w_zero_point),
                              std::move(y_scale), std::move(y_zero_point), std::move(y_range)};
            a.quantizes_x = flag(quantizes_x, "quantizes_x");
            a.activation = std::move(activation);
            a.residual = flag(residual, "residual");
            a.threads = threads.is_none() ? convt_usable_cpus() : integer(threads, "threads");
            a.winograd = flag(winograd, "winograd");
            a.sums_in_f16 = flag(sums_in_f16, "sums_in_f16");
            a.variant = std::move(variant);
            a.isa = std::move(isa);
            a.measure = std::move(measure);
            a.tuning = tuning_argument(tuning);
            a.device = std::move(device);
            new (self) PythonPlan(w, b, a);
        },
        "w"_a.none(), "b"_a = nb::none(), nb::kw_only(), "x_shape"_a.none(), "strides"_a = nb::none(),
        "pads"_a = nb::none(), "dilations"_a = nb::none(), "group"_a = 1, "output_padding"_a = nb::none(),
        "output_shape"_a = nb::none(), "auto_pad"_a = nb::none(), "kernel_shape"_a = nb::none(), "opset"_a = 22,
        "layout"_a = "nchw", "x_dtype"_a = nb::none(), "y_dtype"_a = nb::none(), "w_shape"_a = nb::none(),
        "w_dtype"_a = nb::none(), "bias"_a = false, "x_scale"_a = nb::none(), "x_zero_point"_a = nb::none(),
        "w_scale"_a = nb::none(), "w_zero_point"_a = nb::none(), "y_scale"_a = nb::none(),
        "y_zero_point"_a = nb::none(), "y_range"_a = nb::none(), "quantizes_x"_a = false, "activation"_a = nb::none(),
        "residual"_a = false, "threads"_a = nb::none(), "winograd"_a = false, "sums_in_f16"_a = false,
        "variant"_a = nb::none(), "isa"_a = nb::none(), "measure"_a = false, "tuning"_a.none() = nb::none(),
        "device"_a = nb::none(), docstrings::kPlanInit);
}

// Methods that compute, or say how it is done.
void define_methods(PlanClass &plan) {
    plan.def(
            "__call__",
            [](const PythonPlan &self, nb::handle x, nb::object out, nb::object residual, nb::object w, nb::object b,
               nb::object x_scale, nb::object x_zero_point, nb::object w_scale, nb::object w_zero_point,
               nb::object y_scale, nb::object y_zero_point, nb::object y_range) -> nb::any {
                return nb::borrow<nb::any>(
                    self.run({x,
                              std::move(out),
                              std::move(residual),
                              std::move(w),
                              std::move(b),
                              {std::move(x_scale), std::move(x_zero_point), std::move(w_scale), std::move(w_zero_point),
                               std::move(y_scale), std::move(y_zero_point), std::move(y_range)}}));
            },
            "x"_a.none(), nb::kw_only(), "out"_a = nb::none(), "residual"_a = nb::none(), "w"_a = nb::none(),
            "b"_a = nb::none(), "x_scale"_a = nb::none(), "x_zero_point"_a = nb::none(), "w_scale"_a = nb::none(),
            "w_zero_point"_a = nb::none(), "y_scale"_a = nb::none(), "y_zero_point"_a = nb::none(),
            "y_range"_a = nb::none(), docstrings::kPlanCall)
        .def("reshape", &PythonPlan::reshape, "x_shape"_a.none(), docstrings::kPlanReshape)
        .def(
            "explain", [](const PythonPlan &p) { return p.plan().explain(); }, docstrings::kPlanExplain)
        .def("candidates", &candidates, docstrings::kPlanCandidates);
}

void define_properties(PlanClass &plan) {
    plan.def_prop_ro(
            "x_shape", [](const PythonPlan &p) { return shape_tuple(p.plan().x_shape()); }, docstrings::kPlanXShape)
        .def_prop_ro(
            "y_shape", [](const PythonPlan &p) { return shape_tuple(p.plan().y_shape()); }, docstrings::kPlanYShape)
        .def_prop_ro(
            "x_dtype", [](const PythonPlan &p) { return numpy_name(p.x_dtype()); }, docstrings::kPlanXDtype)
        .def_prop_ro(
            "y_dtype", [](const PythonPlan &p) { return numpy_name(p.y_dtype()); }, docstrings::kPlanYDtype)
        .def_prop_ro(
            "problem", [](const PythonPlan &p) { return convt_plan_problem(p.plan().get()); }, docstrings::kPlanProblem)
        .def_prop_ro(
            "record", [](const PythonPlan &p) { return p.plan().record(); }, docstrings::kPlanRecord)
        .def_prop_ro(
            "algorithm", [](const PythonPlan &p) { return p.plan().algorithm(); }, docstrings::kPlanAlgorithm)
        .def_prop_ro(
            "variant", [](const PythonPlan &p) { return p.plan().variant(); }, docstrings::kPlanVariant)
        .def_prop_ro(
            "isa", [](const PythonPlan &p) { return p.plan().isa(); }, docstrings::kPlanIsa)
        .def_prop_ro(
            "device", [](const PythonPlan &p) { return p.plan().device(); }, docstrings::kPlanDevice)
        .def_prop_ro(
            "threads", [](const PythonPlan &p) { return p.plan().threads(); }, docstrings::kPlanThreads)
        .def_prop_ro(
            "macs", [](const PythonPlan &p) { return p.plan().macs(); }, docstrings::kPlanMacs)
        .def_prop_ro(
            "workspace_bytes", [](const PythonPlan &p) { return p.plan().workspace_bytes(); },
            docstrings::kPlanWorkspaceBytes)
        .def_prop_ro(
            "packed_bytes", [](const PythonPlan &p) { return p.plan().packed_bytes(); }, docstrings::kPlanPackedBytes);
}

void define_plan(nb::module_ &m) {
    PlanClass plan(m, "Plan", docstrings::kPlan);
    define_init(plan);
    define_methods(plan);
    define_properties(plan);
    plan.def("__repr__", &repr)
        .def("__copy__", [](nb::object self) { return self; })
        .def(
            "__deepcopy__", [](nb::object self, nb::handle) { return self; }, "memo"_a)
        .def("__reduce_ex__", &refuse_to_pickle, "protocol"_a,
             nb::sig("def __reduce_ex__(self, protocol: typing.SupportsIndex, /) -> typing.NoReturn"));
}

} // namespace

} // namespace convtranspose::python

NB_MODULE(_native, m) {
    using namespace convtranspose::python;
    nb::set_leak_warnings(false); // plans of a thread that runs at the interpreter's end stay
    nb::class_<Tuning>(m, "Tuning", docstrings::kTuning)
        .def(
            "__init__",
            [](Tuning *self, Text records) {
                if (!nb::isinstance<nb::str>(records))
                    type_error("text must be a string, not " + name_of_type(records));
                new (self) Tuning(nb::cast<std::string>(records));
            },
            "text"_a, docstrings::kTuningInit);
    define_plan(m);
    m.def("describe", &describe, "array"_a.none(), "name"_a);
    m.def(
        "infer_shape",
        [](nb::handle x_shape, nb::handle w_shape, nb::object strides, nb::object pads, nb::object dilations, Int group,
           nb::object output_padding, nb::object output_shape, nb::object auto_pad, nb::object kernel_shape, Int opset,
           Text layout_name) {
            return infer_shape_of(x_shape, w_shape,
                                  {std::move(strides), std::move(pads), std::move(dilations), std::move(output_padding),
                                   std::move(output_shape), std::move(auto_pad), std::move(kernel_shape),
                                   large_integer(group, "group")},
                                  opset, layout_name);
        },
        "x_shape"_a.none(), "w_shape"_a.none(), nb::kw_only(), "strides"_a = nb::none(), "pads"_a = nb::none(),
        "dilations"_a = nb::none(), "group"_a = 1, "output_padding"_a = nb::none(), "output_shape"_a = nb::none(),
        "auto_pad"_a = nb::none(), "kernel_shape"_a = nb::none(), "opset"_a = 22, "layout"_a = "nchw",
        docstrings::kInferShape);
    m.def(
        "version", [] { return convt_version(); }, docstrings::kVersion);
    m.def(
        "cpu_name", [] { return convt_cpu_name(); }, docstrings::kCpuName);
    m.def(
        "isas",
        []() -> Names {
            nb::list list;
            for (std::size_t i = 0; i < convt_isa_count(); ++i)
                if (convt_isa_supported(i) != 0) list.append(nb::str(convt_isa_name(i)));
            return Names(nb::tuple(list));
        },
        docstrings::kIsas);
    m.def(
        "variants", [] { return names(convt_variant_count(), &convt_variant_name); }, docstrings::kVariants);
    m.def(
        "algorithms", [] { return names(convt_algorithm_count(), &convt_algorithm_name); }, docstrings::kAlgorithms);
    m.def(
        "devices",
        []() -> Names {
            nb::list list;
            for (std::size_t i = 0; i < convt_device_kind_count(); ++i) {
                const std::string kind = convt_device_kind_name(i);
                for (std::size_t k = 0; k < convt_device_count(kind.c_str()); ++k)
                    list.append(nb::str((kind + ":" + std::to_string(k)).c_str()));
            }
            return Names(nb::tuple(list));
        },
        docstrings::kDevices);
}
