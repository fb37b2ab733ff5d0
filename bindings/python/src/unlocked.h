// The interpreter's lock.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>

namespace convtranspose::python {

/// While it lives, other threads of Python run.
///
/// If the interpreter ends meanwhile, Python before 3.14 ends a thread that asks for the lock by unwinding its stack, which would
/// call std::terminate in C++. Such a thread sleeps instead until the process ends, as it does in later versions.
class Unlocked {
  public:
    Unlocked() : state_(PyEval_SaveThread()) {}
    ~Unlocked() {
        try {
            PyEval_RestoreThread(state_);
        } catch (...) {
            for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
        }
    }
    Unlocked(const Unlocked &) = delete;
    Unlocked &operator=(const Unlocked &) = delete;

  private:
    PyThreadState *state_;
};

} // namespace convtranspose::python
