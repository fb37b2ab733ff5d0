// The kernels that a program has: those that it links, and those that it adds while it runs.
#ifndef CONVTRANSPOSE_RUNTIME_KERNEL_TABLES_H_
#define CONVTRANSPOSE_RUNTIME_KERNEL_TABLES_H_

#include <cstddef>
#include <string>

#include "tuning.h"
#include "variant.h"

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

// Kernels of an order of copying: for any extents, and for kCopyTile or more along w and along c1. Null: there is none.
struct Copier {
    CopyFunction any = nullptr, tiles = nullptr;
};
Copier find_copy(Isa isa, CopyOrder order, Arithmetic arithmetic, convt_dtype x_dtype, int block);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_KERNEL_TABLES_H_
