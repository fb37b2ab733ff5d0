#include "kernel_contract/kernel_table.h"

namespace convtranspose {

const KernelTable convt_float_kernels = {};

} // namespace convtranspose
