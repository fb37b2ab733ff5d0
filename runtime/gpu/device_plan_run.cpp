// A run of a plan on a device places tensors there, prepares the arguments of kernels, and starts them.
#include <HalideRuntime.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/shape.h"
#include "gpu/device_plan.h"
#include "kernel_contract/device_types.h"
#include "kernel_contract/table_columns.h"
#include "kernels/halide_buffer.h"

namespace convtranspose {

namespace {

// Kernels divide by multiplication: n / value = (n * multiplier) >> shift for n < 2^31 and value > 0.
struct Divisor {
    std::int32_t value = 1;
    std::uint32_t multiplier = 0;
    std::int32_t shift = 0;

    Divisor() : Divisor(1) {}
    explicit Divisor(std::int64_t of) : value(static_cast<std::int32_t>(of)) {
        int log = 0; // the least with 2^log >= value
        while ((std::int64_t{1} << log) < of) log++;
        shift = 31 + log;
        const std::uint64_t power = std::uint64_t{1} << shift, d = static_cast<std::uint64_t>(of);
        multiplier = static_cast<std::uint32_t>((power + d - 1) / d);
    }
};

// Returns a number that no other thread has, not even one that begins after this one has ended.
std::uint64_t number_of_thread() {
    static std::atomic<std::uint64_t> last{0};
    static CONVTRANSPOSE_THREAD_LOCAL std::uint64_t own = 0;
    if (own == 0) own = ++last;
    return own;
}

// Returns the number of elements from the first to the last.
std::int64_t span_of(const Shape &shape, const Strides &strides) {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < shape.size(); i++) last += (std::max<std::int64_t>(shape[i], 1) - 1) * strides[i];
    return last + 1;
}

bool is_dense(const Shape &shape, const Strides &strides) {
    const Strides dense = dense_strides(shape);
    for (std::size_t i = 0; i < shape.size(); i++) {
        if (shape[i] > 1 && strides[i] != dense[i]) return false;
    }
    return true;
}

} // namespace

// These are the arguments of a kernel, in the order of its generator's inputs.
class DevicePlan::KernelArguments {
  public:
    explicit KernelArguments(const halide_device_interface_t *device_interface) : interface_(device_interface) {}
    KernelArguments(const KernelArguments &) = delete;
    KernelArguments &operator=(const KernelArguments &) = delete;

    // Adds a dense buffer.
    void add_buffer(std::uint64_t memory, halide_type_t type, std::initializer_list<std::int64_t> extents) {
        Buffer<5> &b = buffers_[buffer_count_++].emplace(nullptr, type);
        b.raw.device = memory;
        b.raw.device_interface = interface_;
        std::int64_t stride = 1;
        for (const std::int64_t extent : extents) {
            b.add(extent, stride);
            stride *= extent;
        }
        pointers_[++count_] = &b.raw;
    }
    // Adds numbers, divisors and arrays of them, in order.
    template<typename... Values>
    void add(const Values &...values) {
        (put(values), ...);
    }

    void **data() { return pointers_.data(); } // the first is for the user context

  private:
    template<typename Integer>
    void put(Integer value) {
        values_[value_count_] = static_cast<std::uint32_t>(value);
        pointers_[++count_] = &values_[value_count_++];
    }
    void put(float value) {
        std::uint32_t bits = 0;
        __builtin_memcpy(&bits, &value, sizeof bits);
        put(bits);
    }
    void put(const Divisor &d) { add(d.value, d.multiplier, d.shift); }
    template<std::size_t N>
    void put(const std::array<std::int64_t, N> &values) {
        for (const std::int64_t value : values) put(value);
    }
    // Adds all values, then all multipliers, then all shifts.
    template<std::size_t N>
    void put(const std::array<Divisor, N> &divisors) {
        for (const Divisor &d : divisors) put(d.value);
        for (const Divisor &d : divisors) put(d.multiplier);
        for (const Divisor &d : divisors) put(d.shift);
    }

    const halide_device_interface_t *interface_;
    std::array<std::optional<Buffer<5>>, 8> buffers_;
    std::array<std::uint32_t, 72> values_ = {};
    std::array<void *, 82> pointers_ = {};
    std::size_t buffer_count_ = 0, value_count_ = 0, count_ = 0;
};

