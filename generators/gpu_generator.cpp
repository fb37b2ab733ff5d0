// The AOT generators of GPU kernels: the algorithm with positions in a phase (families tiled and small_oc) and with outputs (each),
// and schedules/gpu/. kernels/table.py lists those that are built. Kernels are called through their _argv function, with the
// arguments in the order in which they stand here; DevicePlan::KernelArguments (runtime/gpu) has the same.
#include <Halide.h>

#include "conv_transpose.h"
#include "elementary.h"
#include "gpu/gpu.h"
#include "gpu_types.h"

namespace convtranspose {

using namespace Halide;

namespace {

// The inputs and outputs that both have.
template<typename Derived>
class GpuGenerator : public Generator<Derived> {
  public:
    template<typename T>
    using Input = GeneratorInput<T>;

    GeneratorParam<bool> integers{"integers", false};
    GeneratorParam<int> block{"block",
                              1}; // input channels that are multiplied together; 4: w is s8, x has its zero point
    GeneratorParam<Type> x_type{"x_type", Float(32)}; // as stored; of integers both 8-bit types are u8
    GeneratorParam<Type> y_type{"y_type", Float(32)};

    GeneratorInput<Buffer<void, 1>> x{"x"};
    GeneratorInput<Buffer<void, -1>> w{"w"};
    GeneratorInput<Buffer<void, 1>> bias{"bias"};
    GeneratorInput<Buffer<float, 2>> factors{"factors"}; // (oc as of the bias, FactorColumn); integers only
    Input<int32_t[3]> x_extent{"x_extent"}, x_stride{"x_stride"};
    Input<int32_t> x_channel_stride{"x_channel_stride"}, x_image_stride{"x_image_stride"};
    Input<int32_t[3]> y_stride{"y_stride"};
    Input<int32_t> y_channel_stride{"y_channel_stride"}, y_image_stride{"y_image_stride"}, y_size{"y_size"};
    Input<int32_t> batch{"batch"}, ic_per_group{"ic_per_group"}; // no input may be named as a Var is
    Input<int32_t> x_flip{"x_flip"}, x_zero_point{"x_zero_point"}, y_zero_point{"y_zero_point"};
    Input<float> y_min{"y_min"}, y_max{"y_max"};

  protected:
    Storage storage_of(const Type &type) const { return Storage(type, this->get_target()); }
    Type sum_of() const { return integers ? Type(Int(32)) : sum_type(x_type); }

    void configure_common(int w_dimensions) {
        x.set_type(storage_of(x_type).stored());
        w.set_type(!integers ? sum_of() : block > 1 ? Type(Int(8)) : Type(Int(16)));
        w.set_dimensions(w_dimensions);
        bias.set_type(sum_of());
    }

    // Fills in the inputs that both take, but for their weights.
    void set_common(const Expr &oc_per_group, ConvTransposeInputs *in) {
        in->x_at = {x.dim(0).extent(), {}, x_channel_stride, x_image_stride, ic_per_group};
        in->y_at = {y_size, {}, y_channel_stride, y_image_stride, oc_per_group};
        for (size_t a = 0; a < 3; a++) {
            in->x_at.strides[a] = x_stride[a];
            in->y_at.strides[a] = y_stride[a];
            in->axes[a].x_min = 0;
            in->axes[a].x_extent = x_extent[a];
        }
        in->x = values_of_x();
        in->block = block;
        in->numbering.batch = batch;
        const Arithmetic arithmetic = !integers   ? Arithmetic::kFloat
                                      : block > 1 ? Arithmetic::kInt8
                                                  : Arithmetic::kInt16;
        const Storage storage = storage_of(y_type);
        in->numerics = {arithmetic,   sum_of(), y_type, Func(),
                        y_zero_point, y_min,    y_max,  [=](const Expr &e) { return storage.store(e); }};
    }

    // The numbers that elements of x stand for. Blocks of integers are multiplied as they are, and so is x's zero point around it.
    Func values_of_x() const {
        Var element("element");
        Func values("values_of_x");
        const Expr stored = x(element);
        values(element) = !integers   ? cast(sum_of(), storage_of(x_type).load(stored))
                          : block > 1 ? cast<uint8_t>(cast<int>(stored) ^ x_flip)
                                      : (cast<int>(stored) ^ x_flip) - x_zero_point;
        return values;
    }

    // The factors, of output channels of all groups; at: where such a channel is in them.
    template<typename At>
    Func factors_of(const At &at) {
        Var oc("channel"), column("column"), g("g");
        Func f("factors_of");
        f(oc, column, g) = factors(at(oc), column);
        return f;
    }

