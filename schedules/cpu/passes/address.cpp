#include "cpu/passes/address.h"

#include <cstdint>

namespace convtranspose {

using namespace Halide;
using namespace Halide::Internal;

namespace {

// The index in 64-bit integers from its leaves on, as Halide computes addresses: LLVM then steps through them with the loop.
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

// https://llvm.org/docs/LangRef.html#llvm-launder-invariant-group-intrinsic
Expr hidden_from_llvm(const Expr &pointer) {
    return Call::make(Handle(), "llvm.launder.invariant.group.p0", {pointer}, Call::Extern);
}

// LLVM's intrinsic (https://llvm.org/docs/LangRef.html#llvm-prefetch-intrinsic), which Halide declares for its own prefetches.
// A function that it had not declared would be refused, as a call from Halide returns a number.
Stmt prefetch(const Expr &pointer, CacheLevel level) {
    constexpr int kRead = 0, kFirst = 3, kSecond = 2, kData = 1;
    const int locality = level == CacheLevel::kFirst ? kFirst : kSecond;
    return Evaluate::make(Call::make(Int(32), "llvm.prefetch.p0", {pointer, kRead, locality, kData}, Call::Extern));
}

} // namespace convtranspose
