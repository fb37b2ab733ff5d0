#include "problem.h"
#include "array.h"
#include "errors.h"

#include <nanobind/stl/string.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace nb = nanobind;

namespace convtranspose::python {

namespace {

// Raises a TypeError that names the argument, and says of what kind it must be and of what kind it is.
[[noreturn]] void wrong(nb::handle object, const char *name, const char *wanted) {
    type_error(std::string(name) + " must be " + wanted + ", not " + name_of_type(object));
}

std::int64_t index(nb::handle object, const char *name, const char *wanted) {
    const nb::object number = nb::steal(PyNumber_Index(object.ptr()));
    if (!number.is_valid()) {
        PyErr_Clear();
        wrong(object, name, wanted);
    }
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow != 0) value_error(std::string(name) + " holds an integer that has more than 64 bits");
    return value;
}

// The elements of an array, a sequence or a single number, as a list of Python's numbers.
nb::list numbers(nb::handle object, const char *name, const char *wanted) {
    if (PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr())) {
        nb::list one;
        one.append(object);
        return one;
    }
    const bool has_no_order = PyDict_Check(object.ptr()) || PyAnySet_Check(object.ptr());
    if (nb::isinstance<nb::str>(object) || nb::isinstance<nb::bytes>(object) || object.is_none() || has_no_order)
        wrong(object, name, wanted);
    nb::object plain = nb::borrow(object);
    // numpy's arrays and scalars, and PyTorch's tensors.
    if (nb::hasattr(object, "reshape") && nb::hasattr(object, "tolist"))
        plain = object.attr("reshape")(-1).attr("tolist")();
    if (PyFloat_Check(plain.ptr()) || PyLong_Check(plain.ptr())) return numbers(plain, name, wanted);
    const nb::object list = nb::steal(PySequence_List(plain.ptr()));
    if (!list.is_valid()) {
        PyErr_Clear();
        wrong(object, name, wanted);
    }
    return nb::cast<nb::list>(list);
}

float to_real(nb::handle number, const char *name, const char *wanted) {
    const double value = PyFloat_AsDouble(number.ptr());
    if (value == -1.0 && PyErr_Occurred() != nullptr) {
        const bool is_large = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
        PyErr_Clear();
        if (is_large) value_error(std::string(name) + " holds an integer that is too large for a float");
        wrong(number, name, wanted);
    }
    return static_cast<float>(value);
}

std::int32_t to_integer(nb::handle number, const char *name, const char *wanted) {
    const std::int64_t value = index(number, name, wanted);
    if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max())
        value_error(std::string(name) + " is " + std::to_string(value) + ", which is not a 32-bit integer");
    return static_cast<std::int32_t>(value);
}

nb::object single(nb::handle object, const char *name, const char *wanted) {
    const nb::list list = numbers(object, name, wanted);
    if (list.size() != 1)
        value_error(std::string(name) + " has " + std::to_string(list.size()) + " elements; it must be " + wanted);
    return list[0];
}

constexpr char kOneReal[] = "a number or an array of one", kReals[] = "a number or an array of numbers";
constexpr char kOneInteger[] = "an integer or an array of one", kIntegers[] = "an integer or an array of integers";

} // namespace

Ints ints(nb::handle object, const char *name, std::size_t count) {
    constexpr char wanted[] = "an integer or a sequence of integers";
    if (object.is_none()) return std::nullopt;
    nb::object plain = nb::borrow(object);
    if (nb::hasattr(object, "tolist"))
        plain = object.attr("tolist")(); // numpy's and PyTorch's; several axes give lists of lists
    if (PyLong_Check(plain.ptr())) return Shape(count, index(plain, name, wanted));
    Shape shape;
    for (const nb::handle element : numbers(plain, name, wanted)) shape.push_back(index(element, name, wanted));
    return shape;
}

Shape shape_argument(nb::handle object, const char *name) {
    const Ints shape = ints(object, name, 1);
    if (!shape) type_error(std::string(name) + " is missing");
    return *shape;
}

const char *text(nb::handle string, const char *name) {
    Py_ssize_t size = 0;
    const char *const begin = PyUnicode_AsUTF8AndSize(string.ptr(), &size);
    if (begin == nullptr) throw nb::python_error();
    if (std::strlen(begin) != static_cast<std::size_t>(size))
        value_error(std::string(name) + " is '" + begin + "' and more behind a NUL, which no name has");
    return begin;
}

float real(nb::handle object, const char *name) { return to_real(single(object, name, kOneReal), name, kOneReal); }

std::int32_t integer(nb::handle object, const char *name) {
    return to_integer(single(object, name, kOneInteger), name, kOneInteger);
}

std::int64_t large_integer(nb::handle object, const char *name) {
    return index(single(object, name, kOneInteger), name, kOneInteger);
}

bool is_flag(nb::handle object) {
    if (PyBool_Check(object.ptr())) return true;
    // numpy's bool_ is no bool of Python's, but true or false all the same.
    const std::string type = name_of_type(object);
    return type == "bool" || type == "bool_";
}

bool flag(nb::handle object, const char *name) {
    if (!is_flag(object)) wrong(object, name, "True or False");
    return PyObject_IsTrue(object.ptr()) == 1;
}

std::vector<float> reals(nb::handle object, const char *name) {
    std::vector<float> values;
    for (const nb::handle number : numbers(object, name, kReals)) values.push_back(to_real(number, name, kReals));
    return values;
}

std::vector<std::int32_t> integers(nb::handle object, const char *name) {
    std::vector<std::int32_t> values;
    for (const nb::handle number : numbers(object, name, kIntegers))
        values.push_back(to_integer(number, name, kIntegers));
    return values;
}

