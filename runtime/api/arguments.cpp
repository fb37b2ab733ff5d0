#include "api/arguments.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/division.h"
#include "base/once.h"
#include "cpu/cpu.h"
#include "kernels/kernel_tables.h"

namespace convtranspose {

namespace {

// Returns true if an algorithm or a kernel has that name.
bool names_something(const std::string &name) {
    bool found = find_algorithm(name) != nullptr;
    for_each_kernel_table([&](const KernelTable &table) {
        for (std::size_t i = 0; i < table.variant_count; i++) found = found || name == table.variants[i].name;
    });
    return found;
}

constexpr int kMeasuringMs = 50; // the default

Status check_spread(const char *name, const Shape &shape, const std::int64_t *strides) {
    if (has_no_elements(shape)) return Status();
    std::int64_t span = 1; // from the first element to the last
    for (std::size_t i = 0; i < shape.size(); i++) {
        std::int64_t step = 0;
        if (shape[i] > 1 &&
            (__builtin_mul_overflow(shape[i] - 1, strides[i], &step) || __builtin_add_overflow(span, step, &span))) {
            return overflow(name, " spans more than 2^63 elements, may span at most ", kMostElements);
        }
    }
    if (span <= kMostElements) return Status();
    return overflow(name, " spans ", span, " elements, may span at most ", kMostElements);
}

// Checks that no two elements of a tensor share memory. That is hard to decide in general, so the rule is stricter: sorted by
// stride, each axis must step over all that the axes before it span.
Status check_no_overlap(const char *name, const Shape &shape, const Strides &strides) {
    if (has_no_elements(shape)) return Status();
    Strides order(shape.size()); // the axes by rising strides
    std::iota(order.begin(), order.end(), std::int64_t{0});
    const auto stride = [&](std::int64_t i) { return strides[static_cast<std::size_t>(i)]; };
    std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return stride(a) < stride(b); });
    std::int64_t reach = 1;
    for (const std::int64_t axis : order) {
        const auto i = static_cast<std::size_t>(axis);
        if (shape[i] == 1) continue;
        if (strides[i] < reach) {
            return invalid(name, " stride[", i, "] = ", strides[i], " must be at least ", reach,
                           ", the elements that axes of smaller strides span: elements of ", name, " might overlap");
        }
        reach = strides[i] * (shape[i] - 1) + reach;
    }
    return Status();
}

// Checks weights, of a plan or of a run. why: what a missing bias is said to be missing for.
Status check_weights(const convt_tensor &w, const convt_tensor *b, const Geometry &g, const char *why) {
    RunTensor dense;
    TRY(check_tensor("w", w, g.w_dtype, g.w_shape, true, &dense));
    if (!g.has_bias) return b ? invalid("b is given, but the problem has no bias") : Status();
    if (!b) return invalid("b is missing: ", why);
    return check_tensor("b", *b, g.b_dtype, g.b_shape, true, &dense);
}

// Checks scales and zero points that arrive with a run, and keeps them in *values.
Status check_run_quantization(const convt_quantization *quantization, const ProblemPlan &plan, const Geometry &g,
                              RunTensors *tensors, std::optional<QuantizationValues> *values) {
    if (!quantization) {
        if (g.has_scales() && !plan.facts().quantization) {
            return invalid("quantization is missing: the plan was made without it");
        }
        // Weights that arrive with the run are examined and packed with the planned quantization.
        if (plan.facts().quantization && plan.facts().weights_at_run_time)
            tensors->quantization = plan.facts().quantization;
        return Status();
    }
    if (!g.has_scales()) return invalid("quantization is given, but w is ", convt_dtype_name(g.w_dtype));
    if (!g.quantized() && quantization->y_range)
        return invalid("y_range is given, but x is f32: a clip is among the post_ops");
    QuantizationValues *const given = &values->emplace();
    TRY(read_quantization(*quantization, g, given));
    if (!g.quantized() && !g.quantizes_x && !plan.facts().weights_at_run_time)
        return invalid("quantization is given, but the weights were converted to f32 with the planned one");
    for (std::int64_t m = 0; !plan.facts().weights_at_run_time && m < g.out_channels; m++) {
        const std::int32_t planned = plan.facts().quantization->w_zero_point_of(m), now = given->w_zero_point_of(m);
        if (now == planned) continue;
        return invalid("w_zero_point of output channel ", m, " is ", now, ", the weights were packed with ", planned);
    }
    tensors->quantization = given;
    return Status();
}

