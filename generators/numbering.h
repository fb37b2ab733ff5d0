// Choices of how the dimensions of the sum number its positions, its output channels and its terms, and of where x and y are in
// memory. CPU kernels have a dimension for each axis, and need none of this (Positions::kByAxis). GPUs want few and long dimensions,
// so that any image and batch is cut into equal tiles.
#ifndef CONVTRANSPOSE_GENERATORS_NUMBERING_H_
#define CONVTRANSPOSE_GENERATORS_NUMBERING_H_

#include <array>
#include <vector>

#include <Halide.h>

namespace convtranspose {

// A number that non-negative 31-bit numbers are divided by: n / value = (n * multiplier) >> shift.
struct Divisor {
    Halide::Expr value, multiplier, shift;
};

// The numbering of positions. kByAxis: by (q, r) of each axis. kInPhase: p counts the positions q of one phase of (w, h, d), along
// w, h, d and then images; the phase is that of a part (PartColumn). kOutputs: p counts outputs o likewise, of whatever phase.
enum class Positions { kByAxis, kInPhase, kOutputs };

// The numbers that the sum is of: output channel in its tile, position, part, tile of output channels of all groups in a row.
enum class Number { kOi, kPosition, kPart, kOo };

// A number is the sum of its digits, each times its step. Each digit is a dimension, so that a schedule can give the digits of a
// number to threads, vectors and registers. Halide would stage the box around what is needed of a number that it splits itself
// (docs/gpu.md). extent 0: as many as the number needs.
struct Digit {
    const char *name;
    Number of;
    int extent = 0, step = 1;
};

// The dimensions of the sum, unless positions are by axis. Tiles of output channels, the biases and the factors of all groups are
// then in a row: the last argument of w, bias and factors that is for the group is 0.
struct Numbering {
    Positions positions = Positions::kByAxis;
    // In the order of the loops that store y, innermost first. Halide cannot tell that no two of them store to one place, and so
    // changes their order for no schedule.
    std::vector<Digit> digits;
    std::array<Divisor, 3> extents; // of w, h, d: positions of the phase that has most, or outputs
    std::array<Divisor, 3> strides; // of the convolution
    Divisor tiles_per_group;
    Halide::Expr tiles, batch; // tiles: of all groups
};

// The terms of a sum as one list of kernel elements for each part, whose input channels may be some of all. Only kInPhase.
struct TermList {
    Halide::Func elements, parts; // (ElementColumn, element), (PartColumn, part)
    Halide::Expr element_count, part_count;
    Halide::Expr most_elements; // of any part
    int chunk = 1;              // PartColumn counts input channels (or blocks of them) by so many

    bool defined() const { return elements.defined(); }
};

// A tensor that is one row of elements, by strides.
struct Strided {
    Halide::Expr size;
    std::array<Halide::Expr, 3> strides; // of w, h, d
    Halide::Expr channel_stride, image_stride;
    Halide::Expr channels; // per group

    bool defined() const { return size.defined(); }
};

// The place of an element of the sum.
struct Place {
    std::array<Halide::Expr, 3> q, r; // of w, h, d
    std::array<Halide::Expr, 3> o;    // of kOutputs
    Halide::Expr oi, oo, part, g, n;
};

// The place whose digits are these, in the order of Numbering::digits. phases: of each axis; kOutputs only.
Place place_of(const Numbering &numbering, const std::vector<Halide::Expr> &digits);

// True if a digit is one within a tile, of constant extent.
inline bool is_inner(const Digit &digit) { return digit.extent > 0; }

// The digits as dimensions: by number, the least significant first, those within a tile before the others.
std::vector<std::size_t> storage_order(const std::vector<Digit> &digits);

// The extent of a digit.
Halide::Expr extent_of(const Numbering &numbering, const Digit &digit, const Halide::Expr &part_count);

// True if 0 <= a < extent, in one comparison.
inline Halide::Expr is_within(const Halide::Expr &a, const Halide::Expr &extent) {
    return Halide::cast<uint32_t>(a) < Halide::cast<uint32_t>(extent);
}

} // namespace convtranspose

#endif // CONVTRANSPOSE_GENERATORS_NUMBERING_H_
