// The kernels that a program has: those that it links, and those that it adds while it runs.
#ifndef CONVTRANSPOSE_RUNTIME_KERNELS_KERNEL_TABLES_H_
#define CONVTRANSPOSE_RUNTIME_KERNELS_KERNEL_TABLES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/tuning.h"
#include "kernels/variant.h"

namespace convtranspose {

// Refused: a table of other sources than this library is of, one whose records cannot be read, and any past the last place.
// The table must outlive its use. Added kernels are for plans made afterwards, from any thread.
Status add_kernels(const KernelTable *table);

// Float, quantized, then those added, in order. Null past the last. tuning: those that come with the table; why: not empty if
// they could not be read.
const KernelTable *kernel_table(std::size_t i);
const Tuning &tuning_of_table(std::size_t i, std::string *why);

template<typename F>
void for_each_kernel_table(const F &f) {
    const KernelTable *table;
    for (std::size_t i = 0; (table = kernel_table(i)) != nullptr; i++) f(*table);
}

// Kernels that differ from another in their tiles alone, which have as many channels and rows, and three quarters of the columns
// or fewer: they take the same packed weights. For the end of a row that does not fill a tile.
class NarrowerTiles {
  public:
    void add(const Variant &v);
    // The narrowest of them with at least `columns`, if that is more than none; else null.
    const Variant *holding(std::int64_t columns) const;

  private:
    std::array<const Variant *, 12> tiles_ = {}; // the narrowest first
};

NarrowerTiles narrower_tiles(const Variant &v);

// The order in which x has to be copied for a variant.
CopyOrder copy_order(const Variant &variant, convt_layout layout);

// Kernels of an order of copying: for any extents, and for kCopyTile or more along w and along c1. Null: there is none.
struct Copier {
    CopyFunction any = nullptr, tiles = nullptr;
};
Copier find_copy(Isa isa, CopyOrder order, Arithmetic arithmetic, convt_dtype x_dtype, int block);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_KERNELS_KERNEL_TABLES_H_
