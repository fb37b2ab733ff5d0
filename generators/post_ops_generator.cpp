// The step that follows the convolution while its result is still in the cache: y = activation(y + residual), in place.
#include <Halide.h>

#include "elementary.h"
#include "numerics.h"
#include "surroundings/post_ops.h"

namespace convtranspose {

using namespace Halide;

class PostOpsGenerator : public Generator<PostOpsGenerator> {
  public:
    GeneratorParam<PostKernel> activation{"activation",
                                          PostKernel::kClip,
                                          {{"clip", PostKernel::kClip},
                                           {"leaky_relu", PostKernel::kLeakyRelu},
                                           {"sigmoid", PostKernel::kSigmoid},
                                           {"tanh", PostKernel::kTanh}}};
    GeneratorParam<Type> y_type{"y_type", Float(32)};
    GeneratorParam<bool> adds_residual{"adds_residual", false};

    // (element, row): y as the convolution left it, and the residual, which is not read unless it is added.
    Input<Buffer<void, 2>> convolution{"convolution"}, residual{"residual"};
    Input<float> alpha{"alpha"}; // clip: least; leaky_relu: slope
    Input<float> beta{"beta"};   // clip: most
    Output<Buffer<void, 2>> y{"y"};

    void configure() {
        convolution.set_type(y_type);
        residual.set_type(y_type);
        y.set_type(y_type);
    }

    void generate() {
        const Type type = compute_type();
        Expr v = cast(type, convolution(i, row));
        if (adds_residual) v += cast(type, residual(i, row));
        switch (activation) {
        case PostKernel::kClip: v = clip(v, cast(type, alpha), cast(type, beta)); break;
        case PostKernel::kLeakyRelu: v = select(v < 0, v * cast(type, alpha), v); break;
        case PostKernel::kSigmoid: v = sigmoid(v); break;
        case PostKernel::kTanh: v = tanh_of(v); break;
        }
        y(i, row) = round_to(y_type, v);
    }

    void schedule() { schedule_post_ops(y, i, natural_vector_size(compute_type())); }

  private:
    Type compute_type() const { return sum_type(y_type); }

    Var i{"i"}, row{"row"};
};

} // namespace convtranspose

HALIDE_REGISTER_GENERATOR(convtranspose::PostOpsGenerator, post_ops)
