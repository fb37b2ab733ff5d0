// The C interface checks what the caller hands over, and lets no exception out.
#include "convtranspose/convtranspose.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "api/arguments.h"
#include "api/known_structs.h"
#include "base/error.h"
#include "base/float_mode.h"
#include "base/once.h"
#include "base/parallel.h"
#include "base/shape.h"
#include "base/usable_cpus.h"
#include "cpu/cpu.h"
#include "gpu/device_plan.h"
#include "kernels/kernel_tables.h"
#include "plan/problem_plan.h"
#include "problem/geometry.h"

struct convt_plan {
    convtranspose::Geometry geometry;
    convtranspose::Problem problem; // reshaping resolves it again
    double macs = 0;
    std::unique_ptr<convtranspose::ProblemPlan> plan;
    struct Recorded {
        convtranspose::TuningRecord record;
        std::string text;
    };
    convtranspose::Lazy<Recorded> recorded;
    convtranspose::Lazy<std::string> explanation;
};

namespace {

using namespace convtranspose;

// This memory needs no allocation and no destructor, so that reporting a failure cannot fail. A longer message is cut off.
CONVTRANSPOSE_THREAD_LOCAL char message[2048] = "";

[[maybe_unused]] convt_status report(convt_status code, const char *begin, const char *end = "") {
    if (code != CONVT_OK) std::snprintf(message, sizeof message, "%s%s", begin, end);
    return code;
}

convt_status report(const Status &status) { return report(status.code(), status.message().c_str()); }

#ifdef __cpp_exceptions
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

// Runs body(), rounding to nearest, and turns what it throws into a status: no exception may leave a C function.
template<typename Body>
convt_status guarded(const Body &body) noexcept {
    const FloatMode::Scope nearest(FloatMode::of_this_thread().to_nearest());
    convt_status code = CONVT_INTERNAL;
    attempt([&] { code = report(body()); }, [&] { code = report_caught(); });
    return code;
}

// Returns what body() returns, or `otherwise` if that fails, for want of memory.
template<typename T, typename Body>
T guarded_or(T otherwise, const Body &body) noexcept {
    guarded([&] {
        otherwise = body();
        return Status();
    });
    return otherwise;
}

const std::vector<const char *> &variant_names() {
    static Once<std::vector<const char *>> names;
    return names.get([] {
        std::vector<const char *> list;
        for (std::size_t i = 0; i < variant_count(); i++) {
            const char *name = variant_at(i).name;
            const auto same = [&](const char *other) { return std::strcmp(name, other) == 0; };
            if (std::none_of(list.begin(), list.end(), same)) list.push_back(name);
        }
        return list;
    });
}

Status run_plan(const convt_plan *plan, const convt_arguments &given) {
    if (!plan) return invalid("plan, x and y must not be null");
    KnownArguments known;
    TRY(known.read(given));
    const convt_arguments &arguments = known.arguments;
    RunTensors tensors;
    std::optional<QuantizationValues> values;
    TRY(tensors_of(*plan->plan, plan->geometry, arguments, &tensors, &values));
    const RunHook hook(arguments.parallel_for, arguments.parallel_user);
    return plan->plan->run(tensors, arguments.workspace);
}

// The arguments of the functions that take some of them one by one.
convt_arguments arguments_of(const convt_tensor *x, const convt_tensor *w, const convt_tensor *b, const convt_tensor *y,
                             void *workspace) {
    convt_arguments arguments{};
    arguments.struct_size = sizeof arguments;
    arguments.x = x;
    arguments.w = w;
    arguments.b = b;
    arguments.y = y;
    arguments.workspace = workspace;
    return arguments;
}

const convt_plan::Recorded &recorded(const convt_plan &plan) {
    return plan.recorded.get([&] {
        const TuningRecord record = plan.plan->record();
        return convt_plan::Recorded{record, to_json(record)};
    });
}

// Returns the i-th kind of device whose component is linked, or null past the last.
const char *device_kind(std::size_t i) {
    for (const char *kind : {"cuda", "opencl"}) {
        if (find_device_table(kind) && i-- == 0) return kind;
    }
    return nullptr;
}

} // namespace

