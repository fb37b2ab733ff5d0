// What estimates of all families count with (cost.h).
#ifndef CONVTRANSPOSE_RUNTIME_COST_COST_TERMS_H_
#define CONVTRANSPOSE_RUNTIME_COST_COST_TERMS_H_

#include <cstdint>

#include "base/division.h"
#include "kernels/variant.h"
#include "problem/spatial_problem.h"

namespace convtranspose {

constexpr double kSecondLevelCache = 512 << 10; // of which a kernel may hope to keep this much

// Apart so far positions of y, channels last, meet in few sets of the first-level cache.
constexpr std::int64_t kFarPositions = 2048;

// Of a variant for a layer: counts, and cycles.
struct CostTerms {
    CostTerms(const Variant &variant, const SpatialProblem &problem);

    const Variant &v;
    const SpatialProblem &p;
    const Geometry &g;
    const AxisPlan &w, &h, &d;

    double taps = 1, residues = 1;           // of all axes; taps of all residues
    double ic = 0;                           // steps of the reduction for each tap
    double groups = 0, images = 0, rows = 0; // rows: of positions q
    double lanes = 0, size = 0;              // of a vector of operands; bytes of an element, or of a block of them
    double y_bytes = 0;                      // of all images
    double product = 1, broadcast = 1;       // times as long as a multiply-add, and as a load
    double load = 0;                         // of a vector of operands
    double per_load = 0, per_other = 0;      // of instructions that are no multiply-adds, besides
    double interleave = 0;                   // of storing a vector of sums along a row
    bool is_of_channels = false;             // y channels last, from vectors of channels
    bool crosses = false;                    // vectors of x cross cache lines

    // Of one input channel and tap: so many vectors of operands by so many broadcasts.
    double step(double vectors, double broadcasts) const;
};

// Tiles of a row, in cycles: those of the variant, so many, and the one at its end.
struct RowOfTiles {
    double count, tiles, end;
};

// tile: cycles of one tile. narrower: of the end; null: that is as all others. longer: times as long as in the midst of a row, for
// a narrower tile at its end, for which x and weights are read once more.
template<typename Tile>
RowOfTiles row_of_tiles(const Variant &v, const Variant *narrower, std::int64_t columns, double longer,
                        const Tile &tile) {
    const std::int64_t whole = columns / v.tile_q;
    const double count = narrower ? static_cast<double>(whole) : parts_of(columns, v.tile_q);
    return {count, count * tile(v), narrower ? longer * tile(*narrower) : 0};
}

// Whether there is no loop over taps of w and h, as far as every residue has as many.
inline bool unrolls_taps(const Variant &v) {
    return v.built_in && v.built_in->axes[0].count && v.built_in->axes[1].count;
}

inline std::int64_t y_position_bytes(const Geometry &geometry) {
    return geometry.out_channels * static_cast<std::int64_t>(convt_dtype_size(geometry.y_dtype));
}

// Of a load besides: they load three shorter vectors a cycle.
double cycles_per_load(double vector_bytes);

// Per image and group.
double cost_of_channels(const CostTerms &terms, const Variant *narrower);
double cost_of_matrix(const CostTerms &terms);
double cost_of_rows(const CostTerms &terms, const Variant *narrower); // wide, and depthwise with channels first
double cost_of_depthwise_channels(const CostTerms &terms);
double cost_of_few(const CostTerms &terms);
double cost_by_offset(const CostTerms &terms);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_COST_COST_TERMS_H_
