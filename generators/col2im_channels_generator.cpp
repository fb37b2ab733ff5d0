// col2im (col2im_generator.cpp) for columns whose kernel elements along w, and output channels in them, lie side by side. A position
// then adds a run of neighbours to a row of y with channels last, in vectors; with q = (ow + pad) / stride
//   y(i, q) = bias(i) + sum over t < count:  columns(q - t, i + t * stride * channels)
// The vector at the end of a run holds elements past it, which are not stored: for targets with masked stores.
#include <Halide.h>

#include <vector>

#include "conv_transpose.h"
#include "numerics.h"
#include "surroundings/col2im_channels.h"

namespace convtranspose {

using namespace Halide;

class Col2imChannelsGenerator : public Generator<Col2imChannelsGenerator>, private Col2imChannels {
  public:
    GeneratorParam<Type> y_type{"y_type", Float(32)};

    // (iw, ih, id, kw, kh, kd, element, n), the type of the sums. Elements are dense, those of all kw behind one another, up to
    // their extent; behind the last one is a vector of anything.
    Input<Buffer<void, 8>> columns{"columns"};
    Input<Buffer<void, 1>> bias{"bias"}; // for each element, the same type; a vector of anything behind it
    // (0, TapColumn), the position being that of q = 0; (oh or od, TapColumn). No tap is outside of the columns.
    Input<Buffer<int32_t, 2>> taps_w{"taps_w"}, taps_h{"taps_h"}, taps_d{"taps_d"};
    Input<int32_t> step_w{"step_w"}, step_h{"step_h"}, step_d{"step_d"}; // of positions, from one tap to the next
    // Likewise, along w of elements, along h and d of rows of kernel elements.
    Input<int32_t> kernel_step_w{"kernel_step_w"}, kernel_step_h{"kernel_step_h"}, kernel_step_d{"kernel_step_d"};
    Input<int32_t> max_count_w{"max_count_w"}, max_count_h{"max_count_h"}, max_count_d{"max_count_d"};
    Output<Buffer<void, 6>> y{"y"}; // (element, phase of w, qw, oh, od, n); phases apart: where y has gaps

    void configure() {
        columns.set_type(sum_type(y_type));
        bias.set_type(sum_type(y_type));
        y.set_type(y_type);
    }

    void generate() {
        const int lanes = natural_vector_size(sum_type(y_type));
        tap = RDom(0, max_count_w, 0, max_count_h, 0, max_count_d, "tap");
        tap.where(tap.y < taps_h(oh, kTapCount));
        tap.where(tap.z < taps_d(od, kTapCount));
        const auto axis = [&](const Func &taps, const Expr &o, const Expr &t, const Expr &step, const Expr &kernel_step,
                              int dim) {
            const Expr position = taps(o, kTapOffset) + t * step - columns.dim(dim).min(),
                       element = taps(o, kTapFirst) + t * kernel_step;
            return position * columns.dim(dim).stride() + element * columns.dim(3 + dim).stride();
        };
        // Elements are counted in a row of kernel elements, and columns as the distance from the first one, so that the terms that
        // all taps have in common are added once: by dimensions, LLVM would multiply each position anew for each of them.
        const Expr of_row = vector * lanes + lane + rw * columns.dim(3).stride(),
                   of_tap = of_row + taps_w(0, kTapFirst) + tap.x * kernel_step_w,
                   position = taps_w(0, kTapOffset) + tap.x * step_w - columns.dim(0).min();
        const Expr distance = of_tap + qw * columns.dim(0).stride() + position * columns.dim(0).stride() +
                              axis(taps_h, oh, tap.y, step_h, kernel_step_h, 1) +
                              axis(taps_d, od, tap.z, step_d, kernel_step_d, 2);
        const Expr column = columns(columns.dim(0).min(), columns.dim(1).min(), columns.dim(2).min(), 0, 0, 0,
                                    unsafe_promise_clamped(distance, 0, columns.dim(7).stride() - 1), n);
        sum(lane, vector, qw, rw, oh, od, n) = bias(of_row);
        sum(lane, vector, qw, rw, oh, od, n) +=
            select(of_tap < columns.dim(6).extent(), column, cast(sum_type(y_type), 0));
        y(i, rw, qw, oh, od, n) = round_to(y_type, sum(i % lanes, i / lanes, qw, rw, oh, od, n));
    }

    void schedule() {
        for (int d = 0; d < y.dimensions(); d++) {
            y.dim(d).set_min(0);
        }
        for (auto *taps : {&taps_w, &taps_h, &taps_d}) {
            taps->dim(0).set_min(0).set_stride(kTapColumns);
            taps->dim(1).set_min(0).set_stride(1);
        }
        bias.dim(0).set_min(0);
        columns.dim(0).set_stride(Expr());
        for (int d = 3; d < 8; d++) {
            columns.dim(d).set_min(0);
        }
        columns.dim(6).set_stride(1);
        schedule_col2im_channels(*this, y, natural_vector_size(sum_type(y_type)));
    }
};

} // namespace convtranspose

HALIDE_REGISTER_GENERATOR(convtranspose::Col2imChannelsGenerator, col2im_channels)
