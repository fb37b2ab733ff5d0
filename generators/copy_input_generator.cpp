// Copies x into the layout that the families of schedules/ read, as operands of their arithmetic. The caller fills the space around
// x there, so that no element is tested for its place.
#include <Halide.h>

#include <algorithm>

#include "numerics.h"

namespace convtranspose {

using namespace Halide;

constexpr int kRun = 32; // positions

class CopyInputGenerator : public Generator<CopyInputGenerator> {
  public:
    GeneratorParam<CopyOrder> order{"order",
                                    CopyOrder::kPlanar,
                                    {{"planar", CopyOrder::kPlanar},
                                     {"channels", CopyOrder::kChannels},
                                     {"transposed", CopyOrder::kTransposed},
                                     {"tiles", CopyOrder::kTiles},
                                     {"tochannels", CopyOrder::kToChannels}}};
    GeneratorParam<Arithmetic> arithmetic{"arithmetic",
                                          Arithmetic::kFloat,
                                          {{"float", Arithmetic::kFloat},
                                           {"half", Arithmetic::kHalf},
                                           {"bf16", Arithmetic::kBf16},
                                           {"int8", Arithmetic::kInt8},
                                           {"int16", Arithmetic::kInt16}}};
    GeneratorParam<Type> x_type{"x_type", Float(32)}; // kFloat only
    GeneratorParam<int> block{"block", 1};            // extent of c0 where it is a block

    Input<Buffer<void, 7>> x{"x"}; // (c0, w, h, d, c1, g, n); of integers the bits, u8
    Input<int32_t> flip{"flip"};   // integers: 0x80 where x is not of byte_x_type(), which makes it that, else 0
    Input<int32_t> zero{"zero"};   // integers: the zero point of x made so
    Output<Buffer<void, 7>> copy{"copy"};

    void configure() {
        switch (arithmetic) {
        case Arithmetic::kFloat:
            x.set_type(x_type);
            copy.set_type(sum_type(x_type));
            break;
        case Arithmetic::kHalf:
            x.set_type(Float(16));
            copy.set_type(Float(16));
            break;
        case Arithmetic::kBf16:
            x.set_type(BFloat(16));
            copy.set_type(BFloat(16));
            break;
        case Arithmetic::kInt8:
            x.set_type(UInt(8));
            copy.set_type(byte_x_type(get_target()));
            break;
        case Arithmetic::kInt16:
            x.set_type(UInt(8));
            copy.set_type(Int(16));
            break;
        }
    }

    void generate() {
        element(c0, w, h, d, c1, g, n) = operand(x(c0, w, h, d, c1, g, n));
        copy(c0, w, h, d, c1, g, n) = element(c0, w, h, d, c1, g, n);
    }

    void schedule() {
        const Type type = arithmetic == Arithmetic::kFloat  ? sum_type(x_type)
                          : arithmetic == Arithmetic::kHalf ? Float(16)
                          : arithmetic == Arithmetic::kBf16 ? BFloat(16)
                          : arithmetic == Arithmetic::kInt8 ? UInt(8)
                                                            : Int(16);
        const int lanes = natural_vector_size(type);
        x.dim(0).set_stride(Expr());
        copy.dim(0).set_stride(1);
        const bool planar = order == CopyOrder::kPlanar || order == CopyOrder::kToChannels;
        x.dim(planar ? 1 : 0).set_stride(1);
        Func p = copy;
        switch (order) {
        case CopyOrder::kPlanar:
            copy.dim(1).set_stride(block);
            p.reorder({c0, w, c1, h, d, g, n});
            if (block == 1) {
                p.vectorize(w, lanes, TailStrategy::GuardWithIf);
            } else {
                whole_block(p).vectorize(w, lanes / block, TailStrategy::GuardWithIf).unroll(c0);
            }
            break;
        case CopyOrder::kChannels:
            p.reorder({c0, w, c1, h, d, g, n}).vectorize(c0, lanes, TailStrategy::GuardWithIf);
            break;
        case CopyOrder::kTransposed:
            copy.dim(1).set_stride(block);
            if (block == 1) {
                x.dim(0).set_stride(Expr());
                x.dim(4).set_stride(1);
                // A vector of 16 lanes is put together from single loads faster than taken apart into single stores, unless most
                // lanes stay empty; one of 8 is not.
                if (get_target().has_feature(Target::AVX512)) {
                    by_loads(p.specialize(copy.dim(1).extent() >= 8), lanes);
                }
                by_stores(p, lanes);
                break;
            }
            // Positions by sixteens: a cache line of x is still near when its next block is due.
            p.split(w, w, wi, 16, TailStrategy::GuardWithIf).reorder({c0, wi, c1, w, h, d, g, n});
            whole_block(p).vectorize(c0).unroll(wi, 4);
            break;
        case CopyOrder::kTiles: tile(type); break;
        case CopyOrder::kToChannels:
            p.reorder({c0, w, c1, h, d, g, n}).vectorize(c0, 4, TailStrategy::GuardWithIf);
            break;
        }
    }

