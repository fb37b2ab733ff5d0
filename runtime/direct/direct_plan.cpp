#include "direct/direct_plan.h"

#include <algorithm>

#include "base/allocator.h"
#include "base/division.h"
#include "direct/strip_tasks.h"

namespace convtranspose {

DirectPlan::DirectPlan(const SpatialProblem &problem, const Candidate &choice, const CostProfile &profile, int threads,
                       const PackedLayout *packed)
    : layer_(problem, choice, packed), blocking_(layer_, profile, threads), input_(blocking_),
      pieces_(blocking_, threads) {}

std::uint64_t DirectPlan::packed_bytes() const {
    const PackedLayout &packed = layer_.packed;
    std::int64_t bytes = packed.biases() * operand_types(layer_.variant).bias.bytes();
    if (packed.arithmetic == Arithmetic::kInt8) bytes = packed.biases() * packed.taps_volume() * 4;
    if (packed.arithmetic == Arithmetic::kInt16) bytes = 0;
    if (packed.arithmetic == Arithmetic::kS8Weights) bytes *= 2; // scales are packed behind the biases
    return layer_.weight_bytes() + round_up(bytes);
}

std::uint64_t DirectPlan::epilogue_bytes() const {
    return is_float(layer_.packed.arithmetic) ? 0 : round_up(epilogue_of(layer_.packing()).bytes());
}

bool DirectPlan::pack(const WeightsView &w, const QuantizationValues *q, const void *bias, void *packed) const {
    return pack_weights(layer_.packing(), layer_.problem.geometry, q, w, bias, packed,
                        static_cast<char *>(packed) + layer_.weight_bytes());
}

void DirectPlan::unpack(const WeightsView &w, const QuantizationValues *q, const void *packed, void *w_out) const {
    unpack_weights(layer_.packing(), layer_.problem.geometry, q, packed, w, w_out);
}

void DirectPlan::prepare(const QuantizationValues &q, const void *packed, const void *bias, void *epilogue) const {
    const void *const sums = static_cast<const char *>(packed) + layer_.weight_bytes();
    make_epilogue(layer_.packing(), layer_.problem.geometry, q, static_cast<const std::int32_t *>(sums), bias,
                  epilogue);
}

UnsupportedReason DirectPlan::overflow() const {
    if (!is_float(layer_.variant.arithmetic)) {
        const EpilogueLayout epilogue = epilogue_of(layer_.packing());
        const std::int64_t biases =
            capped_product({epilogue.classes[0], epilogue.classes[1], epilogue.classes[2], epilogue.biases});
        if (biases > kMostElements) return too_large("its biases are # elements; a kernel counts up to #", biases);
    }
    return input_.overflow();
}

// Kernels multiply positions by strides in 32 bits, also positions before x from which a call counts (kernel_call.cpp).
UnsupportedReason DirectPlan::overflow_of_strides(const TensorStrides &x) const {
    if (layer_.reads_x == ReadsX::kCopy) return {};
    for (std::size_t a = 0; a < 3; a++) {
        const AxisPlan &axis = layer_.axes[a];
        const std::int64_t before =
            std::clamp<std::int64_t>(tile_along(layer_.variant, a) - 1 - axis.low, 0, axis.q_extent() - 1);
        if (axis.geometry.in < 2 || before * x.axes[a] <= kMostElements) continue;
        return too_large("taps reach # elements before x, whose strides are large; a kernel counts up to #",
                         before * x.axes[a]);
    }
    return {};
}

void DirectPlan::run(const DirectOperands &o, const Parallel &parallel) const {
    if (blocking_.positions() == 0) return;
    const std::int64_t count = strip_count();
    const std::uint64_t copy_bytes = input_.bytes();
    char *const copies = static_cast<char *>(o.workspace), *const pieces = copies + blocking_.workers * copy_bytes;
    input_.begin(o, copies, parallel);
    if (blocking_.workers <= 1) {
        for (std::int64_t i = 0; i < count; i++) run_strip(blocking_.strip(i), o, copies, pieces, parallel);
        return;
    }
    parallel.for_each_by(blocking_.workers, count, [&](std::int64_t i, std::int64_t worker) {
        run_strip(blocking_.strip(i), o, copies + worker * copy_bytes, pieces + worker * pieces_.bytes(), Parallel());
    });
}

void DirectPlan::run_strip(const Strip &s, const DirectOperands &o, char *copy, char *pieces,
                           const Parallel &parallel) const {
    const StripParts rows = input_.pack(s, o, copy, parallel);
    const StripTasks tasks(blocking_, s, o.post_ops || pieces_.rounds() ? pieces_.least_of(s) : 0, parallel.threads);
    const auto compute = [&](std::int64_t task, const DirectOperands &to) {
        tasks.for_each_call(task, [&](const KernelCall &c) { call_kernels(layer_, rows, c, to); });
    };
    if (!pieces_.rounds()) {
        return parallel.for_each(tasks.count(), [&](std::int64_t task) {
            compute(task, o);
            if (o.post_ops) pieces_.finish(pieces_.part_of_y(s, tasks.part_of(task)), o);
        });
    }
    parallel.for_each_by(std::min(parallel.threads, pieces_.count()), tasks.count(),
                         [&](std::int64_t task, std::int64_t worker) {
                             const PartOfY part = pieces_.part_of_y(s, tasks.part_of(task));
                             const DirectOperands piece = pieces_.in_memory(part, o, pieces + worker * pieces_.bytes());
                             compute(task, piece);
                             pieces_.round(part, piece, o);
                             if (o.post_ops) pieces_.finish(part, o);
                         });
}

} // namespace convtranspose
