#include "errors.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace convtranspose::python {

namespace {

[[noreturn]] void raise(PyObject *type, const std::string &message) {
    PyErr_SetString(type, message.c_str());
    throw nb::python_error();
}

PyObject *exception_of(convt_status code) {
    switch (code) {
    case CONVT_INVALID_ARGUMENT:
    case CONVT_OVERFLOW: return PyExc_ValueError;
    case CONVT_UNSUPPORTED: return PyExc_NotImplementedError;
    case CONVT_OUT_OF_MEMORY: return PyExc_MemoryError;
    default: return PyExc_RuntimeError;
    }
}

// Returns a message of the C interface with the names that Python has for its functions.
std::string with_names_of_python(std::string message) {
    constexpr std::pair<const char *, const char *> kNames[] = {{"convt_isa_name()", "isas()"},
                                                                {"convt_variant_name()", "variants()"},
                                                                {"convt_algorithm_name()", "algorithms()"},
                                                                {"convt_device_kind_name()", "devices()"}};
    for (const auto &[of_c, of_python] : kNames) {
        const std::size_t at = message.find(of_c);
        if (at != std::string::npos) message.replace(at, std::strlen(of_c), of_python);
    }
    return message;
}

} // namespace

void check(const Status &status) {
    if (!status) raise(exception_of(status.code()), with_names_of_python(status.message()));
}

std::string name_of_type(nb::handle object) {
    return nb::cast<std::string>(nb::handle(object.type()).attr("__name__"));
}

void type_error(const std::string &message) { raise(PyExc_TypeError, message); }

void value_error(const std::string &message) { raise(PyExc_ValueError, message); }

} // namespace convtranspose::python