    void start_at_zero() {
        x.dim(0).set_min(0);
        for (int i = 0; i < w.dimensions(); i++) {
            w.dim(i).set_min(0);
        }
        bias.dim(0).set_min(0);
        factors.dim(0).set_min(0);
        factors.dim(1).set_min(0);
    }
};

class ByPhaseGenerator : public GpuGenerator<ByPhaseGenerator> {
  public:
    GeneratorParam<std::string> family{"family", "tiled"};      // of phase_schedules()
    GeneratorParam<bool> channels_last{"channels_last", false}; // of x
    // For output channels and positions: elements of a vector, threads, vectors of a thread.
    GeneratorParam<int> oc_vector{"oc_vector", 4}, oc_threads{"oc_threads", 16}, oc_unrolled{"oc_unrolled", 2};
    GeneratorParam<int> p_vector{"p_vector", 4}, p_threads{"p_threads", 16}, p_unrolled{"p_unrolled", 2};
    GeneratorParam<int> chunk{"chunk", 8};

    Input<Buffer<int32_t, 2>> elements{"elements"}, parts{"parts"};
    Input<int32_t[3]> y_extent{"y_extent"};
    Input<int32_t> oc_per_group{"oc_per_group"}, tiles_per_group{"tiles_per_group"};
    Input<uint32_t> tiles_per_group_multiplier{"tiles_per_group_multiplier"};
    Input<int32_t> tiles_per_group_shift{"tiles_per_group_shift"};
    Input<int32_t[3]> positions{"positions"};
    Input<uint32_t[3]> position_multiplier{"position_multiplier"};
    Input<int32_t[3]> position_shift{"position_shift"};
    Input<int32_t[3]> stride{"stride"};
    Input<int32_t> most_elements{"most_elements"}, chunks{"chunks"};

    Output<Buffer<void, 1>> y{"y"};

    void configure() {
        configure_common(block > 1 ? 5 : 4);
        y.set_type(storage_of(y_type).stored());
    }

    void generate() {
        tile_.oc = {oc_vector, oc_threads, oc_unrolled};
        tile_.p = {p_vector, p_threads, p_unrolled};
        tile_.chunk = chunk;
        tile_.channels_last = channels_last;
        ConvTransposeInputs in;
        set_common(oc_per_group, &in);
        in.numbering.positions = Positions::kInPhase;
        in.numbering.digits = tile_digits(tile_);
        in.numbering.tiles = w.dim(w.dimensions() - 1).extent();
        in.numbering.tiles_per_group = {tiles_per_group, tiles_per_group_multiplier, tiles_per_group_shift};
        for (size_t a = 0; a < 3; a++) {
            in.y_extents[a] = y_extent[a];
            in.numbering.extents[a] = {positions[a], position_multiplier[a], position_shift[a]};
            in.numbering.strides[a].value = stride[a];
            in.axes[a].outside = Outside::kZero;
        }
        // Biases count on x's zero point at every tap.
        if (block > 1) in.around = cast<uint8_t>(x_zero_point);
        in.list = {elements, parts, elements.dim(1).extent(), parts.dim(1).extent(), most_elements, chunk};
        in.ic_extent = chunks * chunk;
        in.axes[0].kernel = w.dim(w.dimensions() - 2).extent();
        in.w = weights();
        in.oc_tile = tile_.oc.size();
        in.numerics.factors = factors_of([](const Var &oc) { return oc; });
        Var oc_at("channel"), row("row");
        Func biases("biases");
        const Expr at = row * factors.dim(0).extent() + oc_at;
        biases(oc_at, row) = bias(unsafe_promise_clamped(at, 0, bias.dim(0).extent() - 1));
        in.bias = biases;
        c_ = conv_transpose(in);
        y = c_.y;
    }

    void schedule() {
        start_at_zero();
        y.dim(0).set_min(0);
        const int tile = tile_.oc.size();
        if (block > 1) {
            w.dim(0).set_extent(block);
            w.dim(1).set_extent(tile).set_stride(block);
            w.dim(2).set_stride(tile * block);
        } else {
            w.dim(0).set_extent(tile);
            w.dim(1).set_stride(tile);
        }
        w.set_host_alignment(16); // of vectors of it
        elements.dim(0).set_bounds(0, kElementColumns);
        elements.dim(1).set_min(0).set_stride(kElementColumns);
        parts.dim(0).set_bounds(0, kPartColumns);
        parts.dim(1).set_min(0).set_stride(kPartColumns);
        phase_schedules().at(family)(get_pipeline(), c_, tile_);
    }

