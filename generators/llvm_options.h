// Options of LLVM for the kernel that a process compiles. Halide reads them from its environment when it first calls LLVM.
#ifndef CONVTRANSPOSE_GENERATORS_LLVM_OPTIONS_H_
#define CONVTRANSPOSE_GENERATORS_LLVM_OPTIONS_H_

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace convtranspose {

// Adds an option, which holds no space, as Halide parts options at spaces.
inline void add_llvm_option(const std::string &option) {
    const char *const name = "HL_LLVM_ARGS";
    const char *const before = std::getenv(name);
    const std::string all = before && *before ? before + (" " + option) : option;
#if defined(_WIN32)
    const int failed = _putenv_s(name, all.c_str());
#else
    const int failed = setenv(name, all.c_str(), 1);
#endif
    if (failed != 0) throw std::runtime_error(std::string(name) + " cannot be set");
}

} // namespace convtranspose

#endif // CONVTRANSPOSE_GENERATORS_LLVM_OPTIONS_H_
