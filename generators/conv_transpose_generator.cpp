// The AOT generator: one pipeline of the algorithm with one schedule. cmake/variants.cmake lists those that are built.
// Compiled once for each family, CONVTRANSPOSE_FAMILY, so that a changed schedule rebuilds its own variants only.
#include <Halide.h>

#include "conv_transpose.h"
#include "schedule.h"

namespace convtranspose {

using namespace Halide;

namespace { // one program may hold this class once for each family

class ConvTransposeGenerator : public Generator<ConvTransposeGenerator> {
  public:
    static constexpr const ScheduleFamily &family = CONVTRANSPOSE_FAMILY;

    GeneratorParam<Store> store{
        "store", Store::kChannels, {{"channels", Store::kChannels}, {"planar", Store::kPlanar}}};
    GeneratorParam<Type> x_type{"x_type", Float(32)};
    GeneratorParam<Type> y_type{"y_type", Float(32)};
    GeneratorParam<int> stride_w{"stride_w", 0};
    GeneratorParam<int> stride_h{"stride_h", 0};
    GeneratorParam<int> tile_oc{"tile_oc", 1};
    GeneratorParam<int> tile_q{"tile_q", 1};
    GeneratorParam<int> tile_qh{"tile_qh", 1};

    Input<Buffer<void, 6>> x{"x"};       // (iw, ih, id, ic, g, n)
    Input<Buffer<void, 7>> w{"w"};       // (oi, ic, tap w, tap h, tap d, oo, g)
    Input<Buffer<void, 2>> bias{"bias"}; // (oc padded to whole tiles, g)
    Input<Buffer<int32_t, 2>> taps_w{"taps_w"}, taps_h{"taps_h"}, taps_d{"taps_d"};
    Input<int32_t> step_w{"step_w"}, step_h{"step_h"}, step_d{"step_d"};
    Input<int32_t> max_count_w{"max_count_w"}, max_count_h{"max_count_h"}, max_count_d{"max_count_d"};
    // TapOrder::kShared only: the offsets that every residue has a tap for.
    Input<int32_t> shared_first_w{"shared_first_w"}, shared_count_w{"shared_count_w"};
    Input<int32_t> shared_first_h{"shared_first_h"}, shared_count_h{"shared_count_h"};
    Output<Buffer<void, -1>> y{"y"};

    void configure() {
        const Type sum = sum_type(y_type);
        x.set_type(x_type);
        w.set_type(sum);
        bias.set_type(sum);
        y.set_type(y_type);
        y.set_dimensions(9 - (stride_w > 0) - (stride_h > 0));
    }

    void generate() {
        ConvTransposeInputs in;
        in.x = x;
        in.w = w;
        in.bias = bias;
        const auto axis = [&](const Func &taps, const Expr &step, const Expr &max_count, int i) {
            return Axis{
                taps,   step,  max_count, w.dim(2 + i).extent(), x.dim(i).min(), x.dim(i).extent(), 0, family.tap_order,
                Expr(), Expr()};
        };
        in.axes = {axis(taps_w, step_w, max_count_w, 0), axis(taps_h, step_h, max_count_h, 1),
                   axis(taps_d, step_d, max_count_d, 2)};
        in.axes[0].stride = stride_w;
        in.axes[1].stride = stride_h;
        in.axes[2].order = TapOrder::kPerResidue;
        in.axes[0].shared_first = shared_first_w;
        in.axes[0].shared_count = shared_count_w;
        in.axes[1].shared_first = shared_first_h;
        in.axes[1].shared_count = shared_count_h;
        in.ic_extent = family.depthwise ? Expr(1) : x.dim(3).extent();
        in.oc_tile = tile_oc;
        in.outside = family.outside;
        in.numerics = {sum_type(y_type), y_type};
        c_ = conv_transpose(in);
        y = c_.y;
    }

    void schedule() {
        const Type sum = sum_type(y_type);
        const Tile tile{tile_oc, tile_q, tile_qh, natural_vector_size(sum)};
        for (int i = 0; i < 7; i++) {
            w.dim(i).set_min(0);
        }
        for (auto *taps : {&taps_w, &taps_h, &taps_d}) {
            taps->dim(0).set_min(0).set_stride(kTapColumns);
            taps->dim(1).set_min(0).set_stride(1);
        }
        // Which dimension is dense. The reference takes anything.
        x.dim(0).set_stride(Expr());
        y.dim(0).set_stride(Expr());
        w.dim(0).set_extent(tile_oc);
        if (family.depthwise && store == Store::kChannels) {
            x.dim(4).set_stride(1);
            w.dim(0).set_stride(Expr());
            w.dim(6).set_stride(1);
            bias.dim(1).set_stride(1);
            y.dim(y.dimensions() - 2).set_stride(1);
        } else if (family.outside == Outside::kNeverReads) {
            x.dim(0).set_stride(1);
            w.dim(1).set_stride(tile_oc);
            y.dim(store == Store::kChannels ? 0 : 1)
                .set_stride(store == Store::kPlanar && stride_w == 0 ? Expr() : Expr(1));
        }
        bias.dim(0).set_min(0);
        for (int i = 0; i < y.dimensions(); i++) {
            y.dim(i).set_min(0);
        }
        family.schedule(c_, tile, store);
    }

  private:
    ConvTranspose c_;
};

} // namespace

} // namespace convtranspose

HALIDE_REGISTER_GENERATOR(convtranspose::ConvTransposeGenerator, CONVTRANSPOSE_GENERATOR)
