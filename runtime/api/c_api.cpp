// The C interface: checks what the caller hands over, and keeps exceptions in.
#include "convtranspose/convtranspose.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/once.h"
#include "base/shape.h"
#include "base/threads.h"
#include "cpu/cpu.h"
#include "gpu/device_plan.h"
#include "kernels/kernel_tables.h"
#include "plan/layer_plan.h"
#include "problem/geometry.h"

using convtranspose::Geometry;
using convtranspose::Isa;
using convtranspose::LayerPlan;
using convtranspose::Shape;
using convtranspose::Status;

namespace {

struct KeptWeights {
    convtranspose::Block w, b; // b: empty if there is none
};

} // namespace

struct convt_plan {
    Geometry geometry;
    std::unique_ptr<LayerPlan> plan; // or else:
    std::unique_ptr<convtranspose::DevicePlan> device;
    std::vector<std::size_t> dimensions; // of x and y, that the plan is of: without unit axes on the CPU
    // Where those are not all, and weights are constant: as they came, for an input size that has more along the other axes.
    std::shared_ptr<const KeptWeights> kept;
    convtranspose::Problem problem; // what reshape resolves again
    double macs = 0;
    // The plan with all dimensions, made by the first run of a view that has gaps along the last axis that is left.
    mutable std::atomic<LayerPlan *> with_gaps{nullptr};

    convt_plan() = default;
    convt_plan(const convt_plan &) = delete;
    convt_plan &operator=(const convt_plan &) = delete;
    ~convt_plan() { delete with_gaps.load(); }
};

namespace {

using convtranspose::attempt;
using convtranspose::concat;
using convtranspose::dense_strides;
using convtranspose::DevicePlan;
using convtranspose::DeviceTable;
using convtranspose::invalid;
using convtranspose::isa_name;
using convtranspose::Once;
using convtranspose::overflow;
using convtranspose::raw;
using convtranspose::Strides;
using convtranspose::to_string;
using convtranspose::volume;

// Memory that needs no allocation and no destructor: reporting a failure cannot fail. A longer message is cut off.
CONVTRANSPOSE_THREAD_LOCAL char last_error[2048] = "";

convt_status report(convt_status code, const char *begin, const char *end = "") {
    if (code != CONVT_OK) std::snprintf(last_error, sizeof last_error, "%s%s", begin, end);
    return code;
}

#ifdef __cpp_exceptions
// In the handler of an exception.
convt_status report_caught() {
    try {
        throw;
    } catch (const std::bad_alloc &) {
        return report(CONVT_OUT_OF_MEMORY, "out of memory");
    } catch (const std::exception &e) {
        return report(CONVT_INTERNAL, "an exception in a hook, or inside the library: ", e.what());
    } catch (...) {
        return report(CONVT_INTERNAL, "an exception of an unknown type, which a hook threw");
    }
}
#else
convt_status report_caught() { return CONVT_INTERNAL; }
#endif

// Runs body(), rounding to nearest, and turns what it throws into a status: nothing may leave a C function but by return.
template<typename Body>
convt_status guarded(const Body &body) noexcept {
    const convtranspose::FloatMode::Scope nearest(convtranspose::FloatMode::of_this_thread().to_nearest());
    convt_status code = CONVT_INTERNAL;
    attempt(
        [&] {
            const Status status = body();
            code = report(status.code(), status.message().c_str());
        },
        [&] { code = report_caught(); });
    return code;
}

// Returns what body() returns, or `otherwise` where that needs memory that is not to be had.
template<typename T, typename Body>
T guarded_or(T otherwise, const Body &body) noexcept {
    guarded([&] {
        otherwise = body();
        return Status();
    });
    return otherwise;
}

bool built_in(Isa isa) {
    for (std::size_t i = 0; i < convtranspose::variant_count(); i++) {
        if (convtranspose::variant_at(i).isa == isa) return true;
    }
    return false;
}

struct IsasBuiltIn {
    std::array<Isa, std::size(convtranspose::kIsas)> list = {};
    std::size_t count = 0;

