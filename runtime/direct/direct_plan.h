// A direct plan runs one variant over one layer of up to three spatial axes. Its parts have headers of their own. A run goes
// through the strips: it packs x, divides the strip into tasks, and calls kernels for each; then it rounds and finishes pieces of
// y.
#pragma once

#include <cstdint>

#include "base/parallel.h"
#include "direct/blocking.h"
#include "direct/direct_layer.h"
#include "direct/input_packing.h"
#include "direct/operands.h"
#include "direct/pieces.h"

namespace convtranspose {

class DirectPlan {
  public:
    // packed: the layout of weights that are packed already; null: the variant's own. Only the reference reads others.
    DirectPlan(const SpatialProblem &problem, const Candidate &choice, const CostProfile &profile, int threads,
               const PackedLayout *packed = nullptr);
    DirectPlan(const DirectPlan &) = delete;
    DirectPlan &operator=(const DirectPlan &) = delete;

    const SpatialProblem &problem() const { return layer_.problem; }
    const Variant &variant() const { return layer_.variant; }
    const PackedLayout &packed_layout() const { return layer_.packed; }
    std::uint64_t packed_bytes() const;   // for weights, then biases; if quantized, for weights, then their sums
    std::uint64_t epilogue_bytes() const; // 0 if not quantized
    std::uint64_t workspace_bytes() const {
        return input_.bytes() * blocking_.workers + pieces_.bytes() * pieces_.count();
    }
    ReadsX reads_x() const { return layer_.reads_x; }
    bool rounds_pieces() const { return pieces_.rounds(); } // y has 16 bits, and the variant computes f32
    std::int64_t strip_count() const { return blocking_.strip_count(); }
    UnsupportedReason overflow() const; // why the plan must not run, if text is not null
    UnsupportedReason overflow_of_strides(const TensorStrides &x) const; // the same for an x with these strides
    const Variant *row_end() const { // the variant that computes the ends of rows; null: variant()
        return layer_.narrower.holding(layer_.axes[0].q_extent() % layer_.variant.tile_q);
    }

    // Packs weights and a bias, which may be null, into packed_bytes() bytes aligned to 64. Returns whether all weights are finite.
    // q: null for floats; prepare() makes the epilogue of a quantized problem.
    bool pack(const WeightsView &w, const QuantizationValues *q, const void *bias, void *packed) const;
    // Takes packed weights back to w_out, the memory that w describes. q: null if weights are not quantized.
    void unpack(const WeightsView &w, const QuantizationValues *q, const void *packed, void *w_out) const;
    // Writes biases and factors of a quantized problem to `epilogue`, epilogue_bytes() bytes aligned to 64. bias: null if none.
    void prepare(const QuantizationValues &q, const void *packed, const void *bias, void *epilogue) const;

    void run(const DirectOperands &operands, const Parallel &parallel) const;

  private:
    // copy, pieces: memory for the copy of x, and for a piece for each thread that shares the strip.
    void run_strip(const Strip &s, const DirectOperands &o, char *copy, char *pieces, const Parallel &parallel) const;

    const DirectLayer layer_; // the other parts refer to those before them
    const Blocking blocking_;
    const InputPacking input_;
    const Pieces pieces_;
};

} // namespace convtranspose
