// The AOT generator of the kernel that follows a convolution on a GPU: it adds up, in order, the parts of sums that were split, and
// applies post-ops; in place if there is one part, of y's type. Arguments: see gpu_generator.cpp.
#include <Halide.h>

#include "convtranspose/convtranspose.h"
#include "elementary.h"
#include "gpu/combine.h"
#include "gpu_types.h"
#include "numerics.h"

namespace convtranspose {

using namespace Halide;

namespace {

constexpr int kAxes = 5; // of y, innermost first

} // namespace

class GpuCombineGenerator : public Generator<GpuCombineGenerator>, private Combine {
  public:
    GeneratorParam<Type> part_type{"part_type", Float(32)};
    GeneratorParam<Type> y_type{"y_type", Float(32)};

    Input<Buffer<void, 1>> parts{"parts"}, residual{"residual"};
    Input<int32_t[kAxes]> extent{"extent"};
    Input<uint32_t[kAxes]> multiplier{"multiplier"};
    Input<int32_t[kAxes]> shift{"shift"};
    Input<int32_t[kAxes]> part_stride{"part_stride"}, residual_stride{"residual_stride"}, y_stride{"y_stride"};
    Input<int32_t> part_count{"part_count"}, part_distance{"part_distance"};
    Input<int32_t> total{"total"}, y_size{"y_size"};
    Input<int32_t> adds_residual{"adds_residual"}, activation{"activation"};
    Input<float> alpha{"alpha"}, beta{"beta"};
    Output<Buffer<void, 1>> y{"y"};

    void configure() {
        parts.set_type(Storage(part_type, get_target()).stored());
        residual.set_type(Storage(y_type, get_target()).stored());
        y.set_type(Storage(y_type, get_target()).stored());
    }

    void generate() {
        const Type type = sum_type(y_type);
        const Storage part(part_type, get_target()), result(y_type, get_target());
        const auto widen = [&](const Expr &e) { return cast(type, result.load(e)); };
        const auto place = [&](const Expr &index, const auto &strides) {
            Expr rest = index, at = 0;
            for (size_t a = 0; a < kAxes; a++) {
                const Expr next = cast<int>((cast<uint64_t>(cast<uint32_t>(rest)) * cast<uint64_t>(multiplier[a])) >>
                                            cast<uint64_t>(shift[a]));
                at += (rest - next * extent[a]) * strides[a];
                rest = next;
            }
            return at;
        };
        const auto within = [](const Expr &at, const Expr &count) { return unsafe_promise_clamped(at, 0, count - 1); };

        RDom k(0, part_count, "k");
        sum(i) = Internal::make_zero(type);
        sum(i) +=
            cast(type, part.load(parts(within(place(i, part_stride) + k * part_distance, parts.dim(0).extent()))));

        // The activation's argument; without a residual it is y as it would be without the activation.
        const Expr convolution = result.store(sum(i));
        const Expr other =
            residual(within(select(adds_residual != 0, place(i, residual_stride), 0), residual.dim(0).extent()));
        const Expr v = widen(convolution) + select(adds_residual != 0, widen(other), Internal::make_const(type, -0.0));
        // A NaN is neither less nor more: it stays.
        const Expr least = select(activation == CONVT_RELU, Internal::make_zero(type), cast(type, alpha));
        const Expr above = select(v < least, least, v), most = cast(type, beta);
        const Expr clipped = select(activation == CONVT_CLIP && above > most, most, above);
        const Expr leaky = select(v < 0, v * cast(type, alpha), v);
        const Expr active =
            select(activation == CONVT_RELU || activation == CONVT_CLIP, clipped, activation == CONVT_LEAKY_RELU, leaky,
                   activation == CONVT_SIGMOID, sigmoid(v), activation == CONVT_TANH, tanh_of(v), v);
        out(i) = result.store(active);

        o = RDom({{0, kCombineThreads}, {0, (total + kCombineThreads - 1) / kCombineThreads}}, "o");
        const Expr at = o[1] * kCombineThreads + o[0];
        o.where(at < total);
        y(j) = undef(result.stored());
        y(within(place(at, y_stride), y_size)) = out(at);
    }

    void schedule() {
        for (auto *buffer : {&parts, &residual}) {
            buffer->dim(0).set_min(0);
        }
        y.dim(0).set_min(0);
        schedule_combine(*this, y, get_pipeline(), get_target());
    }
};

} // namespace convtranspose

HALIDE_REGISTER_GENERATOR(convtranspose::GpuCombineGenerator, gpu_combine)
