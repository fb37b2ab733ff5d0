// This chooses a kernel for a device, and the number of parts that its sums over input channels are split into.
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
    const DeviceVariant *combine = nullptr; // adds up parts and does post-ops; null: not needed
    int splits = 1;
    UnsupportedReason unsupported;
    double cost = 0; // in cycles, estimated
};

// These properties of a problem and of a device decide which variants can compute the problem, and how fast.
struct DeviceQuestion {
    const Geometry *geometry = nullptr;
    const std::array<AxisPlan, 3> *axes = nullptr; // w, h, d
    bool finite = true;                            // true if all weights are finite
    bool fits_int8 = false;                        // true if quantized weights, less their zero points, fit in 8 bits
    int multiprocessors = 1;
    bool has_f64 = true;       // true if the device computes with f64
    std::int64_t oc_tile = 0;  // tile of weights that are packed already; 0: none are
    int block = 1;             // likewise: of input channels
    bool dense_groups = false; // likewise: true if groups are side by side
};

// Returns a choice for each variant, in table order.
std::vector<DeviceChoice> device_choices(const DeviceTable &table, const DeviceQuestion &question);

// Returns true if the variant's weights are packed with groups side by side, which takes one input and one output channel per
// group.
bool packs_groups(const DeviceVariant &variant, const Geometry &geometry);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_GPU_DEVICE_CHOICE_H_
