// The plan that runs one variant over one layer of up to three spatial axes: strips, copies of x, tasks, calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/parallel.h"
#include "base/shape.h"
#include "kernels/halide_buffer.h"
#include "kernels/kernel_tables.h"
#include "kernels/packed_weights.h"
#include "kernels/post_ops.h"
#include "selection/candidates.h"

namespace convtranspose {

// Strides of x or y in the caller's memory, in elements. Strides of dimensions of extent 1 are not used.
struct TensorStrides {
    std::int64_t n = 0, c = 0;
    std::array<std::int64_t, 3> axes = {0, 0, 0}; // w, h, d
};

// Takes strides in the order of the layout; of more than three axes it takes the last three.
TensorStrides tensor_strides(const Geometry &geometry, const Strides &strides);

class DirectPlan {
  public:
    DirectPlan() = default;
    // packed: the layout of weights that are packed already; null: the variant's own. Only the reference reads others.
    DirectPlan(const SpatialProblem &problem, const Candidate &choice, const CostProfile &profile, int threads,
               const PackedLayout *packed = nullptr);

    const SpatialProblem &problem() const { return problem_; }
    const Variant &variant() const { return *variant_; }
    const PackedLayout &packed_layout() const { return packed_; }
    const std::array<AxisPlan, 3> &axes() const { return axes_; }
    std::uint64_t packed_bytes() const;   // for weights, then biases; if quantized, for weights, then their sums
    std::uint64_t epilogue_bytes() const; // 0 if not quantized
    std::uint64_t workspace_bytes() const { return copy_bytes_ * workers_ + piece_bytes_ * piece_count_; }
    ReadsX reads_x() const { return reads_x_; }
    bool rounds_pieces() const { return rounder_.any != nullptr; } // y has 16 bits, and the variant computes f32
    std::int64_t strip_count() const;
    const UnsupportedReason &overflow() const { return overflow_; } // why the plan must not run, if text is not null
    UnsupportedReason overflow_of_strides(const TensorStrides &x) const; // the same for an x with these strides
    const Variant *row_end() const { // the variant that computes the ends of rows; null: variant()
        return narrower_.holding(axes_[0].q_extent() % variant_->tile_q);
    }

    // Packs weights of floats and a bias, which may be null, into packed_bytes() bytes aligned to 64. Returns whether all weights are
    // finite.
    bool pack(const WeightsView &w, const void *bias, void *packed) const;

    // Packs the weights of a quantized problem; prepare() then makes its epilogue.
    void pack(const WeightsView &w, const QuantizationValues &q, void *packed) const;
    // Takes packed weights back to w_out, the memory that w describes. q: null if weights are not quantized.
    void unpack(const WeightsView &w, const QuantizationValues *q, const void *packed, void *w_out) const;
    // Writes biases and factors of a quantized problem to `epilogue`, epilogue_bytes() bytes aligned to 64. bias: null if none.
    void prepare(const QuantizationValues &q, const void *packed, const void *bias, void *epilogue) const;

    // The tensors and other operands of a run.
    struct Operands {
        const void *x = nullptr;
        TensorStrides x_strides;
        const void *packed = nullptr;   // made by pack()
        const void *epilogue = nullptr; // made by prepare(); quantized only
        ByteX byte_x;                   // quantized only
        OutputRange range;              // quantized only
        void *y = nullptr;
        TensorStrides y_strides;
        std::int64_t y_begin = 0;              // the element of y that is at `y`
        const PostOpsCall *post_ops = nullptr; // null: none
        const void *residual = nullptr;        // y's type and shape; null: none
        TensorStrides residual_strides;
        void *workspace = nullptr; // workspace_bytes() bytes aligned to 64
    };
    void run(const Operands &operands, const Parallel &parallel) const;

  private:
    friend struct StripsForTests; // tests/units/strips_test.cpp

    // Bytes of a piece of y that stays in the second-level cache until it is finished, or other tiles have stored to it.
    static constexpr std::int64_t kPieceBytes = 512 << 10;

    // The types of packed weights, of the copy of x, and of the packed bias.
    struct OperandTypes {
        halide_type_t w, x, bias;
    };
    static OperandTypes types_of(const Variant &v);

    // A strip: positions of some groups of some images, along the strip axis, that are computed together, and the part of x that they
    // read.
    struct Strip {
        std::int64_t first_image = 0, images = 1;
        std::int64_t first_group = 0, groups = 1;
        std::int64_t q_begin = 0, q_end = 0;         // positions along the strip axis
        Columns columns;                             // columns of y that read this part of x
        std::array<std::int64_t, 3> x_min, x_extent; // w, h, d
        // The place of that part of x, in the caller's memory or in a copy: x points to x_min, and strides are in elements. If
        // channels come in blocks, strides.c is from one block to the next.
        const char *x = nullptr;
        char *copy = nullptr; // x, if it is a copy made for this strip
        TensorStrides strides;
        std::int64_t group_stride = 0;
    };
    // The parts of a strip, by columns: a single one, or the beginnings, the middles and the ends of its rows. Each reads x
    // elsewhere.
    struct StripParts {
        std::array<Strip, 3> part;
        std::size_t count = 0;
    };
    // One call of a kernel: the box of y that it computes.
    struct Call {
        std::int64_t q_begin = 0, q_end = 0; // positions along the strip axis of all calls of the task
        std::array<Box, 3> box;
        std::int64_t oc_tile_begin = 0, oc_tile_end = 1;
        std::int64_t group_begin = 0, group_end = 1;
    };

