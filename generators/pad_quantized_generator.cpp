// Copies 8-bit x into the layout that the families of schedules/ read: as the operands of an integer arithmetic, and with
// the zero point, which stands for zero, wherever a tap reads outside of x.
#include <Halide.h>

#include "numerics.h"

namespace convtranspose {

using namespace Halide;

// Which dimension of x and of the copy is dense. Channels are in two dimensions, c0 the inner one: all that a group has, or
// blocks of neighbours.
enum class PadOrder {
    kPlanar,     // w of x; of the copy w, and c0 within it
    kChannels,   // c0 of both
    kTransposed, // c0 of x, then c1; of the copy c0, then w
    kToChannels, // w of x, c0 of the copy
};

class PadQuantizedGenerator : public Generator<PadQuantizedGenerator> {
  public:
    GeneratorParam<PadOrder> order{"order",
                                   PadOrder::kPlanar,
                                   {{"planar", PadOrder::kPlanar},
                                    {"channels", PadOrder::kChannels},
                                    {"transposed", PadOrder::kTransposed},
                                    {"tochannels", PadOrder::kToChannels}}};
    GeneratorParam<Arithmetic> arithmetic{
        "arithmetic", Arithmetic::kInt8, {{"int8", Arithmetic::kInt8}, {"int16", Arithmetic::kInt16}}};
    GeneratorParam<int> block{"block", 1}; // extent of c0 where it is a block

    Input<Buffer<uint8_t, 7>> x{"x"}; // (c0, w, h, d, c1, g, n), not empty; the bits of u8 or s8
    Input<int32_t> flip{"flip"};      // 0x80 where x is s8, which makes it u8, else 0
    Input<int32_t> zero{"zero"};      // the zero point of that u8
    Output<Buffer<void, 7>> padded{"padded"}; // likewise; its extents say how far zeros go

    void configure() { padded.set_type(arithmetic == Arithmetic::kInt8 ? UInt(8) : Int(16)); }

    void generate() {
        const Expr zero_point = cast<uint8_t>(zero);
        Region bounds(7, Range());
        for (int i = 1; i <= 3; i++) {
            bounds[static_cast<size_t>(i)] = Range(x.dim(i).min(), x.dim(i).extent());
        }
        value_(c0, w, h, d, c1, g, n) = x(c0, w, h, d, c1, g, n) ^ cast<uint8_t>(flip);
        inside_ = BoundaryConditions::constant_exterior(value_, zero_point, bounds);
        const Expr u8 = inside_(c0, w, h, d, c1, g, n);
        padded(c0, w, h, d, c1, g, n) =
            arithmetic == Arithmetic::kInt8 ? u8 : cast<int16_t>(u8) - cast<int16_t>(zero_point);
    }

    void schedule() {
        const int lanes = natural_vector_size(UInt(8)) / (arithmetic == Arithmetic::kInt8 ? 1 : 2);
        x.dim(0).set_stride(Expr());
        padded.dim(0).set_stride(1);
        const bool planar = order == PadOrder::kPlanar || order == PadOrder::kToChannels;
        x.dim(planar ? 1 : 0).set_stride(1);
        Func p = padded;
        switch (order) {
        case PadOrder::kPlanar:
            padded.dim(1).set_stride(block);
            p.reorder({c0, w, c1, h, d, g, n});
            if (block == 1) {
                p.vectorize(w, lanes, TailStrategy::GuardWithIf);
            } else {
                whole_block(p).vectorize(w, lanes / block, TailStrategy::GuardWithIf).unroll(c0);
            }
            break;
        case PadOrder::kChannels:
            p.reorder({c0, w, c1, h, d, g, n}).vectorize(c0, lanes, TailStrategy::GuardWithIf);
            break;
        case PadOrder::kTransposed:
            padded.dim(1).set_stride(block);
            p.reorder({c0, w, c1, h, d, g, n});
            whole_block(p).vectorize(c0).unroll(w, 4, TailStrategy::GuardWithIf);
            break;
        case PadOrder::kToChannels:
            p.reorder({c0, w, c1, h, d, g, n}).vectorize(c0, 4, TailStrategy::GuardWithIf);
            break;
        }
    }

  private:
    // The last block of channels may hold fewer: it takes the loops as they are.
    Stage whole_block(Func p) { return p.specialize(padded.dim(0).extent() == block && padded.dim(0).min() == 0); }

    Var c0{"c0"}, w{"w"}, h{"h"}, d{"d"}, c1{"c1"}, g{"g"}, n{"n"};
    Func value_{"value"}, inside_;
};

} // namespace convtranspose

HALIDE_REGISTER_GENERATOR(convtranspose::PadQuantizedGenerator, pad_quantized)
