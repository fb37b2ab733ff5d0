// The AOT generators of GPU kernels: by phase (families tiled and small_oc) and by output (each). kernels/table.py lists
// those that are built. Kernels are called through their _argv function, with the arguments in the order in which they stand here;
// runtime/gpu/kernel_arguments.h has the same.
#include <Halide.h>

#include "conv_transpose.h"
#include "elementary.h"
#include "gpu/gpu.h"
#include "gpu_conv_transpose.h"

namespace convtranspose {

using namespace Halide;

namespace {

// The inputs and outputs that both algorithms have.
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
    Input<int32_t> batch{"batch"}, ic{"ic"};
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

    // Fills in the inputs that both algorithms take.
    template<typename Inputs>
    void set_common(Inputs *in) {
        in->x = {storage_of(x_type), x, x.dim(0).extent(), {}, {}, x_channel_stride, x_image_stride, ic};
        in->y = {storage_of(y_type), Func(), y_size, {}, {}, y_channel_stride, y_image_stride, Expr()};
        for (size_t a = 0; a < 3; a++) {
            in->x.strides[a] = x_stride[a];
            in->x.extents[a] = x_extent[a];
            in->y.strides[a] = y_stride[a];
        }
        in->bias = bias;
        in->batch = batch;
        in->numbers = numbers();
    }

    GpuNumbers numbers() {
        Func f("factors_of");
        Var oc("channel"), column("column"), g("g");
        f(oc, column, g) = factors(oc, column);
        const Arithmetic arithmetic = !integers   ? Arithmetic::kFloat
                                      : block > 1 ? Arithmetic::kInt8
                                                  : Arithmetic::kInt16;
        GpuNumbers n;
        n.numerics = {arithmetic, sum_of(), y_type, f, y_zero_point, y_min, y_max};
        n.x_flip = x_flip;
        n.x_zero_point = x_zero_point;
        return n;
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
    GeneratorParam<DeviceFamily> family{
        "family", DeviceFamily::kTiled, {{"tiled", DeviceFamily::kTiled}, {"small_oc", DeviceFamily::kSmallOc}}};
    GeneratorParam<bool> channels_last{"channels_last", false}; // of x
    // For output channels and positions: elements of a vector, threads, vectors of a thread.
    GeneratorParam<int> oc_vector{"oc_vector", 4}, oc_threads{"oc_threads", 16}, oc_unrolled{"oc_unrolled", 2};
    GeneratorParam<int> p_vector{"p_vector", 4}, p_threads{"p_threads", 16}, p_unrolled{"p_unrolled", 2};
    GeneratorParam<int> chunk{"chunk", 8};

    Input<Buffer<int32_t, 2>> elements{"elements"}, parts{"parts"};
    Input<int32_t[3]> y_extent{"y_extent"};
    Input<int32_t> oc{"oc"}, tiles_per_group{"tiles_per_group"};
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
        ByPhaseInputs in;
        set_common(&in);
        in.y.channels = oc;
        for (size_t a = 0; a < 3; a++) {
            in.y.extents[a] = y_extent[a];
            in.positions[a] = {positions[a], position_multiplier[a], position_shift[a]};
            in.strides[a] = stride[a];
        }
        in.w = w;
        in.bias_count = factors.dim(0).extent();
        in.bias_size = bias.dim(0).extent();
        in.elements = elements;
        in.parts = parts;
        in.part_count = parts.dim(1).extent();
        in.element_count = elements.dim(1).extent();
        const int tap_dim = w.dimensions() - 2;
        in.tap_count = w.dim(tap_dim).extent();
        in.tiles = w.dim(tap_dim + 1).extent();
        in.tiles_per_group = {tiles_per_group, tiles_per_group_multiplier, tiles_per_group_shift};
        in.most_elements = most_elements;
        in.chunks = chunks;
        in.chunk = chunk;
        in.block = block;
        in.oc = {oc_vector, oc_threads, oc_unrolled};
        in.p = {p_vector, p_threads, p_unrolled};
        c_ = conv_transpose_by_phase(in);
        y = c_.y;
    }

    void schedule() {
        start_at_zero();
        y.dim(0).set_min(0);
        const int tile = c_.oc_side.size();
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
        if (family == DeviceFamily::kTiled) {
            schedule_tiled(get_pipeline(), c_, channels_last);
        } else {
            schedule_small_oc(c_);
        }
    }

  private:
    ByPhase c_;
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
    Input<int32_t> oc{"oc"};
    Input<uint32_t> oc_multiplier{"oc_multiplier"};
    Input<int32_t> oc_shift{"oc_shift"};

    Output<Buffer<void, 1>> y{"y"};

    void configure() {
        configure_common(1);
        y.set_type(storage_of(y_type).stored());
    }

    void generate() {
        ByOutputInputs in;
        Var r("phase"), column("column");
        set_common(&in);
        in.y.channels = oc;
        for (size_t a = 0; a < 3; a++) {
            Func of_phase("taps_of");
            of_phase(r, column) = taps[a](column, r);
            in.taps[a] = {of_phase, taps[a].dim(1).extent(), step[a], max_count[a], kernel[a]};
            in.outputs[a] = {outputs[a], output_multiplier[a], output_shift[a]};
            in.strides[a] = {stride[a], stride_multiplier[a], stride_shift[a]};
        }
        in.w = w;
        in.w_size = w.dim(0).extent();
        in.w_channel_stride = w_channel_stride;
        in.w_tap_stride = w_tap_stride;
        in.w_ic_stride = w_ic_stride;
        in.channels_per_group = {oc, oc_multiplier, oc_shift};
        in.channels = channels;
        in.channel_threads = channel_threads;
        in.position_threads = position_threads;
        c_ = conv_transpose_by_output(in);
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
    ByOutput c_;
};

} // namespace

} // namespace convtranspose

HALIDE_REGISTER_GENERATOR(convtranspose::ByPhaseGenerator, gpu_by_phase)
HALIDE_REGISTER_GENERATOR(convtranspose::ByOutputGenerator, gpu_by_output)