    struct Amounts;
    Amounts amounts(const CostProfile &profile) const;
    void plan_strips(const CostProfile &profile, int threads);
    bool takes_groups_apart(const Amounts &a, int threads);
    void give_strips_to_threads(const Amounts &a, int threads);
    void share_strips(const Amounts &a, int threads);
    void plan_copy();
    std::int64_t most_strips(std::int64_t least) const;
    std::int64_t strip_begin(std::int64_t i) const;
    std::int64_t group_parts() const;
    Strip strip(std::int64_t images, std::int64_t groups, std::int64_t q_begin, std::int64_t q_end) const;
    bool is_inside(const Strip &s) const; // true if no tap leaves x
    bool is_copied(const Strip &s) const;
    bool are_filled_alike() const {
        return strips_ == 1 && reads_x_ != ReadsX::kCopyOfRowEnds;
    } // the copies of all strips, around x
    struct Memory {
        char *copy, *pieces; // pieces: one for each thread that shares the strip
    };
    void run_strip(std::int64_t i, const Operands &o, const Memory &memory, const Parallel &parallel) const;
    void copy_strip(const Strip &s, const Operands &o, const Parallel &parallel) const;
    struct CopyPart;
    struct CopyParts;
    struct InsideX;
    CopyParts copy_parts(const Strip &s, const Operands &o, const InsideX &inside) const;
    InsideX inside_x(const Strip &s) const;
    void fill_copies(const Operands &o, char *copies, const Parallel &parallel) const;
    void fill(const Strip &s, const InsideX &inside, const Operands &o, const Parallel &parallel) const;
    void fill_around(const Strip &s, const InsideX &inside, const Operands &o, const Parallel &parallel) const;
    void fill_up_blocks(const Strip &s, const Parallel &parallel) const;
    void locate_copy(Strip *s, char *copy) const;
    void locate_in_place(Strip *s, const Operands &o) const;
    StripParts parts_of_rows(const Strip &s) const;
    std::int64_t copied_elements(const Strip &s) const;
    struct Tasks;
    struct PartOfY;
    Tasks tasks_of(const Strip &s, std::int64_t pieces, int threads) const;
    Call part(const Strip &s, const Tasks &tasks, std::int64_t i) const;
    Box box_of_part(const Tasks &tasks, const Call &c, std::size_t axis, std::int64_t i) const;
    PartOfY part_of_y(const Strip &s, const Call &c) const;
    TensorStrides dense_strides_of(const PartOfY &part) const;
    std::int64_t dense_bytes(const PartOfY &part) const; // of such a copy
    void plan_pieces(int threads);
    JointBox joint_box(const PartOfY &part, const TensorStrides &first, const TensorStrides &second) const;
    void round(const PartOfY &part, const Operands &from, const Operands &to) const;
    void compute_strip(const StripParts &rows, const Operands &o, char *pieces, const Parallel &parallel) const;
    void call_for_task(const StripParts &rows, const Tasks &tasks, std::int64_t task, Call c, const Operands &o) const;
    void call_on_parts(const StripParts &rows, const Call &call, const Operands &o) const;
    void call_on_strip(const Strip &s, const Call &call, const Operands &o) const;
    void call_kernel(const Variant &v, const Strip &s, const Call &call, const Operands &o) const;
    std::int32_t turn_of(const Box &box) const;
    struct CallChannels;
    void describe_x(const Variant &v, const Strip &s, const Call &c, const CallChannels &channels, Buffer<7> *x) const;
    void describe_y(const Strip &s, const Call &c, const CallChannels &channels, const Operands &o, Buffer<9> *y) const;
    void finish(const PartOfY &part, const Operands &o) const;
    std::int64_t pieces_of(const Strip &s) const;
    bool transposes() const;       // x is copied from channels first to dense channels, by a kernel that transposes
    std::int64_t x_block() const;  // input channels that lie side by side in a block
    std::int64_t x_blocks() const; // blocks in a group, padding included
    std::int64_t copied_channels() const;          // channels of the copy, with those that fill up blocks and vectors
    bool copies_channels_inside() const;           // true if the copy of x is dense along channels, not along w
    std::int64_t copied_row(const Strip &s) const; // positions from one row of a planar copy to the next
    std::int64_t copied_column() const;            // elements from one position of the copy to the next
    std::uint64_t weight_bytes() const;            // rounded up to where biases or sums begin

    const Variant *variant_ = nullptr;
    NarrowerTiles narrower_; // variants for the ends of rows
    Copier copy_;
    CopyOrder copy_order_ = CopyOrder::kPlanar;
    SpatialProblem problem_;
    std::array<AxisPlan, 3> axes_;
    std::array<bool, 3> whole_ = {false, false, false}; // axes whose stride the variant has built in
    PackedLayout packed_;
    ReadsX reads_x_ = ReadsX::kInPlace;
    Columns in_place_; // of kCopyOfRowEnds: columns that read x in place
    bool fetches_x_ = false;
    int strip_axis_ = 0;
    std::int64_t strip_tile_ = 1; // extent of the variant's tile along the strip axis
    std::int64_t strips_ = 1;     // strips of an image along the strip axis
    bool rest_apart_ = false;     // true if the last strip is what whole tiles leave
    std::int64_t images_ = 1;     // images copied and computed at a time
    std::int64_t groups_ = 1;     // groups copied and computed at a time
    int workers_ = 1; // threads that take whole strips, each with a copy of its own; 1: all threads share each strip
    std::uint64_t copy_bytes_ = 0;
    // If y has 16 bits and the variant computes f32, each task writes its part of y to a piece of memory, which is then rounded.
    Copier rounder_;
    std::uint64_t piece_bytes_ = 0;
    int piece_count_ = 0;
    UnsupportedReason overflow_;
};

} // namespace convtranspose
