// The algorithm of generators/conv_transpose.h for GPUs. The sums are the same, but they are numbered differently, and x and y are
// addressed by strides, so that any layout, crop and stride is one kernel:
//
//   by phase   positions of all rows and images of one phase of (w, h, d) are one long axis p, cut into tiles: a block of
//                threads computes [tile of output channels] x [tile of p], for any image size and batch. Kernel elements are
//                a list for each phase, and a block has one phase, so that no thread waits for another.
//   by output    every element of y by itself, each with taps of its own. A term that reads outside of x is left out, so
//                that any weight is right there, infinities and NaNs too.
#ifndef CONVTRANSPOSE_GENERATORS_GPU_CONV_TRANSPOSE_H_
#define CONVTRANSPOSE_GENERATORS_GPU_CONV_TRANSPOSE_H_

#include <array>

#include <Halide.h>

#include "gpu_types.h"
#include "kernel_contract/table_columns.h"
#include "numerics.h"

namespace convtranspose {

// A number that non-negative 31-bit numbers are divided by: n / value = (n * multiplier) >> shift.
struct Divisor {
    Halide::Expr value, multiplier, shift;
};

// x or y: strides in elements, of w, h, d, of channels, of images.
struct GpuTensor {
    Storage storage;
    Halide::Func data; // (element); of x only
    Halide::Expr size;
    std::array<Halide::Expr, 3> strides, extents;
    Halide::Expr channel_stride, image_stride;
    Halide::Expr channels; // per group
};

struct GpuNumbers {
    Numerics numerics;                 // whose factors are (oc in all groups' tiles, column, 0)
    Halide::Expr x_flip, x_zero_point; // integers: x is (stored ^ flip) - zero point, the latter of u8
};

struct ByPhaseInputs {
    GpuTensor x, y;
    Halide::Func w;    // (oi, ic, tap, tile of oc in all groups); in blocks: (ic in block, oi, block, ...)
    Halide::Func bias; // (oc in all groups' tiles, one row after the other)
    Halide::Expr bias_count, bias_size; // of a row, of all
    Halide::Func elements, parts;       // (ElementColumn, element), (PartColumn, part)
    Halide::Expr element_count, part_count, tap_count, tiles, batch;
    Divisor tiles_per_group;
    std::array<Divisor, 3> positions;    // of w, h, d: those of the phase that has most
    std::array<Halide::Expr, 3> strides; // of the convolution
    Halide::Expr most_elements;          // of any part
    Halide::Expr chunks;                 // of every part
    int chunk = 1;                       // input channels, or blocks of them, that are staged at a time
    int block = 1; // input channels that are multiplied together: 1, or 4 for 8-bit integers (dp4a)
    // A block's tile: vector x threads x unrolled, of output channels and of positions.
    struct Side {
        int vector = 1, threads = 1, unrolled = 1;
        int size() const { return vector * threads * unrolled; }
    } oc, p;
    GpuNumbers numbers;
};

struct ByPhase {
    Halide::Var ov{"ov"}, ot{"ot"}, ou{"ou"}; // output channel in its tile: vector, thread, unrolled
    Halide::Var pv{"pv"}, pt{"pt"}, pu{"pu"}; // position in its tile, likewise
    Halide::Var po{"po"}, oo{"oo"}, r{"r"};   // tiles of both; part
    Halide::Var ic{"part_ic"},
        t{"t"}; // input channel of the part, or block; element. No Var may be named as an input of the generator.
    Halide::Var b{"b"}; // of blocks: channel in block, the first argument of x and w
    Halide::Func x{"xs"},
        w{"ws"};             // what a block multiplies: (pv, pt, pu, ic, t, po, r, oo), (ov, ot, ou, ic, t, r, oo)
    Halide::Func sum{"sum"}; // (ov, ot, ou, pv, pt, pu, po, r, oo): bias, then one update over k
    Halide::RDom k;          // channel or block in chunk, chunk, element, of blocks: channel in block
    Halide::Func y{"y"};     // one update over o
    Halide::RDom o;          // ov, ou, pv, pu, pt, ot, po, oo, r: in this order, which may not be changed
    int chunk = 1, block = 1;
    ByPhaseInputs::Side oc_side, p_side;
};

ByPhase conv_transpose_by_phase(const ByPhaseInputs &in);

struct ByOutputInputs {
    GpuTensor x, y;
    Halide::Func w;    // (element), by strides: packings differ
    Halide::Func bias; // (channel of all groups)
    Halide::Expr w_size, w_channel_stride, w_tap_stride, w_ic_stride;
    struct AxisTaps {
        Halide::Func taps;   // (phase, TapColumn) of generators/conv_transpose.h
        Halide::Expr phases; // of the table; those past it have no outputs
        Halide::Expr step, max_count, kernel;
    };
    std::array<AxisTaps, 3> taps;
    std::array<Divisor, 3> outputs, strides; // of w, h, d
    Divisor channels_per_group;              // of y
    Halide::Expr batch, channels;            // of y in all groups
    int channel_threads = 1, position_threads = 1;
    GpuNumbers numbers;
};

struct ByOutput {
    Halide::Var m{"m"}, p{"p"}; // channel of y; position in all images
    Halide::Func sum{"sum"};    // (m, p)
    Halide::Func y{"y"};        // one update over o
    Halide::RDom o;             // m in tile, p in tile, tiles of m, tiles of p
};

ByOutput conv_transpose_by_output(const ByOutputInputs &in);

} // namespace convtranspose

#endif // CONVTRANSPOSE_GENERATORS_GPU_CONV_TRANSPOSE_H_
