#include "gpu/device_plan.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/division.h"
#include "base/error.h"
#include "kernels/halide_buffer.h"
#include "kernels/post_ops.h"

namespace convtranspose {

namespace {

// Columns of the tables that kernels by residue read (generators/gpu_conv_transpose.h).
constexpr std::size_t kElementColumns = 4, kPartColumns = 8;

std::int64_t count(const Shape &shape) {
    std::int64_t n = 1;
    for (const std::int64_t extent : shape) n *= extent;
    return n;
}

// Elements from the first to the last.
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

// Copies rows along the last axis, which is dense on both sides; from or to has gaps.
void copy_rows(const Shape &shape, std::size_t size, const char *from, const Strides &from_strides, char *to,
               const Strides &to_strides) {
    std::vector<std::int64_t> at(shape.size(), 0);
    const auto bytes = static_cast<std::size_t>(shape.back()) * size;
    for (bool more = true; more;) {
        std::int64_t source = 0, target = 0;
        for (std::size_t i = 0; i + 1 < shape.size(); i++) {
            source += at[i] * from_strides[i];
            target += at[i] * to_strides[i];
        }
        std::memcpy(to + target * static_cast<std::int64_t>(size), from + source * static_cast<std::int64_t>(size),
                    bytes);
        more = false;
        for (std::size_t i = shape.size() - 1; i-- > 0 && !more;) {
            more = ++at[i] < shape[i];
            if (!more) at[i] = 0;
        }
    }
}

halide_type_t type_on_device(convt_dtype dtype) {
    return dtype == CONVT_BF16 || dtype == CONVT_F16 ? halide_type_t(halide_type_uint, 16) : type_of(dtype);
}

std::size_t w_size(const DeviceVariant &v) {
    return v.block > 1 ? 1 : v.integers ? 2 : convt_dtype_size(sum_dtype(v.x_dtype));
}

const char *family_rule(DeviceFamily family) {
    switch (family) {
    case DeviceFamily::kTiled: return "tiles of x and w in shared memory";
    case DeviceFamily::kFew: return "a thread for a few positions of all channels of a tile";
    case DeviceFamily::kEach: return "a thread for each element of y";
    case DeviceFamily::kCombine: break;
    }
    return "";
}

} // namespace

DevicePlan::DevicePlan(const Geometry &geometry, const DeviceRequest &request, const Allocator &allocator,
                       std::shared_ptr<OpenDevice> device)
    : problem_(spatial_problem(geometry, geometry.y_dtype, false)), request_(request), allocator_(allocator),
      device_(std::move(device)), key_(tuning_key(geometry)) {}

std::size_t DevicePlan::packed_bytes() const {
    return constant_
               ? static_cast<std::size_t>(constant_->w.bytes() + constant_->bias.bytes() + constant_->factors.bytes())
               : 0;
}

Status DevicePlan::choose(bool finite, const PackedLayout *packed, Kernel *kernel) {
    DeviceQuestion question;
    question.geometry = &problem_.geometry;
    question.axes = &problem_.plan;
    question.finite = finite;
    question.fits_int8 = fits_int8_;
    question.multiprocessors = device_->backend().multiprocessors(device_->get());
    question.has_f64 = device_->backend().has_f64(device_->get());
    if (packed) {
        question.oc_tile = std::max<std::int64_t>(packed->oc_tile, 1);
        question.block = static_cast<int>(packed->block);
        question.dense_groups = packed->oc_tile == 0;
    }
    const std::vector<DeviceChoice> choices = device_choices(device_->table(), question);
    const DeviceChoice *best = nullptr;
    std::string unsupported, note;
    const DeviceChoice *const recorded = request_.variant.empty() ? tuned(choices, &note) : nullptr;
    for (const DeviceChoice &c : choices) {
        if (!request_.variant.empty() && request_.variant != c.variant->name) continue;
        if (c.unsupported.text) {
            // Told where nothing can: what those for this type say.
            const bool of_type =
                c.variant->family != DeviceFamily::kCombine &&
                (c.variant->integers ? problem_.geometry.quantized() : c.variant->x_dtype == problem_.geometry.dtype);
            if (!of_type && request_.variant.empty()) continue;
            unsupported = concat("variant ", c.variant->name, " cannot run this problem: ", to_string(c.unsupported));
        } else if (!best || c.cost < best->cost) {
            best = &c;
        }
    }
    if (!best) {
        if (request_.variant.empty()) {
            unsupported = concat("no kernel for ", request_.table->kind, " can compute this problem",
                                 unsupported.empty() ? "" : "; the last one: ", unsupported);
        } else if (unsupported.empty()) {
            unsupported = concat("variant ", request_.variant, " is not built for ", request_.table->kind);
        }
        return Status(CONVT_UNSUPPORTED, unsupported);
    }
    if (recorded) best = recorded;
    std::vector<const DeviceChoice *> sorted;
    for (const DeviceChoice &c : choices) {
        if (!c.unsupported.text) sorted.push_back(&c);
    }
    std::sort(sorted.begin(), sorted.end(), [](auto *a, auto *b) { return a->cost < b->cost; });
    able_.clear();
    for (const DeviceChoice *c : sorted) able_.push_back(c->variant->name);

    const Geometry &g = problem_.geometry;
    const DeviceVariant &v = *best->variant;
    kernel->choice = *best;
    PackedLayout &layout = kernel->layout;
    layout = PackedLayout();
    layout.arithmetic = !v.integers ? Arithmetic::kFloat : v.block > 1 ? Arithmetic::kInt8 : Arithmetic::kInt16;
    layout.block = v.block;
    layout.oc_tile = v.family == DeviceFamily::kEach ? (packs_groups(v, g) ? 0 : 1) : v.tile_oc;
    layout.group = g.group;
    layout.ic = g.in_channels_per_group();
    layout.oc = g.out_channels_per_group();
    for (std::size_t a = 0; a < 3; a++) layout.taps[a] = static_cast<std::int64_t>(problem_.plan[a].elements.size());
    if (layout.weights() > INT32_MAX) {
        return Status(CONVT_OVERFLOW, "packed weights have more than 2^31 - 1 elements, which kernels cannot index");
    }
    if (kernel == &kernel_) explain(choices, note);
    return make_tables(kernel);
}

// The choice that a tuning record names. Null: none does, or it cannot be used; *note says which, and is empty where there is no
// record.
const DeviceChoice *DevicePlan::tuned(const std::vector<DeviceChoice> &choices, std::string *note) const {
    const TuningRecord *const record = device_tuning_record(request_.tuning, problem_.geometry, request_.table->kind,
                                                            device_->backend().name(device_->get()), note);
    if (!record) return nullptr;
    for (const DeviceChoice &c : choices) {
        if (record->variant != c.variant->name) continue;
        if (!c.unsupported.text) {
            *note = to_string(*record);
            return &c;
        }
        *note = concat("a tuning record names ", record->variant, ", which cannot: ", to_string(c.unsupported));
        return nullptr;
    }
    *note = concat("a tuning record names ", record->variant, ", which is not built for ", request_.table->kind);
    return nullptr;
}

Status DevicePlan::upload_table(const void *from, std::size_t bytes, DeviceMemory *to) const {
    DeviceMemory memory;
    Status status = memory.allocate(device_, bytes);
    if (status && bytes) status = memory.upload(nullptr, from, bytes);
    if (status) *to = std::move(memory);
    return status;
}

Status DevicePlan::make_tables(Kernel *kernel) const {
    const std::array<AxisPlan, 3> &axes = problem_.plan;
    const DeviceVariant &v = *kernel->choice.variant;
    if (v.family == DeviceFamily::kEach) {
        for (std::size_t a = 0; a < 3; a++) {
            const std::vector<std::int32_t> table = axes[a].row_for_each();
            Status status = upload_table(table.data(), table.size() * sizeof table[0], &kernel->taps[a]);
            if (!status) return status;
        }
        return Status();
    }
    std::vector<std::int32_t> elements;
    std::vector<std::array<std::int32_t, kPartColumns>> parts;
    const std::array<std::vector<std::int32_t>, 3> tables = {axes[0].row_for_each(), axes[1].row_for_each(),
                                                             axes[2].row_for_each()};
    const auto row = [&](std::size_t a, std::int64_t residue) { return tables[a].data() + kTapColumns * residue; };
    const std::int64_t taps_w = kernel->layout.taps[0], taps_h = kernel->layout.taps[1];
    for (std::int64_t d = 0; d < axes[2].residues; d++) {
        for (std::int64_t h = 0; h < axes[1].residues; h++) {
            for (std::int64_t w = 0; w < axes[0].residues; w++) {
                const std::int32_t *const of_w = row(0, w), *const of_h = row(1, h), *const of_d = row(2, d);
                const auto first = static_cast<std::int32_t>(elements.size() / kElementColumns);
                for (std::int32_t td = 0; td < of_d[1]; td++) {
                    for (std::int32_t th = 0; th < of_h[1]; th++) {
                        for (std::int32_t tw = 0; tw < of_w[1]; tw++) {
                            const std::int64_t tap = ((of_d[2] + td) * taps_h + of_h[2] + th) * taps_w + of_w[2] + tw;
                            elements.push_back(of_w[0] + tw * static_cast<std::int32_t>(axes[0].step));
                            elements.push_back(of_h[0] + th * static_cast<std::int32_t>(axes[1].step));
                            elements.push_back(of_d[0] + td * static_cast<std::int32_t>(axes[2].step));
                            elements.push_back(static_cast<std::int32_t>(tap));
                        }
                    }
                }
                const auto end = static_cast<std::int32_t>(elements.size() / kElementColumns);
                kernel->most_elements = std::max<std::int64_t>(kernel->most_elements, end - first);
                // Biases are of a class of taps where they take off what x's zero point adds.
                const auto classes = [&](std::size_t a) { return static_cast<std::int32_t>(axes[a].classes.size()); };
                const std::int32_t row_of_biases =
                    v.block > 1 ? (of_d[3] * classes(1) + of_h[3]) * classes(0) + of_w[3] : 0;
                parts.push_back({static_cast<std::int32_t>(w), static_cast<std::int32_t>(h),
                                 static_cast<std::int32_t>(d), first, end - first, 0, 0, row_of_biases});
            }
        }
    }
    // The longest first, so that no block is left alone at the end.
    std::stable_sort(parts.begin(), parts.end(), [](const auto &a, const auto &b) { return a[4] > b[4]; });
    const int splits = kernel->choice.splits;
    kernel->chunks = ceil_div(ceil_div(kernel->layout.ic, v.chunk), splits);
    const std::size_t residues = parts.size();
    for (int s = 1; s < splits; s++) {
        for (std::size_t i = 0; i < residues; i++) {
            std::array<std::int32_t, kPartColumns> part = parts[i];
            part[5] = static_cast<std::int32_t>(s * kernel->chunks);
            part[6] = static_cast<std::int32_t>(s * count(problem_.geometry.y_shape));
            part[7] = -1;
            parts.push_back(part);
        }
    }
    kernel->element_count = std::max<std::int64_t>(static_cast<std::int64_t>(elements.size() / kElementColumns), 1);
    kernel->part_count = static_cast<std::int64_t>(parts.size());
    elements.resize(static_cast<std::size_t>(kernel->element_count) * kElementColumns);
    Status status = upload_table(elements.data(), elements.size() * sizeof elements[0], &kernel->elements);
    if (status) status = upload_table(parts.data(), parts.size() * sizeof parts[0], &kernel->parts);
    return status;
}

Status DevicePlan::ensure(std::uint64_t bytes, DeviceMemory *memory) const {
    if (*memory && memory->bytes() >= bytes) return Status();
    return memory->allocate(device_, bytes);
}

Status DevicePlan::host_block(std::uint64_t bytes, Block *block) const {
    if (*block && block->size() >= bytes) return Status();
    return get_block(allocator_, bytes, "a tensor on its way to the device", block);
}

Status DevicePlan::pack(const Kernel &kernel, const QuantizationValues *q, const void *w, const void *b, void *stream,
                        Block *host, Weights *weights) const {
    const Geometry &g = problem_.geometry;
    const PackedLayout &layout = kernel.layout;
    const Strides strides = dense_strides(g.w_shape);
    WeightsView view;
    view.data = w;
    view.c = strides[0];
    view.m = strides[1];
    for (std::size_t a = 0; a < g.axes.size(); a++) view.k[a] = strides[strides.size() - 1 - a];
    const std::uint64_t size = w_size(*kernel.choice.variant);
    const std::uint64_t w_bytes = round_up(static_cast<std::uint64_t>(layout.weights()) * size),
                        bias_bytes = static_cast<std::uint64_t>(layout.biases()) * size;
    Status status = host_block(w_bytes + bias_bytes, host);
    if (!status) return status;
    char *const packed = static_cast<char *>(host->data());
    weights->finite = true;
    if (q) {
        weights->sums.resize(layout.arithmetic == Arithmetic::kInt8
                                 ? static_cast<std::size_t>(layout.taps_volume() * layout.biases())
                                 : 0);
        pack_quantized(layout, problem_.plan, g, *q, view, packed,
                       weights->sums.empty() ? nullptr : weights->sums.data());
    } else {
        weights->finite = pack_weights(layout, problem_.plan, g.dtype, view, b, packed, packed + w_bytes);
    }
    status = ensure(w_bytes, &weights->w);
    if (status) status = weights->w.upload(stream, packed, w_bytes);
    if (!q) {
        if (status) status = ensure(bias_bytes, &weights->bias);
        if (status && bias_bytes) status = weights->bias.upload(stream, packed + w_bytes, bias_bytes);
        return status;
    }
    return status ? upload_factors(kernel, *q, weights->sums, b, stream, host, weights) : status;
}

Status DevicePlan::upload_factors(const Kernel &kernel, const QuantizationValues &q,
                                  const std::vector<std::int32_t> &sums, const void *b, void *stream, Block *host,
                                  Weights *weights) const {
    const EpilogueLayout epilogue = epilogue_of(kernel.layout, problem_.plan);
    const auto bias_bytes = static_cast<std::uint64_t>(4 * epilogue.bias_count()),
               all_bytes = static_cast<std::uint64_t>(epilogue.bytes());
    Status status = host_block(all_bytes, host);
    if (!status) return status;
    char *const made = static_cast<char *>(host->data());
    make_epilogue(kernel.layout, problem_.plan, problem_.geometry, q, sums.data(), b, made);
    status = ensure(bias_bytes, &weights->bias);
    if (status && bias_bytes) status = weights->bias.upload(stream, made, bias_bytes);
    if (status) status = ensure(all_bytes - bias_bytes, &weights->factors);
    if (status && bias_bytes) status = weights->factors.upload(stream, made + bias_bytes, all_bytes - bias_bytes);
    return status;
}

Status DevicePlan::create(const Geometry &geometry, const DeviceRequest &request, const Allocator &allocator,
                          const QuantizationValues *quantization, const void *w, const void *b,
                          std::unique_ptr<DevicePlan> *plan) {
    if (geometry.axes.size() > 3) {
        return Status(CONVT_UNSUPPORTED,
                      concat(geometry.axes.size(), " spatial axes: kernels for devices have up to 3"));
    }
    WeightFacts facts;
    if (geometry.quantized()) {
        // Sums that might not fit in 32 bits are for the CPU's reference.
        if (!w || !quantization) {
            return Status(CONVT_UNSUPPORTED, "quantized weights that arrive with each run: only on the CPU");
        }
        Block counts;
        Status status = get_block(allocator, examination_bytes(geometry), "sums of weights", &counts);
        if (!status) return status;
        facts = examine_weights(geometry, *quantization, w, b, counts.data());
        if (!facts.fits_int32) {
            return Status(CONVT_UNSUPPORTED, "sums may not fit in 32 bits, which kernels for devices have");
        }
    }
    std::shared_ptr<OpenDevice> device;
    if (Status status = OpenDevice::open(*request.table, request.index, request.context, &device); !status)
        return status;

    std::unique_ptr<DevicePlan> p(new DevicePlan(geometry, request, allocator, std::move(device)));
    if (quantization) p->quantization_ = *quantization;
    p->fits_int8_ = facts.fits_int8;
    Status status = p->choose(true, nullptr, &p->kernel_);
    if (!status) return status;
    if (w) {
        auto weights = std::make_shared<Weights>();
        Block host;
        status = p->pack(p->kernel_, quantization, w, b, nullptr, &host, weights.get());
        if (status && !weights->finite && p->kernel_.choice.variant->family != DeviceFamily::kEach) {
            p->kernel_ = Kernel();
            *weights = Weights();
            status = p->choose(false, nullptr, &p->kernel_);
            if (status) status = p->pack(p->kernel_, quantization, w, b, nullptr, &host, weights.get());
        }
        if (!status) return status;
        if (b && geometry.quantized()) {
            const auto *const bytes = static_cast<const char *>(b);
            p->bias_.assign(bytes, bytes + static_cast<std::size_t>(geometry.out_channels) *
                                               convt_dtype_size(geometry.b_dtype));
        }
        p->constant_ = std::move(weights);
    } else if (p->kernel_.choice.variant->family != DeviceFamily::kEach) {
        const std::string forced = std::exchange(p->request_.variant, std::string());
        status = p->choose(false, nullptr, &p->any_weights_);
        p->request_.variant = forced;
        if (!status) return status;
    }
    // What sums in parts need is allocated now, so that there is enough memory, or not, at planning time.
    if (p->kernel_.choice.splits > 1 && count(geometry.y_shape)) {
        Workspace workspace;
        status = p->ensure(static_cast<std::uint64_t>(p->kernel_.choice.splits * count(geometry.y_shape)) *
                               convt_dtype_size(sum_dtype(geometry.dtype)),
                           &workspace.parts);
        if (!status) return status;
        p->free_.push_back(std::move(workspace));
    }
    *plan = std::move(p);
    return Status();
}

Status DevicePlan::reshape(const Geometry &geometry, std::unique_ptr<DevicePlan> *plan) const {
    std::unique_ptr<DevicePlan> p(new DevicePlan(geometry, request_, allocator_, device_));
    p->quantization_ = quantization_;
    p->constant_ = constant_;
    p->bias_ = bias_;
    p->fits_int8_ = fits_int8_;
    Status status = p->choose(!constant_ || constant_->finite, constant_ ? &kernel_.layout : nullptr, &p->kernel_);
    if (status && !constant_ && p->kernel_.choice.variant->family != DeviceFamily::kEach) {
        p->request_.variant.clear();
        status = p->choose(false, nullptr, &p->any_weights_);
        p->request_.variant = request_.variant;
    }
    if (status) *plan = std::move(p);
    return status;
}

Status DevicePlan::call(DeviceFunction function, KernelArguments *arguments, void *stream) const {
    DeviceError error;
    return device_->backend().call(device_->get(), stream, function, arguments->data(), &error) ? Status()
                                                                                                : to_status(error);
}

Status DevicePlan::run_kernel(const Kernel &kernel, const Operands &operands, const QuantizationValues *q,
                              const Placed &x, const Placed &y, void *stream) const {
    const Geometry &g = problem_.geometry;
    const DeviceVariant &v = *kernel.choice.variant;
    const std::array<AxisPlan, 3> &axes = problem_.plan;
    const auto of_axes = [&](std::int64_t (*f)(const AxisPlan &)) {
        return std::array<std::int64_t, 3>{f(axes[0]), f(axes[1]), f(axes[2])};
    };
    const auto divisors = [&](std::int64_t (*f)(const AxisPlan &)) {
        return std::array<Divisor, 3>{Divisor(f(axes[0])), Divisor(f(axes[1])), Divisor(f(axes[2]))};
    };
    const auto in = [](const AxisPlan &a) { return a.geometry.in; };
    const auto out = [](const AxisPlan &a) { return a.geometry.out; };
    const auto stride = [](const AxisPlan &a) { return a.geometry.stride; };
    const halide_type_t s32(halide_type_int, 32), f32(halide_type_float, 32);
    const halide_type_t w_type =
        !v.integers ? type_of(sum_dtype(v.x_dtype)) : halide_type_t(halide_type_int, v.block > 1 ? 8 : 16);
    const halide_type_t sum_type = v.integers ? s32 : w_type;
    const PackedLayout &layout = kernel.layout;

    KernelArguments a(device_->backend().interface());
    a.add_buffer(x.memory, type_on_device(v.x_dtype), {x.span});
    if (v.family == DeviceFamily::kEach) {
        a.add_buffer(operands.w, w_type, {layout.weights()});
    } else if (v.block > 1) {
        a.add_buffer(
            operands.w, w_type,
            {layout.block, layout.oc_tile, layout.blocks(), layout.taps_volume(), layout.group * layout.tiles()});
    } else {
        a.add_buffer(operands.w, w_type,
                     {layout.oc_tile, layout.ic, layout.taps_volume(), layout.group * layout.tiles()});
    }
    a.add_buffer(operands.bias, sum_type, {q ? epilogue_of(layout, axes).bias_count() : layout.biases()});
    // Floats have no factors.
    a.add_buffer(q ? operands.factors : operands.bias, f32, {layout.biases(), q ? 2 : 1});
    a.add_all(of_axes(in));
    a.add_all(x.strides.axes);
    a.add(x.strides.c);
    a.add(x.strides.n);
    a.add_all(y.strides.axes);
    a.add(y.strides.c);
    a.add(y.strides.n);
    a.add(y.span);
    a.add(g.batch);
    a.add(layout.ic);
    const std::int64_t s8 = g.dtype == CONVT_S8 ? 128 : 0; // read as u8, with its sign flipped
    const OutputRange range = q ? output_range(*q, g) : OutputRange();
    a.add(s8);
    a.add(q ? q->x_zero_point + s8 : 0);
    a.add(std::int64_t{range.zero_point});
    a.add(range.least);
    a.add(range.most);
    if (v.family == DeviceFamily::kEach) {
        for (std::size_t i = 0; i < 3; i++) {
            a.add_buffer(kernel.taps[i].get(), s32, {kTapColumns, axes[i].residues});
        }
        a.add_all(of_axes([](const AxisPlan &p) { return p.step; }));
        a.add_all(of_axes([](const AxisPlan &p) { return std::int64_t{p.max_count}; }));
        a.add_all(layout.taps);
        const bool groups = layout.oc_tile == 0;
        a.add(groups ? 1 : layout.taps_volume() * layout.ic);
        a.add(groups ? layout.group : layout.ic);
        a.add(std::int64_t{1});
        a.add(g.out_channels);
        a.add_divisors(divisors(out));
        a.add_divisors(divisors(stride));
        a.add(Divisor(layout.oc));
    } else {
        a.add_buffer(kernel.elements.get(), s32, {std::int64_t{kElementColumns}, kernel.element_count});
        a.add_buffer(kernel.parts.get(), s32, {std::int64_t{kPartColumns}, kernel.part_count});
        a.add_all(of_axes(out));
        a.add(layout.oc);
        a.add(Divisor(layout.tiles()));
        a.add_divisors(divisors([](const AxisPlan &p) { return p.q_extent(); }));
        a.add_all(of_axes(stride));
        a.add(kernel.most_elements);
        a.add(kernel.chunks);
    }
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
        axes[i] = {problem_.axes[i].out, parts.strides.axes[i], residual.strides.axes[i], y.strides.axes[i]};
    }
    axes[3] = {g.out_channels, parts.strides.c, residual.strides.c, y.strides.c};
    axes[4] = {g.batch, parts.strides.n, residual.strides.n, y.strides.n};
    // Neighbouring threads write neighbouring elements.
    std::stable_sort(axes.begin(), axes.end(), [](const Axis &a, const Axis &b) {
        return (a.extent == 1 ? INT64_MAX : a.y) < (b.extent == 1 ? INT64_MAX : b.y);
    });
    KernelArguments a(device_->backend().interface());
    a.add_buffer(parts.memory, type_on_device(v.x_dtype), {parts.span});
    const Placed &other = residual.memory ? residual : y; // not looked at where there is none
    a.add_buffer(other.memory, type_on_device(v.y_dtype), {other.span});
    std::array<Divisor, 5> extents;
    for (std::size_t i = 0; i < 5; i++) extents[i] = Divisor(axes[i].extent);
    a.add_divisors(extents);
    for (const Axis &axis : axes) a.add(axis.part);
    for (const Axis &axis : axes) a.add(axis.residual);
    for (const Axis &axis : axes) a.add(axis.y);
    a.add(std::int64_t{kernel.choice.splits});
    a.add(count(g.y_shape)); // between parts
    a.add(count(g.y_shape));
    a.add(y.span);
    a.add(std::int64_t{residual.memory != 0});
    a.add(std::int64_t{g.post_ops.activation});
    a.add(g.post_ops.alpha);
    a.add(g.post_ops.beta);
    a.add_buffer(y.memory, type_on_device(v.y_dtype), {y.span});
    return call(v.run, &a, stream);
}

