#include "kernels/kernel_tables.h"

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/once.h"
#include "base/threads.h"

namespace convtranspose {

namespace {

struct Entry {
    const KernelTable *table = nullptr;
    Tuning tuning;
    std::string why;
};

// Entries below `count` never change, so they are read without a lock.
struct Tables {
    std::array<Entry, 32> entries;
    std::atomic<std::size_t> count{0};
    Mutex mutex; // held while a table is added

    Tables() {
        for (const KernelTable *const table : {&convt_float_kernels, &convt_quantized_kernels}) {
            Entry &entry = entries[count];
            entry.table = table;
            if (table->records) {
                const Status status = Tuning::read(table->records, &entry.tuning);
                if (!status) entry.why = status.message();
            }
            count.store(count + 1);
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
        return Status(CONVT_UNSUPPORTED,
                      concat("kernels made from sources of version ", table->version ? table->version : "(none)",
                             " do not fit this library, which has version ", kernels_version(), ": build them again"));
    }
    Tuning tuning;
    if (table->records) {
        if (Status status = Tuning::read(table->records, &tuning); !status) return status;
    }
    Tables &all = tables();
    const std::lock_guard<Mutex> lock(all.mutex);
    const std::size_t count = all.count.load();
    for (std::size_t i = 0; i < count; i++) {
        if (all.entries[i].table == table) return Status();
    }
    if (count == all.entries.size()) {
        return Status(CONVT_UNSUPPORTED, concat("kernels can be added ", all.entries.size() - 2, " times at most"));
    }
    all.entries[count].table = table;
    all.entries[count].tuning = std::move(tuning);
    all.count.store(count + 1);
    return Status();
}

const KernelTable *kernel_table(std::size_t i) {
    const Tables &all = tables();
    return i < all.count.load() ? all.entries[i].table : nullptr;
}

const Tuning &tuning_of_table(std::size_t i, std::string *why) {
    const Entry &entry = tables().entries[i];
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
    for_each_kernel_table([&](const KernelTable &kernels) {
        for (std::size_t i = 0; i < kernels.copy_count; i++) {
            const CopyVariant &copy = kernels.copies[i];
            const bool fits = copy.isa == isa && copy.arithmetic == arithmetic && copy.dtype == x_dtype;
            if (!fits || copy.block != block) continue;
            if (copy.order == order) found.any = copy.run;
            if (copy.order == CopyOrder::kTiles && order == CopyOrder::kTransposed) found.tiles = copy.run;
        }
    });
    return found;
}

} // namespace convtranspose
