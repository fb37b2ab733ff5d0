// The second half of transposed convolution by a matrix product. The first made columns, the product of each input position
// with each kernel element, summed over the input channels; y is the sum of those that meet:
//   y(oc, o) = bias(oc) + sum over t < count(o):  columns(position(o) + t*step, element(o) + t*kernel_step, oc)
// per axis, where no t is outside of the columns. Columns that fall outside of y are never looked at, and nothing but columns
// enters a sum: an infinity reaches what the definition says.
#include <Halide.h>

#include <vector>

#include "conv_transpose.h"
#include "numerics.h"
#include "surroundings/col2im.h"

namespace convtranspose {

using namespace Halide;

class Col2imGenerator : public Generator<Col2imGenerator>, private Col2im {
  public:
    GeneratorParam<Type> y_type{"y_type", Float(32)};
    GeneratorParam<int> stride_w{"stride_w", 0}; // 0: any
    GeneratorParam<int> vectors{"vectors", 1};   // of a row that are summed at once

    // (iw, ih, id, kw, kh, kd, oc, n), the type of the sums; along iw there is a vector of anything at either end.
    Input<Buffer<void, 8>> columns{"columns"};
    Input<Buffer<void, 1>> bias{"bias"};        // the same type
    Input<Buffer<int32_t, 2>> taps_w{"taps_w"}; // (phase of w, TapColumn); taps may read outside of the columns
    Input<Buffer<int32_t, 2>> taps_h{"taps_h"}, taps_d{"taps_d"};        // (oh or od, TapColumn); these do not
    Input<int32_t> step_w{"step_w"}, step_h{"step_h"}, step_d{"step_d"}; // of positions, from one tap to the next
    Input<int32_t> kernel_step_w{"kernel_step_w"}, kernel_step_h{"kernel_step_h"}, kernel_step_d{"kernel_step_d"};
    Input<int32_t> max_count_w{"max_count_w"}, max_count_h{"max_count_h"}, max_count_d{"max_count_d"};
    Output<Buffer<void, -1>> y{"y"}; // (qw, rw, oh, od, oc, n); of a built-in stride ow stands for qw and rw

    void configure() {
        columns.set_type(sum_type(y_type));
        bias.set_type(sum_type(y_type));
        y.set_type(y_type);
        y.set_dimensions(stride_w ? 5 : 6);
    }

    void generate() {
        const int lanes = lanes_at_once(), s = stride_w;
        tap = RDom(0, max_count_w, 0, max_count_h, 0, max_count_d, "tap");
        tap.where(tap.x < taps_w(rw, kTapCount));
        tap.where(tap.y < taps_h(oh, kTapCount));
        tap.where(tap.z < taps_d(od, kTapCount));
        // A position far outside is read near the end, where memory is readable, and left out of the sum.
        const Expr begin = columns.dim(0).min() + lanes, end = begin + columns.dim(0).extent() - 2 * lanes;
        const Expr i = vector * lanes + taps_w(rw, kTapOffset) + tap.x * step_w;
        const auto at = [&](const Func &taps, const Expr &o, TapColumn first, const Expr &t, const Expr &step,
                            int dim) {
            const Expr least = columns.dim(dim).min();
            return unsafe_promise_clamped(taps(o, first) + t * step, least, least + columns.dim(dim).extent() - 1);
        };
        const Expr column = columns(
            unsafe_promise_clamped(clamp(i, begin - lanes, end) + lane, begin - lanes, end + lanes - 1),
            at(taps_h, oh, kTapOffset, tap.y, step_h, 1), at(taps_d, od, kTapOffset, tap.z, step_d, 2),
            at(taps_w, rw, kTapFirst, tap.x, kernel_step_w, 3), at(taps_h, oh, kTapFirst, tap.y, kernel_step_h, 4),
            at(taps_d, od, kTapFirst, tap.z, kernel_step_d, 5), oc, n);
        sum(lane, vector, rw, oh, od, oc, n) = bias(oc);
        sum(lane, vector, rw, oh, od, oc, n) +=
            select(i + lane >= begin && i + lane < end, column, cast(sum_type(y_type), 0));
        if (s) {
            row(ow, oh, od, oc, n) = sum(ow / s % lanes, ow / s / lanes, ow % s, oh, od, oc, n);
            y(ow, oh, od, oc, n) = round_to(y_type, row(ow, oh, od, oc, n));
        } else {
            y(qw, rw, oh, od, oc, n) = round_to(y_type, sum(qw % lanes, qw / lanes, rw, oh, od, oc, n));
        }
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
        for (int d = 3; d < 8; d++) {
            columns.dim(d).set_min(0);
        }
        y.dim(0).set_stride(Expr());
        schedule_col2im(*this, y, lanes_at_once(), stride_w);
    }

  private:
    int lanes_at_once() const { return vectors * natural_vector_size(sum_type(y_type)); }
};

} // namespace convtranspose

HALIDE_REGISTER_GENERATOR(convtranspose::Col2imGenerator, col2im)
