// This file stands in for the component `opencl` in programs that do not link it.
#include "gpu/device_table.h"

namespace convtranspose {

const DeviceTable convt_opencl_kernels = {"opencl", nullptr, 0, {}, nullptr};

} // namespace convtranspose