extern "C" {

const char *convt_version(void) { return CONVT_VERSION; }

const char *convt_last_error(void) { return message; }

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

const char *convt_dtype_name(convt_dtype dtype) { return dtype_facts(raw(dtype)).name; }

size_t convt_dtype_size(convt_dtype dtype) { return dtype_facts(raw(dtype)).size; }

convt_status convt_infer_shape(const convt_problem *problem, int64_t *y_shape, size_t capacity, size_t *rank) {
    return guarded([&]() -> Status {
        if (!problem || !rank || (!y_shape && capacity)) return invalid("problem, y_shape and rank must not be null");
        KnownProblem known;
        Geometry g;
        TRY(known.read(*problem));
        TRY(resolve_for_plan(known.problem, &g));
        *rank = g.y_shape.size();
        if (y_shape) std::copy_n(g.y_shape.begin(), std::min(capacity, g.y_shape.size()), y_shape);
        return Status();
    });
}

convt_status convt_plan_create(const convt_problem *problem, const convt_tensor *w, const convt_tensor *b,
                               const convt_options *options, convt_plan **plan) {
    return guarded([&]() -> Status {
        if (!problem || !plan) return invalid("problem and plan must not be null");
        auto made = std::make_unique<convt_plan>();
        Geometry &g = made->geometry;
        KnownProblem known;
        KnownOptions how;
        convt_tensor own_w{}, own_b{};
        TRY(known.read(*problem));
        TRY(how.read(options));
        TRY(read_optional("w", &w, &own_w));
        TRY(read_optional("b", &b, &own_b));
        TRY(resolve_for_plan(known.problem, &g));
        std::optional<DeviceRequest> device;
        Status device_status = device_of(how.options, &device);
        const bool falls_back = how.device.falls_back != 0;
        if (!device_status && (!falls_back || device_status.code() == CONVT_INVALID_ARGUMENT)) return device_status;
        convt_options on_cpu = how.options;
        if (how.device.name && std::strcmp(how.device.name, "cpu") != 0)
            on_cpu.variant = nullptr; // it names a device's kernel
        PlanSettings settings;
        TRY(settings_of(on_cpu, &settings));
        const Status with_isa = choose_isa(on_cpu, &settings);
        if (!device || on_cpu.isa) TRY(with_isa);
        QuantizationValues values;
        LayerWeights weights;
        if (known.problem.quantization) weights.quantization = &values;
        if (weights.quantization) TRY(read_quantization(known.quantization, g, &values));
        TRY(weights_for_plan(w, b, g, &weights));
        made->problem = copy_of(known.problem);
        made->macs = count_macs(g);
        const auto make = [&](const Geometry &geometry, const LayerWeights &own, std::unique_ptr<ProblemPlan> *to) {
            if (device) {
                Status on_device = plan_on_device(geometry, *device, settings.allocator, own, to);
                if (on_device || !falls_back || !with_isa) return on_device;
            }
            return plan_on_cpu(geometry, settings, own, to);
        };
        const bool converts = !g.quantized() && g.w_dtype != g.dtype;
        TRY(converts ? plan_by_converting(g, settings, weights, make, &made->plan) : make(g, weights, &made->plan));
        *plan = made.release();
        return Status();
    });
}

convt_status convt_plan_reshape(const convt_plan *plan, convt_ints x_shape, convt_plan **reshaped) {
    return guarded([&]() -> Status {
        if (!plan || !reshaped) return invalid("plan and reshaped must not be null");
        auto made = std::make_unique<convt_plan>();
        made->problem = plan->problem;
        if (x_shape.size != made->problem.x_shape.size()) {
            return invalid("x_shape has ", x_shape.size, " elements, needs ", made->problem.x_shape.size(),
                           " (the rank of the plan)");
        }
        made->problem.x_shape = x_shape.data ? Shape(x_shape.data, x_shape.data + x_shape.size) : Shape();
        TRY(resolve_for_plan(detail::view(made->problem), &made->geometry));
        made->macs = count_macs(made->geometry);
        TRY(plan->plan->reshape(made->geometry, &made->plan));
        *reshaped = made.release();
        return Status();
    });
}

void convt_plan_destroy(convt_plan *plan) { delete plan; }

convt_status convt_plan_run(const convt_plan *plan, const convt_tensor *x, const convt_tensor *w, const convt_tensor *b,
                            const convt_tensor *y, void *workspace) {
    return guarded([&] { return run_plan(plan, arguments_of(x, w, b, y, workspace)); });
}

convt_status convt_plan_run_quantized(const convt_plan *plan, const convt_tensor *x, const convt_tensor *w,
                                      const convt_tensor *b, const convt_tensor *y,
                                      const convt_quantization *quantization, void *workspace) {
    return guarded([&]() -> Status {
        if (!quantization) return invalid("quantization must not be null");
        convt_arguments arguments = arguments_of(x, w, b, y, workspace);
        arguments.quantization = quantization;
        return run_plan(plan, arguments);
    });
}

convt_status convt_plan_run_with(const convt_plan *plan, const convt_arguments *arguments) {
    return guarded([&]() -> Status {
        if (!arguments) return invalid("arguments must not be null");
        return run_plan(plan, *arguments);
    });
}

size_t convt_plan_workspace_bytes(const convt_plan *plan) { return plan ? plan->plan->facts().workspace_bytes : 0; }
size_t convt_plan_packed_bytes(const convt_plan *plan) { return plan ? plan->plan->facts().packed_bytes : 0; }
size_t convt_plan_rank(const convt_plan *plan) { return plan ? plan->geometry.x_shape.size() : 0; }
const int64_t *convt_plan_x_shape(const convt_plan *plan) { return plan ? plan->geometry.x_shape.data() : nullptr; }
const int64_t *convt_plan_y_shape(const convt_plan *plan) { return plan ? plan->geometry.y_shape.data() : nullptr; }
double convt_plan_macs(const convt_plan *plan) { return plan ? plan->macs : 0; }
int convt_plan_threads(const convt_plan *plan) { return plan ? plan->plan->facts().threads : 0; }
const char *convt_plan_variant(const convt_plan *plan) { return plan ? plan->plan->facts().variant : ""; }
const char *convt_plan_algorithm(const convt_plan *plan) { return plan ? plan->plan->facts().algorithm : ""; }
const char *convt_plan_isa(const convt_plan *plan) { return plan ? plan->plan->facts().isa : ""; }
const char *convt_plan_device(const convt_plan *plan) {
    if (!plan) return "";
    return plan->plan->facts().is_on_device ? plan->plan->facts().isa : "cpu";
}
const char *convt_plan_problem(const convt_plan *plan) {
    return plan ? guarded_or("", [&] { return recorded(*plan).record.problem.c_str(); }) : "";
}
const char *convt_plan_record(const convt_plan *plan) {
    return plan ? guarded_or("", [&] { return recorded(*plan).text.c_str(); }) : "";
}
size_t convt_plan_candidate_count(const convt_plan *plan) {
    return plan ? guarded_or(size_t{0}, [&] { return plan->plan->able().size(); }) : 0;
}
const char *convt_plan_candidate(const convt_plan *plan, size_t i) {
    return i < convt_plan_candidate_count(plan) ? plan->plan->able()[i].name : nullptr;
}
double convt_plan_candidate_cycles(const convt_plan *plan, size_t i) {
    return i < convt_plan_candidate_count(plan) ? plan->plan->able()[i].cycles : 0;
}
const char *convt_plan_cost_field(const convt_plan *plan, size_t i, double *value) {
    const CostProfile *const profile = plan ? plan->plan->facts().profile : nullptr;
    if (!profile || i >= kCostFieldCount) return nullptr;
    if (value) *value = profile->*kCostFields[i].value;
    return kCostFields[i].name;
}
size_t convt_plan_kernel_count(const convt_plan *plan) {
    return plan ? guarded_or(size_t{0}, [&] { return plan->plan->kernels().size(); }) : 0;
}
const char *convt_plan_kernel(const convt_plan *plan, size_t i) {
    return i < convt_plan_kernel_count(plan) ? plan->plan->kernels()[i] : nullptr;
}
const char *convt_plan_explain(const convt_plan *plan) {
    if (!plan) return "";
    return guarded_or("", [&] { return plan->explanation.get([&] { return plan->plan->explain(); }).c_str(); });
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
        const DeviceTable *table = nullptr;
        TRY(device_table_of(kind ? kind : "", &table));
        DeviceError error;
        const int n = table->backend->count(&error);
        if (n < 0) return to_status(false, error);
        if (n == 0) return unsupported("there is no device of ", kind);
        count = static_cast<size_t>(n);
        return Status();
    });
    return count;
}

