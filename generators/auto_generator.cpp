// The algorithm as Halide's own autoschedulers schedule it, to measure our schedules against:
//     auto_generator -p libautoschedule_adams2019.so -g auto -f NAME -e object,schedule -o FOLDER target=x86-64-linux-...
//                    autoscheduler=Adams2019 autoscheduler.parallelism=2 x_w=64 x_h=64 ic=256 oc=128 table_w=... table_h=...
// x is read in place, in any strides, and is zero outside. All taps are built in; channels and extents are estimates.
#include <Halide.h>

#include <algorithm>
#include <string>

#include "autoscheduler/estimates.h"
#include "built_in.h"
#include "conv_transpose.h"

namespace convtranspose {

using namespace Halide;

class AutoGenerator : public Generator<AutoGenerator> {
  public:
    GeneratorParam<Type> y_type{"y_type", Float(32)}; // of x too; a float
    // The layer: extents of x and y, channels per group, taps as in built_in.h.
    GeneratorParam<int> x_w{"x_w", 1}, x_h{"x_h", 1}, x_d{"x_d", 1}, out_w{"out_w", 1}, out_h{"out_h", 1},
        out_d{"out_d", 1};
    GeneratorParam<int> ic{"ic", 1}, oc{"oc", 1}, group{"group", 1}, batch{"batch", 1};
    GeneratorParam<std::string> table_w{"table_w", "1/0:1:0"}, table_h{"table_h", "1/0:1:0"},
        table_d{"table_d", "1/0:1:0"};

    Input<Buffer<void, 6>> x{"x"};              // (iw, ih, id, ic, g, n)
    Input<Buffer<void, 7>> w{"w"};              // (oi, ic, tap w, tap h, tap d, oo, g)
    Input<Buffer<void, 2>> bias{"bias"};        // (oc padded to whole tiles, g)
    Input<Buffer<float, 3>> factors{"factors"}; // not used, as are all that follow
    Input<Buffer<int32_t, 2>> taps_w{"taps_w"}, taps_h{"taps_h"}, taps_d{"taps_d"};
    Input<int32_t> step_w{"step_w"}, step_h{"step_h"}, step_d{"step_d"};
    Input<int32_t> max_count_w{"max_count_w"}, max_count_h{"max_count_h"}, max_count_d{"max_count_d"};
    Input<int32_t> shared_first_w{"shared_first_w"}, shared_count_w{"shared_count_w"};
    Input<int32_t> shared_first_h{"shared_first_h"}, shared_count_h{"shared_count_h"};
    Input<int32_t> y_zero_point{"y_zero_point"};
    Input<float> y_min{"y_min"}, y_max{"y_max"};
    Output<Buffer<void, 9>> y{"y"}; // (oc, qw, rw, qh, rh, qd, rd, g, n)

    void configure() {
        x.set_type(y_type);
        w.set_type(sum_type(y_type));
        bias.set_type(sum_type(y_type));
        y.set_type(y_type);
    }

    void generate() {
        const std::array<std::string, 3> tables = {table_w, table_h, table_d};
        ConvTransposeInputs in;
        in.x = BoundaryConditions::constant_exterior(x, Internal::make_zero(x.type()),
                                                     {{x.dim(0).min(), x.dim(0).extent()},
                                                      {x.dim(1).min(), x.dim(1).extent()},
                                                      {x.dim(2).min(), x.dim(2).extent()}});
        in.w = w;
        in.bias = bias;
        for (int a = 0; a < 3; a++) {
            taps_[a] = read_built_in_taps("table", tables[a], 0, 0);
            Axis &axis = in.axes[a];
            axis.outside = Outside::kNeverReads;
            axis.kernel = taps_[a].kernel();
            build_in(taps_[a], &axis);
            const int reach = reach_of(taps_[a]);
            axis.x_min = x.dim(a).min() - reach; // where the zeros around x are read
            axis.x_extent = x.dim(a).extent() + 2 * reach;
        }
        in.ic_extent = static_cast<int>(ic);
        in.oc_tile = 1;
        in.numerics.sum = sum_type(y_type);
        in.numerics.y = y_type;
        y = conv_transpose(in).y;
    }

    void schedule() {
        _halide_user_assert(using_autoscheduler()) << "auto is for autoschedulers: autoscheduler=... and -p\n";
        EstimatedCall call{{x_w, x_h, x_d}, {out_w, out_h, out_d}, {}, {}, ic, oc, group, batch};
        for (int a = 0; a < 3; a++) {
            call.kernel[a] = taps_[a].kernel();
            call.phases[a] = static_cast<int>(taps_[a].table.size());
        }
        set_estimates(this, call);
        w.dim(0).set_bounds(0, 1);
        w.dim(5).set_stride(1); // one channel a tile, as for the reference
        y.dim(0).set_stride(Expr());
        for (int a = 0; a < 3; a++) {
            y.dim(2 + 2 * a).set_bounds(0, call.phases[a]);
        }
        y.dim(1).set_stride(Expr());
    }

  private:
    // The farthest that a tap may leave x.
    static int reach_of(const BuiltInTaps &axis) {
        int reach = 0;
        for (const auto &row : axis.table) {
            reach = std::max({reach, -row[kTapOffset], row[kTapOffset] + row[kTapCount] * axis.step});
        }
        return reach;
    }

    std::array<BuiltInTaps, 3> taps_; // w, h, d
};

} // namespace convtranspose

HALIDE_REGISTER_GENERATOR(convtranspose::AutoGenerator, auto)