    const Isa *begin() const { return list.data(); }
    const Isa *end() const { return begin() + count; }
};

const IsasBuiltIn &isas_built_in() {
    static Once<IsasBuiltIn> isas;
    return isas.get([] {
        IsasBuiltIn built;
        for (const Isa isa : convtranspose::kIsas) {
            if (built_in(isa)) built.list[built.count++] = isa;
        }
        return built;
    });
}

const std::vector<const char *> &variant_names() {
    static Once<std::vector<const char *>> names;
    return names.get([] {
        std::vector<const char *> list;
        for (std::size_t i = 0; i < convtranspose::variant_count(); i++) {
            const char *name = convtranspose::variant_at(i).name;
            const auto same = [&](const char *other) { return std::strcmp(name, other) == 0; };
            if (std::none_of(list.begin(), list.end(), same)) list.push_back(name);
        }
        return list;
    });
}

// Whether there is a way to compute of that name.
bool names_something(const std::string &name) {
    bool found = convtranspose::find_algorithm(name) != nullptr;
    convtranspose::for_each_kernel_table([&](const convtranspose::KernelTable &table) {
        for (std::size_t i = 0; i < table.variant_count; i++) found = found || name == table.variants[i].name;
    });
    return found;
}

bool names_something(const DeviceTable &table, const std::string &name) {
    return std::any_of(table.variants, table.variants + table.variant_count,
                       [&](const convtranspose::DeviceVariant &v) { return name == v.name; });
}

// What of the options is for plans on a device; *device is empty if they are for the CPU.
Status device_of(const convt_options *options, std::optional<convtranspose::DeviceRequest> *request) {
    if (!options || !options->device.name || std::strcmp(options->device.name, "cpu") == 0) return Status();
    const convt_device &d = options->device;
    if (d.index < 0) return invalid("device.index = ", d.index, " must not be negative");
    const DeviceTable *const table = convtranspose::find_device_table(d.name);
    if (!table) return Status(CONVT_UNSUPPORTED, concat("device \"", d.name, "\" is not built in"));
    if (options->variant && !names_something(*table, options->variant)) {
        return Status(CONVT_UNSUPPORTED, concat("variant \"", options->variant, "\" is not built in for ", d.name));
    }
    *request = {table, d.index, d.context, options->variant ? options->variant : "",
                options->tuning ? &options->tuning->records : nullptr};
    return Status();
}

Status settings_of(const convt_options *options, convtranspose::PlanSettings *settings) {
    const convt_options defaults{};
    const convt_options &o = options ? *options : defaults;
    if (o.threads < 0) return invalid("threads = ", o.threads, " must not be negative");
    if (o.threads > 4096) return invalid("threads = ", o.threads, " must be at most 4096");
    if (!o.allocate != !o.deallocate) return invalid("allocate and deallocate must be given together");
    settings->parallel = {std::max(o.threads, 1), o.parallel_for, o.parallel_user};
    settings->sums_in_f16 = o.sums_in_f16 != 0;
    settings->may_change_rounding = o.winograd != 0;
    settings->tuning = o.tuning ? &o.tuning->records : nullptr;
    settings->allocator = {o.allocate, o.deallocate, o.allocate_user};
    if (isas_built_in().count == 0) {
        return Status(
            CONVT_UNSUPPORTED,
            "no kernels are linked into this program: libconvtranspose_float.a or _quantized.a must come before "
            "libconvtranspose_absent.a, or be asked for by the linker's -u convt_float_kernels or "
            "-u convt_quantized_kernels");
    }
    if (o.variant) {
        settings->variant = o.variant;
        if (!names_something(settings->variant)) {
            return Status(CONVT_UNSUPPORTED, concat("variant \"", o.variant, "\" is not built in"));
        }
    }
    for (const Isa isa : isas_built_in()) {
        if (o.isa ? std::strcmp(o.isa, isa_name(isa)) == 0 : isa_supported(isa)) {
            if (!isa_supported(isa))
                return Status(CONVT_UNSUPPORTED, concat("isa ", isa_name(isa), " is not supported by this CPU"));
            settings->isa = isa;
            return Status();
        }
    }
    if (o.isa) return Status(CONVT_UNSUPPORTED, concat("isa \"", o.isa, "\" is not built in"));
    return Status(CONVT_UNSUPPORTED, "this CPU runs none of the ISAs that are built in");
}

// Kernels count the elements of a tensor, as far as they are spread in memory, with 32 bits.
constexpr std::int64_t kMostElements = std::numeric_limits<std::int32_t>::max();

Status check_spread(const char *name, const Shape &shape, const std::int64_t *strides) {
    if (std::count(shape.begin(), shape.end(), 0)) return Status();
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

const char *dtype_name(int dtype) {
    switch (dtype) {
    case CONVT_F16: return "f16";
    case CONVT_BF16: return "bf16";
    case CONVT_F32: return "f32";
    case CONVT_F64: return "f64";
    case CONVT_U8: return "u8";
    case CONVT_S8: return "s8";
    case CONVT_S32: return "s32";
    default: return "unknown";
    }
}

// Checks a tensor handed to a run or a plan against what was planned. dense: it must have no gaps. On success *strides
// holds its strides.
Status check_tensor(const char *name, const convt_tensor &t, convt_dtype dtype, const Shape &shape, bool dense,
                    Strides *strides) {
    if (raw(t.dtype) != dtype) {
        return invalid(name, " has type ", dtype_name(raw(t.dtype)), ", the plan has ", convt_dtype_name(dtype));
    }
    if (t.rank != shape.size()) return invalid(name, " has rank ", t.rank, ", needs ", shape.size());
    if (!t.shape) return invalid(name, " has no shape");
    bool empty = false;
    for (std::size_t i = 0; i < shape.size(); i++) {
        if (t.shape[i] != shape[i]) {
            return invalid(name, " has shape ", to_string(Shape(t.shape, t.shape + t.rank)), ", the plan has ",
                           to_string(shape));
        }
        empty = empty || shape[i] == 0;
    }
    *strides = dense_strides(shape);
    if (empty) return Status();
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
            if (dense && stride != (*strides)[i]) {
                return invalid(name, " stride[", i, "] = ", stride, " must be ", (*strides)[i], ": ", name,
                               " must be dense");
            }
            if (i + 1 == shape.size() && stride != 1)
                return invalid(name, " stride[", i, "] = ", stride, " must be 1 on the last axis");
            (*strides)[i] = stride;
        }
    }
    return check_spread(name, shape, strides->data());
}