const char *convt_device_description(const char *kind, size_t index) {
    static CONVTRANSPOSE_THREAD_LOCAL char text[512];
    const convt_status status = guarded([&]() -> Status {
        const DeviceTable *table = nullptr;
        TRY(device_table_of(kind ? kind : "", &table));
        if (index > static_cast<size_t>(std::numeric_limits<int>::max())) {
            return unsupported("there is no device ", index, " of ", kind);
        }
        DeviceError error;
        return to_status(table->backend->describe(static_cast<int>(index), text, sizeof text, &error), error);
    });
    return status == CONVT_OK ? text : nullptr;
}

convt_status convt_tuning_read(const char *text, size_t size, convt_tuning **tuning) {
    return guarded([&]() -> Status {
        if ((!text && size) || !tuning) return invalid("text and tuning must not be null");
        auto made = std::make_unique<convt_tuning>();
        TRY(Tuning::read({text, size}, &made->records));
        *tuning = made.release();
        return Status();
    });
}

void convt_tuning_destroy(convt_tuning *tuning) { delete tuning; }

const char *convt_cpu_name(void) { return guarded_or("", cpu_name); }
int convt_usable_cpus(void) { return static_cast<int>(std::min<size_t>(usable_cpus(), kMostThreads)); }
const char *convt_kernels_version(void) { return kernels_version(); }

convt_status convt_add_kernels(const convt_kernels *kernels) {
    return guarded([&] { return add_kernels(kernels); });
}

size_t convt_isa_count(void) {
    return guarded_or(size_t{0}, [] { return isas_built_in().size(); });
}

const char *convt_isa_name(size_t i) { return i < convt_isa_count() ? isa_name(isas_built_in()[i]) : nullptr; }

int convt_isa_supported(size_t i) {
    return i < convt_isa_count() && guarded_or(false, [&] { return isa_supported(isas_built_in()[i]); });
}

size_t convt_variant_count(void) {
    return guarded_or(size_t{0}, [] { return variant_names().size(); });
}

const char *convt_variant_name(size_t i) { return i < convt_variant_count() ? variant_names()[i] : nullptr; }

size_t convt_algorithm_count(void) { return algorithms().size(); }

const char *convt_algorithm_name(size_t i) {
    return i < algorithms().size() ? (algorithms().begin() + i)->name : nullptr;
}

} // extern "C"