halide_type_t DevicePlan::type_on_device(convt_dtype dtype) const {
    const bool as_bits = dtype == CONVT_BF16 || (dtype == CONVT_F16 && keeps_f16_as_bits(device_->table().kind));
    return as_bits ? halide_type_t(halide_type_uint, 16) : type_of(dtype);
}

Status DevicePlan::call(DeviceFunction function, KernelArguments *arguments, void *stream) const {
    DeviceError error;
    return to_status(device_->backend().call(device_->get(), stream, function, arguments->data(), &error), error);
}

// Adds what kernels read about the axes: tables of taps, and for each axis extents, strides and divisors.
void DevicePlan::add_taps(const Kernel &kernel, KernelArguments *arguments) const {
    const DeviceVariant &v = *kernel.choice.variant;
    const PackedLayout &layout = kernel.layout;
    const std::array<AxisPlan, 3> &axes = problem_.plan;
    const halide_type_t s32(halide_type_int, 32);
    KernelArguments &a = *arguments;
    const auto of_axes = [&](const auto &f) { return std::array{f(axes[0]), f(axes[1]), f(axes[2])}; };
    // A stride of more than y's extent leaves one position to each phase, as that extent does, which fits in 32 bits.
    const auto stride = [](const AxisPlan &p) { return std::min(p.geometry.stride, p.geometry.out); };
    if (v.call == DeviceCall::kByOutput) {
        for (std::size_t i = 0; i < 3; i++) {
            a.add_buffer(kernel.taps[i].get(), s32, {kTapColumns, axes[i].phases});
        }
        a.add(of_axes([](const AxisPlan &p) { return p.step; }),
              of_axes([](const AxisPlan &p) { return std::int64_t{p.max_count}; }), layout.taps);
        const bool groups = layout.oc_tile == 0;
        a.add(groups ? 1 : layout.taps_volume() * layout.ic, groups ? layout.group : layout.ic, 1,
              problem_.geometry.out_channels);
        a.add(of_axes([](const AxisPlan &p) { return Divisor(p.geometry.out); }),
              of_axes([&](const AxisPlan &p) { return Divisor(stride(p)); }), Divisor(layout.oc));
    } else {
        a.add_buffer(kernel.elements.get(), s32, {std::int64_t{kElementColumns}, kernel.element_count});
        a.add_buffer(kernel.parts.get(), s32, {std::int64_t{kPartColumns}, kernel.part_count});
        a.add(of_axes([](const AxisPlan &p) { return p.geometry.out; }), layout.oc, Divisor(layout.tiles()),
              of_axes([](const AxisPlan &p) { return Divisor(p.q_extent()); }), of_axes(stride), kernel.most_elements,
              kernel.chunks);
    }
}

Status DevicePlan::run_kernel(const Launch &launch, const Placed &y) const {
    const auto &[kernel, weights, epilogue, q, x, stream] = launch;
    const Geometry &g = problem_.geometry;
    const DeviceVariant &v = *kernel.choice.variant;
    const std::array<AxisPlan, 3> &axes = problem_.plan;
    const halide_type_t f32(halide_type_float, 32);
    const bool floats = is_float(v.arithmetic);
    const halide_type_t sum_type = floats ? type_of(sum_dtype(v.x_dtype)) : halide_type_t(halide_type_int, 32);
    const PackedLayout &layout = kernel.layout;
    const halide_type_t w_type = floats ? sum_type : halide_type_t(halide_type_int, layout.block > 1 ? 8 : 16);

    KernelArguments a(device_->backend().interface());
    a.add_buffer(x.memory, type_on_device(v.x_dtype), {x.span});
    const std::int64_t taps = layout.taps_volume(), tiles = layout.group * layout.tiles();
    if (v.call == DeviceCall::kByOutput) {
        a.add_buffer(weights.w.get(), w_type, {layout.weights()});
    } else if (layout.block > 1) {
        a.add_buffer(weights.w.get(), w_type, {layout.block, layout.oc_tile, layout.blocks(), taps, tiles});
    } else {
        a.add_buffer(weights.w.get(), w_type, {layout.oc_tile, layout.ic, taps, tiles});
    }
    a.add_buffer(epilogue.bias.get(), sum_type, {q ? epilogue_of({layout, axes}).bias_count() : layout.biases()});
    // Floats have no factors, so another buffer takes their place.
    a.add_buffer((q ? epilogue.factors : epilogue.bias).get(), f32, {layout.biases(), q ? kFactorColumns : 1});
    for (const AxisPlan &axis : axes) a.add(axis.geometry.in);
    a.add(x.strides.axes, x.strides.c, x.strides.n, y.strides.axes, y.strides.c, y.strides.n, y.span, g.batch,
          layout.ic);
    const std::int64_t s8 = g.dtype == CONVT_S8 ? 128 : 0; // s8 is read as u8, with its sign bit flipped
    const OutputRange range = q ? output_range(*q, g) : OutputRange();
    a.add(s8, q ? q->x_zero_point + s8 : 0, range.zero_point, range.least, range.most);
    add_taps(kernel, &a);
    a.add_buffer(y.memory, type_on_device(v.y_dtype), {y.span});
    return call(v.run, &a, stream);
}

