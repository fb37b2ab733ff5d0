#include "direct/copy_box.h"

#include <algorithm>

#include "base/shape.h"
#include "kernels/halide_buffer.h"

namespace convtranspose {

void run_copy(const Copier &copy, const CopyBox &box, const Typed<const void> &from, const Typed<void> &to,
              const ByteX &byte_x, const Parallel &parallel) {
    const std::array<std::size_t, 5> order = {6, 3, 2, 4, 5};
    const CopyBox::Axis &split =
        box.axes[*std::max_element(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return box.axes[a].extent < box.axes[b].extent;
        })];
    const std::int64_t count = std::min<std::int64_t>(split.extent, parallel.threads);
    parallel.for_each(count, [&](std::int64_t i) {
        const std::int64_t first = split.extent * i / count, last = split.extent * (i + 1) / count;
        Buffer<7> x(element_at(from.data, first * split.from, from.type.bytes()), from.type);
        Buffer<7> y(element_at(to.data, first * split.to, to.type.bytes()), to.type);
        for (const CopyBox::Axis &axis : box.axes) {
            const std::int64_t extent = &axis == &split ? last - first : axis.extent;
            x.add(extent, axis.from);
            y.add(extent, axis.to);
        }
        const bool tiles = copy.tiles && std::min(x.dims[1].extent, x.dims[copy.channels].extent) >= kCopyTile;
        (tiles ? copy.tiles : copy.any)(&x.raw, byte_x.flip, byte_x.zero, box.fetches_from, box.fetches_to, &y.raw);
    });
}

} // namespace convtranspose
