#include "cpu/passes/lowered_names.h"

namespace convtranspose {

using namespace Halide;
using Internal::Call;

namespace {

Expr ask(const std::string &buffer, const char *question, int dimension) {
    const Expr b = Internal::Variable::make(type_of<halide_buffer_t *>(), buffer + ".buffer");
    return Call::make(Int(32), question, {b, dimension}, Call::Extern);
}

} // namespace

bool runs_over(const std::string &loop, const std::string &variable) {
    return Internal::ends_with(loop, "." + variable);
}

std::string stride_name(const std::string &buffer, int dimension) {
    return buffer + ".stride." + std::to_string(dimension);
}

Expr stride_of(const std::string &buffer, int dimension) { return ask(buffer, Call::buffer_get_stride, dimension); }
Expr extent_of(const std::string &buffer, int dimension) { return ask(buffer, Call::buffer_get_extent, dimension); }

} // namespace convtranspose
