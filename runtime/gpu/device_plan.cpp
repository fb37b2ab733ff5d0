#include "gpu/device_plan.h"

#include <algorithm>

#include "base/division.h"
#include "base/error.h"
#include "kernel_contract/table_columns.h"
#include "plan/explain.h"

namespace convtranspose {

DevicePlan::DevicePlan(const Geometry &geometry, const DeviceRequest &request, const Allocator &allocator,
                       std::shared_ptr<OpenDevice> device, const QuantizationValues *quantization,
                       const WeightFacts &facts)
    : problem_(spatial_problem(geometry, geometry.y_dtype, false)), request_(request), allocator_(allocator),
      device_(std::move(device)) {
    if (quantization) facts_.quantization = &quantization_.emplace(*quantization);
    facts_.is_on_device = true;
    facts_.isa = device_->table().kind;
    facts_.algorithm = "direct";
    problem_.facts = facts;
    problem_.geometry.light = {}; // which no kernel for devices reads
}

// Sets the facts that are known when everything else is.
void DevicePlan::know() {
    facts_.weights_at_run_time = !constant_;
    facts_.variant = kernel_.choice.name();
    if (constant_)
        facts_.packed_bytes =
            static_cast<std::size_t>(constant_->w.bytes() + epilogue_->bias.bytes() + epilogue_->factors.bytes());
}

// Chooses a kernel for the problem. packed: the layout of weights that are packed already; null: none are.
Status DevicePlan::choose(const PackedLayout *packed, Kernel *kernel) {
    const Geometry &g = problem_.geometry;
    const DeviceFacts &device = device_->facts();
    const std::string &name = request_.variant;
    std::vector<DeviceChoice> choices = device_choices(device_->table(), device, problem_, packed);
    std::string note;
    const TuningRecord *const record =
        name.empty() ? tuning_record(request_.tuning, g, device.name, facts_.isa, 1, &note) : nullptr;
    const DeviceChoice *const recorded = recorded_choice(choices, record, facts_.isa, &note);
    // A name is that of one choice. That of a kernel that has none of its own stands for all numbers of parts.
    const bool is_choice =
        std::any_of(choices.begin(), choices.end(), [&](const DeviceChoice &c) { return c.name() == name; });
    const auto is_wanted = [&](const DeviceChoice &c) {
        return name.empty() || name == (is_choice ? c.name() : c.variant->name);
    };
    const DeviceChoice *const best = recorded ? recorded : cheapest(choices, is_wanted);
    if (!best) return refused(choices);

    const DeviceVariant &v = *best->variant;
    kernel->choice = *best;
    PackedLayout &layout = kernel->layout;
    layout = packing_of(v, g);
    layout.group = g.group;
    layout.ic = g.in_channels_per_group();
    layout.oc = g.out_channels_per_group();
    for (std::size_t a = 0; a < 3; a++) layout.taps[a] = problem_.plan[a].element_count();
    if (kernel == &kernel_) {
        why_ = recorded ? note : with_note(name.empty() ? "least estimated cost" : kByName, note);
        kernels_ = {v.name};
        choices_ = std::move(choices);
        able_ = able_of(choices_);
    }
    return make_tables(kernel);
}

// Returns the reason why none of the choices can compute the problem, as the last one for its type has it, or why the one that is
// named cannot.
Status DevicePlan::refused(const std::vector<DeviceChoice> &choices) const {
    const std::string &name = request_.variant;
    const Geometry &g = problem_.geometry;
    std::string why = name.empty() ? "" : "it is not built in";
    convt_status code = CONVT_UNSUPPORTED;
    for (const DeviceChoice &c : choices) {
        const DeviceVariant &v = *c.variant;
        const bool of_type =
            v.call != DeviceCall::kCombine && (is_float(v.arithmetic) ? v.x_dtype == g.dtype : g.quantized());
        const bool is_base = name.compare(0, name.find(':'), c.variant->name) == 0;
        if (name.empty() ? !of_type : !is_base) continue;
        why = name.empty() || name == c.name()
                  ? to_string(c.unsupported)
                  : "in so many parts, sums have too few input channels or y has too many elements";
        code = c.unsupported.is_overflow ? CONVT_OVERFLOW : CONVT_UNSUPPORTED;
    }
    const std::string what = name.empty() ? concat("no kernel for ", facts_.isa, " can compute this problem")
                                          : concat("variant ", name, " cannot run this problem");
    return Status(code, why.empty() ? what : concat(what, ": ", why));
}

// Chooses the kernel for weights of a run that hold an infinity or a NaN, if the other is not for them. It may be any.
Status DevicePlan::choose_for_any_weights() {
    if (kernel_.choice.variant->call == DeviceCall::kByOutput) return Status();
    const std::string forced = std::exchange(request_.variant, std::string());
    problem_.may_be_infinite = true;
    TRY(choose(nullptr, &any_weights_));
    problem_.may_be_infinite = false;
    request_.variant = forced;
    return Status();
}

TuningRecord DevicePlan::record() const {
    return {device_->facts().name, facts_.isa, tuning_key(problem_.geometry), facts_.variant, 1, 0, 0, ""};
}

Status DevicePlan::make_tables(Kernel *kernel) const {
    const std::array<AxisPlan, 3> &axes = problem_.plan;
    const DeviceVariant &v = *kernel->choice.variant;
    if (v.call == DeviceCall::kByOutput) {
        for (std::size_t a = 0; a < 3; a++) {
            const std::vector<std::int32_t> table = axes[a].row_for_each();
            TRY(send(table.data(), table.size() * sizeof table[0], nullptr, &kernel->taps[a]));
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
            block_of(v) > 1 ? number_of(columns(kTapClass), {classes(0), classes(1), classes(2)}) : 0;
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
    TRY(send(elements.data(), elements.size() * sizeof elements[0], nullptr, &kernel->elements));
    return send(parts.data(), parts.size() * sizeof parts[0], nullptr, &kernel->parts);
}

Status DevicePlan::ensure(std::uint64_t bytes, DeviceMemory *memory) const {
    if (*memory && memory->bytes() >= bytes) return Status();
    return memory->allocate(device_, bytes);
}

// Copies from host memory, in a stream, to memory that becomes large enough for it.
Status DevicePlan::send(const void *from, std::uint64_t bytes, void *stream, DeviceMemory *to) const {
    TRY(ensure(bytes, to));
    return bytes ? to->upload(stream, from, bytes) : Status();
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
    const auto size = static_cast<std::uint64_t>(operand_size(*kernel.choice.variant));
    const std::uint64_t w_bytes = round_up(layout.weights() * size), bias_bytes = layout.biases() * size;
    TRY(host_block(w_bytes + bias_bytes, &workspace->host));
    char *const packed = static_cast<char *>(workspace->host.data());
    const bool has_sums = layout.arithmetic == Arithmetic::kInt8;
    weights->sums.resize(has_sums ? static_cast<std::size_t>(layout.taps_volume() * layout.biases()) : 0);
    void *const more = has_sums ? static_cast<void *>(weights->sums.data()) : packed + w_bytes;
    weights->finite = pack_weights({layout, problem_.plan}, g, q, view, b, packed, more);
    TRY(send(packed, w_bytes, workspace->stream, &weights->w));
    if (q) return upload_factors(kernel, *q, weights->sums, b, workspace);
    return send(packed + w_bytes, bias_bytes, workspace->stream, &weights->bias);
}

Status DevicePlan::upload_factors(const Kernel &kernel, const QuantizationValues &q,
                                  const std::vector<std::int32_t> &sums, const void *b, Workspace *workspace) const {
    const EpilogueLayout epilogue = epilogue_of({kernel.layout, problem_.plan});
    const std::uint64_t bias_bytes = 4 * epilogue.bias_count(), all_bytes = epilogue.bytes();
    TRY(host_block(all_bytes, &workspace->host));
    char *const made = static_cast<char *>(workspace->host.data());
    make_epilogue({kernel.layout, problem_.plan}, problem_.geometry, q, sums.data(), b, made);
    Weights *const weights = &workspace->weights;
    TRY(send(made, bias_bytes, workspace->stream, &weights->bias));
    return send(made + bias_bytes, all_bytes - bias_bytes, workspace->stream, &weights->factors);
}

Status plan_on_device(const Geometry &geometry, const DeviceRequest &request, const Allocator &allocator,
                      const LayerWeights &weights, std::unique_ptr<ProblemPlan> *plan) {
    const void *const w = weights.w, *const b = weights.b;
    const QuantizationValues *const quantization = weights.quantization;
    if (geometry.axes.size() > 3) {
        return unsupported(geometry.axes.size(), " spatial axes: kernels for devices have up to 3");
    }
    WeightFacts facts;
    if (geometry.quantized()) {
        // If sums might not fit in 32 bits, only the CPU's reference kernel can compute the layer.
        if (!w || !quantization) {
            return unsupported("quantized weights that arrive with each run: only on the CPU");
        }
        Block counts;
        TRY(get_block(allocator, examination_bytes(geometry), "sums of weights", &counts));
        facts = examine_weights(geometry, *quantization, w, b, counts.data());
        if (!facts.fits_int32) {
            return unsupported("sums may not fit in 32 bits, which kernels for devices have");
        }
    }
    std::shared_ptr<OpenDevice> device;
    TRY(OpenDevice::open(*request.table, request.index, request.context, &device));

    std::unique_ptr<DevicePlan> p(new DevicePlan(geometry, request, allocator, std::move(device), quantization, facts));
    TRY(p->choose(nullptr, &p->kernel_));
    if (w) {
        DevicePlan::Workspace packing;
        TRY(p->pack(p->kernel_, quantization, w, b, &packing));
        if (!packing.weights.finite && p->kernel_.choice.variant->call != DeviceCall::kByOutput) {
            p->kernel_ = DevicePlan::Kernel();
            packing = DevicePlan::Workspace();
            p->problem_.may_be_infinite = true;
            TRY(p->choose(nullptr, &p->kernel_));
            TRY(p->pack(p->kernel_, quantization, w, b, &packing));
        }
        if (b && geometry.quantized()) {
            const auto *const bytes = static_cast<const char *>(b);
            packing.weights.given_bias.assign(bytes, bytes + geometry.b_bytes());
        }
        p->constant_ = p->epilogue_ = std::make_shared<DevicePlan::Weights>(std::move(packing.weights));
    } else {
        TRY(p->choose_for_any_weights());
    }
    // Memory for sums in parts is allocated now, so that a lack of it shows when the layer is planned.
    if (p->kernel_.choice.splits > 1 && volume(geometry.y_shape)) {
        DevicePlan::Workspace workspace;
        const std::int64_t elements = p->kernel_.choice.splits * volume(geometry.y_shape);
        TRY(p->ensure(elements * size_of(sum_dtype(geometry.dtype)), &workspace.parts));
        p->free_.push_back(std::move(workspace));
    }
    p->know();
    *plan = std::move(p);
    return Status();
}

Status DevicePlan::reshape(const Geometry &geometry, std::unique_ptr<ProblemPlan> *plan) const {
    std::unique_ptr<DevicePlan> p(
        new DevicePlan(geometry, request_, allocator_, device_, facts_.quantization, problem_.facts));
    p->constant_ = p->epilogue_ = constant_;
    p->problem_.may_be_infinite = constant_ && !constant_->finite;
    TRY(p->choose(constant_ ? &kernel_.layout : nullptr, &p->kernel_));
    if (!constant_) TRY(p->choose_for_any_weights());
    if (constant_ && !constant_->sums.empty()) {
        // Biases hold what x's zero point adds to each class of taps, and another shape of x has other classes.
        Workspace made;
        TRY(p->upload_factors(p->kernel_, *p->quantization_, constant_->sums, constant_->bias_in_host(), &made));
        p->epilogue_ = std::make_shared<Weights>(std::move(made.weights));
    }
    p->know();
    *plan = std::move(p);
    return Status();
}

std::string DevicePlan::explain() const {
    const DeviceChoice &chosen = kernel_.choice;
    const char *const combine = chosen.combine ? chosen.combine->name : "";
    const DeviceFacts &device = device_->facts();
    std::string text =
        concat(describe_layer(problem_.geometry, facts_.quantization, &problem_.facts, concat("by ", combine)),
               "device ", facts_.isa, ": ", device.name, ", ", device.multiprocessors, " multiprocessors\nvariant ",
               chosen.name(), ": ", why_);
    if (chosen.splits > 1) text += concat("; sums over input channels in ", chosen.splits, " parts");
    if (chosen.combine) text += concat("; then ", combine);
    std::vector<ListedCandidate> list;
    for (const DeviceChoice &c : choices_) {
        const DeviceWork &work = c.work;
        list.push_back({c.name(), c.unsupported, c.cost,
                        concat(formatted(", %.0f blocks", work.blocks), formatted(" of %.4g steps", work.steps),
                               formatted(", %.3g bytes", work.bytes),
                               work.combined_bytes > 0 ? formatted(" and %.3g", work.combined_bytes) : "",
                               work.strided ? ", strided" : ""),
                        c.own_name == chosen.own_name});
    }
    return concat(text, "\n", list_of(std::move(list)));
}

} // namespace convtranspose