// Two elements of a tensor must not share memory. Whether they do is hard to say in general, and easy of what callers have:
// sorted by stride, each axis must step over all that those before it span.
Status check_no_overlap(const char *name, const Shape &shape, const Strides &strides) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < shape.size(); i++) {
        if (shape[i] == 0) return Status();
        if (shape[i] > 1) order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return strides[a] < strides[b]; });
    std::int64_t reach = 1;
    for (const std::size_t i : order) {
        if (strides[i] < reach) {
            return invalid(name, " stride[", i, "] = ", strides[i], " must be at least ", reach,
                           ", the elements that axes of smaller strides span: elements of ", name, " might overlap");
        }
        reach = strides[i] * (shape[i] - 1) + reach;
    }
    return Status();
}

// The problem, held by value.
convtranspose::Problem copy_of(const convt_problem &p) {
    const auto ints = [](const convt_ints &v) {
        return v.data ? convtranspose::Ints(Shape(v.data, v.data + v.size)) : convtranspose::Ints();
    };
    convtranspose::Problem c;
    c.opset = p.opset;
    c.dtype = p.dtype;
    if (p.w_dtype) c.w_dtype = p.w_dtype;
    if (p.y_dtype) c.y_dtype = p.y_dtype;
    c.layout = p.layout;
    const convt_attributes &a = p.attributes;
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
    c.post_ops = p.post_ops;
    return c;
}

Status resolve_for_plan(const convt_problem &problem, Geometry *geometry) {
    Status status = resolve(problem, geometry);
    if (!status) return status;
    for (const auto &[name, shape] : {std::pair<const char *, const Shape *>{"x", &geometry->x_shape},
                                      {"w", &geometry->w_shape},
                                      {"y", &geometry->y_shape}}) {
        status = check_spread(name, *shape, dense_strides(*shape).data());
        if (!status) return status;
    }
    return Status();
}

