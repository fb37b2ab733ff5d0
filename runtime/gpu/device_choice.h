// This chooses a kernel for a device, and the number of parts that its sums over input channels are split into.
#pragma once

#include <string>
#include <vector>

#include "gpu/device_table.h"
#include "kernels/packed_weights.h"
#include "problem/spatial_problem.h"
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
    std::string own_name; // the variant's; ":P" follows if sums over input channels are computed in P parts
    const DeviceVariant *variant = nullptr;
    const DeviceVariant *combine = nullptr; // adds up parts and does post-ops; null: not needed
    int splits = 1;
    UnsupportedReason unsupported;
    DeviceWork work;
    double cost = 0; // in cycles, estimated

    const char *name() const { return own_name.c_str(); }
};

// Returns the choices for each variant, in table order: one for each number of parts that its sums may be computed in, or one that
// says why it is unsupported. packed: the layout of weights that are packed already; null: none are.
std::vector<DeviceChoice> device_choices(const DeviceTable &table, const DeviceFacts &device,
                                         const SpatialProblem &problem, const PackedLayout *packed);

// Returns the bytes of a packed weight.
inline std::int64_t operand_size(const DeviceVariant &v) { return operand_size(v.arithmetic, sum_dtype(v.x_dtype)); }

// Returns the members of a layout that a variant decides. Groups are side by side (oc_tile = 0) if they have one input and one
// output channel each.
PackedLayout packing_of(const DeviceVariant &variant, const Geometry &geometry);

} // namespace convtranspose