Status DevicePlan::run_combine(const Kernel &kernel, const Placed &parts, const Placed &residual, const Placed &y,
                               void *stream) const {
    const Geometry &g = problem_.geometry;
    const DeviceVariant &v = *kernel.choice.combine;
    struct Axis {
        std::int64_t extent, part, residual, y;
    };
    std::array<Axis, 5> axes;
    for (std::size_t i = 0; i < 3; i++) {
        axes[i] = {problem_.plan[i].geometry.out, parts.strides.axes[i], residual.strides.axes[i], y.strides.axes[i]};
    }
    axes[3] = {g.out_channels, parts.strides.c, residual.strides.c, y.strides.c};
    axes[4] = {g.batch, parts.strides.n, residual.strides.n, y.strides.n};
    // Neighbouring threads should write neighbouring elements.
    std::stable_sort(axes.begin(), axes.end(), [](const Axis &a, const Axis &b) {
        return (a.extent == 1 ? INT64_MAX : a.y) < (b.extent == 1 ? INT64_MAX : b.y);
    });
    KernelArguments a(device_->backend().interface());
    a.add_buffer(parts.memory, type_on_device(v.x_dtype), {parts.span});
    const Placed &other = residual.memory ? residual : y; // not read if there is none
    a.add_buffer(other.memory, type_on_device(v.y_dtype), {other.span});
    std::array<Divisor, 5> extents;
    for (std::size_t i = 0; i < 5; i++) extents[i] = Divisor(axes[i].extent);
    a.add(extents);
    for (const Axis &axis : axes) a.add(axis.part);
    for (const Axis &axis : axes) a.add(axis.residual);
    for (const Axis &axis : axes) a.add(axis.y);
    // The distance between parts is the number of their elements.
    a.add(kernel.choice.splits, volume(g.y_shape), volume(g.y_shape), y.span, residual.memory != 0,
          g.post_ops.activation, g.post_ops.alpha, g.post_ops.beta);
    a.add_buffer(y.memory, type_on_device(v.y_dtype), {y.span});
    return call(v.run, &a, stream);
}

// Places a tensor on the device. A tensor in host memory is copied to memory of the run, unless its data is null.
Status DevicePlan::place(const RunTensor &given, const Shape &shape, convt_dtype dtype, Workspace *workspace,
                         DeviceMemory *own, Placed *placed) const {
    const Geometry &g = problem_.geometry;
    if (given.memory == CONVT_DEVICE_MEMORY && volume(shape) > 0) {
        placed->strides = tensor_strides(g, given.strides);
        placed->span = span_of(shape, given.strides);
        TRY(placed->wrapped.wrap(device_, given.data));
        placed->memory = placed->wrapped.get();
        return Status();
    }
    const Strides dense = dense_strides(shape);
    placed->strides = tensor_strides(g, dense);
    placed->span = std::max<std::int64_t>(volume(shape), 1);
    const std::uint64_t bytes = volume(shape) * size_of(dtype);
    TRY(ensure(bytes, own));
    placed->memory = own->get();
    if (bytes == 0 || !given.data) return Status();
    const void *data = given.data;
    if (!is_dense(shape, given.strides)) {
        TRY(host_block(bytes, &workspace->host));
        copy_tensor(shape, size_of(dtype), data, given.strides, workspace->host.data(), dense);
        data = workspace->host.data();
    }
    return own->upload(workspace->stream, data, bytes);
}