// Plans on the CPU, of plan->geometry without its unit axes. w and b: null if they arrive with each run.
Status plan_on_cpu(const convtranspose::PlanSettings &settings, const convtranspose::QuantizationValues *quantization,
                   const void *w, const void *b, convt_plan *plan) {
    const Geometry &g = plan->geometry;
    plan->dimensions = without_unit_axes(g);
    Status status =
        LayerPlan::create(with_dimensions(g, plan->dimensions), settings, quantization, {w, b}, &plan->plan);
    if (!status || !w || plan->dimensions.size() == g.x_shape.size()) return status;
    auto kept = std::make_shared<KeptWeights>();
    status = copy_block(settings.allocator, w, g.w_bytes(), "weights", &kept->w);
    if (status) status = copy_block(settings.allocator, b, g.b_bytes(), "biases", &kept->b);
    plan->kept = std::move(kept);
    return status;
}

// Whether the axes that are not among the dimensions have one position each.
bool others_are_units(const Geometry &g, const std::vector<std::size_t> &dimensions) {
    const std::size_t first = g.layout == CONVT_CHANNELS_FIRST ? 2 : 1;
    for (std::size_t a = 0; a < g.axes.size(); a++) {
        const bool is_there = std::find(dimensions.begin(), dimensions.end(), first + a) != dimensions.end();
        if (!is_there && !is_unit(g.axes[a])) return false;
    }
    return true;
}

// Whether x or y, channels first, have gaps between positions of the last axis that is left: kernels read and write its rows densely.
bool has_gaps_in_rows(const convt_plan &plan, const convtranspose::RunTensors &t) {
    const Geometry &g = plan.geometry;
    if (g.layout != CONVT_CHANNELS_FIRST || plan.dimensions.back() + 1 == g.x_shape.size()) return false;
    const std::size_t last = plan.dimensions.back();
    const bool in_x = g.x_shape[last] > 1 && t.x_strides.back() != 1;
    const bool in_y =
        g.y_shape[last] > 1 && (t.y_strides.back() != 1 || (t.residual && t.residual_strides.back() != 1));
    return in_x || in_y;
}

// The plan for such views, with the settings and weights of the other. Threads that race to make it each make one.
Status plan_with_gaps(const convt_plan &plan, const LayerPlan **made) {
    LayerPlan *known = plan.with_gaps.load(std::memory_order_acquire);
    if (!known) {
        const LayerPlan &p = *plan.plan;
        const KeptWeights *const kept = plan.kept.get();
        std::vector<std::size_t> all(plan.geometry.x_shape.size());
        std::iota(all.begin(), all.end(), std::size_t{0});
        convtranspose::PlanSettings settings = p.settings();
        settings.variant.clear(); // a kernel that was asked for may be unable to
        std::unique_ptr<LayerPlan> own;
        Status status = LayerPlan::create(
            with_dimensions(plan.geometry, all), settings, p.quantization() ? &*p.quantization() : nullptr,
            {kept ? kept->w.data() : nullptr, kept && plan.geometry.has_bias ? kept->b.data() : nullptr}, &own);
        if (!status) return status;
        if (plan.with_gaps.compare_exchange_strong(known, own.get(), std::memory_order_acq_rel)) known = own.release();
    }
    *made = known;
    return Status();
}

