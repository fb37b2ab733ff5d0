// Which kinds of devices are linked.
#include "open_device.h"

namespace convtranspose {

const DeviceTable *find_device_table(const std::string &kind) {
    for (const DeviceTable *table : {&convt_cuda_kernels, &convt_opencl_kernels}) {
        if (table->backend && kind == table->kind) return table;
    }
    return nullptr;
}

} // namespace convtranspose
