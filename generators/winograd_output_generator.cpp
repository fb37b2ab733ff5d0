// The transform of products in Winograd's algorithm: two neighbouring outputs of a phase along each axis, each of which count
// taps meet. S. Winograd, Arithmetic Complexity of Computations, 1980: F(2, count).
#include <Halide.h>

#include <functional>

#include "surroundings/winograd_output.h"

namespace convtranspose {

using namespace Halide;

class WinogradOutputGenerator : public Generator<WinogradOutputGenerator>, private WinogradOutput {
  public:
    GeneratorParam<Type> type{"type", Float(32)};
    GeneratorParam<int> count_w{"count_w", 2}; // 0: there is no such axis
    GeneratorParam<int> count_h{"count_h", 2};

    Input<Buffer<void, 5>> products{"products"}; // (channel, tw, th, product w, product h)
    Output<Buffer<void, 5>> y{"y"};              // (channel, output of the tile along w, tw, output along h, th)

    void configure() {
        products.set_type(type);
        y.set_type(type);
    }

    void generate() {
        y(channel, bw, tw, bh, th) = output(count_h, bh, [&](int row) {
            return output(count_w, bw, [&](int k) { return products(channel, tw, th, k, row); });
        });
    }

    void schedule() {
        for (int d = 0; d < 5; d++) {
            products.dim(d).set_min(0);
            y.dim(d).set_min(0);
        }
        schedule_winograd_output(*this, y, natural_vector_size(type), count_w > 0 ? 2 : 1);
    }

  private:
    static Expr output(int count, const Expr &b, const std::function<Expr(int)> &m) {
        switch (count) {
        case 0: return m(0);
        case 1: return select(b == 0, m(0), m(1));
        case 2: return select(b == 0, m(0) + m(1), m(1) + m(2));
        default: return select(b == 0, m(0) + m(1) + m(2), m(1) - m(2) - m(3));
        }
    }
};

} // namespace convtranspose

HALIDE_REGISTER_GENERATOR(convtranspose::WinogradOutputGenerator, winograd_output)
