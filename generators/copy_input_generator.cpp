// Copies x into the layout that the families of schedules/ read, as operands of their arithmetic. The caller fills the space around
// x there, so that no element is tested for its place. Results of f32 are rounded to 16 bits by such copies too.
#include <Halide.h>

#include "numerics.h"
#include "surroundings/copy_input.h"

namespace convtranspose {

using namespace Halide;

class CopyInputGenerator : public Generator<CopyInputGenerator>, private CopyInput {
  public:
    GeneratorParam<CopyOrder> order{"order",
                                    CopyOrder::kPlanar,
                                    {{"planar", CopyOrder::kPlanar},
                                     {"channels", CopyOrder::kChannels},
                                     {"transposed", CopyOrder::kTransposed},
                                     {"tiles", CopyOrder::kTiles},
                                     {"tochannels", CopyOrder::kToChannels},
                                     {"tilestochannels", CopyOrder::kTilesToChannels}}};
    GeneratorParam<Arithmetic> arithmetic{"arithmetic", Arithmetic::kFloat, by_name(kArithmetics)};
    GeneratorParam<Type> x_type{"x_type", Float(32)}; // of floats
    GeneratorParam<int> block{"block", 1};            // extent of c0 where it is a block

    Input<Buffer<void, 7>> x{"x"}; // (c0, w, h, d, c1, g, n); of integers the bits, u8
    Input<int32_t> flip{"flip"};   // integers: 0x80 where x is not of byte_x_type(), which makes it that, else 0
    Input<int32_t> zero{"zero"};   // integers: the zero point of x made so
    Input<bool> fetch_x{"fetch_x"}, fetch_copy{"fetch_copy"}; // ahead; copies by squares alone do
    Output<Buffer<void, 7>> copy{"copy"};

    void configure() {
        switch (arithmetic) {
        case Arithmetic::kFloat:
        case Arithmetic::kF16Weights:
        case Arithmetic::kBf16Weights:
        case Arithmetic::kS8Weights:
            x.set_type(x_type);
            copy.set_type(sum_type(x_type));
            break;
        case Arithmetic::kHalf:
            x.set_type(x_type);
            copy.set_type(Float(16));
            break;
        case Arithmetic::kBf16:
            x.set_type(x_type);
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
                          : is_float(arithmetic)            ? Type(x_type)
                          : arithmetic == Arithmetic::kInt8 ? UInt(8)
                                                            : Int(16);
        set_strides();
        x_name = ImageParam(x).name();
        fetches_x = fetch_x;
        fetches_copy = fetch_copy;
        const bool floats = is_float(arithmetic), masks_bytes = has_masked_stores(isa_of(get_target()));
        schedule_copy_input(*this, copy, {order, type, block, floats, floats || masks_bytes}, get_target(),
                            get_pipeline());
    }

  private:
    Expr operand(const Expr &value) {
        if (arithmetic == Arithmetic::kHalf) return round_to(Float(16), value);
        if (arithmetic == Arithmetic::kBf16) return round_to(BFloat(16), value);
        if (arithmetic == Arithmetic::kFloat) return cast(sum_type(x_type), value);
        const Type byte = byte_x_type(get_target());
        const Expr flipped = reinterpret(byte, value ^ cast<uint8_t>(flip));
        return arithmetic == Arithmetic::kInt8 ? flipped : cast<int16_t>(flipped) - cast<int16_t>(cast(byte, zero));
    }

    // Promises the strides of x and of the copy that the order implies.
    void set_strides() {
        const bool planar =
            order == CopyOrder::kPlanar || order == CopyOrder::kToChannels || order == CopyOrder::kTilesToChannels;
        const bool transposed = order == CopyOrder::kTiles || (order == CopyOrder::kTransposed && block == 1);
        x.dim(0).set_stride(Expr());
        x.dim(planar ? 1 : transposed ? 4 : 0).set_stride(1);
        copy.dim(0).set_stride(1);
        switch (order) {
        case CopyOrder::kPlanar:
            // A copy of floats has one channel in a block. With integers, c0 may be the two taps of a pair.
            if (block == 1 && is_float(arithmetic)) copy.dim(0).set_bounds(0, 1);
            [[fallthrough]];
        case CopyOrder::kTransposed: copy.dim(1).set_stride(block); break;
        case CopyOrder::kTiles: copy.dim(1).set_stride(1); break;
        case CopyOrder::kChannels:
        case CopyOrder::kToChannels:
        case CopyOrder::kTilesToChannels: break;
        }
    }
};

} // namespace convtranspose

HALIDE_REGISTER_GENERATOR(convtranspose::CopyInputGenerator, copy_input)
