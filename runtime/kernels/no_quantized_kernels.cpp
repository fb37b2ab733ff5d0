#include "kernel_contract/kernel_table.h"

namespace convtranspose {

const KernelTable convt_quantized_kernels = {};

} // namespace convtranspose
