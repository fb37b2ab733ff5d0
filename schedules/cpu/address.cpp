#include "address.h"

#include <cstdint>

namespace convtranspose {

using namespace Halide;
using namespace Halide::Internal;

namespace {

// As 64-bit integers from its leaves on, as Halide computes addresses: LLVM then steps through them with the loop.
Expr wide(const Expr &e) {
    if (const Add *op = e.as<Add>()) return wide(op->a) + wide(op->b);
    if (const Sub *op = e.as<Sub>()) return wide(op->a) - wide(op->b);
    if (const Mul *op = e.as<Mul>()) return wide(op->a) * wide(op->b);
    return cast<std::int64_t>(e);
}

} // namespace

Expr address_of(const std::string &buffer, const Expr &byte) {
    return reinterpret(Handle(), reinterpret<std::int64_t>(Variable::make(Handle(), buffer)) + wide(byte));
}

} // namespace convtranspose