  private:
    Expr operand(const Expr &value) {
        if (arithmetic == Arithmetic::kHalf || arithmetic == Arithmetic::kBf16) return value;
        if (arithmetic == Arithmetic::kFloat) return cast(sum_type(x_type), value);
        const Type byte = byte_x_type(get_target());
        const Expr flipped = reinterpret(byte, value ^ cast<uint8_t>(flip));
        return arithmetic == Arithmetic::kInt8 ? flipped : cast<int16_t>(flipped) - cast<int16_t>(cast(byte, zero));
    }

    // Squares are loaded by rows, transposed by shuffles of registers, and written by rows. As many as make a cache line of x come one
    // after another, then some along w, then all channels of those, so that positions of x are read as streams. Channels of the copy
    // a multiple of 4 KiB apart share a set of the first-level cache, which loses a line before the next square has written its other
    // half: there squares that share lines of the copy come first, then those that share lines of x, then all along w.
    // Measurements: docs/measurements/2026-11-26-schedules.md.
    void tile(const Type &type) {
        const int extent = std::min(kCopyTile, std::min(natural_vector_size<uint8_t>(), 32) / type.bytes());
        x.dim(0).set_stride(Expr());
        x.dim(4).set_stride(1);
        copy.dim(1).set_stride(1);
        const int squares = 64 / (extent * type.bytes());
        const auto in_squares = [&](Stage p) {
            return p.split(w, w, wi, extent, TailStrategy::ShiftInwards)
                .split(c1, c1, ci, extent, TailStrategy::ShiftInwards)
                .vectorize(wi)
                .unroll(ci);
        };
        Func p = copy;
        in_squares(p.specialize(copy.dim(4).stride() % (4096 / type.bytes()) == 0))
            .split(w, w, beside, squares, TailStrategy::GuardWithIf)
            .split(c1, c1, below, squares, TailStrategy::GuardWithIf)
            .reorder({wi, ci, beside, below, w, c1, h, d, c0, g, n});
        in_squares(p)
            .split(c1, c1, beside, squares, TailStrategy::GuardWithIf)
            .split(w, w, near, kRun / extent, TailStrategy::GuardWithIf)
            .reorder({wi, ci, beside, near, c1, w, h, d, c0, g, n});
        element.compute_at(p, beside).reorder(c1, w).vectorize(c1).unroll(w);
    }

    void by_loads(Stage p, int lanes) {
        p.split(w, w, wi, lanes, TailStrategy::GuardWithIf).reorder({wi, c0, c1, w, h, d, g, n}).vectorize(wi);
    }
    void by_stores(Stage p, int lanes) {
        p.split(c1, c1, ci, lanes, TailStrategy::GuardWithIf).reorder({ci, c0, w, c1, h, d, g, n}).vectorize(ci);
    }

    // The schedule for whole blocks. The last block of channels may hold fewer, and keeps the loops as they are.
    Stage whole_block(Func p) { return p.specialize(copy.dim(0).extent() == block && copy.dim(0).min() == 0); }

    Var c0{"c0"}, w{"w"}, wi{"wi"}, h{"h"}, d{"d"}, c1{"c1"}, ci{"ci"}, beside{"beside"}, below{"below"}, g{"g"},
        n{"n"}, near{"near"};
    Func element{"element"};
};

} // namespace convtranspose

HALIDE_REGISTER_GENERATOR(convtranspose::CopyInputGenerator, copy_input)