// A run's tensors, checked against what was planned, for either kind of plan.
template<typename Plan>
Status run_checked(const convt_plan &plan, const Plan &p, const convt_arguments &arguments) {
    const auto &[x, w, b, residual, y, quantization, workspace, stream] = arguments;
    const Geometry &g = plan.geometry;
    convtranspose::RunTensors t;
    Strides strides;
    Status status = check_tensor("x", *x, g.dtype, g.x_shape, false, &t.x_strides);
    if (status) status = check_tensor("y", *y, g.y_dtype, g.y_shape, false, &t.y_strides);
    if (status && y->strides) status = check_no_overlap("y", g.y_shape, t.y_strides);
    if (!status) return status;
    if (g.post_ops.adds_residual) {
        if (!residual) return invalid("residual is missing: the problem's post_ops add one");
        status = check_tensor("residual", *residual, g.y_dtype, g.y_shape, false, &t.residual_strides);
        if (!status) return status;
        t.residual = residual->data;
    } else if (residual) {
        return invalid("residual is given, but the problem's post_ops add none");
    }
    if (p.weights_at_run_time()) {
        if (!w) return invalid("w is missing: the plan was made without weights");
        status = check_tensor("w", *w, g.w_dtype, g.w_shape, true, &strides);
        if (!status) return status;
        if (g.has_bias) {
            if (!b) return invalid("b is missing: the problem has a bias");
            status = check_tensor("b", *b, g.b_dtype, {g.out_channels}, true, &strides);
            if (!status) return status;
        } else if (b) {
            return invalid("b is given, but the problem has no bias");
        }
    } else if (w || b) {
        return invalid(w ? "w" : "b", " is given, but the plan has constant weights");
    }

    convtranspose::QuantizationValues values;
    if (quantization) {
        if (!g.quantized()) return invalid("quantization is given, but x is ", convt_dtype_name(g.dtype));
        status = read_quantization(*quantization, g, &values);
        if (!status) return status;
        for (std::int64_t m = 0; !p.weights_at_run_time() && m < g.out_channels; m++) {
            const std::int32_t planned = p.quantization()->w_zero_point_of(m), now = values.w_zero_point_of(m);
            if (now == planned) continue;
            return invalid("w_zero_point of output channel ", m, " is ", now, ", the weights were packed with ",
                           planned);
        }
        t.quantization = &values;
    } else if (g.quantized() && !p.quantization()) {
        return invalid("quantization is missing: the plan was made without it");
    } else if (p.quantization()) {
        // Weights of the run are examined and packed with what was planned.
        if (p.weights_at_run_time()) t.quantization = &*p.quantization();
    }
    if (reinterpret_cast<std::uintptr_t>(workspace) % convtranspose::kAlignment != 0) {
        return invalid("workspace is not aligned to ", convtranspose::kAlignment, " bytes");
    }
    const convtranspose::RunTensors given = t; // its strides
    for (Strides *const all : {&t.x_strides, &t.y_strides, &t.residual_strides}) {
        if (all->size() > 0) *all = strides_of(*all, plan.dimensions);
    }
    t.x = x->data;
    t.y = y->data;
    t.w = w ? w->data : nullptr;
    t.b = b ? b->data : nullptr;
    if constexpr (std::is_same_v<Plan, DevicePlan>) {
        for (const convt_tensor *host : {w, b}) {
            if (host && host->memory != CONVT_HOST_MEMORY)
                return invalid("weights that come with a run must be in host memory");
        }
        t.x_memory = x->memory; // and workspace, of which it asks for no bytes, is not looked at
        t.y_memory = y->memory;
        if (residual) t.residual_memory = residual->memory;
        t.stream = stream;
        return p.run(t);
    } else {
        if (!has_gaps_in_rows(plan, t)) return p.run(t, workspace);
        const LayerPlan *whole = nullptr;
        status = plan_with_gaps(plan, &whole);
        if (!status) return status;
        t.x_strides = given.x_strides;
        t.y_strides = given.y_strides;
        t.residual_strides = given.residual_strides;
        return whole->run(t, nullptr);
    }
}

Status run_plan(const convt_plan *plan, const convt_arguments &arguments) {
    const auto &[x, w, b, residual, y, quantization, workspace, stream] = arguments;
    if (!plan || !x || !y) return invalid("plan, x and y must not be null");
    for (const auto &[name, t] : {std::pair("x", x), {"w", w}, {"b", b}, {"residual", residual}, {"y", y}}) {
        if (!t || raw(t->memory) == CONVT_HOST_MEMORY) continue;
        if (raw(t->memory) != CONVT_DEVICE_MEMORY) {
            return invalid(name, " has memory = ", raw(t->memory), ", which is not a convt_memory");
        }
        if (!plan->device) return invalid(name, " is in device memory, the plan is for the CPU");
    }
    if (plan->device) return run_checked(*plan, *plan->device, arguments);
    if (stream) return invalid("stream is given, but the plan is for the CPU");
    return run_checked(*plan, *plan->plan, arguments);
}

const std::vector<const char *> &able(const convt_plan &plan) {
    return plan.device ? plan.device->able() : plan.plan->able();
}

// Number i of the kinds of devices whose component is linked. Null past the last.
const char *device_kind(std::size_t i) {
    for (const char *kind : {"cuda", "opencl"}) {
        if (convtranspose::find_device_table(kind) && i-- == 0) return kind;
    }
    return nullptr;
}

} // namespace

