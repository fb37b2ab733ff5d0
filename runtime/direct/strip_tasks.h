// A strip is divided into tasks, which threads share. Each is some of its channels and positions, or one box of those. For each box
// a kernel is called, with x, w and y as buffers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/shape.h"
#include "direct/blocking.h"
#include "direct/input_packing.h"

namespace convtranspose {

// The part of a strip's y that one call computes.
struct KernelCall {
    std::int64_t q_begin = 0, q_end = 0; // positions along the strip axis of all calls of the task
    std::array<Box, 3> box;
    std::int64_t oc_tile_begin = 0, oc_tile_end = 1;
    std::int64_t group_begin = 0, group_end = 1;

    std::int64_t groups() const { return group_end - group_begin; }
    // These are output channels of a group.
    std::int64_t oc_begin(const PackedLayout &packed) const { return oc_tile_begin * packed.tile_channels(); }
    std::int64_t oc(const PackedLayout &packed) const {
        return std::min(oc_tile_end * packed.tile_channels(), packed.oc) - oc_begin(packed);
    }
};

class StripTasks {
  public:
    // Blocking and strip must outlive it. pieces: how many the strip's y must be divided into at least; 0: the boxes of a part may
    // be tasks of their own.
    StripTasks(const Blocking &blocking, const Strip &strip, std::int64_t pieces, int threads);

    std::int64_t parts() const { return channel_parts() * q_parts_; }
    std::int64_t count() const { return parts() * (boxes_of_part() / boxes_of_task_); } // of tasks
    KernelCall part(std::int64_t i) const; // its channels and positions, without boxes
    KernelCall part_of(std::int64_t task) const { return part(task * boxes_of_task_ / boxes_of_part()); }

    // Calls f(call) for each box of a task. The box may be empty along w.
    template<typename F>
    void for_each_call(std::int64_t task, const F &f) const {
        KernelCall c = part_of(task);
        const std::int64_t first = task * boxes_of_task_ % boxes_of_part();
        for (std::int64_t b = first; b < first + boxes_of_task_; b++) {
            const Index at = {b % boxes_[0], b / boxes_[0] % boxes_[1], b / boxes_[0] / boxes_[1]};
            for (std::size_t a = 0; a < 3; a++) c.box[a] = box(c, a, at[a]);
            if (c.box[1].any() && c.box[2].any()) f(c);
        }
    }

  private:
    std::int64_t channel_parts() const { return group_parts_ * tile_parts_; }
    std::int64_t boxes_of_part() const { return boxes_[0] * boxes_[1] * boxes_[2]; }
    Box box(const KernelCall &part, std::size_t axis, std::int64_t i) const;

    const Blocking &blocking_;
    const Strip &strip_;
    // The numbers of parts that the strip is divided into, by channels and by positions.
    std::int64_t group_tiles_, group_parts_, tile_parts_, q_parts_;
    bool by_positions_, halves_;        // halves: the phases of h are two boxes
    std::array<std::int64_t, 3> boxes_; // of a part along each axis; some of them may be empty
    std::int64_t boxes_of_task_;
};

// Makes the call, or several: one for each of the strip's parts that has columns of the box, and in each of those one more for the
// ends of rows if a narrower tile computes them.
void call_kernels(const DirectLayer &layer, const StripParts &rows, const KernelCall &call, const DirectOperands &o);

} // namespace convtranspose
