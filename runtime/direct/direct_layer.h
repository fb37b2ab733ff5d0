// A layer as one kernel computes it: its taps, packed weights, and the order in which the kernel reads x.
#pragma once

#include <HalideRuntime.h>

#include <array>
#include <cstdint>

#include "kernels/kernel_tables.h"
#include "kernels/packed_weights.h"
#include "problem/spatial_problem.h"
#include "selection/candidates.h"

namespace convtranspose {

// The types of packed weights, of the copy of x, and of the packed bias.
struct OperandTypes {
    halide_type_t w, x, bias;
};
OperandTypes operand_types(const Variant &v);

// All parts of a direct plan refer to one of these.
struct DirectLayer {
    // packed_as: as for DirectPlan.
    DirectLayer(const SpatialProblem &problem, const Candidate &choice, const PackedLayout *packed_as = nullptr);

    const Variant &variant;
    NarrowerTiles narrower; // variants for the ends of rows
    SpatialProblem problem;
    std::array<bool, 3> whole; // axes whose stride the variant has built in
    std::array<AxisPlan, 3> axes;
    PackedLayout packed;
    ReadsX reads_x;
    Columns in_place;     // of kCopyOfRowEnds: columns that read x in place
    CopyOrder copy_order; // of the copy of x

    Packing packing() const { return {packed, axes}; }
    std::uint64_t weight_bytes() const;                        // rounded up to where biases or sums begin
    std::int64_t x_block() const { return block_of(variant); } // input channels that lie side by side in a block
    std::int64_t x_blocks() const { return packed.blocks() * packed.block / x_block(); } // of a group, with padding

    bool copies_channels_inside() const { // true if the copy of x is dense along channels, not along w
        return copy_order == CopyOrder::kChannels || copy_order == CopyOrder::kToChannels;
    }
    bool transposes() const { // x is copied from channels first to dense channels, by a kernel that transposes
        return copy_order == CopyOrder::kToChannels && variant.arithmetic == Arithmetic::kBf16;
    }
    std::int64_t copied_column(std::int64_t groups) const; // elements of a position, in a copy of so many groups
    std::int64_t copied_row(std::int64_t columns) const;   // positions from one row of a planar copy to the next
};

} // namespace convtranspose
