// One planned convolution of up to three spatial axes with one variant: buffers, strips, tasks, calls.
#ifndef CONVTRANSPOSE_RUNTIME_CORE_H_
#define CONVTRANSPOSE_RUNTIME_CORE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "candidates.h"
#include "packed_weights.h"
#include "parallel.h"

namespace convtranspose {

// x or y in the caller's memory. Strides in elements; those of extents of 1 are not used.
struct TensorStrides {
    std::int64_t n = 0, c = 0;
    std::array<std::int64_t, 3> axes = {0, 0, 0}; // w, h, d
};

class Core {
  public:
    Core() = default;
    // packed: how weights are packed already, if they are. The reference reads any packing, others their own.
    Core(const CoreProblem &problem, const Candidate &choice, int threads, const PackedLayout *packed = nullptr);

    const Variant &variant() const { return *variant_; }
    const PackedLayout &packed_layout() const { return packed_; }
    const std::array<AxisPlan, 3> &axes() const { return axes_; }
    std::size_t packed_bytes() const; // weights, then bias
    std::size_t workspace_bytes() const { return workspace_bytes_; }
    bool copies_x() const { return copies_x_; }

    // Packs into packed_bytes() bytes aligned to 64. Returns whether all weights are finite.
    bool pack(const WeightsView &w, const void *bias, void *packed) const;

    // packed: made by pack(). workspace: workspace_bytes() bytes aligned to 64.
    void run(const void *x, const TensorStrides &x_strides, const void *packed, void *y, const TensorStrides &y_strides,
             void *workspace, const Parallel &parallel) const;

  private:
    struct Strip;
    struct Call;

    void plan_strips(int threads);
    std::int64_t strip_end(std::int64_t q_begin) const;
    Strip strip(std::int64_t images, std::int64_t q_begin, std::int64_t q_end) const;
    void copy_strip(const Strip &s, const void *x, const TensorStrides &strides, void *to,
                    const Parallel &parallel) const;
    void compute_strip(const Strip &s, const void *packed, void *y, const TensorStrides &strides,
                       const Parallel &parallel) const;
    void call(const Strip &s, const Call &call, const void *packed, void *y, const TensorStrides &strides) const;
    std::size_t weight_offset() const;

    const Variant *variant_ = nullptr;
    PadFunction pad_ = nullptr;
    PadOrder pad_order_ = PadOrder::kPlanar;
    CoreProblem problem_;
    std::array<AxisPlan, 3> axes_;
    std::array<bool, 3> whole_ = {false, false, false}; // axes whose stride the variant has built in
    PackedLayout packed_;
    bool copies_x_ = false;
    int strip_axis_ = 0;
    std::int64_t strip_q_ = 0; // positions q of the strip axis in a strip
    std::int64_t images_ = 1;  // images copied and computed at a time
    std::size_t workspace_bytes_ = 0;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_CORE_H_
