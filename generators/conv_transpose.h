// The algorithm of transposed convolution, once, for every layout, rank up to 3, type and target (docs/architecture.md derives it).
// It makes no scheduling call; schedules/ holds those. The kernel axis of packed weights lists the taps of phase 0, then those of
// phase 1, and so on. With the table of an axis's taps the operator is, along w and alike along h and d,
//   y(oc, stride*q + r) = finish(bias(oc) + sum over ic, t < count(r):  x(q + offset(r) + t*step, ic) * w(oc, ic, first(r) + t))
#ifndef CONVTRANSPOSE_GENERATORS_CONV_TRANSPOSE_H_
#define CONVTRANSPOSE_GENERATORS_CONV_TRANSPOSE_H_

#include <array>
#include <vector>

#include <Halide.h>

#include "kernel_contract/table_columns.h"
#include "numbering.h"
#include "numerics.h"

namespace convtranspose {

// The treatment of a tap that reads outside of x. kSkipped: the term is left out, as the definition says. kNeverReads: the
// caller promises that x holds every position that a tap reads, zeros included, which is the same wherever w is finite. kZero: the
// same without such a promise: x is zero there, or what `around` says.
enum class Outside { kSkipped, kNeverReads, kZero };

// The order in which the sum runs over the taps of an axis. kPerPhase: tap 0, 1, ... of each phase. kShared (needs step = 1): first
// over the input offsets that every phase has a tap for, so that one load of x serves all phases, then over the taps that
// are left; of two axes, one load serves all phases of those that it is shared on. kTapOffset: over all input offsets, each
// with the phases that have a tap for it, which is for phases and offsets that are constants. kSideBySide: as kPerPhase, for vectors of
// phases, all of which have max_count taps: packed weights of neighbouring phases lie side by side, and the offsets of taps are those
// of phase 0 up to phase `turn`, and one more from there on. In all of them a term enters a sum only if the definition has it.
enum class TapOrder { kPerPhase, kShared, kTapOffset, kSideBySide };

// One spatial axis. stride 0: known at run time only; y then has two dimensions for this axis, (q, r). Otherwise one, o.
struct Axis {
    Halide::Func taps;            // (phase, TapColumn), int32
    Halide::Expr step;            // between the input positions of consecutive taps
    Halide::Expr max_count;       // of taps over the phases
    Halide::Expr kernel;          // extent of the packed weights on this axis
    Halide::Expr x_min, x_extent; // of x on this axis
    Outside outside = Outside::kSkipped;
    int stride = 0;
    TapOrder order = TapOrder::kPerPhase;
    Halide::Expr shared_first, shared_count; // kShared: the offsets that every phase has a tap for
    Halide::Expr first_offset, offsets;      // kTapOffset: the least, and how many from there to the greatest
    Halide::Expr turn;                       // kSideBySide
    bool equal_counts = false;               // every phase has max_count taps
};

// With block > 1 input channels come in blocks of neighbours, block * ic + ib: an ib dimension stands in front of x and w.
struct ConvTransposeInputs {
    Halide::Func x;    // ([ib,] iw, ih, id, ic, g, n)
    Halide::Func w;    // ([ib,] oi, ic, tap w, tap h, tap d, oo, g)
    Halide::Func bias; // (oc, g); integer arithmetic: (oc, g, class w, class h, class d), the classes of TapColumn
    Halide::Expr classes[3];  // of w, h, d: extents of the bias
    std::array<Axis, 3> axes; // w, h, d
    Halide::Expr ic_extent;   // input channels per group, or blocks of them
    int block = 1;            // of input channels
    int oc_tile = 1;          // output channel oc of a group is packed as (oi, oo) = (oc % oc_tile, oc / oc_tile)
    bool bias_last = false;   // added to the sum, not what it starts from
    // Rows of y are put together in two steps, first of the even and of the odd phases (ConvTranspose::half_row).
    bool halves_rows = false;
    Numerics numerics;

    // Choices of numbering.h. If positions are not by axis, y is stored at computed places and has no rows, there is no bias_last, and
    // the bias is (oc of all groups, 0). With a list it is (oc of all groups, kPartBias), and w has all taps on its axis of w.
    Numbering numbering;
    TermList list;                         // instead of the taps of each axis
    Strided x_at, y_at;                    // x is (element); y is
    std::array<Halide::Expr, 3> y_extents; // Positions::kInPhase: there is no output beyond them
    Halide::Expr around;                   // Outside::kZero: x outside, of x's type
};

// One spatial axis of the result, by name, for schedules.
struct AxisVars {
    Halide::Var o;    // dimension of y where the stride is constant
    Halide::Var q, r; // dimensions of sum, and of y where the stride is known at run time only
};

// The reduction of one update of the sum.
struct Update {
    Halide::RVar ib;             // within a block of input channels; only where there are blocks
    Halide::RVar ic, tw, th, td; // input channel (or block of them), tap per axis
    // The factors, each a function of all that it depends on; inlined, unless a schedule loads it before its use. (rw, tw and so
    // on: phase and tap, of w, h, d.)
    Halide::Func x;                       // ([op_ib,] op_ic, qw, rw, tw, qh, rh, th, qd, rd, td, g, n)
    Halide::Func w;                       // ([op_ib,] oi, op_ic, rw, tw, rh, th, rd, td, oo, g)
    Halide::Var op_ib{"ib"}, op_ic{"ic"}; // their dimensions for ib and ic
    Halide::Var op_taps[3] = {Halide::Var("tw"), Halide::Var("th"), Halide::Var("td")};
};

struct ConvTranspose {
    Halide::Var oc{"oc"};           // dimension of y: output channel in its group
    Halide::Var oi{"oi"}, oo{"oo"}; // dimensions of sum: the same, tiled
    Halide::Var g{"g"}, n{"n"};     // group, batch
    std::array<AxisVars, 3> axes;   // w, h, d
    Halide::Func sum{"sum"};        // (oi, oo, qw, rw, qh, rh, qd, rd, g, n): bias, then the updates
    // One; or four if the taps of w and h are shared: those that are on both axes, on h, on w, and the rest.
    std::vector<Update> updates;
    Halide::Func row{"row"}; // as y, for schedules that want a row whole before it is stored
    // The even or odd phases of w of a row that has many: as y, with half_o in place of ow, and parity last.
    Halide::Func half_row{"half_row"};
    Halide::Var half_o{"half_o"}, parity{"parity"};
    Halide::Func y{"y"}; // (oc, w dimensions, h dimensions, d dimensions, g, n)
    int oc_tile = 1;
    int block = 1;               // of input channels
    std::array<int, 3> stride{}; // as in Axis

    // If positions are not by axis, these are the dimensions of sum, in the order of Numbering::digits, and the loops of y's one
    // update. The factors of a term then are functions of ([op_ib,] digits within a tile, op_ic, taps, the other digits), of those
    // digits that each depends on; a list of terms has one tap, tw.
    std::vector<Halide::Var> digits;
    Halide::RDom o;
};

ConvTranspose conv_transpose(const ConvTransposeInputs &in);

} // namespace convtranspose

#endif // CONVTRANSPOSE_GENERATORS_CONV_TRANSPOSE_H_
