#include "cpu/far_rows.h"

#include <cstdint>
#include <memory>

#include "cpu/passes/lowered_names.h"
#include "cpu/passes/prefetch_rows.h"
#include "kernel_contract/fetching.h"

namespace convtranspose {

using namespace Halide;

void fetch_far_rows(const ConvTranspose &c, const Tile &tile, LoweringPasses *passes) {
    constexpr int kRows = 2; // dimension of y
    // A tile holds all phases of h, or else several rows of one phase.
    const int rows = c.stride[1] > 0 ? c.stride[1] : tile.qh;
    if (!tile.x86_64 || rows == 1) return;
    const std::string y = c.y.name();
    const int images = c.y.dimensions() - 1, bytes = c.y.types()[0].bytes();
    const Expr y_bytes = cast<std::int64_t>(stride_of(y, images)) * extent_of(y, images) * bytes;
    passes->push_back(std::make_unique<PrefetchRows>(PrefetchRows::Names{c.sum.name(), y},
                                                     stride_of(y, kRows) * (rows * bytes),
                                                     y_bytes >= kLeavesLastCache && extent_of(y, kRows) > 1));
}

} // namespace convtranspose