Status DevicePlan::run_in(const RunTensors &t, Workspace *workspace) const {
    const Geometry &g = problem_.geometry;
    void *const stream = t.stream;
    const QuantizationValues *const q = t.quantization ? t.quantization : facts_.quantization;

    const Kernel *kernel = &kernel_;
    const Weights *weights = constant_.get(), *epilogue = epilogue_.get();
    if (!constant_) {
        TRY(pack(*kernel, q, t.w, t.b, workspace));
        if (!workspace->weights.finite && any_weights_.choice.variant) {
            kernel = &any_weights_;
            TRY(pack(*kernel, q, t.w, t.b, workspace));
        }
        weights = epilogue = &workspace->weights;
    } else if (t.quantization) {
        TRY(upload_factors(*kernel, *q, constant_->sums, constant_->bias_in_host(), workspace));
        epilogue = &workspace->weights;
    }

    Placed x, y, residual;
    RunTensor to = t.y;
    if (to.memory != CONVT_DEVICE_MEMORY) to.data = nullptr; // y is copied afterwards
    TRY(place(t.x, g.x_shape, g.dtype, workspace, &workspace->x, &x));
    if (t.residual.data) TRY(place(t.residual, g.y_shape, g.y_dtype, workspace, &workspace->residual, &residual));
    TRY(place(to, g.y_shape, g.y_dtype, workspace, &workspace->y, &y));

    const DeviceChoice &choice = kernel->choice;
    const Launch launch = {*kernel, *weights, *epilogue, q, x, stream};
    if (choice.splits > 1) {
        Placed parts;
        parts.strides = tensor_strides(g, dense_strides(g.y_shape));
        parts.span = volume(g.y_shape) * choice.splits;
        TRY(ensure(parts.span * size_of(sum_dtype(g.dtype)), &workspace->parts));
        parts.memory = workspace->parts.get();
        TRY(run_kernel(launch, parts));
        TRY(run_combine(*kernel, parts, residual, y, stream));
    } else {
        TRY(run_kernel(launch, y));
        if (choice.combine) TRY(run_combine(*kernel, y, residual, y, stream));
    }
    if (t.y.memory == CONVT_DEVICE_MEMORY) return Status();
    if (is_dense(g.y_shape, t.y.strides)) return workspace->y.download(stream, t.y.data, g.y_bytes());
    TRY(host_block(g.y_bytes(), &workspace->host));
    TRY(workspace->y.download(stream, workspace->host.data(), g.y_bytes()));
    copy_tensor(g.y_shape, size_of(g.y_dtype), workspace->host.data(), dense_strides(g.y_shape), t.y.data, t.y.strides);
    return Status();
}

Status DevicePlan::run(const RunTensors &t, void * /*workspace*/) const {
    if (volume(problem_.geometry.y_shape) == 0) return Status();
    const bool is_of_thread = t.stream && t.stream == device_->backend().stream_of_thread;
    const std::uint64_t thread = is_of_thread ? number_of_thread() : 0;
    Workspace workspace;
    {
        // Take a workspace that this stream used, as its earlier work there comes first, or one that nothing works in.
        const std::lock_guard<Mutex> lock(mutex_);
        auto found = std::find_if(free_.begin(), free_.end(), [&](const Workspace &w) {
            return !w.used || (w.stream == t.stream && w.thread == thread);
        });
        if (found != free_.end()) {
            workspace = std::move(*found);
            *found = std::move(free_.back());
            free_.pop_back();
        }
    }
    workspace.stream = t.stream;
    workspace.thread = thread;
    Status status = run_in(t, &workspace);
    workspace.used = !status || t.y.memory == CONVT_DEVICE_MEMORY; // else y has come, and nothing works there any more
    const std::lock_guard<Mutex> lock(mutex_);
    free_.push_back(std::move(workspace));
    return status;
}

} // namespace convtranspose
