#include "cpu/passes/shared_base_pointer.h"

namespace convtranspose {

using namespace Halide;
using namespace Halide::Internal;

namespace {

// Replaces each load of a buffer by one through the shared pointer.
class Through : public IRMutator {
  public:
    Through(const std::string &buffer, SharedBasePointer *shared) : buffer_(buffer), shared_(shared) {}
    bool replaced_all = true;

  private:
    using IRMutator::visit;
    Expr visit(const Load *op) override {
        if (op->name != buffer_) return IRMutator::visit(op);
        const Ramp *const ramp = op->index.as<Ramp>();
        const Expr at = ramp ? ramp->base : op->index;
        if (!shared_->first.defined()) {
            shared_->first = at;
            shared_->bytes = op->type.element_of().bytes();
        }
        const Expr distance = simplify(at - shared_->first);
        if (!distance.as<IntImm>() || (op->type.is_vector() && !ramp)) {
            replaced_all = false;
            return op;
        }
        const Expr index = ramp ? Ramp::make(distance, ramp->stride, ramp->lanes) : distance;
        return Load::make(op->type, shared_->pointer, index, Buffer<>(), Parameter(), op->predicate,
                          ModulusRemainder());
    }

    const std::string &buffer_;
    SharedBasePointer *const shared_;
};

} // namespace

std::optional<SharedBasePointer> through_shared_pointer(const std::string &buffer, const Stmt &step) {
    SharedBasePointer shared;
    shared.pointer = unique_name(buffer + "_step");
    Through through(buffer, &shared);
    shared.step = through.mutate(step);
    if (!through.replaced_all || !shared.first.defined()) return {};
    return shared;
}

} // namespace convtranspose
