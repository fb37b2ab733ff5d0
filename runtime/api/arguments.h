// These functions check the caller's arguments. The message of a failure names the argument, its value and the rule.
#pragma once

#include <optional>
#include <vector>

#include "base/error.h"
#include "base/shape.h"
#include "convtranspose/convtranspose.hpp"
#include "gpu/device_plan.h"
#include "plan/problem_plan.h"
#include "problem/geometry.h"

namespace convtranspose {

constexpr int kMostThreads = 4096; // that a plan may be asked for

// Returns the name of a type and the bytes of an element; "unknown" and 0 for other numbers.
struct DtypeFacts {
    const char *name;
    std::size_t size;
};
inline DtypeFacts dtype_facts(int dtype) {
    static constexpr DtypeFacts kFacts[] = {{"unknown", 0}, {"f16", 2}, {"bf16", 2}, {"f32", 4},
                                            {"f64", 8},     {"u8", 1},  {"s8", 1},   {"s32", 4}};
    return kFacts[dtype >= CONVT_F16 && dtype <= CONVT_S32 ? dtype : 0];
}

// Returns the ISAs whose kernels are linked, the best first.
const std::vector<Isa> &isas_built_in();

// Finds what is built in for a kind of device, such as "cuda".
Status device_table_of(const char *kind, const DeviceTable **table);
// Reads the options (as KnownOptions has them) for a plan on a device. *request stays empty if they are for the CPU.
Status device_of(const convt_options &options, std::optional<DeviceRequest> *request);
// Reads the options but for `isa`, `variant` and `device`.
Status settings_of(const convt_options &options, PlanSettings *settings);
// Reads `isa` and `variant` for a plan on the CPU. A program may lack kernels for it.
Status choose_isa(const convt_options &options, PlanSettings *settings);

// Checks a tensor handed to a run or a plan against what was planned, and fills *tensor except for its memory. dense: the tensor
// must have no gaps.
Status check_tensor(const char *name, const convt_tensor &t, convt_dtype dtype, const Shape &shape, bool dense,
                    RunTensor *tensor);

// Checks the problem, also against the sizes that kernels can index, and fills *geometry.
Status resolve_for_plan(const convt_problem &problem, Geometry *geometry);
// Returns the problem, held by value.
Problem copy_of(const convt_problem &problem);
// Checks the weights that a plan is made with, and completes *weights, whose quantization is known. Null weights arrive with each
// run.
Status weights_for_plan(const convt_tensor *w, const convt_tensor *b, const Geometry &geometry, LayerWeights *weights);

// Checks a run's tensors against what was planned. *values keeps the quantization that arrives with the run; *tensors refers to
// it.
Status tensors_of(const ProblemPlan &plan, const Geometry &geometry, const convt_arguments &arguments,
                  RunTensors *tensors, std::optional<QuantizationValues> *values);

} // namespace convtranspose
