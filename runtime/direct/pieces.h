// Pieces are the parts of y that are rounded or get their post-ops while they are in the cache.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "direct/blocking.h"
#include "direct/operands.h"
#include "direct/strip_tasks.h"

namespace convtranspose {

// A part of y: some images, channels and positions.
struct PartOfY {
    std::int64_t image, images, channel, groups, oc; // oc: channels of each group
    std::array<std::int64_t, 3> begin, extent;       // w, h, d

    std::int64_t offset(const TensorStrides &strides) const {
        std::int64_t sum = image * strides.n + channel * strides.c;
        for (std::size_t a = 0; a < 3; a++) sum += begin[a] * strides.axes[a];
        return sum;
    }
};

// If y has 16 bits and the variant computes f32, each task writes its part of y to a piece of memory, which is then rounded.
class Pieces {
  public:
    Pieces(const Blocking &blocking, int threads); // the blocking must outlive it

    bool rounds() const { return rounder_.any != nullptr; }
    std::uint64_t bytes() const { return bytes_; } // of a piece of memory; 0: y is written as it is
    int count() const { return count_; }           // one for each thread that has a task

    // Returns how many pieces the strip's y is divided into at least, so that each stays in the cache until it is finished.
    std::int64_t least_of(const Strip &s) const;
    // Returns the part of y that all boxes of a part of the strip are.
    PartOfY part_of_y(const Strip &s, const KernelCall &part) const;
    // Returns operands whose y is dense in memory of bytes(), and holds the part.
    DirectOperands in_memory(const PartOfY &part, const DirectOperands &o, char *memory) const;
    // Rounds the part of y in `from` to where `to` has y.
    void round(const PartOfY &part, const DirectOperands &from, const DirectOperands &to) const;
    void finish(const PartOfY &part, const DirectOperands &o) const; // applies post-ops

  private:
    TensorStrides dense_strides_of(const PartOfY &part) const;
    std::int64_t dense_bytes(const PartOfY &part) const;
    JointBox joint_box(const PartOfY &part, const TensorStrides &first, const TensorStrides &second) const;

    const Blocking &blocking_;
    const DirectLayer &layer_;
    Copier rounder_;
    std::uint64_t bytes_ = 0;
    int count_ = 0;
};

} // namespace convtranspose
