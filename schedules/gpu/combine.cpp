#include "gpu/combine.h"

#include <cstring>

namespace convtranspose {

using namespace Halide;

namespace {

// Halide 21 writes f64 constants of OpenCL's source with too few digits: as their bits they are exact.
class ExactConstants : public Internal::IRMutator {
    using Internal::IRMutator::visit;
    Expr visit(const Internal::FloatImm *op) override {
        if (op->type != Float(64)) return op;
        uint64_t bits = 0;
        std::memcpy(&bits, &op->value, sizeof bits);
        return reinterpret(Float(64), Expr(bits));
    }
};

} // namespace

void schedule_combine(const Combine &c, const Func &y, Pipeline pipeline, const Target &target) {
    Func result = y, sum = c.sum;
    result.gpu_blocks(c.j); // does nothing, as y is undefined there, but on the device
    // Each element of y is stored once, by one thread.
    result.update().allow_race_conditions().gpu_threads(c.o[0]).gpu_blocks(c.o[1]);
    if (target.has_feature(Target::OpenCL)) pipeline.add_custom_lowering_pass(new ExactConstants);
    sum.compute_at(result, c.o[0]).store_in(MemoryType::Register).bound_extent(c.i, 1);
}

} // namespace convtranspose