Attributes attributes(const AttributeArguments &arguments, std::size_t axes) {
    Attributes a;
    if (!arguments.auto_pad.is_none()) {
        if (!nb::isinstance<nb::str>(arguments.auto_pad)) wrong(arguments.auto_pad, "auto_pad", "a string");
        a.auto_pad = text(arguments.auto_pad, "auto_pad");
    }
    a.group = arguments.group;
    a.strides = ints(arguments.strides, "strides", axes);
    a.pads = ints(arguments.pads, "pads", 2 * axes);
    a.dilations = ints(arguments.dilations, "dilations", axes);
    a.output_padding = ints(arguments.output_padding, "output_padding", axes);
    a.output_shape = ints(arguments.output_shape, "output_shape", axes);
    a.kernel_shape = ints(arguments.kernel_shape, "kernel_shape", axes);
    return a;
}

std::optional<Quantization> quantization(const QuantizationArguments &arguments, convt_dtype x, convt_dtype y) {
    const std::pair<const nb::object *, const char *> of_x_and_y[] = {{&arguments.x_scale, "x_scale"},
                                                                      {&arguments.x_zero_point, "x_zero_point"},
                                                                      {&arguments.y_scale, "y_scale"},
                                                                      {&arguments.y_zero_point, "y_zero_point"},
                                                                      {&arguments.y_range, "y_range"}};
    const bool x_is_quantized = x == CONVT_U8 || x == CONVT_S8;
    bool any = !arguments.w_scale.is_none() || !arguments.w_zero_point.is_none();
    for (const auto &[object, name] : of_x_and_y) {
        if (object->is_none()) continue;
        any = true;
        if (!x_is_quantized)
            value_error(std::string(name) + " is given, but x is " + numpy_name(x) +
                        ": with such an x only w_scale and w_zero_point may be, for weights of 8 bits");
    }
    if (!any) return std::nullopt;
    const char *const missing = arguments.x_scale.is_none() && x_is_quantized                     ? "x_scale"
                                : arguments.w_scale.is_none()                                     ? "w_scale"
                                : arguments.y_scale.is_none() && x_is_quantized && y != CONVT_F32 ? "y_scale"
                                                                                                  : nullptr;
    if (missing != nullptr) type_error(std::string(missing) + " is missing: all that is quantized has a scale");
    Quantization q;
    if (x_is_quantized) q.x_scale = real(arguments.x_scale, "x_scale");
    q.w_scale = reals(arguments.w_scale, "w_scale");
    if (!arguments.y_scale.is_none()) q.y_scale = real(arguments.y_scale, "y_scale");
    if (!arguments.x_zero_point.is_none()) q.x_zero_point = integer(arguments.x_zero_point, "x_zero_point");
    if (!arguments.w_zero_point.is_none()) q.w_zero_point = integers(arguments.w_zero_point, "w_zero_point");
    if (!arguments.y_zero_point.is_none()) q.y_zero_point = integer(arguments.y_zero_point, "y_zero_point");
    if (!arguments.y_range.is_none()) {
        const std::vector<float> range = reals(arguments.y_range, "y_range");
        if (range.size() != 2)
            value_error("y_range has " + std::to_string(range.size()) + " elements; it must be (least, greatest)");
        q.y_range = {{range[0], range[1]}};
    }
    return q;
}

PostOps post_ops(nb::handle activation, bool adds_residual) {
    struct Named {
        const char *name;
        convt_activation activation;
        std::size_t parameters;
    };
    constexpr Named kNamed[] = {{"relu", CONVT_RELU, 0},
                                {"leaky_relu", CONVT_LEAKY_RELU, 1},
                                {"clip", CONVT_CLIP, 2},
                                {"sigmoid", CONVT_SIGMOID, 0},
                                {"tanh", CONVT_TANH, 0}};
    constexpr char wanted[] = "'relu', 'sigmoid', 'tanh', ('leaky_relu', slope), ('clip', least, greatest) or None";
    PostOps ops;
    ops.adds_residual = adds_residual;
    if (activation.is_none()) return ops;
    nb::object name = nb::borrow(activation);
    std::vector<float> parameters;
    if (nb::isinstance<nb::tuple>(activation) || nb::isinstance<nb::list>(activation)) {
        const nb::tuple parts(nb::borrow(activation));
        if (parts.size() == 0) wrong(activation, "activation", wanted);
        name = parts[0];
        for (std::size_t i = 1; i < parts.size(); ++i) parameters.push_back(real(parts[i], "activation"));
    }
    if (!nb::isinstance<nb::str>(name)) wrong(activation, "activation", wanted);
    const std::string given = text(name, "activation");
    for (const Named &named : kNamed) {
        if (given != named.name || parameters.size() != named.parameters) continue;
        ops.activation = named.activation;
        if (named.parameters > 0) ops.alpha = parameters[0];
        if (named.parameters > 1) ops.beta = parameters[1];
        return ops;
    }
    value_error("activation is '" + given + "' with " + std::to_string(parameters.size()) + " parameters; it must be " +
                wanted);
}

convt_layout layout(nb::handle object) {
    constexpr char wanted[] = "'nchw' or 'nhwc' (or 'channels_first', 'channels_last')";
    if (!nb::isinstance<nb::str>(object)) wrong(object, "layout", wanted);
    const std::string name = text(object, "layout");
    if (name == "nchw" || name == "channels_first") return CONVT_CHANNELS_FIRST;
    if (name == "nhwc" || name == "channels_last") return CONVT_CHANNELS_LAST;
    value_error("layout is '" + name + "'; it must be " + wanted);
}

} // namespace convtranspose::python
