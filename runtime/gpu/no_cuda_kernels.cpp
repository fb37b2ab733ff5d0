// This file stands in for the component `cuda` in programs that do not link it.
#include "gpu/device_table.h"

namespace convtranspose {

const DeviceTable convt_cuda_kernels = {"cuda", nullptr, 0, {}, nullptr};

} // namespace convtranspose