// Checks that tensors in device memory, and streams, are only given to plans on a device.
Status check_memory(const ProblemPlan &plan, const convt_arguments &arguments) {
    const convt_arguments &a = arguments;
    for (const auto &[name, t] : {std::pair("x", a.x), {"w", a.w}, {"b", a.b}, {"residual", a.residual}, {"y", a.y}}) {
        if (!t || raw(t->memory) == CONVT_HOST_MEMORY) continue;
        if (raw(t->memory) != CONVT_DEVICE_MEMORY) {
            return invalid(name, " has memory = ", raw(t->memory), ", which is not a convt_memory");
        }
        if (!plan.facts().is_on_device) return invalid(name, " is in device memory, the plan is for the CPU");
        if (t == a.w || t == a.b) return invalid("weights that come with a run must be in host memory");
    }
    if (a.stream && !plan.facts().is_on_device) return invalid("stream is given, but the plan is for the CPU");
    return Status();
}

} // namespace

const std::vector<Isa> &isas_built_in() {
    static Once<std::vector<Isa>> isas;
    return isas.get([] {
        std::vector<Isa> built;
        for (const IsaFacts &isa : kIsas) {
            bool is_built_in = false;
            for (std::size_t i = 0; i < variant_count(); i++) is_built_in |= variant_at(i).isa == isa.value;
            if (is_built_in) built.push_back(isa.value);
        }
        return built;
    });
}

Status device_table_of(const char *kind, const DeviceTable **table) {
    *table = find_device_table(kind);
    return *table ? Status()
                  : unsupported("device \"", kind,
                                "\" is not built in: convt_device_kind_name() and `convtranspose targets` ",
                                "list those that are");
}

Status device_of(const convt_options &options, std::optional<DeviceRequest> *request) {
    const convt_device &d = *options.device;
    if (!d.name || std::strcmp(d.name, "cpu") == 0) return Status();
    if (d.index < 0) return invalid("device.index = ", d.index, " must not be negative");
    const DeviceTable *table = nullptr;
    TRY(device_table_of(d.name, &table));
    if (raw(options.planning) == CONVT_MEASURE) {
        return unsupported("planning = CONVT_MEASURE is for plans for the CPU: tune the device instead");
    }
    *request = {table, d.index, d.context, options.variant ? options.variant : "",
                options.tuning ? &options.tuning->records : nullptr};
    return Status();
}

Status settings_of(const convt_options &o, PlanSettings *settings) {
    if (o.threads < 0) return invalid("threads = ", o.threads, " must not be negative");
    if (o.threads > kMostThreads) return invalid("threads = ", o.threads, " must be at most ", kMostThreads);
    if (!o.allocate != !o.deallocate) return invalid("allocate and deallocate must be given together");
    if (raw(o.planning) != CONVT_ESTIMATE && raw(o.planning) != CONVT_MEASURE)
        return invalid("planning = ", raw(o.planning), " is not a convt_planning");
    if (o.planning_ms < 0) return invalid("planning_ms = ", o.planning_ms, " must not be negative");
    if (raw(o.planning) == CONVT_MEASURE) settings->measuring_ms = o.planning_ms ? o.planning_ms : kMeasuringMs;
    settings->parallel = {std::max(o.threads, 1), o.parallel_for, o.parallel_user};
    settings->all_threads = o.all_threads != 0;
    settings->sums_in_f16 = o.sums_in_f16 != 0;
    settings->may_change_rounding = o.winograd != 0;
    settings->tuning = o.tuning ? &o.tuning->records : nullptr;
    settings->allocator = {o.allocate, o.deallocate, o.allocate_user};
    return Status();
}

