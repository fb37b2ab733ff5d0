// Functions that the C++ library of WASI lacks. There, an exception ends the program.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <typeinfo>

extern "C" {

void *__cxa_allocate_exception(std::size_t size) { return std::malloc(size); }

[[noreturn]] void __cxa_throw(void *, std::type_info *type, void (*)(void *)) {
    std::fprintf(stderr, "thrown: %s\n", type->name());
    std::abort();
}

} // extern "C"