// Puts a tensor on the device; of one in host memory the copy is the run's own. data: null: it is not copied.
Status DevicePlan::place(const void *data, convt_memory memory, const Shape &shape, const Strides &strides,
                         std::size_t size, void *stream, Workspace *workspace, DeviceMemory *own,
                         Placed *placed) const {
    const Geometry &g = problem_.geometry;
    if (memory == CONVT_DEVICE_MEMORY) {
        placed->strides = tensor_strides(g, strides);
        placed->span = span_of(shape, strides);
        Status status = placed->wrapped.wrap(device_, data);
        placed->memory = placed->wrapped.get();
        return status;
    }
    placed->strides = tensor_strides(g, dense_strides(shape));
    placed->span = std::max<std::int64_t>(count(shape), 1);
    const std::uint64_t bytes = static_cast<std::uint64_t>(count(shape)) * size;
    Status status = ensure(bytes, own);
    if (!status) return status;
    placed->memory = own->get();
    if (bytes == 0 || !data) return Status();
    if (!is_dense(shape, strides)) {
        status = host_block(bytes, &workspace->host);
        if (!status) return status;
        copy_rows(shape, size, static_cast<const char *>(data), strides, static_cast<char *>(workspace->host.data()),
                  dense_strides(shape));
        data = workspace->host.data();
    }
    return own->upload(stream, data, bytes);
}

