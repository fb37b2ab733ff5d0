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
    GeneratorParam<Arithmetic> arithmetic{"arithmetic",
                                          Arithmetic::kFloat,
                                          {{"float", Arithmetic::kFloat},
                                           {"half", Arithmetic::kHalf},
                                           {"int8", Arithmetic::kInt8},
                                           {"int16", Arithmetic::kInt16}}};
    GeneratorParam<Type> x_type{"x_type", Float(32)}; // kFloat only
    GeneratorParam<Type> y_type{"y_type", Float(32)};
    GeneratorParam<int> stride_w{"stride_w", 0};
    GeneratorParam<int> stride_h{"stride_h", 0};
    GeneratorParam<int> tile_oc{"tile_oc", 1};
    GeneratorParam<int> tile_q{"tile_q", 1};
    GeneratorParam<int> tile_qh{"tile_qh", 1};

    Input<Buffer<void, -1>> x{"x"};             // ([ib,] iw, ih, id, ic, g, n)
    Input<Buffer<void, -1>> w{"w"};             // ([ib,] oi, ic, tap w, tap h, tap d, oo, g)
    Input<Buffer<void, -1>> bias{"bias"};       // (oc padded to whole tiles, g[, class w, class h, class d])
    Input<Buffer<float, 3>> factors{"factors"}; // (oc padded likewise, FactorColumn, g); integers only
    Input<Buffer<int32_t, 2>> taps_w{"taps_w"}, taps_h{"taps_h"}, taps_d{"taps_d"};
    Input<int32_t> step_w{"step_w"}, step_h{"step_h"}, step_d{"step_d"};
    Input<int32_t> max_count_w{"max_count_w"}, max_count_h{"max_count_h"}, max_count_d{"max_count_d"};
    // TapOrder::kShared only: the offsets that every residue has a tap for.
    Input<int32_t> shared_first_w{"shared_first_w"}, shared_count_w{"shared_count_w"};
    Input<int32_t> shared_first_h{"shared_first_h"}, shared_count_h{"shared_count_h"};
    Input<int32_t> y_zero_point{"y_zero_point"}; // integers only, as are the bounds
    Input<float> y_min{"y_min"}, y_max{"y_max"};
    Output<Buffer<void, -1>> y{"y"};

    void configure() {
        switch (arithmetic) {
        case Arithmetic::kFloat:
            x.set_type(x_type);
            w.set_type(sum_of(y_type));
            bias.set_type(sum_of(y_type));
            break;
        case Arithmetic::kHalf:
            x.set_type(Float(16));
            w.set_type(Float(16));
            bias.set_type(Float(16));
            break;
        case Arithmetic::kInt8:
            x.set_type(byte_x_type(get_target()));
            w.set_type(Int(8));
            bias.set_type(Int(32));
            break;
        case Arithmetic::kInt16:
            x.set_type(Int(16));
            w.set_type(Int(16));
            bias.set_type(Int(32));
            break;
        }
        x.set_dimensions(6 + first());
        w.set_dimensions(7 + first());
        bias.set_dimensions(is_float(arithmetic) ? 2 : 5);
        y.set_type(y_type);
        y.set_dimensions(9 - (stride_w > 0) - (stride_h > 0));
    }

    void generate() {
        ConvTransposeInputs in;
        in.x = x;
        in.w = w;
        in.bias = bias;
        const auto axis = [&](const Func &taps, const Expr &step, const Expr &max_count, int i) {
            return Axis{taps,
                        step,
                        max_count,
                        w.dim(first() + 2 + i).extent(),
                        x.dim(first() + i).min(),
                        x.dim(first() + i).extent(),
                        0,
                        family.tap_order,
                        Expr(),
                        Expr()};
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
        for (int a = 0; a < 3 && !is_float(arithmetic); a++) {
            in.classes[a] = bias.dim(2 + a).extent();
        }
        in.ic_extent = family.depthwise ? Expr(1) : x.dim(first() + 3).extent();
        in.block = block();
        in.oc_tile = tile_oc;
        in.outside = family.outside;
        in.numerics = {arithmetic, sum_of(y_type), y_type, factors, y_zero_point, y_min, y_max};
        c_ = conv_transpose(in);
        y = c_.y;
    }

    void schedule() {
        // Integers are summed in 32 bits, whatever the reference takes to be sure.
        const int lanes = natural_vector_size(is_float(arithmetic) ? sum_of(y_type) : Type(Int(32)));
        const bool arm = get_target().arch == Target::ARM && get_target().bits == 64;
        const Tile tile{
            tile_oc, tile_q, tile_qh, lanes, get_target().has_feature(Target::AVX512), arm && !family.depthwise};
        for (int i = 0; i < w.dimensions(); i++) {
            w.dim(i).set_min(0);
        }
        for (auto *taps : {&taps_w, &taps_h, &taps_d}) {
            taps->dim(0).set_min(0).set_stride(kTapColumns);
            taps->dim(1).set_min(0).set_stride(1);
        }
        // Which dimension is dense. The reference takes anything.
        const int f = first();
        x.dim(0).set_stride(Expr());
        y.dim(0).set_stride(Expr());
        if (f) {
            x.dim(0).set_bounds(0, block());
            w.dim(0).set_extent(block());
        }
        w.dim(f).set_extent(tile_oc);
        if (family.depthwise && store == Store::kChannels) {
            x.dim(f + 4).set_stride(block());
            w.dim(f).set_stride(Expr());
            w.dim(f + 6).set_stride(block());
            if (f) {
                x.dim(0).set_stride(1);
                w.dim(0).set_stride(1);
            }
            bias.dim(0).set_stride(Expr());
            bias.dim(1).set_stride(1);
            factors.dim(0).set_stride(Expr());
            factors.dim(2).set_stride(1);
            y.dim(y.dimensions() - 2).set_stride(1);
        } else if (family.outside == Outside::kNeverReads) {
            x.dim(0).set_stride(1);
            w.dim(f + 1).set_stride(block() * tile_oc);
            if (f) {
                w.dim(1).set_stride(block());
                x.dim(family.vectors_along_w || family.depthwise ? 1 : 4).set_stride(block());
            }
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
    // Input channels side by side, for instructions that multiply and add several at once; with one input channel per group
    // the caller puts taps there.
    int block() const { return family.outside == Outside::kSkipped ? 1 : block_of(arithmetic, get_target()); }

    // Where the other dimensions of x and w start: behind that within a block.
    int first() const { return block() > 1 ? 1 : 0; }

    Type sum_of(const Type &y_storage) const {
        if (arithmetic == Arithmetic::kFloat) {
            return sum_type(y_storage);
        }
        if (arithmetic == Arithmetic::kHalf) {
            return Float(16);
        }
        return Int(family.outside == Outside::kSkipped ? 64 : 32); // the reference is for sums of any size
    }

    ConvTranspose c_;
};

} // namespace

} // namespace convtranspose

HALIDE_REGISTER_GENERATOR(convtranspose::ConvTransposeGenerator, CONVTRANSPOSE_GENERATOR)