Status choose_isa(const convt_options &o, PlanSettings *settings) {
    if (isas_built_in().empty()) {
        return unsupported(
            "no kernels for the CPU are linked into this program: libconvtranspose_float.a or _quantized.a must "
            "come before libconvtranspose_absent.a, or be asked for by the linker's -u convt_float_kernels "
            "or -u convt_quantized_kernels");
    }
    if (o.variant) {
        settings->variant = o.variant;
        if (!names_something(settings->variant))
            return unsupported("variant \"", o.variant, "\" is not built in: convt_variant_name(), ",
                               "convt_algorithm_name() and `convtranspose targets` list those that are");
    }
    for (const Isa isa : isas_built_in()) {
        if (o.isa ? std::strcmp(o.isa, isa_name(isa)) == 0 : isa_supported(isa)) {
            if (!isa_supported(isa)) return unsupported("isa ", isa_name(isa), " is not supported by this CPU");
            settings->isa = isa;
            settings->profile = &cost_profile(settings->tuning, isa);
            return Status();
        }
    }
    if (o.isa)
        return unsupported("isa \"", o.isa, "\" is not built in: convt_isa_name() and `convtranspose targets` ",
                           "list those that are");
    return unsupported("this CPU runs none of the ISAs that are built in");
}

Status check_tensor(const char *name, const convt_tensor &t, convt_dtype dtype, const Shape &shape, bool dense,
                    RunTensor *tensor) {
    if (raw(t.dtype) != dtype) {
        return invalid(name, " has type ", dtype_facts(raw(t.dtype)).name, ", the plan has ", convt_dtype_name(dtype));
    }
    if (t.rank != shape.size()) return invalid(name, " has rank ", t.rank, ", needs ", shape.size());
    if (!t.shape) return invalid(name, " has no shape");
    if (!std::equal(shape.begin(), shape.end(), t.shape)) {
        return invalid(name, " has shape ", to_string(Shape(t.shape, t.shape + t.rank)), ", the plan has ",
                       to_string(shape));
    }
    *tensor = {t.data, dense_strides(shape)};
    Strides &strides = tensor->strides;
    if (has_no_elements(shape)) return Status();
    if (!t.data) return invalid(name, " has no data");
    const std::size_t alignment = convt_dtype_size(dtype);
    if (reinterpret_cast<std::uintptr_t>(t.data) % alignment != 0) {
        return invalid(name, " is not aligned to its elements of ", alignment, " bytes");
    }
    if (t.strides) {
        for (std::size_t i = 0; i < shape.size(); i++) {
            if (shape[i] == 1) continue;
            const std::int64_t stride = t.strides[i];
            if (stride <= 0) return invalid(name, " stride[", i, "] = ", stride, " must be positive");
            if (dense && stride != strides[i]) {
                return invalid(name, " stride[", i, "] = ", stride, " must be ", strides[i], ": ", name,
                               " must be dense");
            }
            if (i + 1 == shape.size() && stride != 1)
                return invalid(name, " stride[", i, "] = ", stride, " must be 1 on the last axis");
            strides[i] = stride;
        }
    }
    return check_spread(name, shape, strides.data());
}

Status resolve_for_plan(const convt_problem &problem, Geometry *geometry) {
    TRY(resolve(problem, geometry));
    for (const auto &[name, shape] : {std::pair<const char *, const Shape *>{"x", &geometry->x_shape},
                                      {"w", &geometry->w_shape},
                                      {"y", &geometry->y_shape}}) {
        TRY(check_spread(name, *shape, dense_strides(*shape).data()));
    }
    return Status();
}