Status DevicePlan::run_in(const RunTensors &t, Workspace *workspace) const {
    const Geometry &g = problem_.geometry;
    void *const stream = t.stream;
    const QuantizationValues *const q = t.quantization ? t.quantization : quantization_ ? &*quantization_ : nullptr;

    const Kernel *kernel = &kernel_;
    const Weights *weights = constant_.get(), *epilogue = weights;
    Status status;
    if (!constant_) {
        status = pack(*kernel, q, t.w, t.b, stream, &workspace->host, &workspace->weights);
        if (status && !workspace->weights.finite && any_weights_.choice.variant) {
            kernel = &any_weights_;
            status = pack(*kernel, q, t.w, t.b, stream, &workspace->host, &workspace->weights);
        }
        weights = epilogue = &workspace->weights;
    } else if (t.quantization) {
        const void *const b = bias_.empty() ? nullptr : bias_.data();
        status = upload_factors(*kernel, *q, constant_->sums, b, stream, &workspace->host, &workspace->weights);
        epilogue = &workspace->weights;
    }
    if (!status) return status;
    const Operands operands = {weights->w.get(), epilogue->bias.get(), epilogue->factors.get()};

    Placed x, y, residual;
    const std::size_t size = convt_dtype_size(g.y_dtype);
    status =
        place(t.x, t.x_memory, g.x_shape, t.x_strides, convt_dtype_size(g.dtype), stream, workspace, &workspace->x, &x);
    if (status && t.residual) {
        status = place(t.residual, t.residual_memory, g.y_shape, t.residual_strides, size, stream, workspace,
                       &workspace->residual, &residual);
    }
    if (status) {
        const void *const data = t.y_memory == CONVT_DEVICE_MEMORY ? t.y : nullptr; // else it is copied afterwards
        status = place(data, t.y_memory, g.y_shape, t.y_strides, size, stream, workspace, &workspace->y, &y);
    }
    if (!status) return status;

    const DeviceChoice &choice = kernel->choice;
    if (choice.splits > 1) {
        Placed parts;
        parts.strides = tensor_strides(g, dense_strides(g.y_shape));
        parts.span = count(g.y_shape) * choice.splits;
        status =
            ensure(static_cast<std::uint64_t>(parts.span) * convt_dtype_size(sum_dtype(g.dtype)), &workspace->parts);
        parts.memory = workspace->parts.get();
        if (status) status = run_kernel(*kernel, operands, q, x, parts, stream);
        if (status) status = run_combine(*kernel, parts, residual, y, stream);
    } else {
        status = run_kernel(*kernel, operands, q, x, y, stream);
        if (status && choice.combine) status = run_combine(*kernel, y, residual, y, stream);
    }
    if (!status || t.y_memory == CONVT_DEVICE_MEMORY) return status;
    const std::uint64_t bytes = static_cast<std::uint64_t>(count(g.y_shape)) * size;
    if (is_dense(g.y_shape, t.y_strides)) return workspace->y.download(stream, t.y, bytes);
    status = host_block(bytes, &workspace->host);
    if (status) status = workspace->y.download(stream, workspace->host.data(), bytes);
    if (status) {
        copy_rows(g.y_shape, size, static_cast<const char *>(workspace->host.data()), dense_strides(g.y_shape),
                  static_cast<char *>(t.y), t.y_strides);
    }
    return status;
}

