#include "gpu/device_plan.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "base/division.h"
#include "base/error.h"
#include "kernel_contract/table_columns.h"
#include "kernels/post_ops.h"

namespace convtranspose {

namespace {

const char *device_family_rule(DeviceFamily family) {
    switch (family) {
    case DeviceFamily::kTiled: return "tiles of x and w in shared memory";
    case DeviceFamily::kSmallOc: return "a thread for a few positions of all channels of a tile";
    case DeviceFamily::kEach: return "a thread for each element of y";
    case DeviceFamily::kCombine: break;
    }
    return "";
}

} // namespace

DevicePlan::DevicePlan(const Geometry &geometry, const DeviceRequest &request, const Allocator &allocator,
                       std::shared_ptr<OpenDevice> device)
    : problem_(spatial_problem(geometry, geometry.y_dtype, false)), request_(request), allocator_(allocator),
      device_(std::move(device)) {}

std::size_t DevicePlan::packed_bytes() const {
    if (!constant_) return 0;
    return static_cast<std::size_t>(constant_->w.bytes() + constant_->bias.bytes() + constant_->factors.bytes());
}

Status DevicePlan::choose(bool finite, const PackedLayout *packed, Kernel *kernel) {
    const std::vector<DeviceChoice> choices = device_choices(
        device_->table(), {problem_.geometry, problem_.plan, finite, fits_int8_, device_->facts(), packed});
    const DeviceChoice *best = nullptr;
    std::string unsupported, note;
    const DeviceChoice *const recorded = request_.variant.empty() ? tuned(choices, &note) : nullptr;
    // A name is that of one choice. That of a kernel that has none of its own stands for all numbers of parts.
    const bool is_choice =
        std::any_of(choices.begin(), choices.end(), [&](const DeviceChoice &c) { return c.name == request_.variant; });
    for (const DeviceChoice &c : choices) {
        if (!request_.variant.empty() && request_.variant != (is_choice ? c.name : c.variant->name)) continue;
        if (c.unsupported.text) {
            // If nothing can compute the problem, the message quotes a kernel for this type.
            const bool of_type =
                c.variant->family != DeviceFamily::kCombine &&
                (c.variant->integers ? problem_.geometry.quantized() : c.variant->x_dtype == problem_.geometry.dtype);
            if (!of_type && request_.variant.empty()) continue;
            unsupported = concat("variant ", c.name, " cannot run this problem: ", to_string(c.unsupported));
        } else if (!best || c.cost < best->cost) {
            best = &c;
        }
    }
    if (!best) {
        if (request_.variant.empty()) {
            unsupported = concat("no kernel for ", request_.table->kind, " can compute this problem",
                                 unsupported.empty() ? "" : "; the last one: ", unsupported);
        } else if (unsupported.empty()) {
            unsupported = concat("variant ", request_.variant,
                                 " cannot run this problem: in so many parts, sums have too few input "
                                 "channels or y has too many elements");
        }
        return Status(CONVT_UNSUPPORTED, unsupported);
    }
    if (recorded) best = recorded;
    if (kernel == &kernel_) kernels_ = {best->variant->name};
    able_choices_.clear();
    std::copy_if(choices.begin(), choices.end(), std::back_inserter(able_choices_),
                 [](const DeviceChoice &c) { return !c.unsupported.text; });
    std::sort(able_choices_.begin(), able_choices_.end(), [](auto &a, auto &b) { return a.cost < b.cost; });
    able_.clear();
    for (const DeviceChoice &c : able_choices_) able_.push_back({c.name.c_str(), c.cost});

    const Geometry &g = problem_.geometry;
    const DeviceVariant &v = *best->variant;
    kernel->choice = *best;
    PackedLayout &layout = kernel->layout;
    layout = packing_of(v, g);
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

// Chooses the kernel for weights of a run that hold an infinity or a NaN, if the other is not for them. It may be any.
Status DevicePlan::choose_for_any_weights() {
    if (kernel_.choice.variant->family == DeviceFamily::kEach) return Status();
    const std::string forced = std::exchange(request_.variant, std::string());
    Status status = choose(false, nullptr, &any_weights_);
    request_.variant = forced;
    return status;
}

// Returns the choice that a tuning record names, or null (recorded_choice()).
const DeviceChoice *DevicePlan::tuned(const std::vector<DeviceChoice> &choices, std::string *note) const {
    const TuningRecord *const record =
        device_tuning_record(request_.tuning, problem_.geometry, request_.table->kind, device_->facts().name, note);
    const auto name_of = [](const DeviceChoice &c) -> const std::string & { return c.name; };
    return record ? recorded_choice(choices, *record, name_of, request_.table->kind, note) : nullptr;
}

TuningRecord DevicePlan::record() const {
    TuningRecord record;
    record.cpu = device_->facts().name;
    record.isa = isa();
    record.problem = tuning_key(problem_.geometry);
    record.variant = variant();
    return record;
}

Status DevicePlan::make_tables(Kernel *kernel) const {
    const std::array<AxisPlan, 3> &axes = problem_.plan;
    const DeviceVariant &v = *kernel->choice.variant;
    if (v.family == DeviceFamily::kEach) {
        for (std::size_t a = 0; a < 3; a++) {
            const std::vector<std::int32_t> table = axes[a].row_for_each();
            Status status = send(table.data(), table.size() * sizeof table[0], nullptr, &kernel->taps[a]);
            if (!status) return status;
        }
        return Status();
    }
    std::vector<std::int32_t> elements;
    std::vector<std::array<std::int32_t, kPartColumns>> parts;
    const std::array<std::vector<std::int32_t>, 3> tables = {axes[0].row_for_each(), axes[1].row_for_each(),
                                                             axes[2].row_for_each()};
    const auto number = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
    const auto classes = [&](std::size_t a) { return static_cast<std::int64_t>(axes[a].classes.size()); };
    for_each_index({axes[0].phases, axes[1].phases, axes[2].phases}, [&](const Index &phase) {
        const auto column = [&](std::size_t a, std::int64_t c) {
            return tables[a][static_cast<std::size_t>(kTapColumns * phase[a] + c)];
        };
        const auto columns = [&](std::int64_t c) { return Index{column(0, c), column(1, c), column(2, c)}; };
        const std::size_t first = elements.size() / kElementColumns;
        for_each_index(columns(kTapCount), [&](const Index &t) {
            Index tap = columns(kTapFirst);
            for (std::size_t a = 0; a < 3; a++) {
                elements.push_back(number(column(a, kTapOffset) + t[a] * axes[a].step));
                tap[a] += t[a];
            }
            elements.push_back(number(number_of(tap, kernel->layout.taps)));
        });
        const auto count = static_cast<std::int64_t>(elements.size() / kElementColumns - first);
        kernel->most_elements = std::max(kernel->most_elements, count);
        // If biases contain the part of x's zero point, each class of taps has biases of its own.
        const std::int64_t row_of_biases =
            v.block > 1 ? number_of(columns(kTapClass), {classes(0), classes(1), classes(2)}) : 0;
        parts.push_back({number(phase[0]), number(phase[1]), number(phase[2]), static_cast<std::int32_t>(first),
                         number(count), 0, 0, number(row_of_biases)});
    });
    // The longest parts come first, so that no block of threads is left alone at the end.
    std::stable_sort(parts.begin(), parts.end(),
                     [](const auto &a, const auto &b) { return a[kPartCount] > b[kPartCount]; });
    const int splits = kernel->choice.splits;
    kernel->chunks = ceil_div(ceil_div(kernel->layout.ic, v.chunk), splits);
    const std::size_t phases = parts.size();
    for (int s = 1; s < splits; s++) {
        for (std::size_t i = 0; i < phases; i++) {
            std::array<std::int32_t, kPartColumns> part = parts[i];
            part[kPartChunk] = static_cast<std::int32_t>(s * kernel->chunks);
            part[kPartStore] = static_cast<std::int32_t>(s * volume(problem_.geometry.y_shape));
            part[kPartBias] = -1;
            parts.push_back(part);
        }
    }
    kernel->element_count = std::max<std::int64_t>(static_cast<std::int64_t>(elements.size() / kElementColumns), 1);
    kernel->part_count = static_cast<std::int64_t>(parts.size());
    elements.resize(static_cast<std::size_t>(kernel->element_count) * kElementColumns);
    Status status = send(elements.data(), elements.size() * sizeof elements[0], nullptr, &kernel->elements);
    if (status) status = send(parts.data(), parts.size() * sizeof parts[0], nullptr, &kernel->parts);
    return status;
}

Status DevicePlan::ensure(std::uint64_t bytes, DeviceMemory *memory) const {
    if (*memory && memory->bytes() >= bytes) return Status();
    return memory->allocate(device_, bytes);
}

// Copies from host memory, in a stream, to memory that becomes large enough for it.
Status DevicePlan::send(const void *from, std::uint64_t bytes, void *stream, DeviceMemory *to) const {
    Status status = ensure(bytes, to);
    return status && bytes ? to->upload(stream, from, bytes) : status;
}

Status DevicePlan::host_block(std::uint64_t bytes, Block *block) const {
    if (*block && block->size() >= bytes) return Status();
    return get_block(allocator_, bytes, "a tensor on its way to the device", block);
}

Status DevicePlan::pack(const Kernel &kernel, const QuantizationValues *q, const void *w, const void *b,
                        Workspace *workspace) const {
    const Geometry &g = problem_.geometry;
    Weights *const weights = &workspace->weights;
    const PackedLayout &layout = kernel.layout;
    const WeightsView view = view_of_dense(g.w_shape, w);
    const std::uint64_t size = bytes_of_weight(*kernel.choice.variant);
    const std::uint64_t w_bytes = round_up(layout.weights() * size), bias_bytes = layout.biases() * size;
    Status status = host_block(w_bytes + bias_bytes, &workspace->host);
    if (!status) return status;
    char *const packed = static_cast<char *>(workspace->host.data());
    weights->finite = true;
    if (q) {
        weights->sums.resize(layout.arithmetic == Arithmetic::kInt8
                                 ? static_cast<std::size_t>(layout.taps_volume() * layout.biases())
                                 : 0);
        pack_quantized({layout, problem_.plan}, g, *q, view, packed,
                       weights->sums.empty() ? nullptr : weights->sums.data());
    } else {
        weights->finite = pack_weights({layout, problem_.plan}, g.dtype, view, b, packed, packed + w_bytes);
    }
    status = send(packed, w_bytes, workspace->stream, &weights->w);
    if (!status) return status;
    if (q) return upload_factors(kernel, *q, weights->sums, b, workspace);
    return send(packed + w_bytes, bias_bytes, workspace->stream, &weights->bias);
}

Status DevicePlan::upload_factors(const Kernel &kernel, const QuantizationValues &q,
                                  const std::vector<std::int32_t> &sums, const void *b, Workspace *workspace) const {
    const EpilogueLayout epilogue = epilogue_of({kernel.layout, problem_.plan});
    const std::uint64_t bias_bytes = 4 * epilogue.bias_count(), all_bytes = epilogue.bytes();
    Status status = host_block(all_bytes, &workspace->host);
    if (!status) return status;
    char *const made = static_cast<char *>(workspace->host.data());
    make_epilogue({kernel.layout, problem_.plan}, problem_.geometry, q, sums.data(), b, made);
    Weights *const weights = &workspace->weights;
    status = send(made, bias_bytes, workspace->stream, &weights->bias);
    if (status) status = send(made + bias_bytes, all_bytes - bias_bytes, workspace->stream, &weights->factors);
    return status;
}

Status plan_on_device(const Geometry &geometry, const DeviceRequest &request, const Allocator &allocator,
                      const QuantizationValues *quantization, const LayerWeights &weights,
                      std::unique_ptr<ProblemPlan> *plan) {
    const void *const w = weights.w, *const b = weights.b;
    if (geometry.axes.size() > 3) {
        return Status(CONVT_UNSUPPORTED,
                      concat(geometry.axes.size(), " spatial axes: kernels for devices have up to 3"));
    }
    WeightFacts facts;
    if (geometry.quantized()) {
        // If sums might not fit in 32 bits, only the CPU's reference kernel can compute the layer.
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
        DevicePlan::Workspace packing;
        status = p->pack(p->kernel_, quantization, w, b, &packing);
        if (status && !packing.weights.finite && p->kernel_.choice.variant->family != DeviceFamily::kEach) {
            p->kernel_ = DevicePlan::Kernel();
            packing = DevicePlan::Workspace();
            status = p->choose(false, nullptr, &p->kernel_);
            if (status) status = p->pack(p->kernel_, quantization, w, b, &packing);
        }
        if (b && geometry.quantized()) {
            const auto *const bytes = static_cast<const char *>(b);
            packing.weights.given_bias.assign(bytes, bytes + geometry.b_bytes());
        }
        p->constant_ = std::make_shared<DevicePlan::Weights>(std::move(packing.weights));
    } else {
        status = p->choose_for_any_weights();
    }
    if (!status) return status;
    // Memory for sums in parts is allocated now, so that a lack of it shows when the layer is planned.
    if (p->kernel_.choice.splits > 1 && volume(geometry.y_shape)) {
        DevicePlan::Workspace workspace;
        status = p->ensure(static_cast<std::uint64_t>(p->kernel_.choice.splits * volume(geometry.y_shape)) *
                               convt_dtype_size(sum_dtype(geometry.dtype)),
                           &workspace.parts);
        if (!status) return status;
        p->free_.push_back(std::move(workspace));
    }
    *plan = std::move(p);
    return Status();
}

Status DevicePlan::reshape(const Geometry &geometry, std::unique_ptr<ProblemPlan> *plan) const {
    std::unique_ptr<DevicePlan> p(new DevicePlan(geometry, request_, allocator_, device_));
    p->quantization_ = quantization_;
    p->constant_ = constant_;
    p->fits_int8_ = fits_int8_;
    Status status = p->choose(!constant_ || constant_->finite, constant_ ? &kernel_.layout : nullptr, &p->kernel_);
    if (status && !constant_) status = p->choose_for_any_weights();
    if (status) *plan = std::move(p);
    return status;
}

void DevicePlan::explain(const std::vector<DeviceChoice> &choices, const std::string &note) {
    const Geometry &g = problem_.geometry;
    const DeviceChoice &chosen = kernel_.choice;
    explanation_ =
        concat(g.quantized() ? "QLinearConvTranspose " : "ConvTranspose ", convt_dtype_name(g.dtype), ", ",
               g.layout == CONVT_CHANNELS_LAST ? "channels last" : "channels first", ", group ", g.group, "\nx ",
               to_string(g.x_shape), "  w ", to_string(g.w_shape), "  -> y ", to_string(g.y_shape), "\ndevice ",
               request_.table->kind, ": ", device_->facts().name, ", ", device_->facts().multiprocessors,
               " multiprocessors\nvariant ", chosen.name, ": ", device_family_rule(chosen.variant->family));
    if (chosen.splits > 1) explanation_ += concat("; sums over input channels in ", chosen.splits, " parts");
    if (chosen.combine) explanation_ += concat("; then ", chosen.combine->name);
    if (!note.empty()) explanation_ += "\n" + note;
    explanation_ += "\ncandidates, by estimated cycles:\n";
    for (const DeviceChoice &c : choices) {
        char line[128];
        if (c.variant->family == DeviceFamily::kCombine) continue;
        if (c.unsupported.text) {
            std::snprintf(line, sizeof line, "    %-32s no: ", c.name.c_str());
            explanation_ += line + to_string(c.unsupported) + "\n";
        } else {
            std::snprintf(line, sizeof line, "  %c %-32s %.3g: %.0f blocks of %.4g steps, %.3g bytes",
                          c.name == chosen.name ? '*' : ' ', c.name.c_str(), c.cost, c.work.blocks, c.work.steps,
                          c.work.bytes);
            explanation_ += line;
            if (c.work.combined_bytes > 0) {
                std::snprintf(line, sizeof line, " and %.3g", c.work.combined_bytes);
                explanation_ += line;
            }
            explanation_ += c.work.strided ? ", strided\n" : "\n";
        }
    }
}

} // namespace convtranspose