Problem copy_of(const convt_problem &p) {
    const auto ints = [](const convt_ints &v) { return v.data ? Ints(Shape(v.data, v.data + v.size)) : Ints(); };
    Problem c;
    c.opset = p.opset;
    c.dtype = p.dtype;
    if (p.w_dtype) c.w_dtype = p.w_dtype;
    if (p.y_dtype) c.y_dtype = p.y_dtype;
    c.layout = p.layout;
    const convt_attributes &a = *p.attributes;
    if (a.auto_pad) c.attributes.auto_pad = a.auto_pad;
    c.attributes.dilations = ints(a.dilations);
    c.attributes.group = a.group;
    c.attributes.kernel_shape = ints(a.kernel_shape);
    c.attributes.output_padding = ints(a.output_padding);
    c.attributes.output_shape = ints(a.output_shape);
    c.attributes.pads = ints(a.pads);
    c.attributes.strides = ints(a.strides);
    c.x_shape = ints(p.x_shape).value_or(Shape());
    c.w_shape = ints(p.w_shape).value_or(Shape());
    c.b_shape = ints(p.b_shape);
    const convt_post_ops &after = *p.post_ops;
    c.post_ops = {after.adds_residual, after.activation, after.alpha, after.beta};
    c.quantizes_x = p.quantizes_x;
    return c;
}

Status weights_for_plan(const convt_tensor *w, const convt_tensor *b, const Geometry &geometry, LayerWeights *weights) {
    if (w) {
        TRY(check_weights(*w, b, geometry, "the problem has a bias and w is given"));
    } else if (b) {
        return invalid(geometry.has_bias ? "b is given without w" : "b is given, but the problem has no bias");
    }
    if (w && geometry.has_scales() && !weights->quantization) {
        return invalid(
            "w holds ", convt_dtype_name(w->dtype),
            ", whose scales must be known when it is packed: give the quantization of the problem (w_scale, and "
            "x_scale and y_scale where x and y have 8 bits), or plan without w");
    }
    // An empty w has nothing to read, but still counts as given.
    static const double nothing = 0;
    weights->w = w ? (w->data ? w->data : &nothing) : nullptr;
    weights->b = b ? b->data : nullptr;
    return Status();
}

Status tensors_of(const ProblemPlan &plan, const Geometry &g, const convt_arguments &arguments, RunTensors *t,
                  std::optional<QuantizationValues> *values) {
    const convt_tensor *const x = arguments.x, *const w = arguments.w, *const b = arguments.b,
                              *const residual = arguments.residual, *const y = arguments.y;
    if (!x || !y) return invalid("plan, x and y must not be null");
    TRY(check_memory(plan, arguments));
    TRY(check_tensor("x", *x, g.dtype, g.x_shape, false, &t->x));
    TRY(check_tensor("y", *y, g.y_dtype, g.y_shape, false, &t->y));
    if (y->strides) TRY(check_no_overlap("y", g.y_shape, t->y.strides));
    if (g.post_ops.adds_residual) {
        if (!residual) return invalid("residual is missing: the problem's post_ops add one");
        TRY(check_tensor("residual", *residual, g.y_dtype, g.y_shape, false, &t->residual));
    } else if (residual) {
        return invalid("residual is given, but the problem's post_ops add none");
    }
    if (plan.facts().weights_at_run_time) {
        if (!w) return invalid("w is missing: the plan was made without weights");
        TRY(check_weights(*w, b, g, "the problem has a bias"));
    } else if (w || b) {
        return invalid(w ? "w" : "b", " is given, but the plan has constant weights");
    }
    TRY(check_run_quantization(arguments.quantization, plan, g, t, values));
    if (reinterpret_cast<std::uintptr_t>(arguments.workspace) % kAlignment != 0) {
        return invalid("workspace begins at ", arguments.workspace, ", which is not a multiple of ", kAlignment,
                       " bytes");
    }
    t->w = w ? w->data : nullptr;
    t->b = b ? b->data : nullptr;
    t->x.memory = x->memory;
    t->y.memory = y->memory;
    if (residual) t->residual.memory = residual->memory;
    t->stream = arguments.stream;
    return Status();
}

} // namespace convtranspose
