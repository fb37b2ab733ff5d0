// A program has the kernels that it links, and those that it adds while it runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "kernels/tuning.h"
#include "kernels/variant.h"

namespace convtranspose {

// Adds kernels for plans that are made afterwards, from any thread. The table must outlive its use. A table is refused if it is
// made from other sources than this library, if its records cannot be read, or if there is no place left.
Status add_kernels(const KernelTable *table);

// kernel_table() returns table i, or null past the last: float, quantized, then those added, in order. tuning_of_table()
// returns the records that come with it; *why is set if they could not be read.
const KernelTable *kernel_table(std::size_t i);
const Tuning &tuning_of_table(std::size_t i, std::string *why);

template<typename F>
void for_each_kernel_table(const F &f) {
    const KernelTable *table;
    for (std::size_t i = 0; (table = kernel_table(i)) != nullptr; i++) f(*table);
}

// Calls f for each variant that can be used where `isa` is asked for, in the order of the tables.
template<typename F>
void for_each_variant(Isa isa, const F &f) {
    // This asks once for each ISA instead of for each of a thousand variants, which every plan would wait for.
    std::array<std::array<bool, 2>, std::size(kIsas)> belong = {};
    for (const IsaFacts &own : kIsas) {
        for (const bool floats : {false, true})
            belong[static_cast<std::size_t>(own.value)][floats] = belongs_to(own.value, floats, isa);
    }
    for_each_kernel_table([&](const KernelTable &table) {
        for (std::size_t i = 0; i < table.variant_count; i++) {
            const Variant &v = table.variants[i];
            if (belong[static_cast<std::size_t>(v.isa)][is_float(v.arithmetic)]) f(v);
        }
    });
}

// These kernels differ from another one only in their tiles, which have at most three quarters of its columns. They read the
// same packed weights, and compute the end of a row that does not fill a tile.
class NarrowerTiles {
  public:
    void add(const Variant &v);
    // Returns the narrowest of them with at least `columns` columns, or null if there is none or `columns` is 0.
    const Variant *holding(std::int64_t columns) const;

  private:
    std::array<const Variant *, 12> tiles_ = {}; // the narrowest first
};

NarrowerTiles narrower_tiles(const Variant &v);

// Returns the order in which x has to be copied for a variant.
CopyOrder copy_order(const Variant &variant, convt_layout layout);

// These kernels copy in some order: `any` for any extents, `tiles` for at least kCopyTile along w and along the dimension of
// channels. Null: there is none.
struct Copier {
    CopyFunction any = nullptr, tiles = nullptr;
    std::size_t channels = 4; // c1; 0: c0
};
Copier find_copy(Isa isa, CopyOrder order, Arithmetic arithmetic, convt_dtype x_dtype, int block);
// Returns the kernel that copies f32, rounded to a type of 16 bits, in the order kPlanar or kTransposed.
Copier find_rounder(Isa isa, CopyOrder order, convt_dtype dtype);

} // namespace convtranspose