Status DevicePlan::run(const RunTensors &t) const {
    if (count(problem_.geometry.y_shape) == 0) return Status();
    Workspace workspace;
    {
        // One that this stream used: what it still does there comes first. Or one that was never used.
        const std::lock_guard<Mutex> lock(mutex_);
        auto found = std::find_if(free_.begin(), free_.end(),
                                  [&](const Workspace &w) { return !w.used || w.stream == t.stream; });
        if (found != free_.end()) {
            workspace = std::move(*found);
            *found = std::move(free_.back());
            free_.pop_back();
        }
    }
    workspace.stream = t.stream;
    workspace.used = true;
    Status status = run_in(t, &workspace);
    const std::lock_guard<Mutex> lock(mutex_);
    free_.push_back(std::move(workspace));
    return status;
}

void DevicePlan::explain(const std::vector<DeviceChoice> &choices, const std::string &note) {
    const Geometry &g = problem_.geometry;
    const DeviceChoice &chosen = kernel_.choice;
    const auto *const backend = &device_->backend();
    explanation_ = concat(g.quantized() ? "QLinearConvTranspose " : "ConvTranspose ", convt_dtype_name(g.dtype), ", ",
                          g.layout == CONVT_CHANNELS_LAST ? "channels last" : "channels first", ", group ", g.group,
                          "\nx ", to_string(g.x_shape), "  w ", to_string(g.w_shape), "  -> y ", to_string(g.y_shape),
                          "\ndevice ", request_.table->kind, ": ", backend->name(device_->get()), ", ",
                          backend->multiprocessors(device_->get()), " multiprocessors\nvariant ", chosen.variant->name,
                          ": ", family_rule(chosen.variant->family));
    if (chosen.splits > 1) explanation_ += concat("; sums over input channels in ", chosen.splits, " parts");
    if (chosen.combine) explanation_ += concat("; then ", chosen.combine->name);
    if (!note.empty()) explanation_ += "\n" + note;
    explanation_ += "\ncandidates, by estimated cycles:\n";
    for (const DeviceChoice &c : choices) {
        char line[128];
        if (c.variant->family == DeviceFamily::kCombine) continue;
        if (c.unsupported.text) {
            std::snprintf(line, sizeof line, "    %-32s no: ", c.variant->name);
            explanation_ += line + to_string(c.unsupported) + "\n";
        } else {
            std::snprintf(line, sizeof line, "  %c %-32s %.3g\n", c.variant == chosen.variant ? '*' : ' ',
                          c.variant->name, c.cost);
            explanation_ += line;
        }
    }
}

} // namespace convtranspose
