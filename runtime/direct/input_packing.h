// A kernel finds the x of a strip where the caller has it, or in a copy: in the order and type that the kernel reads, with the
// value that stands for zero around it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/parallel.h"
#include "direct/blocking.h"
#include "direct/operands.h"

namespace convtranspose {

// A strip, or some columns of it, and the place of the part of x that they read, in the caller's memory or in a copy. If channels
// come in blocks, strides.c is from one block to the next.
struct LocatedStrip : Strip {
    LocatedStrip() = default;
    explicit LocatedStrip(const Strip &s) : Strip(s) {}

    Columns columns;         // columns of y that read this part of x
    const char *x = nullptr; // points to x_min
    char *copy = nullptr;    // x, if it is a copy made for this strip
    TensorStrides strides;   // in elements
    std::int64_t group_stride = 0;
};

// The parts of a strip, by columns: a single one, or the beginnings, the middles and the ends of its rows. Each reads x elsewhere.
struct StripParts {
    std::array<LocatedStrip, 3> part;
    std::size_t count = 0;
};

class InputPacking {
  public:
    explicit InputPacking(const Blocking &blocking); // which must outlive it

    std::uint64_t bytes() const;        // of the copy of the largest strip; 0: none is copied
    UnsupportedReason overflow() const; // text is null if kernels can count the elements of that copy

    // Comes before the strips of a run: fills what all copies have alike. copies: bytes() for each worker.
    void begin(const DirectOperands &o, char *copies, const Parallel &parallel) const;
    // Copies the parts of the strip that the kernel does not read in place, and locates all.
    StripParts pack(const Strip &s, const DirectOperands &o, char *copy, const Parallel &parallel) const;

  private:
    bool are_filled_alike() const { // the copies of all strips, around x
        return blocking_.strips == 1 && layer_.reads_x != ReadsX::kCopyOfRowEnds;
    }
    bool is_copied(const LocatedStrip &s) const;
    StripParts parts_of_rows(const Strip &s) const;
    void locate_copy(char *copy, LocatedStrip *s) const;
    void locate_in_place(const DirectOperands &o, LocatedStrip *s) const;
    void copy_strip(const LocatedStrip &s, const DirectOperands &o, const Parallel &parallel) const;

    const Blocking &blocking_;
    const DirectLayer &layer_;
    Copier copy_;
    bool fetches_x_;
    std::int64_t elements_ = 0; // of the copy of the largest strip
};

} // namespace convtranspose