extern "C" {

const char *convt_last_error(void) { return last_error; }

const char *convt_status_name(convt_status status) {
    switch (raw(status)) {
    case CONVT_OK: return "ok";
    case CONVT_INVALID_ARGUMENT: return "invalid argument";
    case CONVT_UNSUPPORTED: return "unsupported";
    case CONVT_OVERFLOW: return "overflow";
    case CONVT_OUT_OF_MEMORY: return "out of memory";
    case CONVT_INTERNAL: return "internal error";
    case CONVT_DEVICE_ERROR: return "device error";
    default: return "unknown";
    }
}

const char *convt_dtype_name(convt_dtype dtype) { return dtype_name(raw(dtype)); }

size_t convt_dtype_size(convt_dtype dtype) {
    switch (raw(dtype)) {
    case CONVT_F16:
    case CONVT_BF16: return 2;
    case CONVT_F32: return 4;
    case CONVT_F64: return 8;
    case CONVT_U8:
    case CONVT_S8: return 1;
    case CONVT_S32: return 4;
    default: return 0;
    }
}

convt_status convt_infer_shape(const convt_problem *problem, int64_t *y_shape, size_t capacity, size_t *rank) {
    return guarded([&]() -> Status {
        if (!problem || !rank || (!y_shape && capacity)) return invalid("problem, y_shape and rank must not be null");
        Geometry g;
        Status status = resolve(*problem, &g);
        if (!status) return status;
        *rank = g.y_shape.size();
        if (y_shape) std::copy_n(g.y_shape.begin(), std::min(capacity, g.y_shape.size()), y_shape);
        return Status();
    });
}

convt_status convt_plan_create(const convt_problem *problem, const convt_tensor *w, const convt_tensor *b,
                               const convt_options *options, convt_plan **plan) {
    return guarded([&]() -> Status {
        if (!problem || !plan) return invalid("problem and plan must not be null");
        Geometry g;
        Status status = resolve_for_plan(*problem, &g);
        if (!status) return status;
        std::optional<convtranspose::DeviceRequest> device;
        Status device_status = device_of(options, &device);
        const bool falls_back = options && options->device.falls_back;
        if (!device_status && (!falls_back || device_status.code() == CONVT_INVALID_ARGUMENT)) return device_status;
        convt_options on_cpu = options ? *options : convt_options{};
        if (on_cpu.device.name && std::strcmp(on_cpu.device.name, "cpu") != 0)
            on_cpu.variant = nullptr; // names a device's
        convtranspose::PlanSettings settings;
        status = settings_of(&on_cpu, &settings);
        if (!status) return status;
        convtranspose::QuantizationValues quantization;
        const bool quantized = convtranspose::given(problem->quantization);
        if (quantized) status = read_quantization(problem->quantization, g, &quantization);
        if (!status) return status;
        Strides strides;
        if (w) status = check_tensor("w", *w, g.w_dtype, g.w_shape, true, &strides);
        if (!status) return status;
        if (b && !g.has_bias) return invalid("b is given, but the problem has no bias");
        if (b && !w) return invalid("b is given without w");
        if (w && !b && g.has_bias) return invalid("b is missing: the problem has a bias and w is given");
        if (b) status = check_tensor("b", *b, g.b_dtype, {g.out_channels}, true, &strides);
        if (!status) return status;
        if (w && g.quantized() && !quantized) {
            return invalid("w is given without the problem's quantization, which it is packed with");
        }

        // An empty w has nothing to read, but is still given.
        static const double nothing = 0;
        const void *w_data = w ? (w->data ? w->data : &nothing) : nullptr;
        auto made = std::make_unique<convt_plan>();
        made->problem = copy_of(*problem);
        made->macs = count_macs(g);
        made->geometry = g;
        made->dimensions.resize(g.x_shape.size());
        std::iota(made->dimensions.begin(), made->dimensions.end(), std::size_t{0});
        if (device) {
            status = DevicePlan::create(g, *device, settings.allocator, quantized ? &quantization : nullptr, w_data,
                                        b ? b->data : nullptr, &made->device);
            if (status) *plan = made.release();
            if (status || !falls_back) return status;
        }
        status = plan_on_cpu(settings, quantized ? &quantization : nullptr, w_data, b ? b->data : nullptr, made.get());
        if (!status) return status;
        *plan = made.release();
        return Status();
    });
}

convt_status convt_plan_reshape(const convt_plan *plan, convt_ints x_shape, convt_plan **reshaped) {
    return guarded([&]() -> Status {
        if (!plan || !reshaped) return invalid("plan and reshaped must not be null");
        convtranspose::Problem problem = plan->problem;
        if (x_shape.size != problem.x_shape.size()) {
            return invalid("x_shape has ", x_shape.size, " elements, needs ", problem.x_shape.size(),
                           " (the rank of the plan)");
        }
        problem.x_shape = x_shape.data ? Shape(x_shape.data, x_shape.data + x_shape.size) : Shape();
        Geometry g;
        Status status = resolve_for_plan(convtranspose::detail::view(problem), &g);
        if (!status) return status;
        auto made = std::make_unique<convt_plan>();
        made->problem = std::move(problem);
        made->macs = count_macs(g);
        made->geometry = g;
        made->dimensions = plan->dimensions;
        if (plan->device) {
            status = plan->device->reshape(g, &made->device);
        } else if (others_are_units(g, plan->dimensions)) {
            made->kept = plan->kept;
            status = plan->plan->reshape_plan(with_dimensions(g, plan->dimensions), &made->plan);
        } else {
            const LayerPlan &p = *plan->plan;
            const KeptWeights *const kept = plan->kept.get();
            status = plan_on_cpu(p.settings(), p.quantization() ? &*p.quantization() : nullptr,
                                 kept ? kept->w.data() : nullptr, kept ? kept->b.data() : nullptr, made.get());
        }
        if (!status) return status;
        *reshaped = made.release();
        return Status();
    });
}

void convt_plan_destroy(convt_plan *plan) { delete plan; }

convt_status convt_plan_run(const convt_plan *plan, const convt_tensor *x, const convt_tensor *w, const convt_tensor *b,
                            const convt_tensor *y, void *workspace) {
    return guarded([&] { return run_plan(plan, {x, w, b, nullptr, y, nullptr, workspace, nullptr}); });
}

convt_status convt_plan_run_quantized(const convt_plan *plan, const convt_tensor *x, const convt_tensor *w,
                                      const convt_tensor *b, const convt_tensor *y,
                                      const convt_quantization *quantization, void *workspace) {
    return guarded([&]() -> Status {
        if (!quantization) return invalid("quantization must not be null");
        return run_plan(plan, {x, w, b, nullptr, y, quantization, workspace, nullptr});
    });
}

convt_status convt_plan_run_with(const convt_plan *plan, const convt_arguments *arguments) {
    return guarded([&]() -> Status {
        if (!arguments) return invalid("arguments must not be null");
        return run_plan(plan, *arguments);
    });
}

size_t convt_plan_workspace_bytes(const convt_plan *plan) {
    return !plan || plan->device ? 0 : plan->plan->workspace_bytes();
}
size_t convt_plan_packed_bytes(const convt_plan *plan) {
    if (!plan) return 0;
    const std::size_t kept = plan->kept ? plan->kept->w.size() + plan->kept->b.size() : 0;
    return plan->device ? plan->device->packed_bytes() : plan->plan->packed_bytes() + kept;
}
size_t convt_plan_rank(const convt_plan *plan) { return plan ? plan->geometry.x_shape.size() : 0; }
const int64_t *convt_plan_x_shape(const convt_plan *plan) { return plan ? plan->geometry.x_shape.data() : nullptr; }
const int64_t *convt_plan_y_shape(const convt_plan *plan) { return plan ? plan->geometry.y_shape.data() : nullptr; }
double convt_plan_macs(const convt_plan *plan) { return plan ? plan->macs : 0; }
int convt_plan_threads(const convt_plan *plan) {
    if (!plan) return 0;
    return plan->device ? 1 : plan->plan->settings().parallel.threads;
}
const char *convt_plan_variant(const convt_plan *plan) {
    if (!plan) return "";
    return plan->device ? plan->device->variant().name : plan->plan->direct().variant().name;
}
const char *convt_plan_algorithm(const convt_plan *plan) {
    if (!plan) return "";
    return plan->device ? "direct" : plan->plan->algorithm();
}
const char *convt_plan_problem(const convt_plan *plan) {
    if (!plan) return "";
    return guarded_or("", [&] { return (plan->device ? plan->device->key() : plan->plan->key()).c_str(); });
}
size_t convt_plan_candidate_count(const convt_plan *plan) {
    if (!plan) return 0;
    return guarded_or(size_t{0}, [&] { return able(*plan).size(); });
}
const char *convt_plan_candidate(const convt_plan *plan, size_t i) {
    if (i >= convt_plan_candidate_count(plan)) return nullptr;
    return able(*plan)[i];
}
size_t convt_plan_kernel_count(const convt_plan *plan) {
    if (!plan) return 0;
    if (plan->device) return 1;
    return guarded_or(size_t{0}, [&] { return plan->plan->kernels().size(); });
}
const char *convt_plan_kernel(const convt_plan *plan, size_t i) {
    if (i >= convt_plan_kernel_count(plan)) return nullptr;
    return plan->device ? plan->device->variant().name : plan->plan->kernels()[i];
}
const char *convt_plan_isa(const convt_plan *plan) {
    if (!plan) return "";
    return plan->device ? plan->device->table().kind : isa_name(plan->plan->direct().variant().isa);
}
const char *convt_plan_device(const convt_plan *plan) {
    if (!plan) return "";
    return plan->device ? plan->device->table().kind : "cpu";
}
const char *convt_plan_explain(const convt_plan *plan) {
    if (!plan) return "";
    return guarded_or("",
                      [&] { return (plan->device ? plan->device->explanation() : plan->plan->explanation()).c_str(); });
}

size_t convt_device_kind_count(void) {
    size_t count = 0;
    while (device_kind(count)) count++;
    return count;
}
const char *convt_device_kind_name(size_t i) { return device_kind(i); }

size_t convt_device_count(const char *kind) {
    size_t count = 0;
    guarded([&]() -> Status {
        const DeviceTable *const table = kind ? convtranspose::find_device_table(kind) : nullptr;
        if (!table) return Status(CONVT_UNSUPPORTED, concat("device \"", kind ? kind : "", "\" is not built in"));
        convtranspose::DeviceError error;
        const int n = table->backend->count(&error);
        if (n < 0) return to_status(error);
        if (n == 0) return Status(CONVT_UNSUPPORTED, concat("there is no device of ", kind));
        count = static_cast<size_t>(n);
        return Status();
    });
    return count;
}

const char *convt_device_description(const char *kind, size_t index) {
    static CONVTRANSPOSE_THREAD_LOCAL char text[512];
    const convt_status status = guarded([&]() -> Status {
        const DeviceTable *const table = kind ? convtranspose::find_device_table(kind) : nullptr;
        if (!table) return Status(CONVT_UNSUPPORTED, concat("device \"", kind ? kind : "", "\" is not built in"));
        convtranspose::DeviceError error;
        const bool done = table->backend->describe(static_cast<int>(index), text, sizeof text, &error);
        return done ? Status() : to_status(error);
    });
    return status == CONVT_OK ? text : nullptr;
}

convt_status convt_tuning_read(const char *text, size_t size, convt_tuning **tuning) {
    return guarded([&]() -> Status {
        if ((!text && size) || !tuning) return invalid("text and tuning must not be null");
        auto made = std::make_unique<convt_tuning>();
        if (Status status = convtranspose::Tuning::read({text, size}, &made->records); !status) return status;
        *tuning = made.release();
        return Status();
    });
}

void convt_tuning_destroy(convt_tuning *tuning) { delete tuning; }

const char *convt_cpu_name(void) { return guarded_or("", convtranspose::cpu_name); }
const char *convt_kernels_version(void) { return convtranspose::kernels_version(); }

convt_status convt_add_kernels(const convt_kernels *kernels) {
    return guarded([&] { return convtranspose::add_kernels(kernels); });
}

size_t convt_isa_count(void) {
    return guarded_or(size_t{0}, [] { return isas_built_in().count; });
}

const char *convt_isa_name(size_t i) { return i < convt_isa_count() ? isa_name(isas_built_in().list[i]) : nullptr; }

int convt_isa_supported(size_t i) {
    return i < convt_isa_count() && guarded_or(false, [&] { return isa_supported(isas_built_in().list[i]); });
}

size_t convt_variant_count(void) {
    return guarded_or(size_t{0}, [] { return variant_names().size(); });
}

const char *convt_variant_name(size_t i) { return i < convt_variant_count() ? variant_names()[i] : nullptr; }

} // extern "C"
