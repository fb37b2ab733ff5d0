#include "kernels/kernel_tables.h"

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/once.h"

namespace convtranspose {

namespace {

struct Entry {
    const KernelTable *table = nullptr;
    Tuning tuning;
    std::string why;
};

// Places are taken in order and never change afterwards. There is no lock, because a process that forks while another thread
// holds one has a child in which nobody ever lets go of it.
struct Tables {
    std::array<Entry, 2> linked;
    std::array<std::atomic<const Entry *>, 32> entries{};

    Tables() {
        const KernelTable *const kernels[] = {&convt_float_kernels, &convt_quantized_kernels};
        for (std::size_t i = 0; i < linked.size(); i++) {
            Entry &entry = linked[i];
            entry.table = kernels[i];
            if (entry.table->records) {
                const Status status = Tuning::read(entry.table->records, &entry.tuning);
                if (!status) entry.why = status.message();
            }
            entries[i].store(&entry);
        }
    }
};

Tables &tables() {
    static Once<Tables> all;
    return all.get([] { return Tables(); });
}

} // namespace

Status add_kernels(const KernelTable *table) {
    if (!table) return invalid("kernels must not be null");
    if (!table->version || std::strcmp(table->version, kernels_version()) != 0) {
        return unsupported("kernels made from sources of version ", table->version ? table->version : "(none)",
                           " do not fit this library, which has version ", kernels_version(), ": build them again");
    }
    auto added = std::make_unique<Entry>();
    added->table = table;
    if (table->records) TRY(Tuning::read(table->records, &added->tuning));
    Tables &all = tables();
    for (std::atomic<const Entry *> &place : all.entries) {
        const Entry *there = place.load(std::memory_order_acquire);
        if (!there && place.compare_exchange_strong(there, added.get(), std::memory_order_acq_rel)) {
            added.release();
            return Status();
        }
        if (there->table == table) return Status();
    }
    return unsupported("kernels can be added ", all.entries.size() - all.linked.size(), " times at most");
}

const KernelTable *kernel_table(std::size_t i) {
    const Tables &all = tables();
    const Entry *const entry = i < all.entries.size() ? all.entries[i].load(std::memory_order_acquire) : nullptr;
    return entry ? entry->table : nullptr;
}

const Tuning &tuning_of_table(std::size_t i, std::string *why) {
    const Entry &entry = *tables().entries[i].load(std::memory_order_acquire);
    if (!entry.why.empty()) *why = entry.why;
    return entry.tuning;
}

void NarrowerTiles::add(const Variant &v) {
    const Variant *next = &v;
    for (const Variant *&tile : tiles_) {
        if (!tile || next->tile_q < tile->tile_q) std::swap(tile, next);
        if (!next) return;
    }
}

const Variant *NarrowerTiles::holding(std::int64_t columns) const {
    for (const Variant *tile : tiles_) {
        if (tile && columns > 0 && columns <= tile->tile_q) return tile;
    }
    return nullptr;
}

NarrowerTiles narrower_tiles(const Variant &v) {
    NarrowerTiles tiles;
    const bool of_rows = v.family == Family::kOwVectorized && v.tile_qh == 1 && v.stride_w != 0;
    if ((!of_rows && v.family != Family::kOcVectorized) || v.built_in) return tiles;
    // The variants of a family stand together in a table.
    const auto add = [&](const Variant &n) {
        const bool same = n.isa == v.isa && n.output_order == v.output_order && n.arithmetic == v.arithmetic &&
                          n.dtype == v.dtype && n.stride_w == v.stride_w && n.stride_h == v.stride_h &&
                          n.tile_oc == v.tile_oc && n.tile_qh == v.tile_qh && !n.built_in;
        if (same && 4 * n.tile_q <= 3 * v.tile_q) tiles.add(n); // tiles that are hardly narrower do not pay
    };
    for_each_kernel_table([&](const KernelTable &table) {
        const Variant *const begin = table.variants, *const end = begin + table.variant_count;
        const std::less<const Variant *> before;
        if (before(&v, begin) || !before(&v, end)) return;
        for (const Variant *n = &v; n != begin && n[-1].family == v.family; n--) add(n[-1]);
        for (const Variant *n = &v + 1; n != end && n->family == v.family; n++) add(*n);
    });
    return tiles;
}

CopyOrder copy_order(const Variant &variant, convt_layout layout) {
    const bool blocks_of_channels = reads_blocks_of_channels(variant);
    if (layout == CONVT_CHANNELS_FIRST) return blocks_of_channels ? CopyOrder::kToChannels : CopyOrder::kPlanar;
    const bool keeps_channels =
        variant.family == Family::kReference || blocks_of_channels || reads_any_strides(variant) ||
        (variant.family == Family::kDepthwise && variant.output_order == OutputOrder::kChannels);
    return keeps_channels ? CopyOrder::kChannels : CopyOrder::kTransposed;
}

Copier find_copy(Isa isa, CopyOrder order, Arithmetic arithmetic, convt_dtype x_dtype, int block) {
    if (isa == Isa::kAmx && arithmetic == Arithmetic::kInt8) isa = Isa::kAvx512Vnni; // they copy in the same way
    Copier found;
    const bool to_channels = order == CopyOrder::kToChannels;
    if (to_channels) found.channels = 0;
    for_each_kernel_table([&](const KernelTable &kernels) {
        for (std::size_t i = 0; i < kernels.copy_count; i++) {
            const CopyVariant &copy = kernels.copies[i];
            const bool fits = copy.isa == isa && copy.arithmetic == arithmetic && copy.dtype == x_dtype;
            if (!fits || copy.block != block) continue;
            if (copy.order == order) found.any = copy.run;
            if (copy.order == CopyOrder::kTilesToChannels && to_channels) found.tiles = copy.run;
            if (copy.order == CopyOrder::kTiles && order == CopyOrder::kTransposed) found.tiles = copy.run;
        }
    });
    return found;
}

Copier find_rounder(Isa isa, CopyOrder order, convt_dtype dtype) {
    return find_copy(isa, order, dtype == CONVT_F16 ? Arithmetic::kHalf : Arithmetic::kBf16, CONVT_F32, 1);
}

} // namespace convtranspose
