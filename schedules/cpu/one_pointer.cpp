#include "one_pointer.h"

namespace convtranspose {

using namespace Halide;
using namespace Halide::Internal;

namespace {

class Through : public IRMutator {
  public:
    Through(const std::string &buffer, OnePointer *one) : buffer_(buffer), one_(one) {}
    bool all = true;

  private:
    using IRMutator::visit;
    Expr visit(const Load *op) override {
        if (op->name != buffer_) return IRMutator::visit(op);
        const Ramp *const ramp = op->index.as<Ramp>();
        const Expr at = ramp ? ramp->base : op->index;
        if (!one_->first.defined()) {
            one_->first = at;
            one_->bytes = op->type.element_of().bytes();
        }
        const Expr distance = simplify(at - one_->first);
        if (!distance.as<IntImm>() || (op->type.is_vector() && !ramp)) {
            all = false;
            return op;
        }
        const Expr index = ramp ? Ramp::make(distance, ramp->stride, ramp->lanes) : distance;
        return Load::make(op->type, one_->pointer, index, Buffer<>(), Parameter(), op->predicate, ModulusRemainder());
    }

    const std::string &buffer_;
    OnePointer *const one_;
};

} // namespace

std::optional<OnePointer> through_one_pointer(const std::string &buffer, const Stmt &step) {
    OnePointer one;
    one.pointer = unique_name(buffer + "_step");
    Through through(buffer, &one);
    one.step = through.mutate(step);
    if (!through.all || !one.first.defined()) return {};
    return one;
}

} // namespace convtranspose
