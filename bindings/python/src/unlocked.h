// The interpreter's lock.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>

namespace convtranspose::python {

/// Sleeps until the process ends.
///
/// If the interpreter ends, Python before 3.14 ends a thread that asks for its lock by unwinding the stack, which would run
/// destructors that use Python, or call std::terminate. Such a thread sleeps instead, as it does in later versions.
[[noreturn]] inline void sleep_forever() {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

/// Calls a function of the module convtranspose._frameworks, and raises what it raises.
template<typename... Arguments>
nanobind::object call_framework(const char *function, const Arguments &...arguments) {
    const nanobind::object callee = nanobind::module_::import_("convtranspose._frameworks").attr(function);
    PyObject *result = nullptr;
    try {
        result = PyObject_CallFunctionObjArgs(callee.ptr(), arguments.ptr()..., nullptr); // itself it throws nothing
    } catch (...) {
        sleep_forever();
    }
    if (result == nullptr) throw nanobind::python_error();
    return nanobind::steal(result);
}

/// While it lives, other threads of Python run.
class Unlocked {
  public:
    Unlocked() : state_(PyEval_SaveThread()) {}
    ~Unlocked() {
        try {
            PyEval_RestoreThread(state_);
        } catch (...) {
            sleep_forever();
        }
    }
    Unlocked(const Unlocked &) = delete;
    Unlocked &operator=(const Unlocked &) = delete;

  private:
    PyThreadState *state_;
};

} // namespace convtranspose::python
