// Choosing a kernel for a device, and how many parts sums over input channels are split into.
#ifndef CONVTRANSPOSE_RUNTIME_GPU_DEVICE_CHOICE_H_
#define CONVTRANSPOSE_RUNTIME_GPU_DEVICE_CHOICE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/device_table.h"
#include "problem/axis_plan.h"
#include "selection/candidates.h"

namespace convtranspose {

struct DeviceChoice {
    const DeviceVariant *variant = nullptr;
    const DeviceVariant *combine = nullptr; // adds up parts, and does post-ops; null: not needed
    int splits = 1;
    UnsupportedReason unsupported;
    double cost = 0; // estimated cycles
};

// What all variants are asked about a problem.
struct DeviceQuestion {
    const Geometry *geometry = nullptr;
    const std::array<AxisPlan, 3> *axes = nullptr; // w, h, d
    bool finite = true;                            // whether all weights are
    bool fits_int8 = false;                        // whether quantized weights do, less their zero points
    int multiprocessors = 1;
    bool has_f64 = true;       // whether the device computes with it
    std::int64_t oc_tile = 0;  // of weights that are packed already; 0: none are
    int block = 1;             // likewise: of input channels
    bool dense_groups = false; // likewise: that they are packed with groups side by side
};

// In table order.
std::vector<DeviceChoice> device_choices(const DeviceTable &table, const DeviceQuestion &question);

// Whether weights of the variant are packed with groups side by side, as one input and one output channel each allow.
bool packs_groups(const DeviceVariant &variant, const Geometry &geometry);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_GPU_DEVICE_CHOICE_H_
