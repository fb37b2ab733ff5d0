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

// The work of a kernel, from which its time is estimated.
struct DeviceWork {
    double blocks = 0;         // of threads
    double steps = 0;          // of a block: chunks of channels times kernel elements, on average over the phases
    double bytes = 0;          // of x, w and y
    double combined_bytes = 0; // that the kernel moves which adds up parts
    bool strided = false;      // neighbouring threads read or write elements that are apart
};

struct DeviceChoice {
    std::string name; // the variant's; ":P" follows if sums over input channels are computed in P parts
    const DeviceVariant *variant = nullptr;
    const DeviceVariant *combine = nullptr; // adds up parts and does post-ops; null: not needed
    int splits = 1;
    UnsupportedReason unsupported;
    DeviceWork work;
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

// Returns the choices for each variant, in table order: one for each number of parts that its sums may be computed in, or one that
// says why it is unsupported.
std::vector<DeviceChoice> device_choices(const DeviceTable &table, const DeviceQuestion &question);

// Returns the bytes of a packed weight.
std::size_t bytes_of_weight(const DeviceVariant &variant);

// Returns true if the variant's weights are packed with groups side by side, which takes one input and one output channel per
// group.
bool packs_groups(const DeviceVariant &variant, const Geometry &geometry);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_GPU_DEVICE_CHOICE_H_