  private:
    // All kernel elements are on the axis of w.
    Func weights() const {
        std::vector<Var> args(static_cast<size_t>(w.dimensions()) + 3); // ([ib,] oi, ic, tap, -, -, tile, -)
        std::vector<Expr> at(args.begin(), args.begin() + w.dimensions() - 1);
        at.push_back(args[args.size() - 2]);
        Func f("weights");
        f(args) = block > 1 ? Expr(w(at)) : cast(sum_of(), w(at)); // as they are staged
        return f;
    }

    ConvTranspose c_;
    GpuTile tile_;
};

class ByOutputGenerator : public GpuGenerator<ByOutputGenerator> {
  public:
    GeneratorParam<int> channel_threads{"channel_threads", 1}, position_threads{"position_threads", 256};

    Input<Buffer<int32_t, 2>[3]> taps { "taps" }; // (TapColumn, phase)
    Input<int32_t[3]> step{"step"}, max_count{"max_count"}, kernel{"kernel"};
    Input<int32_t> w_channel_stride{"w_channel_stride"}, w_tap_stride{"w_tap_stride"}, w_ic_stride{"w_ic_stride"};
    Input<int32_t> channels{"channels"};
    Input<int32_t[3]> outputs{"outputs"};
    Input<uint32_t[3]> output_multiplier{"output_multiplier"};
    Input<int32_t[3]> output_shift{"output_shift"};
    Input<int32_t[3]> stride{"stride"};
    Input<uint32_t[3]> stride_multiplier{"stride_multiplier"};
    Input<int32_t[3]> stride_shift{"stride_shift"};
    Input<int32_t> oc_per_group{"oc_per_group"};
    Input<uint32_t> oc_multiplier{"oc_multiplier"};
    Input<int32_t> oc_shift{"oc_shift"};

    Output<Buffer<void, 1>> y{"y"};

    void configure() {
        configure_common(1);
        y.set_type(storage_of(y_type).stored());
    }

    void generate() {
        ConvTransposeInputs in;
        set_common(oc_per_group, &in);
        in.numbering.positions = Positions::kOutputs;
        in.numbering.digits = each_digits(channel_threads, position_threads);
        in.numbering.tiles = channels;
        in.numbering.tiles_per_group = {oc_per_group, oc_multiplier, oc_shift};
        Var r("phase"), column("column");
        for (size_t a = 0; a < 3; a++) {
            Func of_phase("taps_of");
            of_phase(r, column) = taps[a](column, unsafe_promise_clamped(r, 0, taps[a].dim(1).extent() - 1));
            in.axes[a].taps = of_phase;
            in.axes[a].step = step[a];
            in.axes[a].max_count = max_count[a];
            in.axes[a].kernel = kernel[a];
            in.numbering.extents[a] = {outputs[a], output_multiplier[a], output_shift[a]};
            in.numbering.strides[a] = {stride[a], stride_multiplier[a], stride_shift[a]};
        }
        in.ic_extent = ic_per_group;
        in.w = weights();
        const auto channel = [&](const Var &oc) { return unsafe_promise_clamped(oc, 0, channels - 1); };
        in.numerics.factors = factors_of(channel);
        Var oc("channel"), g("g");
        Func biases("biases");
        biases(oc, g) = bias(channel(oc));
        in.bias = biases;
        c_ = conv_transpose(in);
        y = c_.y;
    }

    void schedule() {
        start_at_zero();
        y.dim(0).set_min(0);
        for (int a = 0; a < 3; a++) {
            taps[a].dim(0).set_bounds(0, kTapColumns);
            taps[a].dim(1).set_min(0).set_stride(kTapColumns);
        }
        schedule_each(c_);
    }

  private:
    // Packings differ: each channel is a tile by itself, and the rest is strides.
    Func weights() const {
        Var oi("oi"), ic("ic"), tw("tap_w"), th("tap_h"), td("tap_d"), oo("oo"), g("g");
        const Expr tap = (td * kernel[1] + th) * kernel[0] + tw;
        const Expr at = oo * w_channel_stride + tap * w_tap_stride + ic * w_ic_stride;
        Func f("weights");
        f(oi, ic, tw, th, td, oo, g) = w(unsafe_promise_clamped(at, 0, w.dim(0).extent() - 1));
        return f;
    }

    ConvTranspose c_;
};

} // namespace

} // namespace convtranspose

HALIDE_REGISTER_GENERATOR(convtranspose::ByPhaseGenerator, gpu_by_phase)
HALIDE_REGISTER_GENERATOR(convtranspose::ByOutputGenerator, gpu_by_output)
