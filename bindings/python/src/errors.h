// Errors of the library as exceptions of Python.
#pragma once

#include <convtranspose/convtranspose.hpp>

#include <nanobind/nanobind.h>

#include <string>

namespace convtranspose::python {

/// Raises the exception of a failed status, with its message: ValueError for a value that breaks a rule or a size that does not
/// fit, NotImplementedError for what this CPU or build lacks, MemoryError, and RuntimeError for the rest. Does nothing for success.
void check(const Status &status);

/// The name of an object's class, for messages.
std::string name_of_type(nanobind::handle object);

/// Raises a TypeError.
[[noreturn]] void type_error(const std::string &message);

/// Raises a ValueError.
[[noreturn]] void value_error(const std::string &message);

} // namespace convtranspose::python
