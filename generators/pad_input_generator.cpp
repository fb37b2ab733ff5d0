// Copies x into the layout that the families of schedules/ read: widened to the type of the sums, and with zeros wherever
// a tap reads outside of x, so that their inner loops need no test.
#include <Halide.h>

#include "numerics.h"

namespace convtranspose {

using namespace Halide;

// Which dimension of x and of the copy is dense.
enum class PadOrder {
    kPlanar,     // w of both
    kChannels,   // c of both
    kTransposed, // c of x, w of the copy
};

class PadInputGenerator : public Generator<PadInputGenerator> {
  public:
    GeneratorParam<PadOrder> order{
        "order",
        PadOrder::kPlanar,
        {{"planar", PadOrder::kPlanar}, {"channels", PadOrder::kChannels}, {"transposed", PadOrder::kTransposed}}};
    GeneratorParam<Type> x_type{"x_type", Float(32)};

    Input<Buffer<void, 5>> x{"x"};            // (w, h, d, c, n), not empty
    Output<Buffer<void, 5>> padded{"padded"}; // likewise; its extents say how far zeros go

    void configure() {
        x.set_type(x_type);
        padded.set_type(sum_type(x_type));
    }

    void generate() {
        Region bounds;
        for (int i = 0; i < 5; i++) {
            bounds.push_back(i < 3 ? Range(x.dim(i).min(), x.dim(i).extent()) : Range());
        }
        inside_ = BoundaryConditions::constant_exterior(x, Tuple(cast(Type(x_type), 0)), bounds);
        padded(w, h, d, c, n) = cast(sum_type(x_type), inside_(w, h, d, c, n));
    }

    void schedule() {
        const int lanes = natural_vector_size(sum_type(x_type));
        const bool dense_w = order != PadOrder::kChannels;
        x.dim(0).set_stride(Expr());
        padded.dim(0).set_stride(Expr());
        x.dim(order == PadOrder::kPlanar ? 0 : 3).set_stride(1);
        padded.dim(dense_w ? 0 : 3).set_stride(1);
        Func p = padded;
        switch (order) {
        case PadOrder::kPlanar: p.reorder({w, c, h, d, n}).vectorize(w, lanes, TailStrategy::GuardWithIf); break;
        case PadOrder::kChannels: p.reorder({c, w, h, d, n}).vectorize(c, lanes, TailStrategy::GuardWithIf); break;
        case PadOrder::kTransposed: {
            Var co("co"), ci("ci"), wo("wo"), wi("wi");
            p.split(c, co, ci, lanes, TailStrategy::GuardWithIf).reorder({ci, w, co, h, d, n}).vectorize(ci);
            break;
        }
        }
    }

  private:
    Var w{"w"}, h{"h"}, d{"d"}, c{"c"}, n{"n"};
    Func inside_;
};

} // namespace convtranspose

HALIDE_REGISTER_GENERATOR(convtranspose::PadInputGenerator, pad_input)
