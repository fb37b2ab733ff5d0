// The columns of the tables that kernels read, and the facts about taps that follow from such a table.
#ifndef CONVTRANSPOSE_KERNEL_CONTRACT_TABLE_COLUMNS_H_
#define CONVTRANSPOSE_KERNEL_CONTRACT_TABLE_COLUMNS_H_

#include <algorithm>
#include <cstdint>

namespace convtranspose {

// Taps of an axis, a row for each phase. Tap t reads position q + offset + t * step of x, and packed kernel element first + t.
// Phases with equal taps are of one class; classes are numbered from 0 in the order in which rows have them.
enum TapColumn { kTapOffset = 0, kTapCount = 1, kTapFirst = 2, kTapClass = 3, kTapColumns = 4 };

// Factors that turn an integer sum into y, for each output channel.
enum FactorColumn { kFactor = 0, kAddend = 1, kFactorColumns = 2 };

// Entries of Winograd's transform of x: entry e is x(i) + second * x(i + distance), i counted from start.
enum EntryColumn { kStart = 0, kDistance = 1, kSecond = 2, kEntryColumns = 3 };

// Kernel elements, for GPUs: their offsets in x along w, h and d, and their packed tap.
enum ElementColumn { kElementOffset = 0, kElementTap = 3, kElementColumns = 4 };

// The work of blocks of a GPU. A part is a phase of (w, h, d) with its elements, and the input channels from a chunk on; the sum
// of a phase may be split over several parts, which are stored apart.
enum PartColumn {
    kPartPhase = 0, // of w, h, d
    kPartFirst = 3, // element
    kPartCount = 4, // of elements
    kPartChunk = 5,
    kPartStore = 6, // added to the place in y
    kPartBias = 7,  // the row of biases that its sum starts from; negative: none
    kPartColumns = 8
};

// The reach of the taps of an axis, and the offsets that every phase has a tap for, whose taps share a load of x.
class TapRange {
  public:
    std::int32_t max_count = 0;     // of any phase
    std::int64_t low = 0, high = 0; // position q of any phase reads q + low .. q + high - 1; equal: there are no taps

    // Adds the taps of a phase.
    void add(std::int64_t offset, std::int32_t count, std::int64_t step) {
        shares_ = step == 1;
        shared_begin_ = std::max(shared_begin_, offset);
        shared_end_ = std::min(shared_end_, offset + count);
        if (count == 0) return;
        const std::int64_t end = offset + (count - 1) * step + 1;
        low = max_count ? std::min(low, offset) : offset;
        high = max_count ? std::max(high, end) : end;
        max_count = std::max(max_count, count);
    }

    std::int32_t shared_first() const { return shares() ? static_cast<std::int32_t>(shared_begin_) : 0; }
    std::int32_t shared_count() const { return shares() ? static_cast<std::int32_t>(shared_end_ - shared_begin_) : 0; }

  private:
    bool shares() const { return shares_ && shared_begin_ < shared_end_; }

    bool shares_ = false; // no phase, or steps of more than one position
    std::int64_t shared_begin_ = INT64_MIN, shared_end_ = INT64_MAX;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_KERNEL_CONTRACT_TABLE_COLUMNS_H_
